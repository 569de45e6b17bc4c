package host

import (
	"context"
	"errors"
	"io"
)

// Process is a run under way, for callers that talk to the guest. Its methods may be used from several goroutines; each
// stream by one at a time.
type Process struct {
	in     *io.PipeWriter
	out    *io.PipeReader
	errs   *io.PipeReader
	cancel context.CancelCauseFunc
	done   chan struct{}
	report *Report
	err    error
}

// errKilled is the cause of a run that Process.Kill ended.
var errKilled = errors.New("killed by the caller")

// Start begins a run whose streams the caller reads and writes while it goes on. job.Stdin, Stdout and Stderr must be
// nil. Both output streams have to be read, or closed, or the guest waits. The caller calls [Process.Wait].
//
// Errors are those of [Extension.Run] that are known before anything starts; the others come from Wait.
func (e *Extension) Start(ctx context.Context, job Job) (*Process, error) {
	if job.Stdin != nil || job.Stdout != nil || job.Stderr != nil {
		return nil, errors.New("Start: the job's streams must be nil")
	}
	p := &Process{done: make(chan struct{})}
	var in *io.PipeReader
	var out, errs *io.PipeWriter
	in, p.in = io.Pipe()
	p.out, out = io.Pipe()
	p.errs, errs = io.Pipe()
	job.Stdin, job.Stdout, job.Stderr = in, out, errs
	r, err := e.newRun(job)
	if err != nil {
		return nil, err
	}
	r.patient = true
	ctx, p.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(p.done)
		defer e.runs.Done()
		p.report, p.err = r.do(ctx)
		p.cancel(nil)
		in.CloseWithError(io.ErrClosedPipe) // writers learn that nobody reads any more
		out.Close()
		errs.Close()
	}()
	return p, nil
}

// Stdin is what the guest reads. Closing it is the end of file.
func (p *Process) Stdin() io.WriteCloser { return p.in }

// Stdout is what the guest writes to its standard output, up to the policy's limit. Closing it discards the rest.
func (p *Process) Stdout() io.ReadCloser { return p.out }

// Stderr is what the guest writes to its standard error, up to the policy's limit. Closing it discards the rest.
func (p *Process) Stderr() io.ReadCloser { return p.errs }

// Kill ends the guest. Wait then returns an error beside the report.
func (p *Process) Kill() { p.cancel(errKilled) }

// Wait waits for the end of the run and returns what [Extension.Run] would. It may be called more than once.
func (p *Process) Wait() (*Report, error) {
	<-p.done
	return p.report, p.err
}
