package rootfs

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// node is an open folder of the guest's tree. It keeps its parents open, so that ".." is the folder that was walked
// through and an overlay can copy the way up. Nodes are counted: retain, release.
type node struct {
	refs     int
	parent   *node // nil: the root
	v        *vnode
	m        *mount // nil: no file system lies here
	guest    string
	rel      string   // below the mount, "" at its root
	keys     []string // rel's components, folded
	access   Access
	low, top dirHandle
	borrowed bool // the handles are the mount's
	ids      [2]fileID
	pinned   bool // in the mount's cache
}

func (n *node) retain() *node {
	n.refs++
	return n
}

func (n *node) release() {
	for n != nil {
		n.refs--
		if n.refs > 0 {
			return
		}
		if !n.borrowed {
			n.low.close()
			n.top.close()
		}
		n = n.parent
	}
}

func (n *node) join(name string) string {
	if n.guest == "/" {
		return "/" + name
	}
	return n.guest + "/" + name
}

func (n *node) relOf(name string) string {
	if n.rel == "" {
		return name
	}
	return n.rel + "/" + name
}

func (n *node) keysOf(name string) []string {
	return append(n.keys[:len(n.keys):len(n.keys)], fold(name))
}

// Root returns the node of "/". The caller releases it.
func (fs *FS) Root() *Dir {
	return &Dir{fs: fs, node: fs.rootNode()}
}

func (fs *FS) rootNode() *node {
	n := &node{refs: 1, v: fs.root, guest: "/"}
	if m := fs.root.mount; m != nil {
		n.m, n.access, n.low, n.top, n.borrowed = m, m.Access, m.low, m.top, true
		n.ids = [2]fileID{m.lowInfo.id, m.topInfo.id}
	}
	return n
}

// follow says which links at the end of a path are followed.
type follow uint8

const (
	followNever follow = iota // a trailing slash after a link is ENOTDIR
	followSlash               // only if a slash comes after it
	followAlways
)

// want is what a walk is for: how a refusal is reported.
type want struct {
	op     string // of the event
	verb   string // "read" or "write"
	quiet  bool   // what is not covered is just not there
	follow follow
}

// entry is what a name means in a folder.
type entry struct {
	v     *vnode // a place of the tree itself; nothing else is set
	found bool
	top   bool // it lies in the layer that takes the writes
	both  bool // a folder in both layers
	info  info

	access Access // of the name, also if nothing is there
}

func (e entry) isDir() bool {
	return e.v != nil && e.v.device == NoDevice && (e.v.mount == nil || !e.v.mount.File) || e.found && e.info.kind == KindDir
}

// target is where a path leads: a name in an open folder, or (dir set, parent nil) an open folder itself.
type target struct {
	parent *node
	name   string
	e      entry
	dir    *node
	dot    string // the last component, if it was "." or ".."
	slash  bool   // the path ended in a slash: only a folder will do
}

func (t *target) release() {
	t.parent.release()
	t.dir.release()
	t.parent, t.dir = nil, nil
}

func (t *target) guest() string {
	if t.dir != nil {
		return t.dir.guest
	}
	return t.parent.join(t.name)
}

type component struct {
	name string
	link bool // comes from a link: may not leave the link's mount
}

func checkPath(p string) Errno {
	switch {
	case len(p) > MaxPath:
		return ENAMETOOLONG
	case p == "":
		return ENOENT
	case strings.IndexByte(p, 0) >= 0:
		return EINVAL
	case !utf8.ValidString(p):
		return EILSEQ
	}
	return Success
}

func split(list []component, p string, link bool) []component {
	for len(p) > 0 {
		i := strings.IndexByte(p, '/')
		if i < 0 {
			i = len(p)
		}
		if i > 0 {
			list = append(list, component{p[:i], link})
		}
		p = p[min(i+1, len(p)):]
	}
	return list
}

// walk resolves p from start and never above it. On success the caller releases the target.
func (fs *FS) walk(start *node, p string, w want) (t target, e Errno) {
	if e := checkPath(p); e != Success {
		return target{}, e
	}
	if p[0] == '/' && start.v != fs.root {
		return target{}, fs.deny(w.op, w.verb, path.Clean(p), ENOTCAPABLE, "an absolute path below a folder's descriptor")
	}
	fs.rebase(start)
	cur := start.retain()
	defer func() {
		if e != Success {
			cur.release()
		}
	}()
	var space [16]component
	todo := split(space[:0], p, false)
	t.slash = strings.HasSuffix(p, "/")
	level := 0 // folders below start; cached nodes have parents of their own, so identity does not tell
	if len(todo) > 0 && start.v == fs.root && fs.root.mount == nil {
		if dir := fs.elsewhere(start, todo); dir != nil {
			cur.release()
			cur = dir
			level = len(components(dir.guest))
		}
	}
	links := 0
	for len(todo) > 0 {
		c := todo[0]
		todo = todo[1:]
		t.dot = ""
		switch {
		case c.name == ".":
			t.dot = "."
			continue
		case c.name == "..":
			t.dot = ".."
			if level == 0 {
				return target{}, fs.leaves(cur, c.name, todo, w, "the path leaves its folder")
			}
			if c.link && cur.rel == "" {
				return target{}, fs.leaves(cur, c.name, todo, w, "a link leaves its mount")
			}
			level--
			up := cur.parent.retain()
			cur.release()
			cur = up
			continue
		case len(c.name) > MaxName:
			return target{}, ENAMETOOLONG
		}
		last := len(todo) == 0
		if !last {
			next, done, e := fs.enterFast(cur, c.name, w)
			if e != Success {
				return target{}, e
			}
			if done {
				level++
				cur.release()
				cur = next
				continue
			}
		}
		ent, e := fs.look(cur, c.name, w, todo)
		if e != Success {
			return target{}, e
		}
		if ent.v != nil && c.link {
			return target{}, fs.deny(w.op, w.verb, cur.join(c.name), ENOTCAPABLE, "a link leaves its mount")
		}
		if ent.found && ent.info.kind == KindLink && (!last || w.follow == followAlways || t.slash && w.follow == followSlash) {
			if links++; links > maxLinks {
				return target{}, ELOOP
			}
			to, e := cur.layer(ent.top).readlink(c.name)
			if e != Success {
				return target{}, e
			}
			if e := checkLink(to); e != Success {
				return target{}, fs.deny(w.op, w.verb, cur.join(c.name), e, "a link leaves its mount: "+to)
			}
			if last && strings.HasSuffix(to, "/") {
				t.slash = true
			}
			todo = append(split(nil, to, true), todo...)
			continue
		}
		if last {
			if t.slash && (ent.found || ent.v != nil) && !ent.isDir() {
				return target{}, ENOTDIR
			}
			t.parent, t.name, t.e = cur, c.name, ent
			return t, Success
		}
		if !ent.found && ent.v == nil {
			return target{}, ENOENT
		}
		next, e := fs.enter(cur, c.name, ent, w)
		if e != Success {
			return target{}, e
		}
		level++
		cur.release()
		cur = next
	}
	t.dir = cur
	return t, Success
}

// checkLink judges a link's text when it is met; ".." is judged where the walk is then.
func checkLink(to string) Errno {
	switch {
	case to == "":
		return ENOENT
	case to[0] == '/' || strings.HasPrefix(to, `\`) || len(to) > 1 && to[1] == ':':
		return ENOTCAPABLE
	case !utf8.ValidString(to):
		return EILSEQ
	}
	return Success
}

// elsewhere gives the current folder for a first component that the tree does not know: modules that ignore PWD use
// relative paths, which a WASI libc hands over as if they began at "/". A longer path is only looked up there if its
// first component exists there, so that "/etc/passwd" stays what it is.
func (fs *FS) elsewhere(start *node, todo []component) *node {
	first := todo[0].name
	if first == "." || first == ".." || fs.root.children[first] != nil || len(first) > MaxName {
		return nil
	}
	dir := fs.cfg.Dir
	if c := components(dir); len(c) == 0 || fs.root.children[c[0]] == nil {
		return nil
	}
	t, e := fs.walk(start, dir, want{quiet: true, follow: followAlways})
	if e != Success {
		return nil
	}
	defer t.release()
	n, e := fs.folder(&t, want{quiet: true})
	if e != Success {
		return nil
	}
	if n.v == fs.root {
		n.release()
		return nil
	}
	if len(todo) > 1 {
		ent, e := fs.look(n, first, want{quiet: true}, nil)
		if e != Success || !ent.found && ent.v == nil {
			n.release()
			return nil
		}
	}
	return n
}

// folder turns a target into an open folder.
func (fs *FS) folder(t *target, w want) (*node, Errno) {
	if t.dir != nil {
		return t.dir.retain(), Success
	}
	if !t.e.found && t.e.v == nil {
		return nil, ENOENT
	}
	return fs.enter(t.parent, t.name, t.e, w)
}

func (n *node) layer(top bool) dirHandle {
	if top {
		return n.top
	}
	return n.low
}

// gate applies what the mount says of a name before the name is looked up: hidden names, taken-away access.
func (fs *FS) gate(cur *node, name string, w want) (access Access, keys []string, e Errno) {
	m := cur.m
	keys = cur.keysOf(name)
	if len(m.hide) > 0 && matchAny(m.hide, keys) {
		if w.quiet {
			return 0, nil, ENOENT
		}
		e := ENOENT
		if w.verb == "write" {
			e = EACCES
		}
		return 0, nil, fs.deny(w.op, w.verb, cur.join(name), e, "hidden")
	}
	access, pass := m.accessAt(cur.relOf(name), keys)
	if access == NoAccess && !pass {
		if w.quiet {
			return 0, nil, ENOENT
		}
		return 0, nil, fs.deny(w.op, w.verb, cur.join(name), EACCES, "taken away below the mount")
	}
	return access, keys, Success
}

// accessAt is the access of the longest rule at rel, whose folded components are keys; never more than the mount's own.
// Another spelling may be the same file or another one, so it gets no more than either reading gives. pass tells that a
// deeper rule gives access back, so that the way to it must be open.
func (m *mount) accessAt(rel string, keys []string) (a Access, pass bool) {
	if len(m.narrow) == 0 {
		return m.Access, false
	}
	names := components(rel)
	exact, folded := m.Access, m.Access
	longest, longestExact := -1, -1
	for _, r := range m.narrow {
		n := len(r.keys)
		switch {
		case n > len(keys):
			pass = pass || r.access != NoAccess && equal(r.keys[:len(keys)], keys)
		case equal(r.keys, keys[:n]):
			if n > longest {
				longest, folded = n, weaker(m.Access, r.access)
			}
			if n > longestExact && slices.Equal(r.names, names[:n]) {
				longestExact, exact = n, weaker(m.Access, r.access)
			}
		}
	}
	return min(exact, folded), pass // of none, reading and the mount's own
}

func equal(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] && withoutStream(a[i]) != withoutStream(b[i]) {
			return false
		}
	}
	return true
}

// weaker gives what is left of a mount's access. An overlay that a rule asks for cannot be made here: it is reading.
func weaker(m, r Access) Access {
	switch {
	case r == NoAccess, m == NoAccess:
		return NoAccess
	case r == m:
		return m
	case m == Overlay && r == ReadWrite:
		return Overlay
	}
	return ReadOnly
}

// uncovered answers for a name that no mount covers.
func (fs *FS) uncovered(cur *node, name string, w want, rest []component) Errno {
	if w.quiet {
		return ENOENT
	}
	return fs.deny(w.op, w.verb, joined(cur, name, rest), EACCES, "no root covers it")
}

// leaves answers for a path that goes where it must not; the event names where that would be.
func (fs *FS) leaves(cur *node, name string, rest []component, w want, why string) Errno {
	return fs.deny(w.op, w.verb, joined(cur, name, rest), ENOTCAPABLE, why)
}

// joined is the clean guest path of what a walk still had before it.
func joined(cur *node, name string, rest []component) string {
	full := path.Join(cur.guest, name)
	for _, c := range rest {
		full = path.Join(full, c.name)
	}
	return full
}

// look tells what name is in cur. A name that is not there is not an error.
func (fs *FS) look(cur *node, name string, w want, rest []component) (entry, Errno) {
	if cur.v != nil {
		if v := cur.v.children[name]; v != nil {
			return entry{v: v}, Success
		}
	}
	if cur.m == nil || cur.m.File || !cur.low.ok() && !cur.top.ok() {
		return entry{}, fs.uncovered(cur, name, w, rest)
	}
	access, _, e := fs.gate(cur, name, w)
	if e != Success {
		return entry{}, e
	}
	ent, e := cur.find(name)
	ent.access = access
	return ent, e
}

// refresh opens the upper folder of an overlay if it was made since the node was.
func (n *node) refresh() {
	if n.m == nil || n.top.ok() || n.rel == "" || n.m.Access != Overlay || n.m.white[n.rel] || n.parent == nil {
		return
	}
	n.parent.refresh()
	if !n.parent.top.ok() {
		return
	}
	if h, e := n.parent.top.openDir(path.Base(n.rel)); e == Success {
		n.top = h
	}
}

// find looks a name up in the layers.
func (n *node) find(name string) (ent entry, e Errno) {
	n.refresh()
	if n.top.ok() {
		i, e := n.top.lstat(name)
		switch e {
		case Success:
			ent = entry{found: true, top: true, info: i}
		case ENOENT:
		default:
			return entry{}, e
		}
	}
	if !n.low.ok() || ent.found && ent.info.kind != KindDir || n.m.white[n.relOf(name)] {
		return ent, Success
	}
	i, e := n.low.lstat(name)
	switch {
	case e == ENOENT:
		return ent, Success
	case e != Success:
		return entry{}, e
	case ent.found:
		ent.both = i.kind == KindDir
		return ent, Success
	}
	return entry{found: true, info: i}, Success
}

// enterFast opens a folder on the way without a look at it first; done is false where that cannot be known.
func (fs *FS) enterFast(cur *node, name string, w want) (next *node, done bool, e Errno) {
	if cur.v != nil && cur.v.children[name] != nil || cur.m == nil || cur.m.Access == Overlay || cur.low.ok() == cur.top.ok() {
		return nil, false, Success
	}
	if n := cur.m.cache[cur.relOf(name)]; n != nil && n.parent == cur {
		return n.retain(), true, Success
	}
	access, keys, e := fs.gate(cur, name, w)
	if e != Success {
		return nil, false, e
	}
	top := cur.top.ok()
	h, e := cur.layer(top).openDir(name)
	switch e {
	case Success:
	case ENOTDIR, ELOOP:
		return nil, false, Success
	default:
		return nil, false, e
	}
	n := cur.newChild(name, access, keys)
	if top {
		n.top = h
	} else {
		n.low = h
	}
	if e := fs.own(n, w); e != Success {
		n.release()
		return nil, false, e
	}
	cur.m.remember(n)
	return n, true, Success
}

const maxCached = 256 // folders of an immutable mount that stay open

func (m *mount) remember(n *node) {
	if m.Immutable && n.parent.pinned && len(m.cache) < maxCached {
		m.cache[n.rel] = n.retain()
		n.pinned = true
	}
}

func (n *node) newChild(name string, access Access, keys []string) *node {
	return &node{
		refs: 1, parent: n.retain(), m: n.m, guest: n.join(name), rel: n.relOf(name), keys: keys, access: access,
	}
}

// own checks on the opened folders that they are the mount's.
func (fs *FS) own(n *node, w want) Errno {
	for i, l := range []struct {
		h    dirHandle
		root info
	}{{n.low, n.m.lowInfo}, {n.top, n.m.topInfo}} {
		if !l.h.ok() {
			continue
		}
		if n.m.Immutable {
			continue
		}
		in, e := l.h.stat()
		if e != Success {
			return e
		}
		n.ids[i] = in.id
		if !n.m.Cross && !in.sameMount(l.root) {
			if w.quiet {
				return EACCES
			}
			return fs.deny(w.op, w.verb, n.guest, EACCES, "another file system is mounted there")
		}
	}
	return Success
}

// enter opens the folder that ent says name is.
func (fs *FS) enter(cur *node, name string, ent entry, w want) (*node, Errno) {
	if !ent.isDir() {
		return nil, ENOTDIR
	}
	if ent.v != nil {
		return fs.enterVirtual(cur, name, ent.v, w)
	}
	access, keys, e := fs.gate(cur, name, w)
	if e != Success {
		return nil, e
	}
	if n := cur.m.cache[cur.relOf(name)]; n != nil && n.parent == cur {
		return n.retain(), Success
	}
	n := cur.newChild(name, access, keys)
	if e := fs.openLayers(cur, n, name, ent); e != Success {
		n.release()
		return nil, e
	}
	if e := fs.own(n, w); e != Success {
		n.release()
		return nil, e
	}
	cur.m.remember(n)
	return n, Success
}

func (fs *FS) openLayers(cur, n *node, name string, ent entry) (e Errno) {
	if ent.top {
		if n.top, e = cur.top.openDir(name); e != Success {
			return e
		}
	}
	if !ent.top || ent.both {
		n.low, e = cur.low.openDir(name)
	}
	return e
}

// enterVirtual goes to a place of the tree: a mount point, or a folder on the way to one, which may exist in the
// mount around it as well.
func (fs *FS) enterVirtual(cur *node, name string, v *vnode, w want) (*node, Errno) {
	if m := v.mount; m != nil {
		if n := m.cache[""]; n != nil {
			return n.retain(), Success
		}
		n := &node{
			refs: 1, parent: cur.retain(), v: v, m: m, guest: v.path, low: m.low, top: m.top, borrowed: true,
			ids: [2]fileID{m.lowInfo.id, m.topInfo.id},
		}
		n.access, _ = m.accessAt("", nil)
		if m.Immutable && cur.m == nil {
			n.pinned = true
			m.cache[""] = n.retain()
		}
		return n, Success
	}
	n := &node{refs: 1, parent: cur.retain(), v: v, guest: v.path}
	if cur.m == nil || cur.m.File {
		return n, Success
	}
	n.m, n.rel = cur.m, cur.relOf(name)
	access, keys, e := fs.gate(cur, name, want{quiet: true})
	n.keys = keys
	if e != Success {
		n.m = nil // the way stays, what the mount has there is not seen
		return n, Success
	}
	n.access = access
	ent, e := cur.find(name)
	if e == Success && ent.found && ent.info.kind == KindDir {
		if e := fs.openLayers(cur, n, name, ent); e != Success || fs.own(n, want{quiet: true}) != Success {
			n.low.close()
			n.top.close()
			n.low, n.top = dirHandle{}, dirHandle{}
		}
	}
	return n, Success
}
