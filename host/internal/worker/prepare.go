package worker

import (
	"errors"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/module"
	"github.com/exthost/exthost/wasiabi"
)

// kindCode is a [JobError] about compiled code.
const kindCode = "code"

// Prepare makes the usual Deps.Prepare: package module, for guests that may import the functions.
func Prepare(functions []wasiabi.Function) func(wasm []byte, l engine.Limits) ([]byte, error) {
	return func(wasm []byte, l engine.Limits) ([]byte, error) {
		p, err := module.Prepare(wasm, module.Options{MemoryBytes: l.MemoryBytes, TableElements: l.TableElements, Functions: functions})
		var refused *module.Error
		if errors.As(err, &refused) {
			return nil, &ModuleError{Kind: refused.Kind.String(), Detail: refused.Detail}
		}
		if err != nil {
			return nil, err
		}
		return p.Bytes, nil
	}
}
