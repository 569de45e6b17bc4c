package host

import (
	"io"
	"log/slog"
	"time"

	"github.com/exthost/exthost/policy"
)

// Config configures a [Host]. The zero Config is valid for a program that calls [WorkerMain].
type Config struct {
	// Home is exthost's own folder ("~/.exthost" for the command line). It is never granted to a guest, whatever a
	// root covers, and ${data} lies in it by default. "": nothing is written but the cache, and ${data} needs
	// Bindings.Data.
	Home string
	// Cache is the folder of compiled modules, unpacked runtimes and snapshots. It and its parents must belong to the
	// user or to root and must not be writable by others. "": "exthost" in the user's cache folder.
	Cache string
	// Engine is "wasmtime" or "wazero". "": the default of this binary and platform, see [Versions].
	Engine string
	// Ceilings only take away, whatever a grant says.
	Ceilings []*policy.Policy
	// Workers is the most worker processes alive at once, spares not counted; a run waits for its turn. 0: twice the
	// number of CPUs, at least 4.
	Workers int
	// Spares is the number of idle workers kept ready: they have started, and lock down when a run arrives. 0: none.
	Spares int
	// Worker is the path of a worker executable, a program whose main calls [WorkerMain]. "": this executable.
	Worker string
	// OneRun says that the host will live for about one run. Compiled code from the cache is then used without hashing
	// it if the file's metadata still fit, and no spare replaces the ones that Spares began with.
	OneRun bool
	// Deny lists further host folders that no guest may reach, whatever a root covers.
	Deny []string
	// Events receives the trail of all runs. Events of one run come in order; runs at the same time call it
	// concurrently. It must not block for long: the run waits for it.
	Events func(Event)
	// Progress is told when something that may take over a second began, such as a compilation, and gets "" when it
	// ended. It may be called concurrently.
	Progress func(what string)
	// Logger gets what an operator may want to read; nil discards it.
	Logger *slog.Logger
	// WeakWalls lets a run begin without a wall that its policy requires. Only a person may set it. Each run that
	// used it has a note in its report.
	WeakWalls bool
}

// Bindings are what an extension is bound to beside its policy.
type Bindings struct {
	// Name is the installed name, part of the principal in reports and events. "": base name of the path.
	Name string
	// Workspace is the host folder that ${workspace} means. "": the current folder.
	Workspace string
	// Data is the host folder that ${data} means. "": Home/data/NAME; an error if Home is empty too and the policy
	// uses it.
	Data string
	// Home is the person's home folder, for host paths that begin with "~/". "": os.UserHomeDir.
	Home string
	// PinDigest refuses a policy without a digest, as for a policy that lies in exthost's own folder.
	PinDigest bool
}

// Job is one run.
type Job struct {
	// Script is a slash-separated path below the extension's root, such as "scripts/report.py". "": the only file of
	// an extension that is one file.
	Script string
	// Args follow the script's own name in the guest's arguments.
	Args []string
	// Env is the caller's environment, NAME=VALUE, from which the policy's env.pass picks. nil: os.Environ().
	Env []string
	// Dir is the guest's working directory, an absolute guest path. "": /workspace when it is granted, else /skill.
	Dir string
	// Stdin is copied into a pipe that the guest reads. nil: end of file at once. A Read that is under way when the
	// run ends is not waited for.
	Stdin io.Reader
	// Stdout and Stderr get what the guest writes, from one goroutine each; nil discards. Neither gets more than the
	// policy's limits.output.
	Stdout, Stderr io.Writer
	// Time and Memory narrow the policy's limits; 0 leaves them.
	Time   time.Duration
	Memory int64 // bytes
}

// Outcome is how a run ended, a closed set.
type Outcome string

const (
	// Exit means that the guest ended by itself; Report.ExitCode is its code, and there may be denials.
	Exit Outcome = "exit"
	// Trap means that the guest did something that WebAssembly does not allow; Report.Trap names it.
	Trap Outcome = "trap"
	// Limit means that the guest was ended at one of its limits; Report.Limit names it.
	Limit Outcome = "limit"
	// Denied means that the run was refused before it began.
	Denied Outcome = "denied"
	// HostError means that exthost failed in the course of the run; Report.Detail says how.
	HostError Outcome = "host-error"
)

// Report is the result of a run. Fields are only ever added.
type Report struct {
	Version   int           `json:"version"`   // of this object: 1
	Run       string        `json:"run"`       // random identifier of the run, made by the host
	Extension string        `json:"extension"` // name of the extension
	Digest    string        `json:"digest"`    // "sha256:..." of the tree that ran
	Script    string        `json:"script,omitempty"`
	Engine    string        `json:"engine"`
	Outcome   Outcome       `json:"outcome"`
	ExitCode  int           `json:"exit_code"`         // the process exit code that goes with it, see [ExitCode]
	Limit     string        `json:"limit,omitempty"`   // outcome limit: time, memory, output, disk, cpu, module
	Trap      string        `json:"trap,omitempty"`    // outcome trap: a stable word, such as "unreachable"
	Detail    string        `json:"detail,omitempty"`  // readable text for the operator; may hold host paths
	Denials   []Denial      `json:"denials,omitempty"` // one for each distinct capability, in order of first refusal
	Walls     []string      `json:"walls"`             // proved by self-test: "landlock(abi=7)", "seccomp"
	Changes   []Change      `json:"changes,omitempty"` // files made, changed or removed below granted roots
	Notes     []string      `json:"notes,omitempty"`   // remarks for the operator
	Truncated bool          `json:"truncated,omitempty"`
	Usage     Usage         `json:"usage"`
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration_ns"`
}

// Denial is one refused capability.
type Denial struct {
	Capability string `json:"capability"`
	Reason     string `json:"reason"`            // readable: what covers it not, or what forbids it
	Rule       string `json:"rule,omitempty"`    // "file:line:column" of the line that decided
	Nearest    string `json:"nearest,omitempty"` // the closest grant in force
	Count      int    `json:"count"`
	Source     string `json:"source"` // "observed" by the host, or "reported" by the worker
	// Targets is what was wanted of a program, in the guest's words: at most 8 different ones, of at most 200 bytes.
	Targets []string `json:"targets,omitempty"`
}

// Change is a file that a run made, changed or removed. The path is the guest's.
type Change struct {
	Path   string `json:"path"`
	Op     string `json:"op"` // created, modified, removed
	Size   int64  `json:"size,omitempty"`
	Layer  string `json:"layer"`  // "overlay": kept aside and gone after the run; "write": on the host's disk
	Source string `json:"source"` // "observed" or "reported"
}

// Usage is what a run used.
type Usage struct {
	CPU         time.Duration `json:"cpu_ns"`
	MemoryBytes int64         `json:"memory_bytes"` // linear memory at the end of the run
	PeakRSS     int64         `json:"peak_rss_bytes"`
	StdoutBytes int64         `json:"stdout_bytes"`
	StderrBytes int64         `json:"stderr_bytes"`
	DiskBytes   int64         `json:"disk_bytes"` // written, as the worker reports it
}

// Event is one entry of the trail of a run.
type Event struct {
	Time       time.Time `json:"time"`
	Run        string    `json:"run"`
	Principal  string    `json:"principal"` // "guest:NAME@sha256:..."
	Op         string    `json:"op"`        // start, end, open, create, remove, rename, ...
	Capability string    `json:"capability,omitempty"`
	Denied     bool      `json:"denied,omitempty"`
	Source     string    `json:"source"` // "observed" or "reported"
	Detail     string    `json:"detail,omitempty"`
}

// Script is a file of an extension that this binary can run, or would if a runtime were there.
type Script struct {
	Path     string `json:"path"`              // below the extension's root
	Language string `json:"language"`          // python, wasm, shell, javascript, typescript
	Runtime  string `json:"runtime,omitempty"` // the runtime that runs it
	Missing  string `json:"missing,omitempty"` // why it cannot run here; "" if it can
}
