package host

import (
	"errors"
	"sync/atomic"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/engine/engines"
	"github.com/exthost/exthost/host/internal/module"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/wasiabi"
)

// workerMainRan is the only global state of this package: whether a child of this executable would become a worker.
var workerMainRan atomic.Bool

// WorkerMain must be the first thing that main calls in a program that embeds exthost. It returns at once, unless this
// process was started to be a worker: then it is one, and WorkerMain does not return.
func WorkerMain() {
	workerMainRan.Store(true)
	worker.Main(worker.Deps{
		Engine:  func(name string) (engine.Engine, error) { return engines.New(name, wasiabi.Functions()) },
		Prepare: prepare,
	})
}

// prepare checks and lowers a module, in a compile worker.
func prepare(wasm []byte, l engine.Limits) ([]byte, error) {
	p, err := module.Prepare(wasm, module.Options{
		MemoryBytes: l.MemoryBytes, TableElements: l.TableElements, Functions: wasiabi.Functions(),
	})
	if me := (*module.Error)(nil); errors.As(err, &me) {
		return nil, &worker.ModuleError{Kind: me.Kind.String(), Detail: me.Detail}
	}
	if err != nil {
		return nil, err
	}
	return p.Bytes, nil
}
