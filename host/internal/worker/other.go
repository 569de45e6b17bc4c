//go:build !linux

package worker

import (
	"context"
	"errors"
	"time"
)

// Worker is a worker process, seen from the broker. There is none on this platform yet.
type Worker struct{ done chan struct{} }

// ErrRetired is told in [Worker.Run].
var ErrRetired = errors.New("worker is retired: its processor time is nearly used up")

// Start is [ErrUnsupported] here: no wall is built on this platform, and guests never run in the broker.
func Start(ctx context.Context, o Options) (*Worker, error) { return nil, ErrUnsupported }

// Bind is [ErrUnsupported].
func (w *Worker) Bind(ctx context.Context, b Bind) (*Bound, error) { return nil, ErrUnsupported }

// Compile is [ErrUnsupported].
func (w *Worker) Compile(ctx context.Context, j CompileJob) (*Compiled, error) {
	return nil, ErrUnsupported
}

// Run is [ErrUnsupported].
func (w *Worker) Run(ctx context.Context, j RunJob) (*Result, error) { return nil, ErrUnsupported }

// Kill does nothing: there is no process.
func (w *Worker) Kill() {}

// Done is never closed.
func (w *Worker) Done() <-chan struct{} { return w.done }

// PID is 0.
func (w *Worker) PID() int { return 0 }

// RSS is 0.
func (w *Worker) RSS() int64 { return 0 }

// CPU is 0.
func (w *Worker) CPU() time.Duration { return 0 }

// Main returns at once: no process is a worker here.
func Main(d Deps) {}
