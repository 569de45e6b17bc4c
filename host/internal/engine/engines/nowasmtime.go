//go:build !(cgo && !exthost_nowasmtime && amd64 && (linux || darwin))

package engines

import (
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

var newWasmtime func(functions []wasiabi.Function) (engine.Engine, error)
