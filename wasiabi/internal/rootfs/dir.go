package rootfs

import (
	"path"
	"sort"
	"unicode/utf8"
)

// Dir is a folder that the guest holds. Close it.
type Dir struct {
	fs   *FS
	node *node
	list []DirEntry
	size int // bytes that the list is counted with
}

// Close lets the folder go.
func (d *Dir) Close() {
	d.forget()
	d.node.release()
	d.node = nil
}

// Writable tells whether anything may be made in the folder, now.
func (d *Dir) Writable() bool {
	return d.node.m != nil && (d.node.access == ReadWrite || d.node.access == Overlay)
}

// Path is the guest's path of the folder when it was opened.
func (d *Dir) Path() string { return d.node.guest }

// Stat is what the guest may know of a file.
type Stat struct {
	Dev, Ino, Nlink  uint64
	Kind             Kind
	Size             int64
	Atim, Mtim, Ctim int64 // ns since 1970
}

// OpenOptions say how to open.
type OpenOptions struct {
	Follow              bool
	Read, Write, Append bool
	Create, Excl, Trunc bool
	Directory           bool // only a folder will do
}

// Opened is what Open found: exactly one field is set.
type Opened struct {
	Dir    *Dir
	File   *File
	Device Device
}

func (o OpenOptions) want() want {
	w := want{op: "open", verb: "read", follow: followSlash}
	if o.Write || o.Trunc || o.Create {
		w.verb = "write"
	}
	if o.Follow && !(o.Create && o.Excl) {
		w.follow = followAlways
	}
	return w
}

// Open opens or makes a file, or opens a folder.
func (d *Dir) Open(p string, o OpenOptions) (Opened, Errno) {
	fs, w := d.fs, o.want()
	// A name can come and go between a look and its use: look again, but not for ever.
	for range 8 {
		t, e := fs.walk(d.node, p, w)
		if e != Success {
			return Opened{}, e
		}
		opened, e := fs.open(&t, o, w)
		t.release()
		if e != errAgain {
			return opened, e
		}
	}
	return Opened{}, EBUSY
}

// errAgain is not a number of WASI: what was looked at is not what was found.
const errAgain Errno = 0xffff

func (fs *FS) open(t *target, o OpenOptions, w want) (Opened, Errno) {
	if t.dir != nil || t.e.isDir() {
		return fs.openFolder(t, o, w)
	}
	if o.Create && o.Excl && (t.e.found || t.e.v != nil) {
		return Opened{}, EEXIST
	}
	if v := t.e.v; v != nil {
		if o.Directory {
			return Opened{}, ENOTDIR
		}
		if v.device != NoDevice {
			return Opened{Device: v.device}, Success
		}
		return fs.openMounted(v.mount, o)
	}
	if !t.e.found {
		return fs.create(t, o, w)
	}
	if o.Directory {
		return Opened{}, ENOTDIR
	}
	switch t.e.info.kind {
	case KindFile:
	case KindLink:
		return Opened{}, ELOOP
	default:
		return Opened{}, fs.deny("open", w.verb, t.guest(), EACCES, "not a regular file")
	}
	return fs.openExisting(t, o)
}

func (fs *FS) openFolder(t *target, o OpenOptions, w want) (Opened, Errno) {
	switch {
	case o.Create && o.Excl:
		return Opened{}, EEXIST
	case o.Create && !o.Directory, o.Write && !o.Directory, o.Trunc:
		return Opened{}, EISDIR
	}
	n, e := fs.folder(t, w)
	if e != Success {
		return Opened{}, e
	}
	if n.m != nil && n.access == NoAccess && n.v == nil {
		// Only the way to something deeper: it can be walked, not listed.
		defer n.release()
		return Opened{}, fs.deny("open", "read", n.guest, EACCES, "taken away below the mount")
	}
	fs.did("open", "read", n.guest)
	return Opened{Dir: &Dir{fs: fs, node: n}}, Success
}

// openMounted opens the file of a single-file mount.
func (fs *FS) openMounted(m *mount, o OpenOptions) (Opened, Errno) {
	a, _ := m.accessAt("", nil)
	if a == NoAccess {
		return Opened{}, fs.deny("open", "read", m.Guest, EACCES, "taken away below the mount")
	}
	writes := o.Write || o.Trunc
	if writes {
		if a == ReadOnly {
			return Opened{}, fs.deny("open", "write", m.Guest, EROFS, "read-only")
		}
		if a == Overlay && m.lowInfo.id != (fileID{}) {
			if e := fs.liftFile(m); e != Success {
				return Opened{}, e
			}
		}
		i, e := m.file.stat()
		if e != Success {
			return Opened{}, e
		}
		if a == ReadWrite && i.nlink > 1 {
			return Opened{}, fs.deny("open", "write", m.Guest, EPERM, "the file has other names")
		}
	}
	f := &File{fs: fs, m: m, h: m.file, guest: m.Guest, read: o.Read, write: o.Write, shared: true, top: m.lowInfo.id == fileID{}}
	if e := f.begin(); e != Success {
		return Opened{}, e
	}
	if o.Trunc {
		if e := f.truncate(0); e != Success {
			f.Close()
			return Opened{}, e
		}
	}
	fs.did("open", o.want().verb, m.Guest)
	return Opened{File: f}, Success
}

// liftFile puts a copy of a single file into the overlay's folder.
func (fs *FS) liftFile(m *mount) Errno {
	h, e := m.top.openFile(m.upperName, true, true, false, true)
	if e != Success {
		return e
	}
	i, e := h.stat()
	if e != Success {
		h.close()
		return e
	}
	if e := fs.copyFile(m, m.file, h, i.id); e != Success {
		h.close()
		_ = m.top.unlink(m.upperName)
		return e
	}
	m.spare, m.file = m.file, h // descriptors that are open already go on reading the old file
	m.lowInfo = info{}
	return Success
}

func (fs *FS) openExisting(t *target, o OpenOptions) (Opened, Errno) {
	m := t.parent.m
	writes := o.Write || o.Trunc
	if writes {
		if e := fs.mayWrite(t.parent, t.name, t.e.access, "open"); e != Success {
			return Opened{}, e
		}
		if !t.e.top {
			if e := fs.copyUp(t.parent, t.name, o.Trunc); e != Success {
				return Opened{}, e
			}
			t.e.top = true
		}
	}
	read := o.Read || !writes
	h, e := t.parent.layer(t.e.top).openFile(t.name, read, writes, o.Append, false)
	switch e {
	case Success:
	case ENOENT, ELOOP, EISDIR, ENXIO: // swapped since the look
		return Opened{}, errAgain
	case EACCES:
		verb := "read"
		if writes {
			verb = "write"
		}
		return Opened{}, fs.deny("open", verb, t.guest(), EACCES, "the host's permissions")
	default:
		return Opened{}, e
	}
	f := &File{fs: fs, m: m, h: h, guest: t.guest(), read: o.Read, write: o.Write, top: t.e.top}
	if e := f.judge(t.parent, t.e.top, writes); e != Success {
		h.close()
		return Opened{}, e
	}
	if e := f.begin(); e != Success {
		h.close()
		return Opened{}, e
	}
	if o.Trunc {
		if e := f.truncate(0); e != Success {
			f.Close()
			return Opened{}, e
		}
	}
	if writes {
		fs.did("open", "write", f.guest)
	} else {
		fs.did("open", "read", f.guest)
	}
	return Opened{File: f}, Success
}

// judge decides on the opened file: what it is, where it lies, how many names it has.
func (f *File) judge(parent *node, top, writes bool) Errno {
	if f.m.Immutable {
		i, e := f.h.stat()
		if e == Success && i.kind != KindFile {
			return errAgain
		}
		return e
	}
	verb := "read"
	if writes {
		verb = "write"
	}
	i, e := f.h.stat()
	if e != Success {
		return e
	}
	if i.kind != KindFile {
		return f.fs.deny("open", verb, f.guest, EACCES, "not a regular file")
	}
	root := f.m.lowInfo
	if top {
		root = f.m.topInfo
	}
	if !f.m.Cross && !i.sameMount(root) {
		return f.fs.deny("open", verb, f.guest, EACCES, "another file system is mounted there")
	}
	if !writes {
		return Success
	}
	return f.fs.mayWriteFile(f.m, f.h, i, f.guest)
}

// mayWriteFile judges an open file that is about to be changed.
func (fs *FS) mayWriteFile(m *mount, h fileHandle, i info, guest string) Errno {
	if m.Scratch || m.Access == Overlay {
		return Success
	}
	if m.ids[i.id] {
		return fs.deny("open", "write", guest, EPERM, "a protected file")
	}
	own := int64(0)
	if in := fs.quota.inodes[i.id]; in != nil {
		own = in.links
	}
	if int64(i.nlink) > 1+own {
		return fs.deny("open", "write", guest, EPERM, "the file has other names")
	}
	if now, ok := h.where(); ok && i.nlink > 0 && !fs.allowedAt(m, now, "") {
		return fs.deny("open", "write", guest, EPERM, "the file was moved to a protected place")
	}
	return Success
}

func (fs *FS) create(t *target, o OpenOptions, w want) (Opened, Errno) {
	switch {
	case !o.Create:
		return Opened{}, ENOENT
	case o.Directory:
		return Opened{}, EINVAL
	case t.slash:
		return Opened{}, EISDIR
	}
	p := t.parent
	if e := fs.mayCreate(p, t.name, t.e.access, "create"); e != Success {
		return Opened{}, e
	}
	h, e := p.top.openFile(t.name, true, true, o.Append, true)
	if e == EEXIST {
		return Opened{}, errAgain
	}
	if e != Success {
		return Opened{}, e
	}
	i, e := h.stat()
	if e != Success {
		h.close()
		return Opened{}, e
	}
	if e := fs.stillAllowed(p, t.name, "create"); e != Success {
		h.close()
		_ = p.top.unlink(t.name)
		return Opened{}, e
	}
	fs.quota.made(i.id)
	f := &File{fs: fs, m: p.m, h: h, guest: t.guest(), read: o.Read, write: o.Write, top: true}
	if e := f.begin(); e != Success {
		h.close()
		return Opened{}, e
	}
	fs.did("create", "write", f.guest)
	return Opened{File: f}, Success
}

// mayCreate judges a new name and makes the folder that takes it.
func (fs *FS) mayCreate(p *node, name string, a Access, op string) Errno {
	if e := fs.mayWrite(p, name, a, op); e != Success {
		return e
	}
	if e := fs.quota.entry(); e != Success {
		return e
	}
	return fs.lift(p)
}

// stillAllowed judges again what was just made: another guest may have moved the folder, or added the last file of a
// bare repository, in between.
func (fs *FS) stillAllowed(p *node, name, op string) Errno {
	if p.m.Scratch {
		return Success
	}
	if now, ok := p.top.where(); ok && !fs.allowedAt(p.m, now, name) {
		return fs.deny(op, "write", p.join(name), EPERM, "the folder was moved to a protected place")
	}
	if p.movedSince() { // a link was judged for another depth
		return fs.deny(op, "write", p.join(name), EPERM, "the folder was moved meanwhile")
	}
	if fs.becomesBare(p, name) {
		return fs.deny(op, "write", p.join(name), EPERM, "the folder would become a bare repository")
	}
	return Success
}

// lift makes the folder exist in the layer that takes the writes.
func (fs *FS) lift(n *node) Errno {
	n.refresh()
	if n.top.ok() {
		return Success
	}
	if n.parent == nil || n.parent.m != n.m {
		return EROFS
	}
	if e := fs.lift(n.parent); e != Success {
		return e
	}
	name := path.Base(n.rel)
	e := n.parent.top.mkdir(name)
	if e != Success && e != EEXIST {
		return e
	}
	made := e == Success
	h, e := n.parent.top.openDir(name)
	if e != Success {
		return e
	}
	n.top = h
	i, e := h.stat()
	if e != Success {
		return e
	}
	n.ids[1] = i.id
	if made {
		fs.quota.made(i.id)
	}
	return Success
}

// copyUp puts a copy of a lower file, or link, into the upper layer.
func (fs *FS) copyUp(p *node, name string, empty bool) Errno {
	if e := fs.quota.entry(); e != Success {
		return e
	}
	if e := fs.lift(p); e != Success {
		return e
	}
	i, e := p.low.lstat(name)
	if e != Success {
		return e
	}
	if i.kind == KindLink {
		to, e := p.low.readlink(name)
		if e != Success {
			return e
		}
		if !p.m.staysBelow(to, len(p.keys)) {
			return ENOTCAPABLE
		}
		if e := p.top.symlink(to, name); e != Success {
			return e
		}
		if i, e := p.top.lstat(name); e == Success {
			fs.quota.made(i.id)
		}
		return Success
	}
	from, e := p.low.openFile(name, true, false, false, false)
	if e != Success {
		return e
	}
	defer from.close()
	if i, e = from.stat(); e != Success {
		return e
	}
	if i.kind != KindFile || !p.m.Cross && !i.sameMount(p.m.lowInfo) {
		return EACCES
	}
	to, e := p.top.openFile(name, true, true, false, true)
	if e == EEXIST {
		return Success
	}
	if e != Success {
		return e
	}
	defer to.close()
	j, e := to.stat()
	if e == Success {
		fs.quota.made(j.id)
		if !empty {
			e = fs.copyFile(p.m, from, to, j.id)
		}
	}
	if e != Success {
		_ = p.top.unlink(name)
		fs.quota.removed(j.id, 0)
		return e
	}
	return to.setTimes(setTimes{&i.atim, &i.mtim})
}

func (fs *FS) copyFile(m *mount, from, to fileHandle, id fileID) Errno {
	buf := make([]byte, 256<<10)
	in := fs.quota.of(id)
	in.opens++
	defer func() { in.opens-- }()
	for off := int64(0); ; {
		if fs.cfg.Done() {
			return ECANCELED
		}
		n, e := from.pread(buf, off)
		if e != Success || n == 0 {
			return e
		}
		if room, e := fs.quota.room(m, int64(n)); room < int64(n) {
			return e
		}
		w, e := to.pwrite(buf[:n], off)
		fs.quota.charge(in, int64(w))
		if e != Success {
			return e
		}
		off += int64(w)
	}
}

// stat turns what the system says into what the guest may know.
func (m *mount) stat(i info, top bool) Stat {
	dev := 2 * (m.index + 1)
	if top {
		dev++
	}
	return Stat{Dev: dev, Ino: i.id.ino, Nlink: i.nlink, Kind: i.kind, Size: i.size, Atim: i.atim, Mtim: i.mtim, Ctim: i.ctim}
}

func (fs *FS) virtualStat(v *vnode) Stat {
	t := fs.start.UnixNano()
	s := Stat{Dev: 1, Ino: v.ino, Nlink: 1, Kind: KindDir, Atim: t, Mtim: t, Ctim: t}
	if v.device != NoDevice {
		s.Kind = KindChar
	}
	return s
}

func (n *node) stat(fs *FS) (Stat, Errno) {
	n.refresh()
	if n.m == nil || !n.low.ok() && !n.top.ok() {
		return fs.virtualStat(n.v), Success
	}
	top := n.top.ok()
	i, e := n.layer(top).stat()
	if e != Success {
		return Stat{}, e
	}
	return n.m.stat(i, top), Success
}

// Stat describes the folder itself.
func (d *Dir) Stat() (Stat, Errno) { return d.node.stat(d.fs) }

// StatAt describes what a path leads to; what no mount covers is just not there.
func (d *Dir) StatAt(p string, followLinks bool) (Stat, Errno) {
	w := want{op: "stat", verb: "read", quiet: true, follow: followSlash}
	if followLinks {
		w.follow = followAlways
	}
	t, e := d.fs.walk(d.node, p, w)
	if e != Success {
		return Stat{}, e
	}
	defer t.release()
	if t.dir != nil {
		return t.dir.stat(d.fs)
	}
	if v := t.e.v; v != nil {
		switch {
		case v.mount != nil && v.mount.File:
			i, e := v.mount.file.stat()
			if e != Success {
				return Stat{}, e
			}
			return v.mount.stat(i, v.mount.lowInfo.id == fileID{}), Success
		case v.device != NoDevice:
			return d.fs.virtualStat(v), Success
		}
		n, e := d.fs.folder(&t, w)
		if e != Success {
			return Stat{}, e
		}
		defer n.release()
		return n.stat(d.fs)
	}
	if !t.e.found {
		return Stat{}, ENOENT
	}
	m := t.parent.m
	root := m.lowInfo
	if t.e.top {
		root = m.topInfo
	}
	if t.e.info.kind == KindDir && !m.Cross && !t.e.info.sameMount(root) {
		return Stat{}, EACCES // agrees with what opening it answers
	}
	return m.stat(t.e.info, t.e.top), Success
}

// Readlink gives a link's text if it stays in its mount; any other text could tell of the host.
func (d *Dir) Readlink(p string) (string, Errno) {
	t, e := d.fs.walk(d.node, p, want{op: "readlink", verb: "read", follow: followSlash})
	if e != Success {
		return "", e
	}
	defer t.release()
	if t.dir != nil || t.e.v != nil {
		return "", EINVAL
	}
	if !t.e.found {
		return "", ENOENT
	}
	if t.e.info.kind != KindLink {
		return "", EINVAL
	}
	to, e := t.parent.layer(t.e.top).readlink(t.name)
	if e != Success {
		return "", e
	}
	if !t.parent.m.staysBelow(to, len(t.parent.keys)) {
		return "", d.fs.deny("readlink", "read", t.guest(), ENOTCAPABLE, "a link leaves its mount: "+to)
	}
	return to, Success
}

// SetTimes sets the times of the folder.
func (d *Dir) SetTimes(atim, mtim *int64) Errno {
	n := d.node
	if e := d.fs.mayTouch(n); e != Success {
		return e
	}
	return n.top.setTimes(setTimes{atim, mtim})
}

func (fs *FS) mayTouch(n *node) Errno {
	if n.m == nil || n.rel == "" && n.v != nil && n.m.rootNarrowed() {
		return fs.deny("set-times", "write", n.guest, EACCES, "no root covers it")
	}
	if n.rel == "" {
		if n.access != ReadWrite && n.access != Overlay {
			return fs.deny("set-times", "write", n.guest, EROFS, "read-only")
		}
		return Success
	}
	if e := fs.mayWrite(n.parent, path.Base(n.rel), n.access, "set-times"); e != Success {
		return e
	}
	return fs.lift(n)
}

func (m *mount) rootNarrowed() bool {
	a, _ := m.accessAt("", nil)
	return a == NoAccess
}

// SetTimesAt sets the times of a file or folder, never of a link.
func (d *Dir) SetTimesAt(p string, followLinks bool, atim, mtim *int64) Errno {
	fs := d.fs
	w := want{op: "set-times", verb: "write", follow: followSlash}
	if followLinks {
		w.follow = followAlways
	}
	t, e := fs.walk(d.node, p, w)
	if e != Success {
		return e
	}
	defer t.release()
	if t.dir != nil || t.e.isDir() {
		n, e := fs.folder(&t, w)
		if e != Success {
			return e
		}
		dir := &Dir{fs: fs, node: n}
		defer dir.Close()
		return dir.SetTimes(atim, mtim)
	}
	if v := t.e.v; v != nil {
		if v.device != NoDevice {
			return fs.deny("set-times", "write", v.path, EACCES, "no root covers it")
		}
		if a, _ := v.mount.accessAt("", nil); a == ReadOnly || a == NoAccess {
			return fs.deny("set-times", "write", v.path, EROFS, "read-only")
		}
		opened, e := fs.openMounted(v.mount, OpenOptions{Write: true})
		if e != Success {
			return e
		}
		defer opened.File.Close()
		return opened.File.SetTimes(atim, mtim)
	}
	switch {
	case !t.e.found:
		return ENOENT
	case t.e.info.kind == KindLink:
		return ENOTSUP
	case t.e.info.kind != KindFile:
		return fs.deny("set-times", "write", t.guest(), EACCES, "not a regular file")
	}
	if e := fs.mayWrite(t.parent, t.name, t.e.access, "set-times"); e != Success {
		return e
	}
	if !t.e.top {
		if e := fs.copyUp(t.parent, t.name, false); e != Success {
			return e
		}
	}
	h, e := t.parent.top.openFile(t.name, true, false, false, false)
	if e != Success {
		return e
	}
	f := &File{fs: fs, m: t.parent.m, h: h, guest: t.guest()}
	defer h.close()
	if e := f.judge(t.parent, true, true); e != Success {
		return e
	}
	return h.setTimes(setTimes{atim, mtim})
}

// Sync waits until the folder is on disk, where it can be.
func (d *Dir) Sync() Errno {
	if !d.node.top.ok() {
		return Success
	}
	return d.node.top.sync()
}

// DirEntry is one entry of a listing.
type DirEntry struct {
	Name string
	Kind Kind
	Ino  uint64
}

const (
	maxListed    = 1 << 17  // entries of one folder
	maxListBytes = 32 << 20 // held by all open folders together
)

func (d *Dir) forget() {
	d.fs.listBytes -= d.size
	d.list, d.size = nil, 0
	for i, o := range d.fs.listings {
		if o == d {
			d.fs.listings = append(d.fs.listings[:i], d.fs.listings[i+1:]...)
			break
		}
	}
}

// Entries gives the listing of the folder, "." and ".." first. It is read when again is set or there is none, and
// then stays as it is, so that an index into it means the same entry until the next time. The caller must not keep it.
func (d *Dir) Entries(again bool) ([]DirEntry, Errno) {
	if d.list != nil && !again {
		return d.list, Success
	}
	d.forget()
	list, e := d.fs.entries(d.node)
	if e != Success {
		if e == EOVERFLOW {
			return nil, d.fs.deny("limit", "limit", "folder entries", EOVERFLOW, "")
		}
		return nil, e
	}
	size := 0
	for _, l := range list {
		size += len(l.Name) + 40
	}
	if size > maxListBytes {
		return nil, d.fs.deny("limit", "limit", "folder entries", EOVERFLOW, "")
	}
	for d.fs.listBytes+size > maxListBytes {
		d.fs.listings[0].forget() // the oldest is read again when it is asked for
	}
	d.list, d.size = list, size
	d.fs.listBytes += size
	d.fs.listings = append(d.fs.listings, d)
	return list, Success
}

func (fs *FS) entries(n *node) ([]DirEntry, Errno) {
	self, e := n.stat(fs)
	if e != Success {
		return nil, e
	}
	up := uint64(1)
	if n.parent != nil {
		if s, e := n.parent.stat(fs); e == Success {
			up = s.Ino
		}
	}
	seen := map[string]bool{}
	var out []DirEntry
	if n.v != nil {
		for _, name := range n.v.order {
			c := n.v.children[name]
			k := KindDir
			switch {
			case c.device != NoDevice:
				k = KindChar
			case c.mount != nil && c.mount.File:
				k = KindFile
			}
			seen[name] = true
			out = append(out, DirEntry{name, k, c.ino})
		}
	}
	for _, top := range []bool{true, false} {
		h := n.layer(top)
		if n.m == nil || !h.ok() {
			continue
		}
		names, e := h.list(maxListed - len(out))
		if e != Success {
			return nil, e
		}
		for _, l := range names {
			if seen[l.name] || !utf8.ValidString(l.name) || !top && n.m.white[n.relOf(l.name)] {
				continue
			}
			keys := n.keysOf(l.name)
			if matchAny(n.m.hide, keys) {
				continue
			}
			if a, pass := n.m.accessAt(n.relOf(l.name), keys); a == NoAccess && !pass {
				continue
			}
			if l.kind == kindUnknown {
				i, e := h.lstat(l.name)
				if e != Success {
					continue
				}
				l.kind = i.kind
			}
			if n.low.ok() && top {
				seen[l.name] = true
			}
			out = append(out, DirEntry{l.name, l.kind, l.ino})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return append([]DirEntry{{".", KindDir, self.Ino}, {"..", KindDir, up}}, out...), Success
}
