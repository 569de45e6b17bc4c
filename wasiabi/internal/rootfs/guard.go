package rootfs

import (
	"path"
	"slices"
	"strings"
)

// exempt tells whether the mount lets the protected name at keys be written after all.
func (fs *FS) exempt(m *mount, keys []string) bool { return !fs.guarded(m, keys) }

// guarded tells whether keys, components below a mount, name a protected file or something below one.
func (fs *FS) guarded(m *mount, keys []string) bool {
	s := fs.protected
	full, above := keys, len(m.above)
	if above > 0 {
		full = append(m.above[:above:above], keys...)
	}
	for i, k := range full {
		if i >= above && s.short(k) && !m.exempts(keys, i+1-above) {
			return true
		}
		for _, g := range s.globs {
			end := i + len(g)
			if end > above && end <= len(full) && g.match(full[i:end]) && !m.exempts(keys, end-above) {
				return true
			}
		}
	}
	return false
}

// exempts tells whether an exemption names the protected file, the first end components of keys, or something below
// it that keys lead to.
func (m *mount) exempts(keys []string, end int) bool {
	for j := end; j <= len(keys); j++ {
		if matchAny(m.exempt, keys[:j]) {
			return true
		}
	}
	return false
}

// mayWrite judges a name that is about to be created, changed or removed: the access there, the depth, protected
// names by spelling and by identity, and where the folder is by now.
func (fs *FS) mayWrite(parent *node, name string, access Access, op string) Errno {
	m := parent.m
	guest := parent.join(name)
	if m == nil {
		return fs.deny(op, "write", guest, EACCES, "no root covers it")
	}
	if access != ReadWrite && access != Overlay {
		return fs.deny(op, "write", guest, EROFS, "read-only")
	}
	keys := parent.keysOf(name)
	if len(keys) > MaxDepth {
		return fs.deny("limit", "limit", "depth", ENAMETOOLONG, "")
	}
	if m.Scratch {
		return Success
	}
	if fs.guarded(m, keys) {
		return fs.deny(op, "write", guest, EPERM, "a protected name")
	}
	for n := parent; n != nil && n.m == m; n = n.parent {
		for _, id := range n.ids {
			if m.ids[id] && id != (fileID{}) {
				return fs.deny(op, "write", guest, EPERM, "a protected folder")
			}
		}
		if fs.bare(n) && !m.exempts(keys, len(n.keys)) {
			return fs.deny(op, "write", guest, EPERM, "inside a bare repository")
		}
	}
	if fs.becomesBare(parent, name) {
		return fs.deny(op, "write", guest, EPERM, "the folder would become a bare repository")
	}
	// The folder may have been moved by another guest since it was opened.
	if h := parent.top; h.ok() {
		if now, ok := h.where(); ok && !fs.allowedAt(m, now, name) {
			return fs.deny(op, "write", guest, EPERM, "the folder was moved to a protected place")
		}
	}
	return Success
}

// allowedAt judges a host place of the mount's upper layer by its spelling below the mount.
func (fs *FS) allowedAt(m *mount, place, name string) bool {
	if m.topPath == "" {
		return true
	}
	rel, ok := m.relAt(place)
	if !ok {
		return false
	}
	keys := foldAll(components(path.Join(rel, name)))
	if fs.guarded(m, keys) || matchAny(m.hide, keys) {
		return false
	}
	a, _ := m.accessAt(path.Join(rel, name), keys)
	return a == ReadWrite || a == Overlay
}

// relAt gives a host place below the mount's upper layer, relative to it; false is outside.
func (m *mount) relAt(place string) (string, bool) {
	if rel, ok := below(m.topPath, place); ok {
		return rel, true
	}
	// Outside the mount by now, or the mount itself was moved.
	root, known := m.top.where()
	rel, ok := below(root, place)
	if !known || !ok {
		return "", false
	}
	m.topPath = root
	return rel, true
}

// place gives where a folder is now, relative to its mount; false where that is not known.
func (n *node) place() (rel string, ok bool) {
	if n.m == nil || n.rel == "" || !n.top.ok() || n.m.topPath == "" {
		return "", false
	}
	now, ok := n.top.where()
	if !ok {
		return "", false
	}
	return n.m.relAt(now)
}

// rebase takes note that a folder which the guest holds was renamed since: what may be done in it depends on where it
// is, not on where it was opened. Outside its mount it keeps its name, and mayWrite refuses.
func (fs *FS) rebase(n *node) {
	if n.v != nil || n.m == nil || n.m.Access == ReadOnly {
		return
	}
	rel, ok := n.place()
	if !ok || rel == n.rel || rel == "" {
		return
	}
	n.rel, n.keys, n.guest = rel, foldAll(components(rel)), path.Join(n.m.Guest, rel)
	n.access, _ = n.m.accessAt(rel, n.keys)
}

// movedSince tells whether a folder is no longer where it was judged.
func (n *node) movedSince() bool {
	rel, ok := n.place()
	return ok && !slices.Equal(foldAll(components(rel)), n.keys)
}

// bareSets are the entries by which git takes a folder for a repository; objects and refs may be in the folder that
// commondir names.
var bareSets = [...][]string{{"HEAD", "objects", "refs"}, {"HEAD", "commondir"}}

func (n *node) has(name string) bool {
	e, err := n.find(name)
	return err == Success && e.found
}

// bare tells whether git would take the folder for a repository.
func (fs *FS) bare(n *node) bool {
	if !n.has("HEAD") {
		return false
	}
	return fs.completes(n, "HEAD")
}

func (fs *FS) becomesBare(n *node, name string) bool {
	return fs.completes(n, withoutStream(fold(name)))
}

// completes tells whether the folder is a repository once it has the name as well.
func (fs *FS) completes(n *node, name string) bool {
	for _, set := range bareSets {
		named, all := false, true
		for _, b := range set {
			if strings.EqualFold(b, name) {
				named = true
			}
		}
		for _, b := range set {
			all = all && named && (strings.EqualFold(b, name) || n.has(b))
		}
		if all {
			return true
		}
	}
	return false
}

const maxSubtree = 20000 // entries of a folder that is renamed

// mayMove judges every descendant of a folder that is about to be renamed, at its old place and at its new one: a
// rename must not carry a protected, hidden or narrowed file, a mount point, or a link that would then leave the mount.
func (fs *FS) mayMove(n *node, toKeys []string, toDepth int) Errno {
	if n.v != nil {
		return fs.deny("rename", "write", n.guest, EBUSY, "a mount point")
	}
	left := maxSubtree
	return fs.moveCheck(n.m, n.top, n.rel, n.keys, toKeys, toDepth, &left)
}

func (fs *FS) moveCheck(m *mount, h dirHandle, rel string, keys, toKeys []string, toDepth int, left *int) Errno {
	guest := path.Join(m.Guest, rel)
	for _, r := range m.narrow {
		if len(r.keys) >= len(keys) && equal(keys, r.keys) || len(r.keys) >= len(toKeys) && equal(toKeys, r.keys) {
			return fs.deny("rename", "write", guest, EACCES, "another access holds below it")
		}
	}
	if toDepth > MaxDepth {
		return fs.deny("limit", "limit", "depth", ENAMETOOLONG, "")
	}
	names, e := h.list(*left)
	if e == EOVERFLOW {
		return EXDEV // too much to judge in one step: the guest copies, and each file is judged
	}
	if e != Success {
		return e
	}
	*left -= len(names)
	have := map[string]bool{}
	for _, l := range names {
		k := fold(l.name)
		ks := append(keys[:len(keys):len(keys)], k)
		tks := append(toKeys[:len(toKeys):len(toKeys)], k)
		if !m.Scratch {
			if fs.guarded(m, ks) || fs.guarded(m, tks) {
				return fs.deny("rename", "write", path.Join(guest, l.name), EPERM, "a protected name")
			}
			have[strings.ToLower(l.name)] = true
		}
		if matchAny(m.hide, ks) || matchAny(m.hide, tks) {
			return fs.deny("rename", "write", guest, EACCES, "something hidden lies below it")
		}
		kind := l.kind
		if kind == kindUnknown {
			i, e := h.lstat(l.name)
			if e != Success {
				return e
			}
			kind = i.kind
		}
		switch kind {
		case KindLink:
			to, e := h.readlink(l.name)
			if e != Success {
				return e
			}
			if !m.staysBelow(to, toDepth) {
				return fs.deny("rename", "write", path.Join(guest, l.name), ENOTCAPABLE, "a link would leave its mount")
			}
		case KindDir:
			sub, e := h.openDir(l.name)
			if e != Success {
				return e
			}
			i, e := sub.stat()
			if e == Success && !m.Cross && !i.sameMount(m.topInfo) {
				e = fs.deny("rename", "write", path.Join(guest, l.name), EBUSY, "another file system is mounted there")
			}
			if e == Success {
				e = fs.moveCheck(m, sub, path.Join(rel, l.name), ks, tks, toDepth+1, left)
			}
			sub.close()
			if e != Success {
				return e
			}
		}
	}
	for _, set := range bareSets {
		if !slices.ContainsFunc(set, func(b string) bool { return !have[strings.ToLower(b)] }) {
			return fs.deny("rename", "write", guest, EPERM, "a bare repository")
		}
	}
	return Success
}

// staysBelow tells whether a link's target, seen from a folder that lies depth folders below its mount, stays in the
// mount whatever the folders on the way are: ".." is only allowed at the beginning, where each is a real folder.
// Elsewhere a guest could put a link in the place of the folder before "..", and a program of the host would follow
// it. Nothing of the host reads scratch, so there the text alone counts; the guest's own walks judge each step anyway.
func (m *mount) staysBelow(target string, depth int) bool {
	if checkLink(target) != Success {
		return false
	}
	names := 0
	for _, c := range strings.Split(target, "/") {
		switch c {
		case "", ".":
		case "..":
			if names > 0 && !m.Scratch {
				return false
			}
			if names > 0 {
				names--
			} else if depth--; depth < 0 {
				return false
			}
		default:
			names++
		}
	}
	return true
}
