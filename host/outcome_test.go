package host

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
)

func TestJudgeMapsEveryWayARunCanFail(t *testing.T) {
	none := verdict{}
	for _, tt := range []struct {
		name string
		err  error
		want verdict // without detail; none: it is no outcome of the guest
	}{
		{"no error", nil, none},
		{"output", errOutput, verdict{outcome: Limit, limit: "output"}},
		{"resident memory", errRSS, verdict{outcome: Limit, limit: "memory"}},
		{"deadline", worker.ErrTime, verdict{outcome: Limit, limit: "time"}},
		{"wrapped deadline", fmt.Errorf("compile: %w", worker.ErrTime), verdict{outcome: Limit, limit: "time"}},
		{"refused", &RefusedError{Reason: "no"}, verdict{outcome: Denied}},
		{"module too big", &worker.ModuleError{Kind: "too-big"}, verdict{outcome: Limit, limit: "module"}},
		{"module wants too much memory", &worker.ModuleError{Kind: "memory"}, verdict{outcome: Limit, limit: "memory"}},
		{"module imports what is not there", &worker.ModuleError{Kind: "imports"}, verdict{outcome: Denied}},
		{"module is broken", &worker.ModuleError{Kind: "invalid"}, verdict{outcome: HostError}},
		{"module is not compiled", &worker.ModuleError{Kind: "engine"}, verdict{outcome: HostError}},
		{"worker out of memory", &worker.CrashError{Kind: "memory"}, verdict{outcome: Limit, limit: "memory"}},
		{"worker out of processor time", &worker.CrashError{Kind: "cpu"}, verdict{outcome: Limit, limit: "cpu"}},
		{"worker got a signal", &worker.CrashError{Kind: "signal", Signal: syscall.SIGSEGV}, verdict{outcome: HostError}},
		{"worker broke the protocol", &worker.CrashError{Kind: "protocol"}, verdict{outcome: HostError}},
		{"worker was killed", &worker.CrashError{Kind: "killed"}, verdict{outcome: HostError}},
		{"worker refused", &worker.JobError{Detail: "x"}, verdict{outcome: HostError}},
		{"cancelled", context.Canceled, none},
		{"missing wall", wallError(&worker.WallError{Wall: "landlock"}), none},
		{"policy", policy.Errors{{Msg: "x"}}, none},
		{"other", errors.New("disk on fire"), none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(tt.err)
			if tt.want == none {
				if got != nil {
					t.Errorf("judge = %+v, want nil", *got)
				}
				return
			}
			if got == nil || got.detail == "" {
				t.Fatalf("judge = %+v, want %+v and a detail", got, tt.want)
			}
			got.detail = ""
			if *got != tt.want {
				t.Errorf("judge = %+v, want %+v", *got, tt.want)
			}
		})
	}
	if !errors.Is(wallError(&worker.WallError{Wall: "landlock"}), ErrWalls) {
		t.Error("a missing wall does not match ErrWalls")
	}
}

func TestDecideMapsEveryWayAGuestCanEnd(t *testing.T) {
	exit := func(code uint32) engine.Ending { return engine.Ending{Kind: engine.Exit, Code: code} }
	trap := engine.Ending{Kind: engine.Trap, Trap: "unreachable", Detail: "f"}
	refused := func(e engine.Ending) engine.Ending { e.GrowRefused = true; return e }
	for _, tt := range []struct {
		name string
		end  engine.Ending
		met  []string
		want verdict
	}{
		{"exit", exit(0), nil, verdict{outcome: Exit}},
		{"exit with a code", exit(3), nil, verdict{outcome: Exit, code: 3}},
		{"trap", trap, nil, verdict{outcome: Trap, trap: "unreachable"}},
		{"refused memory and failed", refused(exit(2)), nil, verdict{outcome: Limit, limit: "memory"}},
		{"refused memory and trapped", refused(trap), nil, verdict{outcome: Limit, limit: "memory"}},
		{"refused memory and went on", refused(exit(0)), nil, verdict{outcome: Exit}},
		{"met the disk limit and failed", exit(1), []string{"disk"}, verdict{outcome: Limit, limit: "disk"}},
		{"met the limit of entries and failed", exit(1), []string{"entries"}, verdict{outcome: Limit, limit: "files"}},
		{"met the disk limit and went on", exit(0), []string{"disk"}, verdict{outcome: Exit}},
		{"met something else and failed", exit(1), []string{"events"}, verdict{outcome: Exit, code: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := decide(&worker.Result{Ending: tt.end}, tt.met)
			got.detail = ""
			if got != tt.want {
				t.Errorf("decide = %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := decide(&worker.Result{Ending: exit(0), Fault: "no instance"}, nil); got.outcome != HostError {
		t.Errorf("a fault of the worker: %+v", got)
	}
}

func TestExitCodesAreThoseOfTheCommandLine(t *testing.T) {
	denials := []Denial{{Capability: "read /x"}}
	for _, tt := range []struct {
		name   string
		r      *Report
		err    error
		strict bool
		want   int
	}{
		{"the guest's own", &Report{Outcome: Exit, ExitCode: 7}, nil, false, 7},
		{"with denials", &Report{Outcome: Exit, ExitCode: 0, Denials: denials}, nil, false, 0},
		{"with denials, strict", &Report{Outcome: Exit, ExitCode: 0, Denials: denials}, nil, true, 126},
		{"without denials, strict", &Report{Outcome: Exit, ExitCode: 7}, nil, true, 7},
		{"no such script", nil, fmt.Errorf("x: %w", ErrNotFound), false, 127},
		{"refused", nil, &RefusedError{}, false, 126},
		{"no runtime", nil, fmt.Errorf("x: %w", ErrNoRuntime), false, 125},
		{"missing wall", nil, fmt.Errorf("x: %w", ErrWalls), false, 125},
		{"policy that is not enforced", nil, policy.Errors{{Msg: "x"}}, false, 125},
		{"cancelled", &Report{Outcome: HostError, ExitCode: 125}, context.Canceled, false, 125},
		{"nothing", nil, nil, false, 125},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ExitCode(tt.r, tt.err, tt.strict); got != tt.want {
				t.Errorf("ExitCode = %d, want %d", got, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		o     Outcome
		guest uint32
		want  int
	}{{Exit, 0, 0}, {Exit, 255, 255}, {Exit, 256, 1}, {Exit, 1 << 31, 1}, {Trap, 0, 134}, {Limit, 0, 124}, {Denied, 0, 126}, {HostError, 0, 125}} {
		if got := exitCode(tt.o, tt.guest); got != tt.want {
			t.Errorf("exitCode(%s, %d) = %d, want %d", tt.o, tt.guest, got, tt.want)
		}
	}
}
