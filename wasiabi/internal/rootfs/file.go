package rootfs

// File is an open regular file. Reads and writes name their offset; Append ignores it. Close it.
type File struct {
	fs     *FS
	m      *mount
	h      fileHandle
	guest  string
	id     fileID
	read   bool
	write  bool
	shared bool // the handle is the mount's
	top    bool // of the layer that takes the writes
	in     *inode
}

const maxSize = 1<<63 - 1

// begin notes that the file is open for changes.
func (f *File) begin() Errno {
	if !f.m.accessWrites() {
		return Success
	}
	i, e := f.h.stat()
	if e != Success {
		return e
	}
	f.id = i.id
	f.in = f.fs.quota.of(i.id)
	if !f.in.looked { // a file of the run's own is empty the first time
		f.in.looked, f.in.holes = true, max(i.size-i.blocks, 0)
	}
	f.in.opens++
	return Success
}

func (m *mount) accessWrites() bool { return m.Access != ReadOnly }

// Close lets the file go.
func (f *File) Close() {
	if f.in != nil {
		f.in.opens--
		f.fs.quota.drop(f.id)
		f.in = nil
	}
	if !f.shared {
		f.h.close()
	}
	f.h = fileHandle{}
}

// Path is the guest's path of the file when it was opened.
func (f *File) Path() string { return f.guest }

// CanRead and CanWrite tell what the file was opened for.
func (f *File) CanRead() bool  { return f.read }
func (f *File) CanWrite() bool { return f.write }

// Changeable tells whether the mount lets the file's times be set.
func (f *File) Changeable() bool { return f.m.accessWrites() }

// ReadAt reads at most len(p) bytes; 0 is the end of the file.
func (f *File) ReadAt(p []byte, off int64) (int, Errno) {
	if off < 0 {
		return 0, EINVAL
	}
	return f.h.pread(p, off)
}

// WriteAt writes p at an offset, or less of it where a limit leaves less.
func (f *File) WriteAt(p []byte, off int64) (int, Errno) {
	if off < 0 || off > maxSize-int64(len(p)) {
		return 0, EFBIG
	}
	return f.put(p, off, false)
}

// Append writes p at the end and tells where that was.
func (f *File) Append(p []byte) (n int, end int64, e Errno) {
	n, e = f.put(p, 0, true)
	if e != Success {
		return n, 0, e
	}
	i, e := f.h.stat()
	return n, i.size, e
}

func (f *File) put(p []byte, off int64, app bool) (int, Errno) {
	if len(p) == 0 {
		return 0, Success
	}
	q := &f.fs.quota
	i, e := f.h.stat()
	if e != Success {
		return 0, e
	}
	if app {
		off = i.size
	}
	fill := f.mayFill(&i, off, int64(len(p)))
	if fill > 0 {
		if room, e := q.room(f.m, fill); room < fill {
			if room == 0 {
				return 0, e
			}
			p, fill = p[:room], room
		}
	}
	if grow := off + int64(len(p)) - i.size; grow > 0 {
		room, e := q.room(f.m, grow+fill)
		if room -= fill; room < grow {
			fit := i.size + room - off
			if fit <= 0 {
				return 0, e
			}
			p = p[:fit]
		}
	}
	var n int
	if app {
		n, e = f.h.append(p)
	} else {
		n, e = f.h.pwrite(p, off)
	}
	if n > 0 {
		q.written += int64(n)
		grow := max(off+int64(n)-i.size, 0)
		if grow > 0 {
			q.charge(f.in, grow)
		}
		if fill > 0 {
			f.filled(&i, grow)
		}
		return n, Success
	}
	return 0, e
}

// mayFill is how many bytes of holes n bytes at off can fill at most.
func (f *File) mayFill(i *info, off, n int64) int64 {
	if f.in.holes == 0 {
		return 0
	}
	return min(max(min(off+n, i.size)-off, 0), f.in.holes)
}

// filled charges for the holes that were filled since before, beside the growth.
func (f *File) filled(before *info, grow int64) {
	after, e := f.h.stat()
	if e != Success {
		return
	}
	n := min(max(after.blocks-before.blocks-grow, 0), f.in.holes)
	f.in.holes -= n
	f.fs.quota.charge(f.in, n)
}

// SetAppend says whether Append or WriteAt will be used.
func (f *File) SetAppend(on bool) Errno { return f.h.setAppend(on) }

// SetSize makes the file shorter or longer.
func (f *File) SetSize(size int64) Errno {
	if !f.write {
		return EINVAL
	}
	return f.truncate(size)
}

func (f *File) truncate(size int64) Errno {
	if size < 0 {
		return EINVAL
	}
	i, e := f.h.stat()
	if e != Success {
		return e
	}
	grow := size - i.size
	if room, e := f.fs.quota.room(f.m, grow); grow > 0 && room < grow {
		return e
	}
	if e := f.h.truncate(size); e != Success {
		return e
	}
	f.fs.quota.charge(f.in, grow)
	return Success
}

// Allocate makes the file at least off+n bytes long.
func (f *File) Allocate(off, n int64) Errno {
	if !f.write {
		return EBADF
	}
	if off < 0 || n <= 0 {
		return EINVAL
	}
	if off > maxSize-n {
		return EFBIG
	}
	i, e := f.h.stat()
	if e != Success {
		return e
	}
	grow, fill := max(off+n-i.size, 0), f.mayFill(&i, off, n)
	if room, e := f.fs.quota.room(f.m, grow+fill); room < grow+fill {
		return e
	}
	if e := f.h.allocate(off, n); e != Success {
		return e
	}
	f.fs.quota.charge(f.in, grow)
	if fill > 0 {
		f.filled(&i, grow)
	}
	return Success
}

// Stat describes the file.
func (f *File) Stat() (Stat, Errno) {
	i, e := f.h.stat()
	if e != Success {
		return Stat{}, e
	}
	return f.m.stat(i, f.top), Success
}

// SetTimes sets the file's times.
func (f *File) SetTimes(atim, mtim *int64) Errno {
	if !f.m.accessWrites() {
		return f.fs.deny("set-times", "write", f.guest, EROFS, "read-only")
	}
	if f.m.Access == Overlay && !f.top {
		return f.fs.deny("set-times", "write", f.guest, EROFS, "the file below an overlay")
	}
	i, e := f.h.stat()
	if e != Success {
		return e
	}
	if e := f.fs.mayWriteFile(f.m, f.h, i, f.guest); e != Success {
		return e
	}
	return f.h.setTimes(setTimes{atim, mtim})
}

// Sync waits until the file is on disk; data alone is enough if only data is asked for.
func (f *File) Sync(data bool) Errno {
	if data {
		return f.h.datasync()
	}
	return f.h.sync()
}
