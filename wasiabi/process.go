package wasiabi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// ErrClosed unwinds a guest whose process was closed.
var ErrClosed = errors.New("the process is closed")

func (e *Exit) Error() string { return "exit status " + strconv.FormatUint(uint64(e.Code), 10) }

// Process is the ABI state of one running guest: its descriptors, arguments, clocks. One goroutine uses it at a time;
// Close may be called from any, and ends a call that sleeps or waits.
type Process struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex // held by a call
	closed bool
	fs     *rootfs.FS
	fds    []*desc
	open   int // descriptors in fds
	cap    int
	args   []string
	env    []string
	start  time.Time
	cpu    int64 // ns of processor time when the process began
	wake   waker
	events events
	usage  Usage
	gone   []string
	asking int // open requests to the host
	logged int // notes taken
}

const maxArgs = 1 << 20 // bytes of all arguments, or of all variables

// NewProcess opens the mounts and takes duplicates of the standard streams. The caller closes the process.
//
// The error is the host's: a mount that cannot be opened, two mounts at one path, arguments with a NUL byte or of
// more than 1 MiB in all.
func NewProcess(ctx context.Context, cfg Config) (*Process, error) {
	env, err := environment(cfg.Env, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkStrings("argument", cfg.Args); err != nil {
		return nil, err
	}
	for _, v := range []struct {
		name string
		n    int64
	}{{"open files", int64(cfg.OpenFiles)}, {"disk", cfg.Disk}, {"entries", cfg.Entries}, {"free space", cfg.MinFree}} {
		if v.n < 0 {
			return nil, fmt.Errorf("%s: a negative limit", v.name)
		}
	}
	p := &Process{args: cfg.Args, env: env, cap: cfg.OpenFiles, start: time.Now(), cpu: processorTime()}
	if p.cap == 0 {
		p.cap = DefaultOpenFiles
	}
	p.cap = max(p.cap, 4)
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.events.sink = cfg.Events
	if err := p.openAll(cfg); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) openAll(cfg Config) (err error) {
	rc := rootfs.Config{
		Protected: cfg.ProtectedNames,
		Disk:      cfg.Disk,
		Entries:   cfg.Entries,
		MinFree:   cfg.MinFree,
		Done:      func() bool { return !running(p.ctx) },
		Events: func(e rootfs.Event) {
			p.events.add(Event{
				Op: e.Op, Capability: e.Capability, Denied: e.Denied, Errno: e.Errno.Name(), Detail: e.Detail,
			})
		},
	}
	if rc.Disk == 0 {
		rc.Disk = DefaultDisk
	}
	if rc.Entries == 0 {
		rc.Entries = DefaultEntries
	}
	if !cfg.ExactPaths {
		rc.Dir = cfg.Dir
	}
	for _, m := range cfg.Mounts {
		rm := rootfs.Mount{
			Guest: m.Guest, Dir: m.Dir, File: m.File, Access: rootfs.Access(m.Access), Upper: m.Upper, Hide: m.Hide,
			Protected: m.Protected, Above: m.Above, Scratch: m.Scratch, Immutable: m.Immutable, Cross: m.Cross,
		}
		for _, n := range m.Narrow {
			rm.Narrow = append(rm.Narrow, rootfs.Narrow{Guest: n.Guest, Access: rootfs.Access(n.Access)})
		}
		rc.Mounts = append(rc.Mounts, rm)
	}
	if p.fs, err = rootfs.New(rc); err != nil {
		return err
	}
	if err := p.wake.open(p.ctx); err != nil {
		return fmt.Errorf("standard streams: %w", err)
	}
	in, err := openStream(cfg.Stdin)
	if err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	d := &desc{kind: kindStream, stream: in, rights: stdinRights}
	if cfg.NonblockStdin {
		d.flags = flagNonblock
	}
	p.fds = append(p.fds, d)
	for _, f := range []struct {
		name string
		file *os.File
	}{{"stdout", cfg.Stdout}, {"stderr", cfg.Stderr}} {
		s, err := openStream(f.file)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		p.fds = append(p.fds, &desc{kind: kindStream, stream: s, out: true, rights: stdoutRights})
	}
	p.fds = append(p.fds, &desc{kind: kindDir, dir: p.fs.Root(), preopen: true, rights: dirRights, inherit: allRights})
	p.open = len(p.fds)
	return nil
}

// Close ends the process: a call that waits returns, descriptors and mounts are closed, repeated events are told.
// It is safe to call it more than once.
func (p *Process) Close() {
	p.cancel(ErrClosed)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	for _, d := range p.fds {
		if d != nil {
			d.close()
		}
	}
	p.fds = nil
	p.wake.close()
	if p.fs != nil {
		p.usage, p.gone = Usage(p.fs.Usage()), p.fs.Removed()
		p.fs.Close()
	}
	p.events.flush()
}

// Removed lists the guest paths whose lower file an overlay no longer shows: removed, renamed away, or replaced by
// something new in Upper. It waits for a call to end; after Close it tells the last state.
func (p *Process) Removed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fs == nil {
		return p.gone
	}
	return p.fs.Removed()
}

// Usage tells what the guest took on disk. It waits for a call to end; after Close it tells the last state.
func (p *Process) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fs == nil {
		return p.usage
	}
	return Usage(p.fs.Usage())
}

func checkStrings(what string, list []string) error {
	total := 0
	for _, s := range list {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%s: a NUL byte", what)
		}
		total += len(s) + 1
	}
	if total > maxArgs {
		return fmt.Errorf("%ss: %d bytes are too many (limit %d)", what, total, maxArgs)
	}
	return nil
}

// environment adds PWD, which the working directory alone decides.
func environment(env []string, dir string) ([]string, error) {
	if dir != "" && (!strings.HasPrefix(dir, "/") || path.Clean(dir) != dir) {
		return nil, fmt.Errorf("working directory %q: not absolute and clean", dir)
	}
	var out []string
	for _, v := range env {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, errors.New("environment: an entry without a name")
		}
		if name != "PWD" || dir == "" {
			out = append(out, v)
		}
	}
	if dir != "" {
		out = append(out, "PWD="+dir)
	}
	return out, checkStrings("environment variable", out)
}
