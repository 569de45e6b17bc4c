package rootfs

// quota counts what a run takes on disk. Sizes are apparent: a hole that the run makes costs what it pretends to be, and
// filling one that was there before costs what is filled.
type quota struct {
	fs      *FS
	written int64 // bytes, in all
	disk    int64 // bytes by which files grew and that were not given back
	entries int64
	inodes  map[fileID]*inode
	unasked int64 // growth since the file system was last asked for its free space
	asked   bool
}

// inode is what this run did to one file. It bounds what removing the file gives back.
type inode struct {
	charged int64
	names   int64 // made by this run
	links   int64 // of these, hard links
	holes   int64 // bytes of holes from before, which this run did not pay for
	looked  bool  // holes is known
	opens   int
	gone    bool // no name is left
}

func (q *quota) of(id fileID) *inode {
	in := q.inodes[id]
	if in == nil {
		in = &inode{}
		q.inodes[id] = in
	}
	return in
}

func (q *quota) drop(id fileID) {
	if in := q.inodes[id]; in != nil && in.opens == 0 && id != (fileID{}) {
		if in.gone {
			q.disk -= in.charged
			delete(q.inodes, id)
		} else if in.charged == 0 && in.names == 0 {
			delete(q.inodes, id)
		}
	}
}

const askEvery = 1 << 20 // bytes of growth

// room tells how many of n more bytes may be taken, with the errno of the limit if that is less.
func (q *quota) room(m *mount, n int64) (int64, Errno) {
	if n <= 0 {
		return 0, Success
	}
	if left := q.fs.cfg.Disk - q.disk; n > left {
		q.limit("disk", EDQUOT)
		return max(left, 0), EDQUOT
	}
	if q.fs.cfg.MinFree > 0 && (!q.asked || q.unasked+n > askEvery) && m.top.ok() {
		free, e := m.top.free()
		if e == Success && free-n < q.fs.cfg.MinFree {
			q.limit("disk", ENOSPC)
			return 0, ENOSPC
		}
		q.asked, q.unasked = true, 0
	}
	return n, Success
}

// charge notes that a file grew by n bytes; a negative n gives back no more than was charged for it.
func (q *quota) charge(in *inode, n int64) {
	if n < 0 {
		n = -min(-n, in.charged)
	} else {
		q.unasked += n
	}
	in.charged += n
	q.disk += n
}

// entry tells whether one more name may be made.
func (q *quota) entry() Errno {
	if q.entries >= q.fs.cfg.Entries {
		q.limit("entries", EDQUOT)
		return EDQUOT
	}
	return Success
}

func (q *quota) made(id fileID) {
	q.entries++
	q.of(id).names++
}

// removed notes that a name is gone; left is how many the file still has.
func (q *quota) removed(id fileID, left uint64) {
	in := q.inodes[id]
	if in == nil || id == (fileID{}) { // not known: nothing is given back
		return
	}
	if in.names > 0 {
		in.names--
		q.entries--
	}
	if in.links > 0 {
		in.links--
	}
	in.gone = left == 0
	q.drop(id)
}

func (q *quota) limit(what string, e Errno) {
	q.fs.cfg.Events(Event{Op: "limit", Capability: "limit " + what, Denied: true, Errno: e})
}
