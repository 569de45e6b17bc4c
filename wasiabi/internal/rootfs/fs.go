// Package rootfs is the guest's tree of files: mounts, which are file capabilities on os.Root, below a virtual root.
// It is the only code that opens a guest's file.
//
// # Isolation
//
// Every path is walked component by component with open folders (never by a host path), links are read and judged
// here, and each system call takes one component and refuses to follow a link. What a component is, is decided on
// the opened file: its kind, its mount, its identity, its number of names. So another guest that swaps a file for a
// link between a look and its use makes the call fail and gains nothing.
//
// # What this does not protect
//
// A guest may do to a writable mount whatever the mount allows: a Makefile in a source tree is not a protected name.
// Two names for one folder that the system itself makes (a bind mount below the root) are refused by mount id on
// Linux and by device elsewhere; a bind mount of the same file system is not seen where there are no mount ids.
package rootfs

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// Access is what a mount allows; the values are those of package wasiabi.
type Access uint8

const (
	NoAccess Access = iota
	ReadOnly
	ReadWrite
	Overlay
)

// Narrow lowers the access at and below a guest path.
type Narrow struct {
	Guest  string
	Access Access
}

// Mount is one file capability. See wasiabi.Mount, which has the same fields.
type Mount struct {
	Guest     string
	Dir       string
	File      bool
	Access    Access
	Upper     string
	Hide      []string
	Protected []string
	Above     []string
	Narrow    []Narrow
	Scratch   bool
	Immutable bool
	Cross     bool
}

// Event is something that was done or refused. Paths are the guest's.
type Event struct {
	Op         string
	Capability string
	Denied     bool
	Errno      Errno
	Detail     string
}

// Config is what a tree is made of. See wasiabi.Config for defaults.
type Config struct {
	Mounts    []Mount
	Protected []string // names that no guest may write; see nameSet
	Dir       string   // current folder: where a first component that the tree does not know is looked up; "" nowhere
	Disk      int64    // bytes
	Entries   int64
	MinFree   int64       // bytes
	Events    func(Event) // never nil
	Done      func() bool // the run has ended: long work stops
}

// FS is a guest's tree. One goroutine uses it at a time.
type FS struct {
	cfg       Config
	protected *nameSet
	root      *vnode
	mounts    []*mount
	quota     quota
	listBytes int // held by the listings of open folders
	listings  []*Dir
	start     time.Time
}

// vnode is a place in the tree that exists without a file system: the root, a mount point, a folder on the way to
// one, a device.
type vnode struct {
	name     string
	path     string // guest path
	children map[string]*vnode
	order    []string
	mount    *mount
	device   Device
	ino      uint64
}

// Device is one of the built-in devices.
type Device uint8

const (
	NoDevice Device = iota
	Null
	Zero
	Urandom
	// Devices that ask the host; what is written to and read from them is package wasiabi's.
	AskHTTP
	AskRun
	AskLog
)

// mount is an open Mount.
type mount struct {
	Mount
	index     uint64
	hide      []glob
	exempt    []glob
	above     []string // folded
	narrow    []narrowRule
	low       dirHandle // read-only layer
	top       dirHandle // layer that takes the writes
	lowInfo   info
	topInfo   info
	lowPath   string // where the layers are now, for hostPath
	topPath   string
	file      fileHandle // File
	spare     fileHandle // File in an overlay: what it was before the copy
	white     map[string]bool
	ids       map[fileID]bool // protected objects that were seen
	cache     map[string]*node
	upperName string // File in an overlay: name of the copy in Upper
}

type narrowRule struct {
	names  []string // components below the mount
	keys   []string // the same, folded
	access Access
}

// New opens the mounts. On an error everything that was opened is closed again.
func New(cfg Config) (*FS, error) {
	fs := &FS{
		cfg:       cfg,
		protected: parseNames(cfg.Protected),
		root:      &vnode{path: "/", ino: 1},
		start:     time.Now(),
	}
	fs.quota = quota{fs: fs, inodes: map[fileID]*inode{}}
	for i, m := range cfg.Mounts {
		if err := fs.mount(uint64(i), m); err != nil {
			fs.Close()
			return nil, fmt.Errorf("mount %q: %w", m.Guest, err)
		}
	}
	dev := fs.root.child("dev")
	for _, d := range []struct {
		name string
		dev  Device
	}{{"null", Null}, {"zero", Zero}, {"urandom", Urandom}} {
		if n := dev.child(d.name); n.mount == nil {
			n.device = d.dev
		}
	}
	if ask := dev.child("exthost"); ask.mount == nil {
		for _, d := range []struct {
			name string
			dev  Device
		}{{"http", AskHTTP}, {"log", AskLog}, {"run", AskRun}} {
			if n := ask.child(d.name); n.mount == nil {
				n.device = d.dev
			}
		}
	}
	var n uint64
	fs.root.number(&n)
	return fs, nil
}

func (v *vnode) number(n *uint64) {
	*n++
	v.ino = *n
	for _, name := range v.order {
		v.children[name].number(n)
	}
}

// child returns the child of a name and makes it if there is none.
func (v *vnode) child(name string) *vnode {
	if c := v.children[name]; c != nil {
		return c
	}
	if v.children == nil {
		v.children = map[string]*vnode{}
	}
	c := &vnode{name: name, path: path.Join(v.path, name)}
	v.children[name] = c
	v.order = append(v.order, name)
	return c
}

func (fs *FS) mount(index uint64, cfg Mount) error {
	if !strings.HasPrefix(cfg.Guest, "/") || path.Clean(cfg.Guest) != cfg.Guest || len(cfg.Guest) > MaxPath {
		return errors.New("the guest path is not absolute and clean")
	}
	if cfg.File && cfg.Guest == "/" {
		return errors.New("the root cannot be a file")
	}
	if cfg.Access < ReadOnly || cfg.Access > Overlay {
		return errors.New("no access is given")
	}
	if cfg.Access == Overlay && cfg.Upper == "" {
		return errors.New("an overlay needs a folder for the writes")
	}
	cfg.Immutable = cfg.Immutable && cfg.Access == ReadOnly // what is written is not cached
	v := fs.root
	for _, c := range components(cfg.Guest) {
		v = v.child(c)
	}
	if v.mount != nil {
		return errors.New("a second mount at the same path")
	}
	m := &mount{
		Mount: cfg, index: index,
		hide: parseGlobs(cfg.Hide), exempt: parseGlobs(cfg.Protected),
		above: foldAll(cfg.Above), white: map[string]bool{}, ids: map[fileID]bool{}, cache: map[string]*node{},
	}
	fs.mounts = append(fs.mounts, m) // from here on Close closes what is open
	v.mount = m
	for _, n := range cfg.Narrow {
		rel, ok := below(cfg.Guest, n.Guest)
		if !ok {
			continue
		}
		m.narrow = append(m.narrow, narrowRule{components(rel), foldAll(components(rel)), n.Access})
	}
	if cfg.File {
		return m.openFile(path.Base(cfg.Guest))
	}
	h, err := openMount(cfg.Dir)
	if err != nil {
		return err
	}
	if cfg.Access == ReadWrite {
		m.top = h
	} else {
		m.low = h
	}
	if cfg.Access == Overlay {
		if m.top, err = openMount(cfg.Upper); err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
	}
	return m.look(fs)
}

// look notes the identity of the mount's layers, and that of the protected files that are in its top folder.
func (m *mount) look(fs *FS) error {
	for _, l := range []struct {
		h    dirHandle
		i    *info
		path *string
	}{{m.low, &m.lowInfo, &m.lowPath}, {m.top, &m.topInfo, &m.topPath}} {
		if !l.h.ok() {
			continue
		}
		i, e := l.h.stat()
		if e != Success {
			return fmt.Errorf("stat: %w", e)
		}
		if i.kind != KindDir {
			return errors.New("not a folder")
		}
		*l.i = i
		*l.path, _ = l.h.where()
		if m.Scratch || m.Access == ReadOnly {
			continue
		}
		for _, name := range fs.protected.literals {
			if i, e := l.h.lstat(name); e == Success && i.kind != KindLink && !fs.exempt(m, []string{name}) {
				m.ids[i.id] = true
			}
		}
	}
	return nil
}

func (m *mount) openFile(name string) error {
	h, err := openMountFile(m.Dir, m.Access == ReadWrite)
	if err != nil {
		return err
	}
	m.file = h
	i, e := h.stat()
	if e != Success {
		return fmt.Errorf("stat: %w", e)
	}
	if i.kind != KindFile {
		return errors.New("not a regular file")
	}
	m.lowInfo = i
	if m.Access == Overlay {
		if m.top, err = openMount(m.Upper); err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		m.upperName = name
	}
	return nil
}

// Close closes what the tree holds; Dirs and Files have to be closed before.
func (fs *FS) Close() {
	for _, m := range fs.mounts {
		for _, n := range m.cache {
			n.release()
		}
		m.cache = nil
		m.low.close()
		m.top.close()
		m.file.close()
		m.spare.close()
		m.low, m.top, m.file, m.spare = dirHandle{}, dirHandle{}, fileHandle{}, fileHandle{}
	}
	fs.mounts = nil
}

// Removed lists, in no particular order, the guest paths whose lower file was removed or replaced in an overlay.
func (fs *FS) Removed() []string {
	var out []string
	for _, m := range fs.mounts {
		for rel := range m.white {
			out = append(out, path.Join(m.Guest, rel))
		}
	}
	return out
}

// Usage is what a run took: bytes written in all, bytes and entries that its files hold now.
type Usage struct{ Written, Disk, Entries int64 }

// Usage tells what was taken so far.
func (fs *FS) Usage() Usage {
	return Usage{fs.quota.written, fs.quota.disk, fs.quota.entries}
}

func components(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

func foldAll(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fold(n)
	}
	return out
}

// below cuts base off p.
func below(base, p string) (string, bool) {
	if base == "/" {
		return strings.TrimPrefix(p, "/"), true
	}
	if p == base {
		return "", true
	}
	return strings.CutPrefix(p, base+"/")
}

// deny reports a refusal and returns its errno.
func (fs *FS) deny(op, verb, guest string, e Errno, detail string) Errno {
	fs.cfg.Events(Event{Op: op, Capability: capability(verb, guest), Denied: true, Errno: e, Detail: detail})
	return e
}

func (fs *FS) did(op, verb, guest string) {
	fs.cfg.Events(Event{Op: op, Capability: capability(verb, guest)})
}

func capability(verb, guest string) string {
	if len(guest) > MaxPath {
		guest = guest[:MaxPath]
	}
	return verb + " " + guest
}
