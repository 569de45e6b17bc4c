package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"unsafe"
)

// selfTest tries what must fail once the walls stand, on a thread that was there before them, on the one that built them
// and on one that is made after. What could be opened before and cannot be opened after proves Landlock.
type selfTest struct {
	canaries []string // opened before the walls, none below a root
	before   chan func()
	parent   int
}

type proof struct{ landlock, seccomp error }

// newSelfTest collects what can be opened now. Preconditions: no wall stands yet.
func newSelfTest(w *inside, m *msgBind) *selfTest {
	var roots []string
	for _, fd := range w.fds {
		if p, err := os.Readlink(pathOf(fd)); err == nil {
			roots = append(roots, p)
		}
	}
	t := &selfTest{before: make(chan func()), parent: os.Getppid()}
	for _, path := range []string{m.Exe, "/etc/passwd", "/etc", "/proc/self/status", "/sys", "/usr", "/"} {
		covered := path == ""
		for _, r := range roots {
			covered = covered || path == r || r == "/" || strings.HasPrefix(path, r+"/")
		}
		if covered {
			continue
		}
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
			unix.Close(fd)
			t.canaries = append(t.canaries, path)
		}
	}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		for f := range t.before {
			f()
		}
		// The goroutine ends locked, so its thread ends too.
	}()
	<-ready
	return t
}

func (t *selfTest) end() { close(t.before) }

// run makes the attempts on the three threads.
func (t *selfTest) run(landlock, filter bool) proof {
	results := make(chan proof, 3)
	attempt := func() { results <- t.attempt(landlock, filter) }
	t.before <- attempt
	runtime.LockOSThread()
	attempt()
	done := make(chan struct{})
	go func() {
		// The others are locked, so this one has a thread of its own.
		runtime.LockOSThread()
		attempt()
		close(done)
	}()
	<-done
	runtime.UnlockOSThread()
	var all proof
	for range 3 {
		p := <-results
		all.landlock = errors.Join(all.landlock, p.landlock)
		all.seccomp = errors.Join(all.seccomp, p.seccomp)
	}
	return all
}

func (t *selfTest) attempt(landlock, filter bool) (p proof) {
	if landlock {
		p.landlock = t.tryFiles()
	}
	if filter {
		p.seccomp = t.tryCalls()
	}
	return p
}

func (t *selfTest) tryFiles() error {
	if len(t.canaries) == 0 {
		return errors.New("self-test: every path that could prove it is below a root")
	}
	for _, path := range t.canaries {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil {
			unix.Close(fd)
		}
		if err != unix.EACCES {
			return fmt.Errorf("self-test: open %q: %v", path, err)
		}
	}
	return nil
}

// tryCalls makes calls that would do no harm if they were let through, and that would fail with another error then.
func (t *selfTest) tryCalls() error {
	var empty [1]byte
	none := uintptr(unsafe.Pointer(&empty))
	for _, c := range []struct {
		name string
		nr   uintptr
		args [5]uintptr
		want syscall.Errno
	}{
		{"socket", unix.SYS_SOCKET, [5]uintptr{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, unix.EPERM},
		// An empty path: ENOENT without the wall.
		{"execve", unix.SYS_EXECVE, [5]uintptr{none}, unix.EPERM},
		// A process that there is not: ESRCH without the wall.
		{"ptrace", unix.SYS_PTRACE, [5]uintptr{unix.PTRACE_ATTACH, 0x7ffffff0}, unix.EPERM},
		{"kill", unix.SYS_KILL, [5]uintptr{uintptr(t.parent), 0}, unix.EPERM},
		// Flags that no kernel takes: EINVAL without the wall.
		{"clone", unix.SYS_CLONE, [5]uintptr{unix.CLONE_NEWNS | unix.CLONE_FS}, unix.EPERM},
		{"clone3", sysClone3, [5]uintptr{}, unix.ENOSYS},
		{"unshare", unix.SYS_UNSHARE, [5]uintptr{1}, unix.EPERM},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [5]uintptr{none, ^uintptr(0)}, unix.EPERM},
	} {
		r, _, e := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0)
		if e == 0 && c.nr == unix.SYS_SOCKET {
			unix.Close(int(r))
		}
		if e != c.want {
			return fmt.Errorf("self-test: %s: %v", c.name, e)
		}
	}
	runtime.KeepAlive(&empty)
	return nil
}

const sysClone3 = 435 // on every architecture
