package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
)

// rssRoom is what a worker may use beside the guest's memory: the engine, its code, its own heap. The kernel's limit is
// tighter where there is one; this one counts what the kernel's does not.
const rssRoom = 1 << 30

const (
	rssEvery = 50 * time.Millisecond
	// drainTime is how long the host waits, after the end of a run, for a stream that the worker ought to have closed.
	drainTime = 500 * time.Millisecond
	// writerTime is how long it waits for the caller's own writer.
	writerTime = 2 * time.Second
)

// Reasons for which the host itself ends a run.
var (
	errOutput = errors.New("output limit")
	errRSS    = errors.New("memory limit of the worker")
)

// Run runs a script of the extension and waits for its end.
//
// What became of the guest is in the report, whatever it is. The error is not nil if exthost could not run the script:
// it matches [ErrNotFound], [ErrNoRuntime] or [ErrDamaged] for a script that is not there, has no runtime or lost its
// line ends, [ErrWalls] if a required wall is missing here, [ErrClosed] after Close. If ctx ends first, the guest is
// killed within 100 ms, and the error matches [context.Cause] of ctx beside a report of what was seen.
func (e *Extension) Run(ctx context.Context, job Job) (*Report, error) {
	r, err := e.newRun(job)
	if err != nil {
		return nil, err
	}
	defer e.runs.Done()
	return r.do(ctx)
}

// run is one run under way.
type run struct {
	e      *Extension
	job    Job
	script script
	report *Report
	trail  *trail
	stop   context.CancelCauseFunc
	copies []*stream
	// patient runs wait for the caller's writers as long as it takes, or until they are killed.
	patient bool
}

func (e *Extension) newRun(job Job) (*run, error) {
	if err := e.use(); err != nil {
		return nil, err
	}
	s, err := e.find(job.Script)
	if err == nil && job.Dir != "" && !path.IsAbs(job.Dir) {
		err = fmt.Errorf("working directory %q: not an absolute guest path", job.Dir)
	}
	if err != nil {
		e.runs.Done()
		return nil, err
	}
	id := newID()
	r := &run{e: e, job: job, script: s}
	r.report = &Report{
		Version: 1, Run: id, Extension: e.name, Digest: e.snap.Digest, Script: s.Path, Engine: e.h.cfg.Engine,
		Walls: []string{}, Notes: slices.Concat(e.notes, s.notes), Started: time.Now(),
	}
	r.trail = newTrail(e, id)
	r.trail.quiet = s.runtime.Quiet
	return r, nil
}

// newID names a run. It is a component of file names too.
func newID() string { return strings.ToLower(rand.Text())[:16] }

func (r *run) do(ctx context.Context) (*Report, error) {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.trail.observed(Event{Op: "start", Detail: r.script.Path})
	err := r.try(ctx)
	r.report.Duration = time.Since(r.report.Started)
	r.report.Denials = r.trail.denials()
	switch v := judge(err); {
	case v != nil:
		r.settle(*v)
	case err != nil && errors.Is(err, ctx.Err()) || err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		r.settle(verdict{outcome: HostError, detail: "cancelled: " + err.Error()})
	case err != nil:
		r.settle(verdict{outcome: HostError, detail: err.Error()})
		r.trail.observed(Event{Op: "end", Detail: string(r.report.Outcome)})
		return nil, err
	}
	r.trail.observed(Event{Op: "end", Detail: string(r.report.Outcome)})
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, errOutput) && !errors.Is(cause, errRSS) {
			return r.report, cause
		}
	}
	return r.report, nil
}

// settle writes a verdict into the report.
func (r *run) settle(v verdict) {
	r.report.Outcome, r.report.Limit, r.report.Trap, r.report.Detail = v.outcome, v.limit, v.trap, v.detail
	r.report.ExitCode = exitCode(v.outcome, v.code)
}

// try runs the script. A nil error means that the report has its outcome already; judge maps others.
func (r *run) try(ctx context.Context) error {
	e, h := r.e, r.e.h
	src, rt, err := e.module(ctx, r.script)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		b, err := e.mint(r.job, r.script.runtime, rt)
		if err != nil {
			return err
		}
		done, err := r.attempt(ctx, src, b, attempt)
		b.Close()
		if done || err != nil {
			return err
		}
		h.log.Debug("run begins anew", "run", r.report.Run)
	}
}

// attempt runs the script in one worker. It returns false and no error if another worker, or code made anew, is wanted,
// which can only be before the guest began.
func (r *run) attempt(ctx context.Context, src source, b *binding, n int) (bool, error) {
	e, h := r.e, r.e.h
	c, err := h.compiled(ctx, src, b)
	if err != nil {
		return false, err
	}
	defer h.code.release(c)
	w, err := h.worker(ctx, e, b, c)
	if err != nil {
		return false, err
	}
	healthy := false
	defer func() {
		if healthy && b.limits.Time+2*time.Second+w.w.CPU() < w.cpu {
			h.pool.put(w)
			return
		}
		h.pool.mu.Lock()
		h.pool.later(w)
		h.pool.mu.Unlock()
	}()
	r.report.Walls = w.walls
	if len(w.missing) > 0 {
		r.note("runs without a wall, as a person accepted: %s", strings.Join(w.missing, "; "))
	}
	res, err := r.exec(ctx, w, b, c)
	if errors.Is(err, worker.ErrTime) {
		err = fmt.Errorf("%w: the run took longer than %s", err, policy.FormatTime(b.limits.Time))
	}
	if refused := (*worker.JobError)(nil); errors.As(err, &refused) && n == 0 && refused.Kind == "code" {
		// Code that the engine does not take, of another build of it for instance, is made anew once.
		h.code.forget(c)
		h.modules.Remove(c.key)
		return false, nil
	}
	if errors.Is(err, worker.ErrRetired) && n < 3 {
		return false, nil
	}
	r.account(w, b, res)
	if err == nil && r.report.Truncated {
		err = errOutput // the guest ended by itself before the host had read all that it wrote
	}
	healthy = err == nil && res.Fault == "" && r.drained()
	if err != nil {
		return true, err
	}
	r.settle(r.verdict(res))
	return true, nil
}

// worker returns a worker that is bound to b, an idle one or a new one, with its slot.
func (h *Host) worker(ctx context.Context, e *Extension, b *binding, c *code) (*bound, error) {
	key := b.key
	if c.InPlace {
		key += " " + c.key // a worker reaches only those files of the cache that it was bound with
	}
	if w := h.pool.take(e, key); w != nil {
		return w, nil
	}
	if err := h.pool.acquire(ctx); err != nil {
		return nil, err
	}
	w, err := h.bind(ctx, e, b, c, key)
	if err != nil {
		h.pool.release()
		return nil, err
	}
	return w, nil
}

func (h *Host) bind(ctx context.Context, e *Extension, b *binding, c *code, key string) (_ *bound, err error) {
	dir, err := scratch.Make("")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = dir.Remove() // what cannot be removed is swept later
		}
	}()
	w, err := h.pool.start(ctx)
	if err != nil {
		return nil, err
	}
	limits := b.workerLimits()
	var read []*os.File
	if c.InPlace {
		read = []*os.File{c.Prepared, c.Code}
	}
	proved, err := w.Bind(ctx, worker.Bind{
		Role: worker.RoleRun, Engine: h.cfg.Engine, Mounts: b.mounts, Scratch: dir.File, Limits: limits, Read: read,
		Protected: b.names, Require: b.walls, WeakWalls: h.cfg.WeakWalls,
	})
	if err != nil {
		w.Kill()
		return nil, wallError(err)
	}
	return &bound{w: w, key: key, ext: e, scratch: dir, walls: proved.Walls, missing: proved.Missing, cpu: limits.CPU}, nil
}

// exec runs the guest and copies its streams.
func (r *run) exec(ctx context.Context, w *bound, b *binding, c *code) (*worker.Result, error) {
	dir := b.workingDir(r.job)
	job := worker.RunJob{
		Folder: r.report.Run, Module: c.Prepared, Code: c.Code, CodeName: c.CodeName,
		Args: r.args(), Env: r.e.environ(r.job, r.script.runtime, dir), Dir: dir, Time: b.limits.Time,
		ExactPaths:    r.script.runtime.Archive() != "", // a bundled runtime changes to its working folder itself
		NonblockStdin: r.script.nonblock,
		Events:        r.trail.reported,
	}
	in, err := stdin(r.job.Stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	job.Stdin = in.guest
	r.copies = nil
	for _, s := range []struct {
		to   io.Writer
		file **os.File
	}{{r.job.Stdout, &job.Stdout}, {r.job.Stderr, &job.Stderr}} {
		st, err := newStream(s.to, b.limits.Output, func() { r.stop(errOutput) })
		if err != nil {
			r.closeStreams(ctx)
			return nil, err
		}
		r.copies = append(r.copies, st)
		*s.file = st.guest
	}
	watched := r.watch(w, b.limits.Memory)
	res, err := w.w.Run(ctx, job)
	watched()
	in.Close()
	r.closeStreams(ctx)
	return res, err
}

// args are the guest's arguments.
func (r *run) args() []string {
	script := path.Join(guestSkill, r.script.Path)
	return slices.Concat(r.script.runtime.Argv, r.script.options, []string{script}, r.job.Args)
}

// watch ends the run if the worker's resident memory goes over what the guest and an engine need. The kernel's own limit
// covers heaps and private mappings only.
func (r *run) watch(w *bound, memory int64) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(rssEvery)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				rss := w.w.RSS()
				r.report.Usage.PeakRSS = max(r.report.Usage.PeakRSS, rss)
				if rss > memory+rssRoom {
					r.stop(errRSS)
					return
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// account fills in what was used and changed.
func (r *run) account(w *bound, b *binding, res *worker.Result) {
	u := &r.report.Usage
	u.CPU = w.w.CPU() - w.used
	w.used += u.CPU
	for i, st := range r.copies {
		n, cut := st.result()
		if i == 0 {
			u.StdoutBytes = n
		} else {
			u.StderrBytes = n
		}
		r.report.Truncated = r.report.Truncated || cut
	}
	var removed []string
	if res != nil {
		u.MemoryBytes, u.DiskBytes = res.Ending.MemoryBytes, res.Usage.Written
		u.PeakRSS = max(u.PeakRSS, res.MaxRSS)
		removed = res.Removed
		if res.EventsDropped > 0 {
			r.note("%d events were not passed on", res.EventsDropped)
		}
	}
	folder := filepath.Join(w.scratch.Path, r.report.Run)
	r.report.Changes = r.changes(b, folder, removed)
	for _, n := range r.trail.notes {
		r.note("%s", n)
	}
	if n := r.trail.bad; n > 0 {
		r.note("%d reports of the worker were dropped because they made no sense", n)
	}
	r.e.h.pool.wg.Go(func() {
		if err := scratch.Remove(folder); err != nil {
			r.e.h.log.Warn("scratch folder of a run was not removed", "run", r.report.Run, "error", err)
		}
	})
}

const maxNotes = 20

func (r *run) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); len(r.report.Notes) < maxNotes && !slices.Contains(r.report.Notes, s) {
		r.report.Notes = append(r.report.Notes, s)
	}
}

// stream copies what a guest writes to the caller, up to a limit.
type stream struct {
	guest *os.File // write end, for the worker
	read  *os.File
	done  chan struct{}
	n     atomic.Int64
	cut   atomic.Bool
	stuck bool // the worker kept its end open, or the caller's writer blocks
}

// newStream begins to copy to w, which may be nil. over is called once when the guest has written more than limit bytes.
func newStream(w io.Writer, limit int64, over func()) (*stream, error) {
	r, guest, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{guest: guest, read: r, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.copy(w, limit, over)
	}()
	return s, nil
}

func (s *stream) copy(w io.Writer, limit int64, over func()) {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.read.Read(buf)
		b := buf[:n]
		if left := limit - s.n.Load(); int64(n) > left {
			b = b[:max(left, 0)]
			if !s.cut.Swap(true) {
				over()
			}
		}
		s.n.Add(int64(len(b)))
		if w != nil && len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				w = nil // as a pipe whose reader has gone, but the guest is not told
			}
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the last bytes. It gives up on a worker that keeps its end open and on a writer that blocks.
func (s *stream) finish(ctx context.Context, patient bool) {
	s.guest.Close()
	_ = s.read.SetReadDeadline(time.Now().Add(drainTime))
	if patient {
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	}
	select {
	case <-s.done:
	case <-time.After(writerTime):
		s.stuck = true
	}
	s.read.Close()
}

func (s *stream) result() (n int64, cut bool) { return s.n.Load(), s.cut.Load() }

func (r *run) closeStreams(ctx context.Context) {
	var wg sync.WaitGroup
	for _, s := range r.copies {
		wg.Go(func() { s.finish(ctx, r.patient) })
	}
	wg.Wait()
}

// drained says whether the streams came to their ends as they should.
func (r *run) drained() bool {
	return !slices.ContainsFunc(r.copies, func(s *stream) bool { return s.stuck })
}

// input feeds the caller's reader to the guest.
type input struct {
	guest *os.File // read end, for the worker; nil: nothing to read
	write *os.File
	once  sync.Once
}

func stdin(r io.Reader) (*input, error) {
	if r == nil {
		return &input{}, nil
	}
	guest, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in := &input{guest: guest, write: w}
	go func() {
		// Ends with the reader, or at the first write after the run has ended.
		_, _ = io.Copy(struct{ io.Writer }{w}, r)
		w.Close()
	}()
	return in, nil
}

func (in *input) Close() {
	in.once.Do(func() {
		if in.guest != nil {
			in.guest.Close()
			in.write.Close()
		}
	})
}
