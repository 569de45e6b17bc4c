package worker

import (
	"context"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// guest makes a process, runs it and takes its accounts.
func (w *inside) guest(ctx context.Context, mod engine.Module, cfg wasiabi.Config) (msgResult, []Removed) {
	var r msgResult
	p := &wasiabi.Process{}
	end, err := mod.Run(ctx, p)
	if err != nil {
		r.Fault = clip(trimEnd(err), 1024)
		return r, nil
	}
	r.Ending = end
	r.Ending.Detail = clipLines(end.Detail, 4096)
	return r, nil
}
