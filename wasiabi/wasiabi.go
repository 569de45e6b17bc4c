// Package wasiabi is the guest ABI: WASI preview 1 over an engine-neutral memory.
//
// It uses the capabilities that it was handed and never looks at a policy: what was not handed over does not exist
// for the guest. It imports no other package of this module but its own internal ones, and no engine. ABI.md lists
// each function with its memory layout and errnos.
//
// # Isolation
//
// A guest sees one folder, "/", put together from the mounts of its [Config]; package rootfs below it is the only
// code that opens a file. A guest learns of a failure by an errno, never by a host path. What it may make the host
// allocate is bounded: descriptors, iovecs, listings, paths, subscriptions, and bytes and entries on disk.
//
// # What this does not protect
//
// This is the first wall only: an engine with a bug runs what the guest likes in this process. The process around it
// has to be confined so that it cannot open more than its mounts; see package host.
package wasiabi

import (
	"context"
	"os"
)

// Version is the version of the ABI, as ABI.md describes it. It changes when a guest could tell.
const Version = 2

// Access says what a mount allows.
type Access uint8

const (
	ReadOnly Access = iota + 1
	ReadWrite
	Overlay // reads through to Dir, writes into Upper
)

// Mount is one file capability: a host directory (or one file) at a guest path.
type Mount struct {
	Guest     string // absolute, clean guest path; "/" is allowed and is then the root itself
	Dir       string // host path to open the root by: on Linux "/proc/self/fd/N" of a descriptor that was handed over
	File      bool   // Dir is one regular file: read or rewritten in place, never replaced or renamed
	Access    Access
	Upper     string   // Overlay: host path of the folder that takes the writes; no other process may use it
	Hide      []string // globs (policy grammar, below the mount): not there for the guest
	Protected []string // protected names (globs below the mount) that may be written after all
	Above     []string // last names of the host path of Dir: a protected name "A/B" also counts when A is among them
	Narrow    []Narrow // weaker access below the mount; the longest matching prefix counts
	Scratch   bool     // host-owned scratch: protected names do not apply, disk is counted
	Immutable bool     // a host-owned snapshot that nobody writes: cheap resolution is allowed
	Cross     bool     // other file systems that are mounted below Dir may be entered
}

// Narrow lowers the access of a mount at and below a guest path. Access 0 takes all access away.
type Narrow struct {
	Guest  string
	Access Access
}

// Event is something a guest did or was refused. Paths are the guest's, unescaped: they are the guest's text.
type Event struct {
	Op         string // "open", "create", "remove", "rename", "link", "symlink", "readlink", "set-times", "http", "run", "log", "limit"
	Capability string // capability string, for instance "write /out/a.txt"; "limit NAME" for a limit, "log" for a note
	Denied     bool
	Errno      string // name, on refusals
	Detail     string // at most 512 bytes, for the operator only: may tell of the host. The guest's text for "log"
	Count      int    // how often; repeats of an event are told once more, when the process closes
}

// Defaults of a [Config], which has no way to say "no limit".
const (
	DefaultOpenFiles = 256
	DefaultDisk      = 256 << 20
	DefaultEntries   = 10_000
)

// Config is what a guest process is made of.
type Config struct {
	Args []string
	Env  []string // NAME=VALUE
	// Dir is the working directory, a guest path; made known as PWD. A path whose first component is in no mount is
	// looked up below it, because modules that ignore PWD use relative paths, which a WASI libc hands over as if they
	// began at "/": one component always, more only if the first one exists there.
	Dir string
	// ExactPaths switches that off: for runtimes that know their working directory.
	ExactPaths bool
	Stdin      *os.File // nil: end of file. The process makes its own duplicates; the caller still closes all three
	Stdout     *os.File // nil: discarded
	Stderr     *os.File
	// NonblockStdin lets stdin start with FDFLAGS_NONBLOCK, as a Go guest wants it: only then do its other goroutines
	// run while it waits for input. Any guest can set the flag itself.
	NonblockStdin bool
	Mounts        []Mount
	// ProtectedNames are never written by the guest, in no mount but scratch ones: "NAME" anywhere, "A/B" the name B
	// in a folder A, "*" within a name. They stand for what is below them as well.
	ProtectedNames []string
	OpenFiles      int   // cap on descriptors, the first four included; 0: DefaultOpenFiles
	Disk           int64 // bytes that files may grow by, all writable mounts together; 0: DefaultDisk
	Entries        int64 // files and folders that may be made; 0: DefaultEntries
	MinFree        int64 // bytes that must stay free on the file system of a writable mount
	// Events gets what the guest does and is refused, from the goroutine that calls a function or Close. nil: nobody
	// listens. It must not call the process.
	Events func(Event)
}

// ValueType is a wasm number type.
type ValueType byte

const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
)

// Function is one host function, engine-neutral.
//
// Call gets the guest's whole linear memory as it is now (valid for this call only) and the raw arguments (an i32
// is zero-extended). It returns the errno, or a non-nil error that must unwind the guest: [*Exit], the cause of the
// context's end, or a host fault. A function without results still returns an errno, which is to be dropped.
type Function struct {
	Module  string
	Name    string
	Params  []ValueType
	Results []ValueType
	Call    func(p *Process, mem []byte, args []uint64) (uint32, error)
}

// Exit unwinds a guest that called proc_exit or raised a signal that ends it (128 plus its number).
type Exit struct{ Code uint32 }

// Usage is what a run took on disk: bytes written in all, and the bytes and names that its files still hold. Sizes
// are apparent sizes; a hole costs what it pretends to be.
type Usage struct{ Written, Disk, Entries int64 }

// running reports whether ctx is still going on.
func running(ctx context.Context) bool { return ctx.Err() == nil }
