package wasiabi

import (
	"context"
	"math"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

const (
	maxIovecs   = 1024
	maxTransfer = 1 << 30 // bytes of one read or write; the guest sees a short count
	chunk       = 1 << 20 // bytes between two looks at the clock
)

// vectors reads the iovec array: n times an address and a length, 32 bits each. Buffers may overlap.
func (m memory) vectors(ptr, n uint64) ([][]byte, errno) {
	if n > maxIovecs {
		return nil, rootfs.EINVAL
	}
	table, e := m.slice(ptr, 8*n)
	if e != rootfs.Success {
		return nil, e
	}
	out := make([][]byte, 0, n)
	total := 0
	for ; len(table) > 0; table = table[8:] {
		b, e := m.slice(uint64(le.Uint32(table)), uint64(le.Uint32(table[4:])))
		if e != rootfs.Success {
			return nil, e
		}
		if left := maxTransfer - total; len(b) > left {
			b = b[:left]
		}
		total += len(b)
		for len(b) > chunk {
			out = append(out, b[:chunk])
			b = b[chunk:]
		}
		if len(b) > 0 {
			out = append(out, b)
		}
	}
	return out, rootfs.Success
}

// transfer calls f for each buffer until one is not filled or emptied, the run ends or an error comes; an error after
// the first byte is left to the next call.
func (p *Process) transfer(bufs [][]byte, f func(b []byte, done int64) (int, errno, error)) (uint32, errno, error) {
	var total int64
	for _, b := range bufs {
		if total > 0 && !running(p.ctx) {
			return 0, 0, context.Cause(p.ctx)
		}
		n, e, err := f(b, total)
		total += int64(n)
		if err != nil {
			return 0, 0, err
		}
		if e != rootfs.Success {
			if total > 0 {
				break
			}
			return 0, e, nil
		}
		if n < len(b) {
			break
		}
	}
	return uint32(total), rootfs.Success, nil
}

func fdRead(p *Process, m memory, a []uint64) (errno, error) {
	d, e := p.get(a[0], rightFdRead)
	if e != rootfs.Success {
		return e, nil
	}
	return p.read(d, m, a[1], a[2], a[3], -1)
}

func fdPread(p *Process, m memory, a []uint64) (errno, error) {
	d, e := p.get(a[0], rightFdRead|rightFdSeek)
	if e != rootfs.Success {
		return e, nil
	}
	if int64(a[3]) < 0 {
		return rootfs.EINVAL, nil
	}
	if d.ask != nil {
		return rootfs.ESPIPE, nil
	}
	return p.read(d, m, a[1], a[2], a[4], int64(a[3]))
}

// read fills the buffers; at < 0 reads at the descriptor's own offset.
func (p *Process) read(d *desc, m memory, iovs, n, result uint64, at int64) (errno, error) {
	bufs, e := m.vectors(iovs, n)
	if e != rootfs.Success {
		return e, nil
	}
	if _, e := m.slice(result, 4); e != rootfs.Success {
		return e, nil // before anything is taken from a pipe
	}
	off := d.off
	if at >= 0 {
		off = at
	}
	got, e, err := p.transfer(bufs, func(b []byte, done int64) (int, errno, error) {
		switch d.kind {
		case kindFile:
			n, e := d.file.ReadAt(b, off+done)
			return n, e, nil
		case kindDevice:
			if d.ask != nil {
				return p.readAnswer(d.ask, b), rootfs.Success, nil
			}
			n, e := readDevice(d.device, b)
			return n, e, nil
		}
		if done > 0 {
			return 0, rootfs.EAGAIN, nil // a pipe gave what it had
		}
		return p.readStream(d, b)
	})
	if err != nil || e != rootfs.Success {
		return e, err
	}
	if at < 0 && d.kind == kindFile {
		d.off += int64(got)
	}
	return m.put32(result, got), nil
}

func fdWrite(p *Process, m memory, a []uint64) (errno, error) {
	d, e := p.get(a[0], rightFdWrite)
	if e != rootfs.Success {
		return e, nil
	}
	return p.write(d, m, a[1], a[2], a[3], -1)
}

func fdPwrite(p *Process, m memory, a []uint64) (errno, error) {
	d, e := p.get(a[0], rightFdWrite|rightFdSeek)
	if e != rootfs.Success {
		return e, nil
	}
	if int64(a[3]) < 0 {
		return rootfs.EINVAL, nil
	}
	if d.ask != nil {
		return rootfs.ESPIPE, nil
	}
	return p.write(d, m, a[1], a[2], a[4], int64(a[3]))
}

// gather joins small buffers, so that what a guest writes with one call is one write to a pipe.
func gather(bufs [][]byte) [][]byte {
	if len(bufs) < 2 {
		return bufs
	}
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	if total > pipeAtom {
		return bufs
	}
	all := make([]byte, 0, total)
	for _, b := range bufs {
		all = append(all, b...)
	}
	return [][]byte{all}
}

func (p *Process) write(d *desc, m memory, iovs, n, result uint64, at int64) (errno, error) {
	bufs, e := m.vectors(iovs, n)
	if e != rootfs.Success {
		return e, nil
	}
	if _, e := m.slice(result, 4); e != rootfs.Success {
		return e, nil
	}
	bufs = gather(bufs)
	app := d.flags&flagAppend != 0
	off := d.off
	if at >= 0 {
		off = at
	}
	put, e, err := p.transfer(bufs, func(b []byte, done int64) (int, errno, error) {
		switch {
		case d.kind == kindFile && app:
			n, end, e := d.file.Append(b)
			off = end - done - int64(n)
			return n, e, nil
		case d.kind == kindFile:
			n, e := d.file.WriteAt(b, off+done)
			return n, e, nil
		case d.ask != nil:
			n, e := p.writeRequest(d.ask, b)
			return n, e, nil
		case d.kind == kindDevice:
			return len(b), rootfs.Success, nil
		}
		return p.writeStream(d, b)
	})
	if err != nil || e != rootfs.Success {
		return e, err
	}
	if at < 0 && d.kind == kindFile {
		d.off = off + int64(put)
	}
	if d.kind == kindFile && put > 0 && d.flags&(flagSync|flagDsync) != 0 {
		if e := d.file.Sync(d.flags&flagSync == 0); e != rootfs.Success {
			return e, nil
		}
	}
	return m.put32(result, put), nil
}

func readDevice(dev rootfs.Device, b []byte) (int, errno) {
	switch dev {
	case rootfs.Zero:
		clear(b)
	case rootfs.Urandom:
		random(b)
	default:
		return 0, rootfs.Success
	}
	return len(b), rootfs.Success
}

func fdSeek(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != rootfs.Success {
		return e
	}
	off := int64(a[1])
	whence := a[2]
	if whence > 2 {
		return rootfs.EINVAL
	}
	need := rightFdSeek
	if off == 0 && whence == 1 {
		need = rightFdTell
	}
	switch d.kind {
	case kindDir:
		// Rewinding is what a directory reader does; the cookie of fd_readdir says where it reads.
		if off == 0 && whence == 0 {
			return m.put64(a[3], 0)
		}
		return rootfs.EISDIR
	case kindStream:
		return rootfs.ESPIPE
	}
	if d.rights&need == 0 {
		return rootfs.ENOTCAPABLE
	}
	if d.kind == kindDevice {
		return m.put64(a[3], 0)
	}
	base := int64(0)
	switch whence {
	case 1:
		base = d.off
	case 2:
		s, e := d.file.Stat()
		if e != rootfs.Success {
			return e
		}
		base = s.Size
	}
	if off > 0 && base > math.MaxInt64-off {
		return rootfs.EOVERFLOW
	}
	if base+off < 0 {
		return rootfs.EINVAL
	}
	if e := m.put64(a[3], uint64(base+off)); e != rootfs.Success {
		return e
	}
	d.off = base + off
	return rootfs.Success
}

func fdTell(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdTell)
	if e != rootfs.Success {
		return e
	}
	return m.put64(a[1], uint64(d.off))
}

func fdAdvise(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdAdvise)
	switch {
	case e != rootfs.Success:
		return e
	case d.kind == kindDir:
		return rootfs.EBADF
	case a[3] > 5 || int64(a[1]) < 0 || int64(a[2]) < 0:
		return rootfs.EINVAL
	}
	return rootfs.Success
}

func fdAllocate(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdAllocate)
	if e != rootfs.Success {
		return e
	}
	return d.file.Allocate(int64(a[1]), int64(a[2]))
}

func fdSync(p *Process, _ memory, a []uint64) errno     { return p.sync(a[0], rightFdSync, false) }
func fdDatasync(p *Process, _ memory, a []uint64) errno { return p.sync(a[0], rightFdDatasync, true) }

func (p *Process) sync(fd, right uint64, data bool) errno {
	d, e := p.get(fd, right)
	if e != rootfs.Success {
		return e
	}
	switch d.kind {
	case kindFile:
		return d.file.Sync(data)
	case kindDir:
		return d.dir.Sync()
	}
	return rootfs.Success
}

func fdFilestatSetSize(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdFilestatSetSize)
	if e != rootfs.Success {
		return e
	}
	return d.file.SetSize(int64(a[1]))
}

func fdFilestatSetTimes(p *Process, _ memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdFilestatSetTimes)
	if e != rootfs.Success {
		return e
	}
	atim, mtim, e := p.times(a[1], a[2], a[3])
	if e != rootfs.Success {
		return e
	}
	switch d.kind {
	case kindFile:
		return d.file.SetTimes(atim, mtim)
	case kindDir:
		return d.dir.SetTimes(atim, mtim)
	}
	return rootfs.ENOTSUP
}

func (p *Process) times(atim, mtim, flags uint64) (a, m *int64, e errno) {
	if flags > 15 || flags&setAtim != 0 && flags&setAtimNow != 0 || flags&setMtim != 0 && flags&setMtimNow != 0 {
		return nil, nil, rootfs.EINVAL
	}
	pick := func(v uint64, set, now uint64) *int64 {
		t := int64(v)
		switch {
		case flags&now != 0:
			t = p.now()
		case flags&set == 0:
			return nil
		}
		return &t
	}
	if flags&setAtim != 0 && atim > math.MaxInt64 || flags&setMtim != 0 && mtim > math.MaxInt64 {
		return nil, nil, rootfs.EINVAL
	}
	return pick(atim, setAtim, setAtimNow), pick(mtim, setMtim, setMtimNow), rootfs.Success
}

func fdFilestatGet(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdFilestatGet)
	if e != rootfs.Success {
		return e
	}
	var s rootfs.Stat
	switch d.kind {
	case kindFile:
		s, e = d.file.Stat()
	case kindDir:
		s, e = d.dir.Stat()
	case kindDevice:
		s = rootfs.Stat{Dev: 1, Ino: uint64(d.device) + 1<<32, Nlink: 1, Kind: rootfs.KindChar}
	default:
		s = rootfs.Stat{Dev: 1, Ino: a[0] + 1<<33, Nlink: 1, Kind: rootfs.KindOther}
	}
	if e != rootfs.Success {
		return e
	}
	return m.putStat(a[1], s)
}

func (m memory) putStat(ptr uint64, s rootfs.Stat) errno {
	b, e := m.slice(ptr, 64)
	if e != rootfs.Success {
		return e
	}
	clear(b)
	le.PutUint64(b, s.Dev)
	le.PutUint64(b[8:], s.Ino)
	b[16] = filetypeOf(s.Kind)
	le.PutUint64(b[24:], s.Nlink)
	le.PutUint64(b[32:], uint64(s.Size))
	le.PutUint64(b[40:], uint64(max(s.Atim, 0)))
	le.PutUint64(b[48:], uint64(max(s.Mtim, 0)))
	le.PutUint64(b[56:], uint64(max(s.Ctim, 0)))
	return rootfs.Success
}

func filetypeOf(k rootfs.Kind) uint8 {
	switch k {
	case rootfs.KindDir:
		return typeDirectory
	case rootfs.KindFile:
		return typeRegular
	case rootfs.KindLink:
		return typeLink
	case rootfs.KindBlock:
		return typeBlock
	case rootfs.KindChar:
		return typeCharacter
	case rootfs.KindSocket:
		return typeSocket
	}
	return typeUnknown
}

// fdReaddir writes entries from the cookie on, the last one cut where the buffer ends: less than a full buffer is the
// end of the folder.
func fdReaddir(p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightFdReaddir)
	if e != rootfs.Success {
		return e
	}
	if d.kind != kindDir {
		return rootfs.ENOTDIR
	}
	buf, e := m.slice(a[1], a[2])
	if e != rootfs.Success {
		return e
	}
	if _, e := m.slice(a[4], 4); e != rootfs.Success {
		return e
	}
	cookie := a[3]
	list, e := d.dir.Entries(cookie == 0)
	if e != rootfs.Success {
		return e
	}
	used := 0
	var head [24]byte
	for i := cookie; i < uint64(len(list)) && used < len(buf); i++ {
		l := list[i]
		le.PutUint64(head[0:], i+1)
		le.PutUint64(head[8:], l.Ino)
		le.PutUint32(head[16:], uint32(len(l.Name)))
		le.PutUint32(head[20:], uint32(filetypeOf(l.Kind)))
		used += copy(buf[used:], head[:])
		used += copy(buf[used:], l.Name)
	}
	return m.put32(a[4], uint32(used))
}
