package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/cache"
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/private"
	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/snapshot"
	"github.com/exthost/exthost/host/internal/worker"
)

// snapshotBytes bounds the copies of extensions that are kept for the next time.
const snapshotBytes = 1 << 30

// Host runs extensions. It is safe for concurrent use. The caller closes it.
type Host struct {
	cfg       Config
	log       *slog.Logger
	cacheDir  string
	ownCache  *scratch.Dir // the cache, if it had to be made for this host alone
	snapshots *snapshot.Store
	modules   *cache.Store
	pool      *pool
	denied    []string // host paths that no guest reaches, absolute and without links
	uses      sync.WaitGroup
	code      codeMap
	runtimes  runtimeState

	mu         sync.Mutex
	closed     bool
	extensions map[*Extension]struct{}
}

// New makes a host. It fails with [ErrNoWorkerMain] if no worker could be started, with an error that matches
// [ErrNoEngine] for an engine that this binary lacks, with one that matches [ErrWalls] if WeakWalls is asked for with an
// engine that must not run without them, and if the cache folder is not private to the user.
func New(c Config) (*Host, error) {
	if c.Worker == "" && !workerMainRan.Load() {
		return nil, ErrNoWorkerMain
	}
	if c.Engine == "" {
		c.Engine = engine.Default()
	}
	if !slices.ContainsFunc(engine.All(), func(i engine.Info) bool { return i.Name == c.Engine }) {
		return nil, fmt.Errorf("engine %q: %w", c.Engine, ErrNoEngine)
	}
	if c.WeakWalls && engine.RequiresWalls(c.Engine) {
		return nil, fmt.Errorf("engine %q has an open critical advisory and runs only behind all walls: %w", c.Engine, ErrWalls)
	}
	if c.Workers <= 0 {
		c.Workers = max(4, 2*runtime.NumCPU())
	}
	c.Spares = max(c.Spares, 0)
	c.Ceilings = slices.Clone(c.Ceilings)
	h := &Host{cfg: c, log: c.Logger, extensions: map[*Extension]struct{}{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if c.Home != "" {
		home, err := realPath(c.Home)
		if err != nil {
			return nil, fmt.Errorf("home: %w", err)
		}
		h.cfg.Home = home
	}
	// Started first: a process takes longer to start than anything below.
	h.pool = newPool(worker.Options{Exe: c.Worker, Engine: c.Engine}, c.Workers, c.Spares, !c.OneRun)
	if err := h.openCache(); err != nil {
		h.pool.close()
		h.closeCache()
		return nil, err
	}
	for _, p := range append([]string{h.cfg.Home, h.cacheDir}, c.Deny...) {
		if p == "" {
			continue
		}
		r, err := realPath(p)
		if err != nil {
			h.pool.close()
			h.closeCache()
			return nil, err
		}
		h.denied = append(h.denied, r)
	}
	h.pool.wg.Go(func() {
		if n := scratch.Sweep(""); n > 0 {
			h.log.Info("removed folders that an ended process left", "count", n)
		}
	})
	return h, nil
}

// openCache opens the folders of the cache. Without a place for it, a folder of this host's own is used and removed at
// Close, so that exthost works with a read-only or missing home folder.
func (h *Host) openCache() error {
	dir, err := cacheDir(h.cfg.Cache)
	if err == nil {
		dir, err = private.Dir(dir)
	}
	if err != nil && h.cfg.Cache == "" && !errors.Is(err, private.ErrUnsafe) {
		h.log.Warn("no cache folder: modules are compiled each time", "reason", err)
		if h.ownCache, err = scratch.Make(""); err == nil {
			dir = h.ownCache.Path
		}
	}
	if err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	if h.cacheDir, err = realPath(dir); err != nil {
		return err
	}
	sub := map[string]string{}
	for _, name := range cacheFolders {
		if sub[name], err = private.Dir(filepath.Join(h.cacheDir, name)); err != nil {
			return fmt.Errorf("cache folder: %w", err)
		}
	}
	h.snapshots = snapshot.NewStore(sub["snapshots"], snapshotBytes)
	h.runtimes.dir = sub["runtimes"]
	h.modules, err = cache.Open(sub["modules"], cache.Options{Verify: !h.cfg.OneRun, InPlace: h.cfg.OneRun})
	return err
}

var cacheFolders = []string{"modules", "runtimes", "snapshots"}

// cacheDir is the cache folder that dir names.
func cacheDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "exthost"), nil
}

func (h *Host) closeCache() error {
	var err error
	if h.modules != nil {
		err = h.modules.Close()
	}
	if h.ownCache != nil {
		err = errors.Join(err, h.ownCache.Remove())
	}
	return err
}

// Engine is the name of the engine that runs guests.
func (h *Host) Engine() string { return h.cfg.Engine }

// Close closes the extensions that are still open, after their runs have ended, and all workers. It removes what
// guests left in scratch folders.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	open := make([]*Extension, 0, len(h.extensions))
	for e := range h.extensions {
		open = append(open, e)
	}
	h.mu.Unlock()
	h.uses.Wait()
	var errs []error
	for _, e := range open {
		errs = append(errs, e.Close())
	}
	h.pool.close()
	errs = append(errs, h.code.close(), h.closeCache())
	return errors.Join(errs...)
}

// use begins an operation unless the host is closed.
func (h *Host) use() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.uses.Add(1)
	return nil
}

// progress says that something that may take long begins; the returned function says that it ended.
func (h *Host) progress(what string) func() {
	if h.cfg.Progress == nil {
		return func() {}
	}
	h.cfg.Progress(what)
	return func() { h.cfg.Progress("") }
}

// runtimeState unpacks and verifies each runtime once in the life of a host.
type runtimeState struct {
	dir  string
	mu   sync.Mutex
	each map[string]*unpackedRuntime // by name
}

type unpackedRuntime struct {
	mu   sync.Mutex
	done bool
	u    guests.Unpacked
}

func (s *runtimeState) of(name string) *unpackedRuntime {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each == nil {
		s.each = map[string]*unpackedRuntime{}
	}
	if s.each[name] == nil {
		s.each[name] = &unpackedRuntime{}
	}
	return s.each[name]
}

// unpack returns the runtime's folder. All files in it were checked against the digests in this binary, in the life of
// this host. A failure is not remembered: the next run tries again.
func (h *Host) unpack(ctx context.Context, r guests.Runtime) (guests.Unpacked, error) {
	s, dir := h.runtimes.of(r.Name), h.runtimes.dir
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return s.u, nil
	}
	if err := ctx.Err(); err != nil {
		return guests.Unpacked{}, err
	}
	if _, err := os.Lstat(filepath.Join(dir, r.ID())); errors.Is(err, fs.ErrNotExist) {
		defer h.progress("unpacking " + r.Name + " " + r.Version)()
	}
	u, err := r.Unpack(dir)
	if err != nil {
		return guests.Unpacked{}, err
	}
	s.u, s.done = u, true
	return u, nil
}

// realPath makes path absolute and resolves its links. Components at its end may be missing.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for p := abs; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// A dangling link is not a missing component: what it leads to decides later what path means.
		if fi, err := os.Lstat(p); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%q: link to nothing", p)
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = filepath.Dir(p)
	}
}
