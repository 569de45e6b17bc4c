package worker

import (
	"context"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// guest makes a process, runs it and takes its accounts.
func (w *inside) guest(ctx context.Context, mod engine.Module, cfg wasiabi.Config) (r msgResult, removed []string) {
	p, err := wasiabi.NewProcess(ctx, cfg)
	if err != nil {
		r.Fault = clip(err.Error(), 1024)
		return r, nil
	}
	r.Ending, err = mod.Run(ctx, p)
	p.Close()
	if err != nil {
		r.Fault = clip(err.Error(), 1024)
	}
	r.Ending.Trap, r.Ending.Detail = clip(r.Ending.Trap, 64), clipLines(r.Ending.Detail, 4096)
	r.Ending.MemoryBytes = max(r.Ending.MemoryBytes, 0)
	r.Usage = p.Usage()
	return r, p.Removed()
}
