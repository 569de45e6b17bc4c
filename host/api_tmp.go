package host

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/exthost/exthost/policy"
)

var errSoon = errors.New("not written yet")

var (
	ErrNoWorkerMain = errors.New("WorkerMain was not called first thing in main, and no worker executable is named")
	ErrClosed       = errors.New("the host or extension was closed")
	ErrNotFound     = errors.New("no such extension or script")
	ErrDenied       = errors.New("denied by policy")
	ErrNoRuntime    = errors.New("no runtime for this script")
	ErrWalls        = errors.New("a required wall is missing")
	ErrNoEngine     = errors.New("no such engine in this binary")
)

// RefusedError: Open or Run refused before anything ran. Is(ErrDenied).
type RefusedError struct {
	Extension string // name
	Digest    string // of the tree as it is now
	Reason    string // "the extension changed since the grant"
}

func (e *RefusedError) Error() string        { return e.Extension + ": " + e.Reason }
func (e *RefusedError) Is(target error) bool { return target == ErrDenied }

type Host struct{}
type Extension struct{}
type Process struct{}

func WorkerMain()                 {}
func New(c Config) (*Host, error) { return nil, errSoon }
func (h *Host) Close() error      { return nil }
func (h *Host) Engine() string    { return "" }
func (h *Host) Open(ctx context.Context, path string, p *policy.Policy, b Bindings) (*Extension, error) {
	return nil, errSoon
}
func (h *Host) OpenFS(ctx context.Context, fsys fs.FS, p *policy.Policy, b Bindings) (*Extension, error) {
	return nil, errSoon
}
func (e *Extension) Run(ctx context.Context, job Job) (*Report, error)           { return nil, errSoon }
func (e *Extension) startProcess(ctx context.Context, job Job) (*Process, error) { return nil, errSoon }
func (e *Extension) Scripts() []Script                                           { return nil }
func (e *Extension) Name() string                                                { return "" }
func (e *Extension) Digest() string                                              { return "" }
func (e *Extension) Effective() *policy.Effective                                { return nil }
func (e *Extension) Notes() []string                                             { return nil }
func (e *Extension) Close() error                                                { return nil }

func (p *Process) Stdin() io.WriteCloser  { return nil }
func (p *Process) Stdout() io.Reader      { return nil }
func (p *Process) Stderr() io.Reader      { return nil }
func (p *Process) Kill()                  {}
func (p *Process) Wait() (*Report, error) { return nil, errSoon }

// TreeDigest is the digest of a folder or file as policy.md says; for `grant`.
func TreeDigest(ctx context.Context, path string) (string, error) { return "", errSoon }

// ExitCode is the process exit code of cli.md for a Run's result; strict: a run with denials gives 126.
func ExitCode(r *Report, err error, strict bool) int { return 125 }

// CleanCache removes compiled modules, unpacked runtimes and snapshots. dir "" is the default cache folder.
func CleanCache(dir string) (Cleaned, error) { return Cleaned{}, errSoon }

type Cleaned struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Check is one line of Doctor.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn, fail
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

func Doctor(ctx context.Context, c Config) []Check { return nil }

// VersionInfo says what is in this binary.
type VersionInfo struct {
	Version string       `json:"version"`
	Commit  string       `json:"commit,omitempty"`
	Go      string       `json:"go"`
	OS      string       `json:"os"`
	Arch    string       `json:"arch"`
	Cgo     bool         `json:"cgo"`
	Engines []EngineInfo `json:"engines"`
}

type EngineInfo struct {
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Default    bool       `json:"default"`
	Advisories []Advisory `json:"advisories,omitempty"`
}

type Advisory struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Verdict  string `json:"verdict"` // affected, not reachable, mitigated, fixed
	Why      string `json:"why"`
}

func Versions() VersionInfo { return VersionInfo{} }

// RuntimeInfo is one language runtime.
type RuntimeInfo struct {
	Name       string   `json:"name"`    // python, wasm
	Version    string   `json:"version"` // 3.11.3
	Extensions []string `json:"extensions"`
	State      string   `json:"state"` // embedded, missing, built-in
	Digest     string   `json:"digest,omitempty"`
	Bytes      int64    `json:"bytes,omitempty"` // unpacked
	License    string   `json:"license,omitempty"`
	Hint       string   `json:"hint,omitempty"` // how to get it
}

func Runtimes() []RuntimeInfo { return nil }
