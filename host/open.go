package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/snapshot"
	"github.com/exthost/exthost/policy"
)

// Extension is an extension bound to a policy. It holds a private copy of the extension's files: changes to the source
// after [Host.Open] have no effect on it. It is safe for concurrent use. The caller closes it.
type Extension struct {
	h       *Host
	name    string
	snap    *snapshot.Snapshot
	single  string // name of the only file, if the extension is one file
	grant   *policy.Policy
	eff     *policy.Effective
	bind    Bindings
	notes   []string
	scripts []script

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

// script is a file of the extension with what would run it.
type script struct {
	Script
	runtime guests.Runtime
	entry   snapshot.Entry
	known   bool // of a language that this project knows
	notes   []string
	damaged error
	options []string // of its first line, for the shell
	// nonblock guests get a standard input that does not block.
	nonblock bool
}

// Open binds the extension at path, a folder or one file, to a policy; nil grants nothing beyond the built-in base.
// Nothing of the extension runs.
//
// The tree is copied while it is hashed, and only the copy is ever used. Open fails with a [RefusedError] if the
// policy's digest is not that of the tree, with [policy.Errors] if the policy uses fields that this version does not
// enforce, with an error that matches [ErrNotFound] if there is no such path, and with others that name what in the
// tree may not be in an extension (links that lead out, special files, more than 64 MiB).
func (h *Host) Open(ctx context.Context, path string, p *policy.Policy, b Bindings) (*Extension, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if b.Name == "" {
		b.Name = filepath.Base(abs)
	}
	src, single, closer, err := sourceAt(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("extension %q: %w", path, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("extension %q: %w", path, err)
	}
	defer closer()
	return h.open(ctx, src, single, p, b)
}

// OpenFS is [Host.Open] for a file system, such as an [embed.FS]. Bindings.Name must be set. Links need an
// [fs.ReadLinkFS].
func (h *Host) OpenFS(ctx context.Context, fsys fs.FS, p *policy.Policy, b Bindings) (*Extension, error) {
	if b.Name == "" {
		return nil, errors.New("OpenFS: Bindings.Name is empty")
	}
	return h.open(ctx, snapshot.FS(fsys), "", p, b)
}

// TreeDigest is the digest of the extension at path, a folder or one file: what [Extension.Digest] will be and what a
// grant is bound to.
func TreeDigest(ctx context.Context, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	src, _, closer, err := sourceAt(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("extension %q: %w", path, ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	defer closer()
	entries, err := snapshot.Hash(ctx, src)
	if err != nil {
		return "", err
	}
	return snapshot.Digest(entries), nil
}

// sourceAt opens a folder or file. single is the name of the file.
func sourceAt(abs string) (src snapshot.Source, single string, closer func(), err error) {
	// A link to an extension is followed once, here; links inside it are judged by the snapshot.
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, "", nil, err
	}
	fi, err := os.Stat(abs)
	if err != nil {
		return nil, "", nil, err
	}
	dir := abs
	switch {
	case fi.IsDir():
	case fi.Mode().IsRegular():
		dir, single = filepath.Dir(abs), filepath.Base(abs)
	default:
		return nil, "", nil, fmt.Errorf("%w: neither a folder nor a file", snapshot.ErrUnsafe)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", nil, err
	}
	src = snapshot.Dir(root)
	if single != "" {
		src = snapshot.FileOf(src, single)
	}
	return src, single, func() { root.Close() }, nil
}

// nameFormat is what a name must look like to be put into reports, principals and folders.
var nameFormat = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (h *Host) open(ctx context.Context, src snapshot.Source, single string, p *policy.Policy, b Bindings) (*Extension, error) {
	if err := h.use(); err != nil {
		return nil, err
	}
	defer h.uses.Done()
	if !nameFormat.MatchString(b.Name) || strings.Contains(b.Name, "..") {
		return nil, fmt.Errorf("extension name %q: letters, digits, \".\", \"_\" and \"-\" only, at most 64", b.Name)
	}
	b, err := h.resolve(b)
	if err != nil {
		return nil, err
	}
	eff := policy.New(p, h.cfg.Ceilings...)
	if errs := eff.Unenforced(); len(errs) > 0 {
		return nil, errs
	}
	snap, err := h.snapshots.Take(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("extension %q: %w", b.Name, err)
	}
	e := &Extension{h: h, name: b.Name, snap: snap, single: single, grant: p, eff: eff, bind: b}
	if err := e.check(); err != nil {
		snap.Close()
		return nil, err
	}
	e.scripts = e.findScripts()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		snap.Close()
		return nil, ErrClosed
	}
	h.extensions[e] = struct{}{}
	return e, nil
}

// check compares the policy's digest and notes what the operator should know.
func (e *Extension) check() error {
	if e.grant == nil {
		return nil
	}
	rule := e.grant.At("digest").String()
	switch {
	case e.grant.Digest == "" && e.bind.PinDigest:
		return &RefusedError{Extension: e.name, Digest: e.snap.Digest, Reason: "the grant names no digest of the extension", Rule: e.grant.File}
	case e.grant.Digest == "":
		e.notes = append(e.notes, "the policy names no digest: it holds for whatever the extension becomes")
	case e.grant.Digest != e.snap.Digest:
		return &RefusedError{Extension: e.name, Digest: e.snap.Digest, Reason: "the extension changed since the grant", Rule: rule}
	}
	return nil
}

// resolve makes the folders that the bindings name absolute and free of links.
func (h *Host) resolve(b Bindings) (Bindings, error) {
	var err error
	if b.Workspace == "" {
		if b.Workspace, err = os.Getwd(); err != nil {
			return b, fmt.Errorf("workspace: %w", err)
		}
	}
	if b.Workspace, err = realPath(b.Workspace); err != nil {
		return b, fmt.Errorf("workspace: %w", err)
	}
	if fi, err := os.Stat(b.Workspace); err != nil || !fi.IsDir() {
		return b, fmt.Errorf("workspace %q: not a folder", b.Workspace)
	}
	if b.Home == "" {
		b.Home, _ = os.UserHomeDir() // a policy that needs it says so
	}
	if b.Data == "" && h.cfg.Home != "" {
		b.Data = filepath.Join(h.cfg.Home, "data", b.Name)
	}
	for _, p := range []*string{&b.Home, &b.Data} {
		if *p != "" {
			if *p, err = realPath(*p); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// Name is the name of the extension.
func (e *Extension) Name() string { return e.name }

// Digest is the digest of the tree, "sha256:" and 64 hexadecimal digits.
func (e *Extension) Digest() string { return e.snap.Digest }

// Effective is the policy that the extension is bound to, with the host's ceilings.
func (e *Extension) Effective() *policy.Effective { return e.eff }

// Notes are remarks for the operator; they are in each report too.
func (e *Extension) Notes() []string { return slices.Clone(e.notes) }

// principal names the extension in events.
func (e *Extension) principal() string { return "guest:" + e.name + "@" + e.snap.Digest }

// Close ends the extension's idle workers and gives its copy up, after runs that are under way have ended.
func (e *Extension) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.runs.Wait()
	e.h.pool.drop(e)
	e.h.code.drop(e.snap.Digest)
	e.h.mu.Lock()
	delete(e.h.extensions, e)
	e.h.mu.Unlock()
	return e.snap.Close()
}

// use begins a run unless the extension is closed.
func (e *Extension) use() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.runs.Add(1)
	return nil
}
