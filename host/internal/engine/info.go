package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"
)

// Names of the engines.
const (
	Wazero   = "wazero"
	Wasmtime = "wasmtime"
)

// Info says what is known about an engine without loading it.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"` // of its Go module, without "v"; "unknown" if the build does not say
	Default bool   `json:"default"`
}

// All lists the engines of this binary, the default first.
func All() []Info {
	infos := []Info{{Name: Wazero, Version: Version(Wazero)}}
	if hasWasmtime {
		infos = append([]Info{{Name: Wasmtime, Version: Version(Wasmtime)}}, infos...)
	}
	infos[0].Default = true
	return infos
}

// Default is the engine that is used if nobody chose one: wasmtime where it is built in (cgo, amd64), else wazero.
func Default() string { return All()[0].Name }

// Version is the version of an engine, from the build's own list of modules. Tests are built without that list; they
// see "unknown".
func Version(name string) string {
	path := map[string]string{
		Wazero:   "github.com/tetratelabs/wazero",
		Wasmtime: "github.com/bytecodealliance/wasmtime-go/v39", // the module's major is named here and in package wasmtime
	}[name]
	if info, ok := debug.ReadBuildInfo(); ok && path != "" {
		for _, d := range info.Deps {
			if d.Path == path {
				if d.Replace != nil {
					d = d.Replace
				}
				return strings.TrimPrefix(d.Version, "v")
			}
		}
	}
	return "unknown"
}

// codeRevision is raised with every change of an adapter's settings or of package module's output that makes older
// compiled code unfit.
const codeRevision = 1

// CodeKey names everything beside the prepared module that compiled code depends on: engine, version, settings,
// operating system, processor and its features. Two equal keys mean that code can be shared. It is 32 hex digits.
func CodeKey(name string) string {
	s := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s %s %s", name, Version(name), codeRevision, runtime.GOOS, runtime.GOARCH,
		processor()))
	return hex.EncodeToString(s[:16])
}

// processor lists the processor's features that engines look at. Both engines also check by themselves.
func processor() string {
	switch runtime.GOARCH {
	case "amd64":
		return fmt.Sprintf("%+v", cpu.X86)
	case "arm64":
		return fmt.Sprintf("%+v", cpu.ARM64)
	}
	return ""
}
