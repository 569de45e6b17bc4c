package wasiabi

import "github.com/exthost/exthost/wasiabi/internal/rootfs"

type descKind uint8

const (
	kindStream descKind = iota + 1
	kindFile
	kindDir
	kindDevice
)

// desc is one descriptor of the guest.
type desc struct {
	kind    descKind
	rights  uint64
	inherit uint64
	flags   uint16
	stream  *stream // nil within a stream: end of file, or discarded
	out     bool
	file    *rootfs.File
	off     int64
	dir     *rootfs.Dir
	device  rootfs.Device
	ask     *request // of a device that asks the host
	preopen bool
}

func (d *desc) close() {
	switch d.kind {
	case kindStream:
		d.stream.close()
	case kindFile:
		d.file.Close()
	case kindDir:
		d.dir.Close()
	case kindDevice:
		d.ask.close()
	}
}

// get returns an open descriptor that has all the rights.
func (p *Process) get(fd uint64, rights uint64) (*desc, errno) {
	if fd >= uint64(len(p.fds)) || p.fds[fd] == nil {
		return nil, rootfs.EBADF
	}
	d := p.fds[fd]
	if d.rights&rights != rights {
		switch {
		case rights&(rightFdRead|rightFdWrite) != 0 && d.kind == kindDir:
			return nil, rootfs.EISDIR
		case rights&(rightFdRead|rightFdWrite) != 0:
			return nil, rootfs.EBADF // as read(2) answers for a descriptor that is open for writing only
		case rights&rightFdReaddir != 0 && d.kind != kindDir:
			return nil, rootfs.ENOTDIR
		case rights&(rightFdSeek|rightFdTell) != 0:
			return nil, rootfs.ESPIPE
		case rights&(rightFdAllocate|rightFdFilestatSetSize) != 0 && d.kind == kindFile && !d.file.Changeable():
			return nil, rootfs.EROFS
		}
		return nil, rootfs.ENOTCAPABLE
	}
	return d, rootfs.Success
}

// folder returns a descriptor of a folder that has the right.
func (p *Process) folder(fd uint64, right uint64) (*rootfs.Dir, errno) {
	if fd >= uint64(len(p.fds)) || p.fds[fd] == nil {
		return nil, rootfs.EBADF
	}
	d := p.fds[fd]
	if d.kind != kindDir {
		return nil, rootfs.ENOTDIR
	}
	if d.rights&right != right {
		return nil, rootfs.ENOTCAPABLE
	}
	return d.dir, rootfs.Success
}

// full tells whether the guest has as many descriptors as it may.
func (p *Process) full() bool {
	if p.open < p.cap {
		return false
	}
	p.events.add(Event{Op: "limit", Capability: "limit open-files", Denied: true, Errno: rootfs.EMFILE.Name()})
	return true
}

// add puts a descriptor at the lowest free number; the caller asked full before.
func (p *Process) add(d *desc) uint32 {
	p.open++
	for i, o := range p.fds {
		if o == nil {
			p.fds[i] = d
			return uint32(i)
		}
	}
	p.fds = append(p.fds, d)
	return uint32(len(p.fds) - 1)
}

func fdClose(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	p.fds[a[0]] = nil
	p.open--
	d.close()
	return rootfs.Success
}

func fdRenumber(p *Process, _ memory, a []uint64) errno {
	from, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	to, e := p.get(a[1], 0)
	if e != rootfs.Success || a[0] == a[1] {
		return e
	}
	to.close()
	p.fds[a[1]] = from
	p.fds[a[0]] = nil
	p.open--
	return rootfs.Success
}

func (d *desc) filetype() uint8 {
	switch d.kind {
	case kindFile:
		return typeRegular
	case kindDir:
		return typeDirectory
	case kindDevice:
		return typeCharacter
	}
	return typeUnknown
}

func fdFdstatGet(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	b, e := m.slice(a[1], 24)
	if e != rootfs.Success {
		return e
	}
	clear(b)
	b[0] = d.filetype()
	le.PutUint16(b[2:], d.flags)
	le.PutUint64(b[8:], d.rights)
	le.PutUint64(b[16:], d.inherit)
	return rootfs.Success
}

func fdFdstatSetFlags(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdFdstatSetFlags)
	if e != rootfs.Success {
		return e
	}
	if a[1]&^flagAll != 0 {
		return rootfs.EINVAL
	}
	flags := uint16(a[1])
	if d.kind == kindFile && (flags^d.flags)&flagAppend != 0 {
		if e := d.file.SetAppend(flags&flagAppend != 0); e != rootfs.Success {
			return e
		}
	}
	d.flags = flags
	return rootfs.Success
}

func fdFdstatSetRights(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	if a[1]&^d.rights != 0 || a[2]&^d.inherit != 0 {
		return rootfs.ENOTCAPABLE
	}
	d.rights, d.inherit = a[1], a[2]
	return rootfs.Success
}

func fdPrestatGet(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	if !d.preopen {
		return rootfs.EBADF
	}
	b, e := m.slice(a[1], 8)
	if e != rootfs.Success {
		return e
	}
	clear(b)
	le.PutUint32(b[4:], uint32(len(d.dir.Path())))
	return rootfs.Success
}

func fdPrestatDirName(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	if !d.preopen {
		return rootfs.EBADF
	}
	name := d.dir.Path()
	b, e := m.slice(a[1], a[2])
	if e != rootfs.Success {
		return e
	}
	if len(b) < len(name) {
		return rootfs.ENAMETOOLONG
	}
	copy(b, name)
	return rootfs.Success
}
