package worker

import (
	"context"
	"time"
)

// Worker is a worker process, seen from the broker. Bind comes first, once; then one Compile, or Runs one after
// another. Kill, Done and PID may be called at any time from any goroutine.
type Worker struct{}

// Start starts a worker process and shakes hands with it. It is a spare: not bound, not yet confined.
func Start(ctx context.Context, o Options) (*Worker, error) { return nil, ErrUnsupported }

// Bind binds the worker, once.
func (w *Worker) Bind(ctx context.Context, b Bind) (*Bound, error) { return nil, ErrUnsupported }

// Compile compiles one module in a worker bound as RoleCompile, which ends with it.
func (w *Worker) Compile(ctx context.Context, j CompileJob) (*Compiled, error) {
	return nil, ErrUnsupported
}

// Run runs one guest.
func (w *Worker) Run(ctx context.Context, j RunJob) (*Result, error) { return nil, ErrUnsupported }

// Kill ends the worker at once. It may be called more than once and from any goroutine; it waits for the end.
func (w *Worker) Kill() {}

// Done is closed when the process has ended and was waited for.
func (w *Worker) Done() <-chan struct{} { return nil }

// PID is the process id.
func (w *Worker) PID() int { return 0 }

// RSS is the resident memory now, in bytes; 0 if it is not known.
func (w *Worker) RSS() int64 { return 0 }

// CPU is the processor time used up to now.
func (w *Worker) CPU() time.Duration { return 0 }

// Main runs a worker if this process was started as one, and then does not return; else it returns at once.
func Main(d Deps) {}
