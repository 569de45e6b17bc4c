// Package engines makes the engines of this binary by name.
package engines

import (
	"fmt"
	"strings"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/engine/wazero"
	"github.com/exthost/exthost/wasiabi"
)

// Interpreter is the name of wazero's interpreter. It is for differential tests: it is in every binary, but
// [engine.All] does not list it.
const Interpreter = "wazero-interpreter"

// New makes an engine whose guests can import functions, normally [wasiabi.Functions]. Names are those of
// [engine.All] and [Interpreter].
func New(name string, functions []wasiabi.Function) (engine.Engine, error) {
	switch name {
	case engine.Wazero:
		return wazero.New(functions), nil
	case Interpreter:
		return wazero.NewInterpreter(functions), nil
	case engine.Wasmtime:
		if newWasmtime != nil {
			return newWasmtime(functions)
		}
	}
	var names []string
	for _, i := range engine.All() {
		names = append(names, i.Name)
	}
	return nil, fmt.Errorf("no engine %q in this binary (it has %s)", name, strings.Join(names, ", "))
}
