package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
)

// verdict is how a run ended.
type verdict struct {
	outcome Outcome
	code    uint32 // of the guest
	limit   string
	trap    string
	detail  string
}

// judge maps an error of a run to what became of it, or to nil if it is none of the guest's.
func judge(err error) *verdict {
	var (
		crash   *worker.CrashError
		refused *worker.ModuleError
		job     *worker.JobError
		denied  *RefusedError
		parse   policy.Errors
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOutput):
		return &verdict{outcome: Limit, limit: "output", detail: "the guest wrote more than limits.output"}
	case errors.Is(err, errRSS):
		return &verdict{outcome: Limit, limit: "memory", detail: "the worker's memory went over limits.memory and what an engine needs"}
	case errors.Is(err, worker.ErrTime):
		return &verdict{outcome: Limit, limit: "time", detail: err.Error()}
	case errors.As(err, &denied):
		return &verdict{outcome: Denied, detail: denied.Error()}
	case errors.As(err, &refused):
		return judgeModule(refused)
	case errors.As(err, &crash):
		return judgeCrash(crash)
	case errors.As(err, &parse), errors.Is(err, ErrWalls), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case errors.As(err, &job):
		return &verdict{outcome: HostError, detail: job.Error()}
	}
	return nil
}

// judgeModule maps a module that was refused before it ran. What it imports is what it asks for, so an import that this
// host does not have is a denial.
func judgeModule(m *worker.ModuleError) *verdict {
	switch m.Kind {
	case "too-big":
		return &verdict{outcome: Limit, limit: "module", detail: m.Error()}
	case "memory":
		return &verdict{outcome: Limit, limit: "memory", detail: m.Error()}
	case "imports":
		return &verdict{outcome: Denied, detail: m.Error()}
	}
	return &verdict{outcome: HostError, detail: m.Error()}
}

// judgeCrash maps the end of a worker that did not end its run.
func judgeCrash(c *worker.CrashError) *verdict {
	detail := c.Error()
	if c.Detail != "" {
		detail += ": " + c.Detail
	}
	switch c.Kind {
	case "memory":
		return &verdict{outcome: Limit, limit: "memory", detail: detail}
	case "cpu":
		return &verdict{outcome: Limit, limit: "cpu", detail: detail}
	}
	return &verdict{outcome: HostError, detail: detail}
}

// limitNames are the limits that a guest can meet and go on, as the worker names them, and how they are called in a
// report.
var limitNames = map[string]string{
	"disk": "disk", "entries": "files", "open files": "open-files", "open-files": "open-files", "descriptors": "open-files",
}

// verdict maps how the guest ended. A guest that failed after it was refused memory, disk or descriptors failed of that, as far
// as anybody can tell: its runtime has turned the refusal into an exit code or a trap of its own.
func (r *run) verdict(res *worker.Result) verdict {
	return decide(res, r.trail.limits())
}

func decide(res *worker.Result, met []string) verdict {
	end := res.Ending
	if res.Fault != "" {
		return verdict{outcome: HostError, detail: res.Fault}
	}
	failed := end.Kind == engine.Trap || end.Code != 0
	how := fmt.Sprintf("the guest ended with code %d", end.Code)
	if end.Kind == engine.Trap {
		how = "the guest trapped: " + end.Trap
	}
	if failed && end.GrowRefused {
		return verdict{outcome: Limit, limit: "memory", detail: "the guest was refused memory; then " + how}
	}
	for _, m := range met {
		if name, ok := limitNames[m]; ok && failed {
			return verdict{outcome: Limit, limit: name, detail: "the guest met the limit of " + name + "; then " + how}
		}
	}
	if end.Kind == engine.Trap {
		return verdict{outcome: Trap, trap: end.Trap, detail: strings.TrimSpace(end.Detail)}
	}
	return verdict{outcome: Exit, code: end.Code}
}
