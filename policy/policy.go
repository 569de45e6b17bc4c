// Package policy answers one question, "may this principal have this?", and does nothing else.
//
// It parses the policy file strictly ([Parse]), decides requests as a pure function ([Effective.Decide]) and names the
// rule that decided. It opens no file of a guest, dials nothing and imports no other package of this module. FORMAT.md
// beside this file documents every key.
//
// # Layers
//
// An [Effective] policy is the built-in base, at most one grant, and any number of ceilings. The base and the grant
// allow; a ceiling only takes away. Ceilings are decisions that are conjoined: their patterns are never merged, so
// adding one, repeating one or changing their order can never allow more. What is always denied is denied last, and wins.
//
// # What this does not protect
//
// A decision is about names. What a name means at the moment of use (a link, a rename, an address that a host name
// resolves to) is for the package that holds the capability to check again on the opened object.
package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// Kind is the kind of a capability.
type Kind uint8

const (
	Read Kind = iota + 1
	Write
	HTTP
	Env
	Secret
	Tool
	Program
)

// Capability is one thing that a principal may ask for. Its spelling is one of "read PATH", "write PATH", "METHOD URL",
// "env NAME", "secret NAME HOST", "tool SERVER/TOOL", "program NAME"; see [ParseCapability].
type Capability struct {
	Kind   Kind
	Path   string // Read, Write: absolute, clean guest path
	Method string // HTTP
	URL    string // HTTP
	Name   string // Env, Secret, Program
	Host   string // Secret
	Server string // Tool
	Tool   string // Tool
}

// Access is what a file root allows, weakest first.
type Access uint8

const (
	NoAccess Access = iota
	ReadOnly
	Overlay // reads through, writes kept aside
	ReadWrite
)

// String returns the word of the policy file: "none", "read", "overlay" or "write".
func (a Access) String() string {
	switch a {
	case ReadOnly:
		return "read"
	case Overlay:
		return "overlay"
	case ReadWrite:
		return "write"
	}
	return "none"
}

// Limits are the budgets of a run. Every field is always in force; the zero value of a field means the default.
type Limits struct {
	Time      time.Duration
	Memory    int64 // bytes: linear memory and tables
	Output    int64 // bytes, each of stdout and stderr
	Disk      int64 // bytes written to scratch, overlay and write roots together
	OpenFiles int
	Processes int
	Requests  int
	Upload    int64 // bytes
	Download  int64 // bytes
	Calls     int
}

// DefaultLimits returns the limits of a policy that names none.
func DefaultLimits() Limits {
	return Limits{
		Time: 60 * time.Second, Memory: 256 << 20, Output: 1 << 20, Disk: 256 << 20, OpenFiles: 256,
		Processes: 16, Requests: 100, Upload: 1 << 20, Download: 64 << 20, Calls: 50,
	}
}

// Policy is one parsed file. It is plain data: nothing in it was resolved against a machine.
//
// A nil section was absent from the file, an empty one that is not nil was there and grants nothing. The difference
// matters for a ceiling: an absent section is no opinion. A Policy is not changed after [Parse] and may be shared.
type Policy struct {
	File      string // as given to Parse
	Version   int
	Extension string // a label, never an identity
	Digest    string // "sha256:" and 64 hex digits; "": absent
	Env       *EnvSection
	Files     []File    // sorted by Guest
	Network   []Network // in file order
	Secrets   []SecretGrant
	Tools     []ToolGrant
	Limits    Limits // zero fields: not given
	Shared    *bool
	Walls     []string // nil: absent
	Tests     Tests

	at map[string]Position // "network[0].host" -> where its key, or the item itself, stands
}

// At returns where the field at path stands in the file, for instance "network", "files./workspace.access" or
// "network[1]"; the zero Position when the file does not hold it.
func (p *Policy) At(path string) Position {
	if p == nil {
		return Position{}
	}
	return p.at[path]
}

// EnvSection is the env section.
type EnvSection struct {
	Pass []EnvPass
	Set  []EnvSet // sorted by Name
}

// EnvPass copies host variables: one name, or a prefix followed by "*".
type EnvPass struct {
	Pattern string
	Pos     Position
}

// EnvSet is one literal variable.
type EnvSet struct {
	Name, Value string
	Pos         Position
}

// File is one root of the files section.
type File struct {
	Guest     string // absolute, clean, without "*"
	Host      HostPath
	Access    Access
	Hide      []Glob // the default list when HideSet is false
	HideSet   bool
	Create    bool
	Protected []Glob // protected names that may be written after all
	Pos       Position
}

// Network is one line of the network section.
type Network struct {
	Host      string // normalised: "api.example.com", "*.example.com", "*", or an address
	Scheme    string // "https" or "http"
	Port      int
	Methods   []string // ["*"]: any
	Paths     []Glob   // nil: every path
	Addresses []netip.Prefix
	Pos       Position
}

// SecretGrant is one secret: the guest's environment holds a placeholder, never the value.
type SecretGrant struct {
	Name string
	From string // "env:NAME", "file:PATH" or "host:NAME"
	To   []string
	In   []string // "header:NAME", "basic", "query:NAME", "body"
	Pos  Position
}

// ToolGrant allows tools of one MCP server.
type ToolGrant struct {
	Server    string
	Allow     []string // names; "*" only at the end
	DenyHints []string
	Arguments []ToolArguments // sorted by Tool
	Pos       Position
}

// ToolArguments is the JSON Schema that the arguments of one tool must fit.
type ToolArguments struct {
	Tool   string
	Schema json.RawMessage // canonical JSON: sorted keys, no blanks
	Pos    Position
}

// Tests are the policy's own expectations, run by [RunTests].
type Tests struct {
	Allow []Test
	Deny  []Test
}

// Test is one expectation.
type Test struct {
	Capability Capability
	Pos        Position
}

// clone copies the slices that a caller of a method could otherwise change.
func clone[T any](s []T) []T { return slices.Clone(s) }
