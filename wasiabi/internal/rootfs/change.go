package rootfs

import (
	"strings"
)

// place walks to a name that is to be made, replaced or removed: "." and ".." are no such names.
func (d *Dir) place(p, op string) (target, Errno) {
	event := op
	if op == "rmdir" {
		event = "remove"
	}
	t, e := d.fs.walk(d.node, p, want{op: event, verb: "write", follow: followNever})
	if e != Success {
		return target{}, e
	}
	if t.dir != nil {
		dot := t.dot
		guest := t.dir.guest
		t.release()
		switch {
		case op == "create" || op == "symlink" || op == "link":
			return target{}, EEXIST
		case dot == "." && op == "rmdir":
			return target{}, EINVAL
		case dot == ".." && op == "rmdir":
			return target{}, ENOTEMPTY
		case op == "remove":
			return target{}, EISDIR
		}
		return target{}, d.fs.deny(event, "write", guest, EBUSY, "not a name")
	}
	return t, Success
}

// Mkdir makes a folder.
func (d *Dir) Mkdir(p string) Errno {
	fs := d.fs
	t, e := d.place(p, "create")
	if e != Success {
		return e
	}
	defer t.release()
	if t.e.found || t.e.v != nil {
		return EEXIST
	}
	n := t.parent
	if e := fs.mayCreate(n, t.name, t.e.access, "create"); e != Success {
		return e
	}
	if e := n.top.mkdir(t.name); e != Success {
		return e
	}
	if e := fs.stillAllowed(n, t.name, "create"); e != Success {
		_ = n.top.rmdir(t.name)
		return e
	}
	if i, e := n.top.lstat(t.name); e == Success {
		fs.quota.made(i.id)
	}
	fs.did("create", "write", t.guest())
	return Success
}

// fixed refuses what would remove a place of the tree.
func (fs *FS) fixed(t *target, op string) Errno {
	v := t.e.v
	if v == nil {
		return Success
	}
	if v.mount != nil {
		return fs.deny(op, "write", v.path, EBUSY, "a mount point")
	}
	return fs.deny(op, "write", v.path, EACCES, "no root covers it")
}

// inLow tells whether the lower layer of an overlay shows the name.
func (n *node) inLow(name string) bool {
	if !n.low.ok() || n.m.white[n.relOf(name)] {
		return false
	}
	_, e := n.low.lstat(name)
	return e == Success
}

// whiteout hides the lower file of a name, and forgets what was hidden below it.
func (n *node) whiteout(name string) {
	if !n.inLow(name) {
		return
	}
	rel := n.relOf(name)
	for k := range n.m.white {
		if strings.HasPrefix(k, rel+"/") {
			delete(n.m.white, k)
		}
	}
	n.m.white[rel] = true
}

// Unlink removes a name of a file or link; a folder answers EISDIR.
func (d *Dir) Unlink(p string) Errno {
	fs := d.fs
	t, e := d.place(p, "remove")
	if e != Success {
		return e
	}
	defer t.release()
	if t.e.v != nil && t.e.isDir() {
		return EISDIR
	}
	if e := fs.fixed(&t, "remove"); e != Success {
		return e
	}
	switch {
	case !t.e.found:
		return ENOENT
	case t.e.info.kind == KindDir:
		return EISDIR
	case t.slash:
		return ENOTDIR
	}
	n := t.parent
	if e := fs.mayWrite(n, t.name, t.e.access, "remove"); e != Success {
		return e
	}
	if t.e.top {
		if e := n.top.unlink(t.name); e != Success {
			if e == EPERM { // macOS says so of a folder that took the name's place
				return EISDIR
			}
			return e
		}
		fs.quota.removed(t.e.info.id, t.e.info.nlink-1)
	}
	n.whiteout(t.name)
	fs.did("remove", "write", t.guest())
	return Success
}

// Rmdir removes an empty folder; a file answers ENOTDIR.
func (d *Dir) Rmdir(p string) Errno {
	fs := d.fs
	t, e := d.place(p, "rmdir")
	if e != Success {
		return e
	}
	defer t.release()
	if t.e.v != nil && !t.e.isDir() {
		return ENOTDIR
	}
	if e := fs.fixed(&t, "remove"); e != Success {
		return e
	}
	switch {
	case !t.e.found:
		return ENOENT
	case t.e.info.kind != KindDir:
		return ENOTDIR
	}
	n := t.parent
	if e := fs.mayWrite(n, t.name, t.e.access, "remove"); e != Success {
		return e
	}
	if n.m.Access == Overlay {
		empty, e := fs.emptyFolder(&t)
		if e != Success {
			return e
		}
		if !empty {
			return ENOTEMPTY
		}
	}
	if t.e.top {
		if e := n.top.rmdir(t.name); e != Success {
			if e == EEXIST {
				e = ENOTEMPTY
			}
			return e
		}
		fs.quota.removed(t.e.info.id, 0)
	}
	n.whiteout(t.name)
	fs.did("remove", "write", t.guest())
	return Success
}

// emptyFolder tells whether both layers of a folder show nothing; a hidden file counts.
func (fs *FS) emptyFolder(t *target) (bool, Errno) {
	n, e := fs.folder(t, want{quiet: true})
	if e != Success {
		return false, e
	}
	defer n.release()
	if n.top.ok() {
		l, e := n.top.list(1)
		if e == EOVERFLOW || len(l) > 0 {
			return false, Success
		}
		if e != Success {
			return false, e
		}
	}
	if !n.low.ok() {
		return true, Success
	}
	l, e := n.low.list(maxListed)
	if e != Success {
		return false, e
	}
	for _, l := range l {
		if !n.m.white[n.relOf(l.name)] {
			return false, Success
		}
	}
	return true, Success
}

// Symlink makes a link. Its text must stay in the mount wherever the folders of the text lead: whoever follows it
// later may be a program of the host.
func (d *Dir) Symlink(text, p string) Errno {
	fs := d.fs
	if e := checkPath(text); e != Success {
		return e
	}
	t, e := d.place(p, "symlink")
	if e != Success {
		return e
	}
	defer t.release()
	if t.e.found || t.e.v != nil {
		return EEXIST
	}
	if t.slash {
		return ENOENT
	}
	n := t.parent
	if n.m != nil && !n.m.staysBelow(text, len(n.keys)) {
		return fs.deny("symlink", "write", t.guest(), ENOTCAPABLE, "the link would leave its mount: "+text)
	}
	if e := fs.mayCreate(n, t.name, t.e.access, "symlink"); e != Success {
		return e
	}
	if e := n.top.symlink(text, t.name); e != Success {
		return e
	}
	if e := fs.stillAllowed(n, t.name, "symlink"); e != Success {
		_ = n.top.unlink(t.name)
		return e
	}
	if i, e := n.top.lstat(t.name); e == Success {
		fs.quota.made(i.id)
	}
	fs.did("symlink", "write", t.guest())
	return Success
}

// Link gives a file one more name in the same mount.
func (d *Dir) Link(old string, followLinks bool, to *Dir, p string) Errno {
	fs := d.fs
	w := want{op: "link", verb: "write", follow: followSlash}
	if followLinks {
		w.follow = followAlways
	}
	s, e := fs.walk(d.node, old, w)
	if e != Success {
		return e
	}
	defer s.release()
	t, e := to.place(p, "link")
	if e != Success {
		return e
	}
	defer t.release()
	switch {
	case s.dir != nil || s.e.isDir():
		return fs.deny("link", "write", s.guest(), EPERM, "a folder")
	case s.e.v != nil:
		return fs.deny("link", "write", s.guest(), EXDEV, "a mount point")
	case !s.e.found:
		return ENOENT
	case t.e.found || t.e.v != nil:
		return EEXIST
	case t.slash:
		return ENOENT
	case s.e.info.kind != KindFile && s.e.info.kind != KindLink:
		return fs.deny("link", "write", s.guest(), EPERM, "not a regular file")
	case s.parent.m != t.parent.m:
		return fs.deny("link", "write", t.guest(), EXDEV, "another mount")
	}
	// A second name would carry the right to write to wherever it is put.
	if e := fs.mayWrite(s.parent, s.name, s.e.access, "link"); e != Success {
		return e
	}
	if e := fs.mayCreate(t.parent, t.name, t.e.access, "link"); e != Success {
		return e
	}
	if !s.e.top {
		if e := fs.copyUp(s.parent, s.name, false); e != Success {
			return e
		}
	}
	before, e := s.parent.top.lstat(s.name)
	if e != Success {
		return e
	}
	if before.kind == KindLink {
		text, e := s.parent.top.readlink(s.name)
		if e != Success {
			return e
		}
		if !t.parent.m.staysBelow(text, len(t.parent.keys)) {
			return fs.deny("link", "write", t.guest(), ENOTCAPABLE, "the link would leave its mount: "+text)
		}
	}
	m := s.parent.m
	if !m.Scratch && m.Access != Overlay {
		own := int64(0)
		if in := fs.quota.inodes[before.id]; in != nil {
			own = in.links
		}
		if m.ids[before.id] || int64(before.nlink) > 1+own {
			return fs.deny("link", "write", s.guest(), EPERM, "the file has other names")
		}
	}
	if e := s.parent.top.link(s.name, t.parent.top, t.name); e != Success {
		return e
	}
	after, e := t.parent.top.lstat(t.name)
	if e == Success && after.id != before.id {
		e = fs.deny("link", "write", s.guest(), EPERM, "the file was replaced meanwhile")
	}
	if e == Success {
		e = fs.stillAllowed(t.parent, t.name, "link")
	}
	if e != Success {
		_ = t.parent.top.unlink(t.name)
		return e
	}
	fs.quota.made(after.id)
	fs.quota.of(after.id).links++
	fs.did("link", "write", t.guest())
	return Success
}

// Rename moves a name within a mount and replaces what has the new one, as rename(2) does.
func (d *Dir) Rename(old string, to *Dir, p string) Errno {
	fs := d.fs
	s, e := d.place(old, "rename")
	if e != Success {
		return e
	}
	defer s.release()
	t, e := to.place(p, "rename")
	if e != Success {
		return e
	}
	defer t.release()
	if e := fs.fixed(&s, "rename"); e != Success {
		return e
	}
	if e := fs.fixed(&t, "rename"); e != Success {
		return e
	}
	dir := s.e.info.kind == KindDir
	switch {
	case !s.e.found:
		return ENOENT
	case t.slash && !dir:
		return ENOTDIR
	case t.e.found && dir && t.e.info.kind != KindDir:
		return ENOTDIR
	case t.e.found && !dir && t.e.info.kind == KindDir:
		return EISDIR
	case s.parent.m != t.parent.m:
		return EXDEV // no refusal: whoever moves between file systems copies and removes, and both are judged
	}
	m := s.parent.m
	if e := fs.mayWrite(s.parent, s.name, s.e.access, "rename"); e != Success {
		return e
	}
	if e := fs.mayWrite(t.parent, t.name, t.e.access, "rename"); e != Success {
		return e
	}
	if m.ids[s.e.info.id] && !m.Scratch {
		return fs.deny("rename", "write", s.guest(), EPERM, "a protected file")
	}
	if t.e.found && s.e.info.id == t.e.info.id && s.e.top == t.e.top && s.e.info.id != (fileID{}) {
		return Success
	}
	if s.e.info.kind == KindLink {
		to, e := s.parent.layer(s.e.top).readlink(s.name)
		if e != Success {
			return e
		}
		if !m.staysBelow(to, len(t.parent.keys)) {
			return fs.deny("rename", "write", t.guest(), ENOTCAPABLE, "the link would leave its mount: "+to)
		}
	}
	if dir {
		if e := fs.mayRenameFolder(&s, &t); e != Success {
			return e
		}
	} else if !s.e.top {
		if e := fs.copyUp(s.parent, s.name, false); e != Success {
			return e
		}
	}
	if e := fs.lift(t.parent); e != Success {
		return e
	}
	if e := s.parent.top.rename(s.name, t.parent.top, t.name); e != Success {
		if e == EEXIST {
			e = ENOTEMPTY
		}
		return e
	}
	e = fs.stillAllowed(t.parent, t.name, "rename")
	if e == Success {
		e = fs.stillMovable(&s, &t)
	}
	if e != Success {
		_ = t.parent.top.rename(t.name, s.parent.top, s.name)
		return e
	}
	if t.e.found && t.e.top {
		fs.quota.removed(t.e.info.id, max(t.e.info.nlink, 1)-1)
	}
	s.parent.whiteout(s.name)
	t.parent.whiteout(t.name)
	fs.did("rename", "write", s.guest())
	fs.did("rename", "write", t.guest())
	return Success
}

// stillMovable judges again what was just renamed: another guest may have put something else in the place of the
// source, or a link into it, after it was judged.
func (fs *FS) stillMovable(s, t *target) Errno {
	m := t.parent.m
	if m.Scratch || m.Access == Overlay { // nobody else writes there
		return Success
	}
	i, e := t.parent.top.lstat(t.name)
	if e != Success {
		return e
	}
	if i.id != s.e.info.id {
		return fs.deny("rename", "write", s.guest(), EPERM, "the file was replaced meanwhile")
	}
	if i.kind != KindDir {
		return Success
	}
	h, e := t.parent.top.openDir(t.name)
	if e != Success {
		return e
	}
	defer h.close()
	keys, left := t.parent.keysOf(t.name), maxSubtree
	return fs.moveCheck(m, h, t.parent.relOf(t.name), keys, keys, len(keys), &left)
}

// mayRenameFolder judges a folder with all that is in it.
func (fs *FS) mayRenameFolder(s, t *target) Errno {
	m := s.parent.m
	if m.Access == Overlay {
		if !s.e.top || s.parent.inLow(s.name) {
			return EXDEV // it is not one folder on the host: the guest copies
		}
		if t.e.found && (!t.e.top || t.e.both) {
			empty, e := fs.emptyFolder(t)
			if e != Success {
				return e
			}
			if !empty {
				return ENOTEMPTY
			}
		}
	}
	if t.parent.relOf(t.name) == s.parent.relOf(s.name) {
		return Success
	}
	if strings.HasPrefix(t.parent.relOf(t.name)+"/", s.parent.relOf(s.name)+"/") {
		return EINVAL
	}
	n, e := fs.folder(s, want{op: "rename", verb: "write"})
	if e != Success {
		return e
	}
	defer n.release()
	return fs.mayMove(n, t.parent.keysOf(t.name), len(t.parent.keys)+1)
}
