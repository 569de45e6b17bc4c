package host

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/cache"
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/module"
	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
)

// Deadlines of a compilation. One of a bundled runtime is trusted to end, and ends late on a busy machine.
const (
	compileMin     = 30 * time.Second
	compileMax     = 2 * time.Minute
	compileRuntime = 10 * time.Minute
)

// source is a module to run.
type source struct {
	open    func() (*os.File, error)
	sum     [sha256.Size]byte // of the content, known since the copy was made or the runtime was verified
	owner   string            // digest of the extension, or the runtime's ID
	comment string
	trusted bool // a bundled runtime
}

// code is a compiled module in use.
type code struct {
	*cache.Artefact
	key   string
	owner string
	size  int64
	refs  int // under codeMap.mu
	elem  *list.Element
}

// codeMap keeps compiled modules in memory, in the life of a host.
type codeMap struct {
	mu   sync.Mutex
	m    map[string]*code
	lru  list.List // of *code; the front was used last
	busy map[string]chan struct{}
}

// What is kept in memory when nobody uses it: a file in the cache takes longer to load, but costs no memory.
const (
	maxCode      = 8         // modules
	maxCodeBytes = 128 << 20 // their size
)

// take returns the code of key and counts a use of it, or waits while another caller makes it. If it returns nil and no
// error, the caller has to make it and call made.
func (m *codeMap) take(ctx context.Context, key string) (*code, error) {
	for {
		m.mu.Lock()
		if c := m.m[key]; c != nil {
			c.refs++
			m.lru.MoveToFront(c.elem)
			m.mu.Unlock()
			return c, nil
		}
		wait := m.busy[key]
		if wait == nil {
			if m.busy == nil {
				m.busy = map[string]chan struct{}{}
			}
			m.busy[key] = make(chan struct{})
			m.mu.Unlock()
			return nil, nil
		}
		m.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// made ends the making of key, with or without success.
func (m *codeMap) made(key, owner string, a *cache.Artefact) *code {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.busy[key])
	delete(m.busy, key)
	if a == nil {
		return nil
	}
	if m.m == nil {
		m.m = map[string]*code{}
	}
	c := &code{Artefact: a, key: key, owner: owner, refs: 1}
	for _, f := range []*os.File{a.Prepared, a.Code} {
		if fi, err := f.Stat(); err == nil {
			c.size += fi.Size()
		}
	}
	c.elem = m.lru.PushFront(c)
	m.m[key] = c
	_ = m.trim(maxCode, maxCodeBytes) // closing memory cannot fail
	return c
}

func (m *codeMap) release(c *code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.refs--
	_ = m.trim(maxCode, maxCodeBytes)
}

// forget makes the next use of c's key start anew, because c does not fit.
func (m *codeMap) forget(c *code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m[c.key] == c {
		delete(m.m, c.key)
	}
}

// drop closes what belongs to owner and nobody uses.
func (m *codeMap) drop(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.lru.Back(); e != nil; {
		prev := e.Prev()
		if c := e.Value.(*code); c.refs == 0 && c.owner == owner {
			_ = m.remove(c)
		}
		e = prev
	}
}

// trim closes what nobody uses, oldest first, until no more than n modules and size bytes are left.
//
// Preconditions: m.mu is held.
func (m *codeMap) trim(n int, size int64) (err error) {
	sum := int64(0)
	for e := m.lru.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*code).size
	}
	for e := m.lru.Back(); e != nil && (m.lru.Len() > n || sum > size); {
		prev := e.Prev()
		if c := e.Value.(*code); c.refs == 0 {
			sum -= c.size
			err = errors.Join(err, m.remove(c))
		}
		e = prev
	}
	return err
}

// remove closes c.
//
// Preconditions: m.mu is held, nobody uses c.
func (m *codeMap) remove(c *code) error {
	m.lru.Remove(c.elem)
	if m.m[c.key] == c {
		delete(m.m, c.key)
	}
	return c.Close()
}

func (m *codeMap) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trim(0, 0)
}

// compiled returns the code of src under the limits of b. The caller releases it. An error of the module itself is a
// [*worker.ModuleError]; a compilation that took too long matches [worker.ErrTime].
func (h *Host) compiled(ctx context.Context, src source, b *binding) (*code, error) {
	k := cache.Key{
		Module: src.sum, Code: engine.CodeKey(h.cfg.Engine), Memory: b.limits.Memory, Table: b.table, Owner: src.owner, Comment: src.comment,
	}
	key := k.Name()
	c, err := h.code.take(ctx, key)
	if c != nil || err != nil {
		return c, err
	}
	var a *cache.Artefact
	defer func() {
		if a == nil {
			h.code.made(key, src.owner, nil)
		}
	}()
	if a, err = h.fetch(ctx, k, src, b); err != nil {
		return nil, err
	}
	return h.code.made(key, src.owner, a), nil
}

// fetch takes the code from the cache or makes it.
func (h *Host) fetch(ctx context.Context, k cache.Key, src source, b *binding) (*cache.Artefact, error) {
	a, err := h.modules.Get(k)
	if err == nil {
		return a, nil
	}
	// One process compiles, others wait for what it makes.
	l, err := h.modules.Lock(ctx, k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if a, err := h.modules.Get(k); err == nil {
		return a, nil
	}
	defer h.progress("compiling " + src.comment)()
	a, err = h.compile(ctx, src, b)
	if err != nil {
		return nil, err
	}
	if err := h.modules.Put(k, a); err != nil {
		h.log.Warn("compiled code was not kept", "module", src.comment, "error", err)
	}
	return a, nil
}

// compile compiles a module in a worker that has no roots and never runs a guest.
func (h *Host) compile(ctx context.Context, src source, b *binding) (*cache.Artefact, error) {
	f, err := src.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() > module.MaxSize {
		return nil, &worker.ModuleError{Kind: module.TooBig.String(), Detail: fmt.Sprintf("over %d MiB", module.MaxSize>>20)}
	}
	if err := h.pool.acquire(ctx); err != nil {
		return nil, err
	}
	defer h.pool.release()
	dir, err := scratch.Make("")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Remove() }() // what cannot be removed is swept later
	w, err := h.pool.start(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Kill()
	limit := min(max(2*b.limits.Time, compileMin), compileMax)
	if src.trusted {
		limit = compileRuntime
	}
	_, err = w.Bind(ctx, worker.Bind{
		Role: worker.RoleCompile, Engine: h.cfg.Engine, Scratch: dir.File,
		Limits:  worker.Limits{Memory: b.limits.Memory, TableElements: b.table, CPU: workerCPU(limit)},
		Require: b.walls, WeakWalls: h.cfg.WeakWalls,
	})
	if err != nil {
		return nil, wallError(err)
	}
	c, err := w.Compile(ctx, worker.CompileJob{Module: f, Time: limit})
	if errors.Is(err, worker.ErrTime) {
		return nil, fmt.Errorf("%w: compiling took longer than %s", err, policy.FormatTime(limit))
	}
	if err != nil {
		return nil, err
	}
	return &cache.Artefact{Prepared: c.Prepared, Code: c.Code, CodeName: c.CodeName}, nil
}

// wallError makes a missing wall match ErrWalls.
func wallError(err error) error {
	if we := (*worker.WallError)(nil); errors.As(err, &we) {
		return fmt.Errorf("%w: %w", ErrWalls, err)
	}
	return err
}

// module is the module that runs s, and the runtime's folder if it has one.
func (e *Extension) module(ctx context.Context, s script) (source, guests.Unpacked, error) {
	if s.runtime.Archive() == "" {
		p := filepath.Join(e.snap.Dir, filepath.FromSlash(s.entry.Path))
		return source{
			open: func() (*os.File, error) { return os.Open(p) }, sum: s.entry.Sum, owner: e.snap.Digest, comment: e.name + " " + s.entry.Path,
		}, guests.Unpacked{}, nil
	}
	return e.h.runtimeModule(ctx, s.runtime)
}

// runtimeModule is the interpreter of a bundled runtime, and its folder.
func (h *Host) runtimeModule(ctx context.Context, r guests.Runtime) (source, guests.Unpacked, error) {
	u, err := h.unpack(ctx, r)
	if err != nil {
		return source{}, u, err
	}
	return source{
		open:    func() (*os.File, error) { return os.Open(u.Module) },
		sum:     moduleSum(r),
		owner:   r.ID(),
		comment: r.Name + " " + r.Version,
		trusted: true,
	}, u, nil
}

// Warm unpacks and compiles a bundled runtime, so that the first run of a script does not wait for it. It does nothing
// for a runtime that has no files, and fails with an error that matches [ErrNoRuntime] for one that this binary lacks or
// does not know. What is compiled is for the default of limits.memory: a policy with another limit compiles anew.
func (h *Host) Warm(ctx context.Context, name string) error {
	if err := h.use(); err != nil {
		return err
	}
	defer h.uses.Done()
	r, ok := guests.Lookup(name)
	if !ok {
		return fmt.Errorf("runtime %q: %w", name, ErrNoRuntime)
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRuntime, err)
	}
	if r.Archive() == "" {
		return nil
	}
	src, _, err := h.runtimeModule(ctx, r)
	if err != nil {
		return err
	}
	eff := policy.New(nil, h.cfg.Ceilings...)
	b := &binding{limits: eff.Limits(), walls: eff.Walls()}
	b.table = tableElements(b.limits)
	c, err := h.compiled(ctx, src, b)
	if err != nil {
		return err
	}
	h.code.release(c)
	return nil
}

// moduleSum is the digest of a runtime's interpreter, as this binary holds it. Unpack has checked the file against it.
func moduleSum(r guests.Runtime) (sum [sha256.Size]byte) {
	for _, f := range r.Files {
		if f.Path == "module.wasm" {
			_, _ = hex.Decode(sum[:], []byte(f.SHA256)) // the registry is tested to hold digests
		}
	}
	return sum
}
