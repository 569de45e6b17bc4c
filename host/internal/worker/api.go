// Package worker runs guests in processes of their own, behind the second wall.
//
// The broker (the process that embeds exthost) calls [Start], [Worker.Bind] and then [Worker.Run] or
// [Worker.Compile]. The other end is [Main], which the same executable runs when it was started as a worker.
//
// # Trust
//
// A worker is untrusted from the moment it is bound: it may have been taken over by the guest. It therefore holds no
// secret, has an empty environment and no descriptor but the ones handed to it, and whatever it says is a claim.
// It never names an extension, a run or a grant: a run is whatever the broker is waiting for on that worker.
// A frame that is unknown, early, doubled, oversize or not decodable kills it.
//
// # Walls
//
// On Linux a worker is confined by Landlock and by a seccomp allowlist before it reads the first byte of an extension,
// and a self-test then tries what must fail. [Worker.Bind] returns only walls that this test proved. Elsewhere no
// wall is built yet, none is claimed, and Bind refuses unless a person accepted that (Bind.WeakWalls).
//
// # What this does not protect
//
// Landlock leaves stat of any path, so a guest that broke out of its engine learns which files exist and how big they
// are. Up to Landlock ABI 3 the network is shut by seccomp alone.
package worker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Options configures [Start]. The zero Options is valid.
type Options struct {
	// Exe is the executable that becomes the worker; it must call [Main] first thing in its main. "": this process's
	// own executable, by an open descriptor and not by name.
	Exe string
	// Engine is made ready before the worker is bound, so that a spare worker binds fast. "": Bind's engine is made
	// ready on Bind.
	Engine string
}

// Role is what a worker is for, for its whole life.
type Role uint8

const (
	// RoleCompile validates, lowers and compiles one module; it has no roots and never runs a guest.
	RoleCompile Role = iota + 1
	// RoleRun runs guests, one at a time.
	RoleRun
)

// Mount is one mount point of the guests of a run worker.
type Mount struct {
	// Mount is the mount as the guest sees it. Dir and Upper are left empty: the worker fills them in.
	wasiabi.Mount
	// Root is the open directory (or the regular file, if Mount.File). Any open mode does, O_PATH too. The caller keeps
	// and closes it; it may do so once Bind returned.
	Root *os.File
	// Sub, if Root is nil, is the sub-folder of a run's own folder in Bind.Scratch that is mounted ("home", "tmp").
	Sub string
}

// Limits bound a worker and the guests in it. A zero field means the default.
type Limits struct {
	Memory        int64         // linear memory and tables of a guest, bytes; default 256 MiB
	TableElements uint32        // default 100,000
	OpenFiles     int           // of a guest; default 256
	Disk          int64         // bytes that a run may write, all writable mounts together; default 256 MiB
	Entries       int64         // files and folders that a run may make; default 10,000
	MinFree       int64         // bytes that stay free on the file systems written to; default 0
	CPU           time.Duration // processor time of the worker's whole life, the dead-man's limit; default 10 min
}

// Bind is what a worker is bound to, once and for its life.
type Bind struct {
	Role   Role
	Engine string
	Mounts []Mount // run workers only
	// Scratch is an open, empty, private directory of this worker. Each run has a folder in it, named by
	// RunJob.Folder, with home, tmp and one upper-N for each overlay (N is the index in Mounts). A compile worker uses it
	// for files of its engine. The caller keeps it, and removes the directory when the worker has ended.
	Scratch *os.File
	// Read are regular files that the engine of a run worker opens by path although they are not in memory: compiled code
	// and prepared modules in the cache. Later jobs may hand over descriptors of these same files, or of memfds.
	Read   []*os.File
	Limits Limits
	// Protected are the protected names, handed on to wasiabi.
	Protected []string
	// Require names walls ("landlock", "seccomp") without which Bind fails. On Linux both are required whatever it
	// says, unless WeakWalls.
	Require []string
	// WeakWalls accepts missing walls. It is a person's decision, never a program's.
	WeakWalls bool
}

// Bound is the answer to a successful bind.
type Bound struct {
	Walls   []string // proved by the self-test: "landlock(abi=7)", "seccomp"
	Missing []string // walls that are not there, each with the reason: only with WeakWalls
	Version string   // the engine's version, as the worker reports it
}

// CompileJob is one module to compile. The limits are those of the bind.
type CompileJob struct {
	Module *os.File // regular file or memfd that holds the module, read from its start
	Time   time.Duration
}

// Compiled is a compiled module. The caller owns and closes both files, which are unnamed, sealed against writing
// and positioned at their start.
type Compiled struct {
	Prepared *os.File // the module with its limits lowered
	Code     *os.File // native code (wasmtime) or cache entry (wazero)
	CodeName string   // file name that wazero's cache looks for; [A-Za-z0-9._-], "" for wasmtime
}

// Close closes both files.
func (c *Compiled) Close() error { return errors.Join(c.Prepared.Close(), c.Code.Close()) }

// RunJob is one run of a guest.
type RunJob struct {
	// Folder is the name of the run's folder in Bind.Scratch, made by the worker: one path component, [a-z0-9-], not used
	// before.
	Folder   string
	Module   *os.File // prepared module
	Code     *os.File // compiled code
	CodeName string
	Args     []string
	Env      []string
	Dir      string
	Stdin    *os.File // nil: end of file at once. The caller keeps and closes all files of a job
	Stdout   *os.File // nil: discarded
	Stderr   *os.File
	Time     time.Duration // 0: no limit of its own (ctx still counts)
	// ExactPaths and NonblockStdin are wasiabi's.
	ExactPaths, NonblockStdin bool
	// Events gets what the worker reports, in order, from one goroutine of Run. A slow one slows the guest.
	Events func(wasiabi.Event)
}

// Result is how a run ended, as the worker reports it.
type Result struct {
	Ending        engine.Ending
	Fault         string   // not "": exthost failed in the worker (an instance that could not be made...), Ending is void
	Removed       []string // guest paths whose file in an overlay's lower is no longer shown
	Usage         wasiabi.Usage
	EventsDropped int // events over the number that is passed on
	// CPU and MaxRSS are seen by the broker, not reported. CPU is of the worker's life up to now.
	CPU    time.Duration
	MaxRSS int64 // bytes
}

var (
	// ErrWorker matches every error that says that a worker died or broke the protocol.
	ErrWorker = errors.New("worker failed")
	// ErrNoWorkerMain says that the executable did not answer as a worker: its main does not call WorkerMain first.
	ErrNoWorkerMain = errors.New("executable does not answer as a worker (main must call host.WorkerMain first)")
	// ErrRecursion says that a worker tried to start a worker.
	ErrRecursion = errors.New("a worker cannot start workers")
	// ErrTime says that a job's own Time was over; the worker was killed.
	ErrTime = errors.New("time limit")
	// ErrUnsupported says that this platform has no worker processes yet.
	ErrUnsupported = errors.New("worker processes are not supported on this platform")
)

// WallError says which required wall is missing and why.
type WallError struct {
	Wall   string // "landlock", "seccomp"
	Reason string // of the worker, bounded and escaped
}

func (e *WallError) Error() string { return fmt.Sprintf("wall %q is missing: %s", e.Wall, e.Reason) }

// CrashError says how a worker died. It matches [ErrWorker].
type CrashError struct {
	Kind   string         // "signal", "memory", "cpu", "fatal", "exit", "protocol", "killed"
	Signal syscall.Signal // 0: none
	Code   int            // exit status, if not by signal
	Detail string         // for the operator: what was broken, or the beginning of the worker's own error output; bounded, one line
}

func (e *CrashError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "worker failed (%s)", e.Kind)
	if e.Signal != 0 {
		fmt.Fprintf(&b, ": %v", e.Signal)
	} else if e.Code != 0 {
		fmt.Fprintf(&b, ": exit status %d", e.Code)
	}
	return b.String()
}

// Is makes every crash match [ErrWorker].
func (e *CrashError) Is(target error) bool { return target == ErrWorker }

// ModuleError says that a module was refused by the compile worker, or that the engine could not compile it.
type ModuleError struct {
	Kind   string // "invalid", "too-big", "imports", "memory", "engine"
	Detail string // bounded and escaped
}

func (e *ModuleError) Error() string { return fmt.Sprintf("module refused (%s): %s", e.Kind, e.Detail) }

// JobError says that a worker refused a job that it cannot run (code that does not fit, a mount that cannot be
// opened...). The worker lives on.
type JobError struct {
	Kind   string // "code": the compiled code does not fit this engine, module or version; else ""
	Detail string // bounded and escaped
}

func (e *JobError) Error() string { return "worker: " + e.Detail }

// Deps is what a worker gets from the packages above it.
type Deps struct {
	// Engine makes an engine by name.
	Engine func(name string) (engine.Engine, error)
	// Prepare validates a module and lowers its limits, normally [Prepare]. A refusal is a *[ModuleError].
	Prepare func(wasm []byte, l engine.Limits) (prepared []byte, err error)
}
