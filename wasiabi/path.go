package wasiabi

import "github.com/exthost/exthost/wasiabi/internal/rootfs"

func pathCreateDirectory(p *Process, m memory, a []uint64) errno {
	return p.onPath(m, a[0], a[1], a[2], rightPathCreateDirectory, (*rootfs.Dir).Mkdir)
}

func pathRemoveDirectory(p *Process, m memory, a []uint64) errno {
	return p.onPath(m, a[0], a[1], a[2], rightPathRemoveDirectory, (*rootfs.Dir).Rmdir)
}

func pathUnlinkFile(p *Process, m memory, a []uint64) errno {
	return p.onPath(m, a[0], a[1], a[2], rightPathUnlinkFile, (*rootfs.Dir).Unlink)
}

func (p *Process) onPath(m memory, fd, ptr, n, right uint64, f func(*rootfs.Dir, string) errno) errno {
	dir, e := p.folder(fd, right)
	if e != rootfs.Success {
		return e
	}
	name, e := m.path(ptr, n)
	if e != rootfs.Success {
		return e
	}
	return f(dir, name)
}

func pathFilestatGet(p *Process, m memory, a []uint64) errno {
	if a[1]&^lookupFollow != 0 {
		return rootfs.EINVAL
	}
	return p.onPath(m, a[0], a[2], a[3], rightPathFilestatGet, func(d *rootfs.Dir, name string) errno {
		s, e := d.StatAt(name, a[1]&lookupFollow != 0)
		if e != rootfs.Success {
			return e
		}
		return m.putStat(a[4], s)
	})
}

func pathFilestatSetTimes(p *Process, m memory, a []uint64) errno {
	if a[1]&^lookupFollow != 0 {
		return rootfs.EINVAL
	}
	atim, mtim, e := p.times(a[4], a[5], a[6])
	if e != rootfs.Success {
		return e
	}
	return p.onPath(m, a[0], a[2], a[3], rightPathFilestatSetTimes, func(d *rootfs.Dir, name string) errno {
		return d.SetTimesAt(name, a[1]&lookupFollow != 0, atim, mtim)
	})
}

func pathLink(p *Process, m memory, a []uint64) errno {
	if a[1]&^lookupFollow != 0 {
		return rootfs.EINVAL
	}
	return p.onTwo(m, [2]uint64{a[0], a[4]}, [2]uint64{a[2], a[3]}, [2]uint64{a[5], a[6]}, rightPathLinkSource,
		rightPathLinkTarget, func(from *rootfs.Dir, old string, to *rootfs.Dir, new string) errno {
			return from.Link(old, a[1]&lookupFollow != 0, to, new)
		})
}

func pathRename(p *Process, m memory, a []uint64) errno {
	return p.onTwo(m, [2]uint64{a[0], a[3]}, [2]uint64{a[1], a[2]}, [2]uint64{a[4], a[5]}, rightPathRenameSource,
		rightPathRenameTarget, func(from *rootfs.Dir, old string, to *rootfs.Dir, new string) errno {
			return from.Rename(old, to, new)
		})
}

func (p *Process) onTwo(m memory, fds, old, new [2]uint64, r1, r2 uint64,
	f func(from *rootfs.Dir, old string, to *rootfs.Dir, new string) errno,
) errno {
	from, e := p.folder(fds[0], r1)
	if e != rootfs.Success {
		return e
	}
	to, e := p.folder(fds[1], r2)
	if e != rootfs.Success {
		return e
	}
	a, e := m.path(old[0], old[1])
	if e != rootfs.Success {
		return e
	}
	b, e := m.path(new[0], new[1])
	if e != rootfs.Success {
		return e
	}
	return f(from, a, to, b)
}

func pathSymlink(p *Process, m memory, a []uint64) errno {
	text, e := m.path(a[0], a[1])
	if e != rootfs.Success {
		return e
	}
	return p.onPath(m, a[2], a[3], a[4], rightPathSymlink, func(d *rootfs.Dir, name string) errno {
		return d.Symlink(text, name)
	})
}

func pathReadlink(p *Process, m memory, a []uint64) errno {
	return p.onPath(m, a[0], a[1], a[2], rightPathReadlink, func(d *rootfs.Dir, name string) errno {
		buf, e := m.slice(a[3], a[4])
		if e != rootfs.Success {
			return e
		}
		if _, e := m.slice(a[5], 4); e != rootfs.Success {
			return e
		}
		text, e := d.Readlink(name)
		if e != rootfs.Success {
			return e
		}
		return m.put32(a[5], uint32(copy(buf, text)))
	})
}

func pathOpen(p *Process, m memory, a []uint64) errno {
	dirFlags, oflags, fdflags := a[1], a[4], a[7]
	rights := a[5]
	dir, e := p.folder(a[0], rightPathOpen)
	if e != rootfs.Success {
		return e
	}
	if dirFlags&^lookupFollow != 0 || oflags > 15 || fdflags&^flagAll != 0 {
		return rootfs.EINVAL
	}
	parent := p.fds[a[0]]
	// A libc asks for all that could be of use, so what the folder does not pass on is left out, but for what the open
	// itself needs. A folder gets the rights of the one that it was opened from: Go asks for those of a file there.
	if rights&rightFdWrite&^parent.inherit != 0 ||
		oflags&openCreat != 0 && parent.rights&rightPathCreateFile == 0 ||
		oflags&openTrunc != 0 && parent.rights&rightPathFilestatSetSize == 0 {
		return rootfs.ENOTCAPABLE
	}
	rights &= parent.inherit
	name, e := m.path(a[2], a[3])
	if e != rootfs.Success {
		return e
	}
	if _, e := m.slice(a[8], 4); e != rootfs.Success {
		return e
	}
	if p.full() {
		return rootfs.EMFILE
	}
	o := rootfs.OpenOptions{
		Follow:    dirFlags&lookupFollow != 0,
		Read:      rights&(rightFdRead|rightFdReaddir) != 0,
		Write:     rights&rightFdWrite != 0,
		Append:    fdflags&flagAppend != 0,
		Create:    oflags&openCreat != 0,
		Excl:      oflags&openExcl != 0,
		Trunc:     oflags&openTrunc != 0,
		Directory: oflags&openDirectory != 0,
	}
	if o.Directory && o.Create {
		return rootfs.EINVAL
	}
	got, e := dir.Open(name, o)
	if e != rootfs.Success {
		return e
	}
	d := &desc{flags: uint16(fdflags), inherit: parent.inherit}
	switch {
	case got.Dir != nil:
		d.kind, d.dir, d.rights = kindDir, got.Dir, parent.rights&dirRights
	case got.File != nil:
		d.kind, d.file, d.rights, d.inherit = kindFile, got.File, rights&fileRights, 0
		if !o.Write {
			d.rights &^= fileWriteRights
		}
		if rights&rightFdRead == 0 {
			d.rights &^= rightFdRead
		}
	default:
		d.kind, d.device, d.rights, d.inherit = kindDevice, got.Device, rights&deviceRights, 0
		if asks(got.Device) {
			if d.ask = p.newRequest(got.Device); d.ask == nil {
				return rootfs.EBUSY
			}
		}
	}
	return m.put32(a[8], p.add(d))
}
