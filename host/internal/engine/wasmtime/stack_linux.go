//go:build cgo && !exthost_nowasmtime && amd64

package wasmtime

/*
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

// exthost_default_stack sets the stack size of threads to come and returns the former one, 0 on failure.
static size_t exthost_default_stack(size_t size) {
	pthread_attr_t attr;
	size_t old = 0;
	if (pthread_getattr_default_np(&attr) != 0) return 0;
	pthread_attr_getstacksize(&attr, &old);
	if (size != 0 && (pthread_attr_setstacksize(&attr, size) != 0 || pthread_setattr_default_np(&attr) != 0)) old = 0;
	pthread_attr_destroy(&attr);
	return old;
}

// exthost_own_stack returns the stack size of the calling thread, 0 on failure.
static size_t exthost_own_stack(void) {
	pthread_attr_t attr;
	size_t size = 0;
	if (pthread_getattr_np(pthread_self(), &attr) != 0) return 0;
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_destroy(&attr);
	return size;
}
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
)

const (
	// maxWasmStack is the native stack that a guest may use, bytes.
	maxWasmStack = 8 << 20
	// threadStack is what the guest thread asks for. Only touched pages take memory, but all of it counts against
	// RLIMIT_DATA.
	threadStack = 32 << 20
	// enoughStack is what it needs: the guest's 8 MiB, and what wasmtime and the C side of host functions use.
	enoughStack = 3 * maxWasmStack
	// maxThreads bounds the search for a thread that was made after the default changed.
	maxThreads = 64
)

// stack runs functions, one after another, on a thread with a big stack.
//
// Go does not let a program choose the stack size of a thread. glibc has a default for new threads, and Go makes a
// new thread when all others are locked: so the default is raised, goroutines that lock their threads are started until
// one of them sits on a big stack, and the default goes back.
type stack struct {
	once sync.Once
	jobs chan func()
	err  error
}

func newStack() *stack { return &stack{} }

// do runs f and waits for it.
func (s *stack) do(f func()) error {
	s.once.Do(s.start)
	if s.err != nil {
		return s.err
	}
	done := make(chan any)
	s.jobs <- func() {
		defer func() { done <- recover() }()
		f()
	}
	if p := <-done; p != nil {
		panic(p)
	}
	return nil
}

// close ends the thread. No do is under way or comes later.
func (s *stack) close() {
	s.once.Do(func() { s.err = errors.New("engine is closed") })
	if s.jobs != nil {
		close(s.jobs)
	}
}

func (s *stack) start() {
	old := C.exthost_default_stack(threadStack)
	if old == 0 {
		s.err = errors.New("wasmtime: cannot set the stack size of new threads")
		return
	}
	defer C.exthost_default_stack(old)
	jobs := make(chan func())
	found := make(chan bool)
	release := make(chan struct{})
	defer close(release)
	for range maxThreads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if C.exthost_own_stack() < enoughStack {
				found <- false
				<-release // holds its thread, so that the next goroutine gets another
				return
			}
			found <- true
			for f := range jobs {
				f()
			}
		}()
		if <-found {
			s.jobs = jobs
			return
		}
	}
	s.err = errors.New("wasmtime: no thread with a big stack could be had")
}
