package worker

import (
	"time"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// The messages. Descriptors are named by their index among those that came with the message, -1 is none.

type msgHello struct {
	Version uint32
	Nonce   []byte
	Parent  int // process id of the broker
	Engine  string
}

func (m *msgHello) code(c *coder) {
	c.u32(&m.Version)
	c.bytes(&m.Nonce, 32)
	integer(c, &m.Parent)
	c.str(&m.Engine, 64)
}

type msgHelloOK struct {
	Version uint32
	Nonce   []byte
}

func (m *msgHelloOK) code(c *coder) {
	c.u32(&m.Version)
	c.bytes(&m.Nonce, 32)
}

type bindMount struct {
	M   wasiabi.Mount
	Sub string
	FD  int
}

func (b *bindMount) code(c *coder) {
	m := &b.M
	c.str(&m.Guest, maxShort)
	c.boolean(&m.File)
	c.u8((*uint8)(&m.Access))
	c.strs(&m.Hide, maxList, maxShort)
	c.strs(&m.Protected, maxList, maxShort)
	c.strs(&m.Above, maxList, maxShort)
	list(c, &m.Narrow, maxList, func(n *wasiabi.Narrow) {
		c.str(&n.Guest, maxShort)
		c.u8((*uint8)(&n.Access))
	})
	c.boolean(&m.Scratch)
	c.boolean(&m.Immutable)
	c.boolean(&m.Cross)
	c.str(&b.Sub, 64)
	c.index(&b.FD)
}

type msgBind struct {
	Role      Role
	Engine    string
	Mounts    []bindMount
	Scratch   int
	Read      []int // descriptors of regular files that may be opened again for reading
	Limits    Limits
	Names     []string // protected names
	WeakWalls bool
	Exe       string // a path that must not be readable afterwards
}

func (m *msgBind) code(c *coder) {
	c.u8((*uint8)(&m.Role))
	c.str(&m.Engine, 64)
	list(c, &m.Mounts, maxFDs, func(b *bindMount) { b.code(c) })
	c.index(&m.Scratch)
	list(c, &m.Read, maxFDs, c.index)
	l := &m.Limits
	integer(c, &l.Memory)
	c.u32(&l.TableElements)
	integer(c, &l.OpenFiles)
	integer(c, &l.Disk)
	integer(c, &l.Entries)
	integer(c, &l.MinFree)
	integer(c, &l.CPU)
	c.strs(&m.Names, maxList, maxShort)
	c.boolean(&m.WeakWalls)
	c.str(&m.Exe, maxShort)
}

type msgBound struct {
	Walls   []string
	Missing []string
	Version string
}

func (m *msgBound) code(c *coder) {
	c.strs(&m.Walls, 8, 64)
	c.strs(&m.Missing, 8, 1024)
	c.str(&m.Version, 128)
}

type msgWall struct{ Wall, Reason string }

func (m *msgWall) code(c *coder) {
	c.str(&m.Wall, 64)
	c.str(&m.Reason, 1024)
}

type msgCompile struct {
	Module, Prepared, Code int
	Time                   time.Duration
}

func (m *msgCompile) code(c *coder) {
	c.index(&m.Module)
	c.index(&m.Prepared)
	c.index(&m.Code)
	integer(c, &m.Time)
}

type msgCompiled struct{ CodeName string }

func (m *msgCompiled) code(c *coder) { c.str(&m.CodeName, 255) }

type msgModule struct{ Kind, Detail string }

func (m *msgModule) code(c *coder) {
	c.str(&m.Kind, 32)
	c.str(&m.Detail, 2048)
}

type msgRun struct {
	Folder                string
	Module, Code          int
	CodeName              string
	Args, Env             []string
	Dir                   string
	Stdin, Stdout, Stderr int
	Exact, Nonblock       bool
	Time                  time.Duration
}

func (m *msgRun) code(c *coder) {
	c.str(&m.Folder, 64)
	c.index(&m.Module)
	c.index(&m.Code)
	c.str(&m.CodeName, 255)
	c.strs(&m.Args, maxList, maxString)
	c.strs(&m.Env, maxList, maxString)
	c.str(&m.Dir, maxShort)
	c.index(&m.Stdin)
	c.index(&m.Stdout)
	c.index(&m.Stderr)
	c.boolean(&m.Exact)
	c.boolean(&m.Nonblock)
	integer(c, &m.Time)
}

type msgEvents struct{ Events []wasiabi.Event }

func (m *msgEvents) code(c *coder) {
	list(c, &m.Events, 4096, func(e *wasiabi.Event) {
		c.str(&e.Op, 32)
		c.str(&e.Capability, maxCapability)
		c.boolean(&e.Denied)
		c.str(&e.Errno, 32)
		c.str(&e.Detail, 1024)
		integer(c, &e.Count)
	})
}

type msgRemoved struct{ Paths []string }

func (m *msgRemoved) code(c *coder) { c.strs(&m.Paths, 4096, maxShort) }

type msgResult struct {
	Ending        engine.Ending
	Fault         string
	Usage         wasiabi.Usage
	EventsDropped int
}

func (m *msgResult) code(c *coder) {
	e := &m.Ending
	c.u8((*uint8)(&e.Kind))
	c.u32(&e.Code)
	c.str(&e.Trap, 64)
	c.str(&e.Detail, 8192)
	integer(c, &e.MemoryBytes)
	c.boolean(&e.GrowRefused)
	c.str(&m.Fault, 2048)
	integer(c, &m.Usage.Written)
	integer(c, &m.Usage.Disk)
	integer(c, &m.Usage.Entries)
	integer(c, &m.EventsDropped)
}

type msgRefused struct{ Kind, Detail string }

func (m *msgRefused) code(c *coder) {
	c.str(&m.Kind, 32)
	c.str(&m.Detail, 2048)
}

// maxCapability bounds a capability string in an event: the kind and a path of PATH_MAX.
const maxCapability = 8192
