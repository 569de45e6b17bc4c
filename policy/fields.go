package policy

import "strings"

// Field says what makes one key of the policy file true.
type Field struct {
	Name     string `json:"name"`     // "files.*.access", "network[].host"
	Enforcer string `json:"enforcer"` // functions as "folder.Function", comma-separated; "": not enforced by this version, a run is refused
	Test     string `json:"test"`     // what proves it: a Go test, a command script (NAME.txtar) or an attack (hostile/CLASS/FILE)
}

// unenforced is the test that a run with such a field is refused.
const unenforced = "TestFieldsThatAreNotEnforcedAreRefused, run_policy.txtar"

// fields has a row for each key. A test checks that no key is missing and that what a row names exists.
var fields = []Field{
	{"version", "policy.Parse", "TestInvalidPoliciesReportEveryFaultWithItsLine"},
	{"extension", "policy.Parse", "TestInvalidPoliciesReportEveryFaultWithItsLine"},
	{"digest", "host.check", "run_grant.txtar"},
	{"env.pass", "policy.Environ, host.environ", "TestForbiddenVariablesAreNeverGiven, run_policy.txtar, hostile/hostleak/environment.go"},
	{"env.set", "policy.Environ, host.environ", "TestCeilingsOfTheEnvironment, run_policy.txtar"},
	{"files.*.host", "policy.Files, host.root", "TestFilesRefusesWhatNoPolicyCanOpen, run_policy.txtar, hostile/lateral/unmounted_paths.go"},
	{"files.*.access", "policy.Files, wasiabi/internal/rootfs.mayWrite", "TestMintedRootsAllowWhatIsDecided, run_policy.txtar, hostile/lateral/truncate_read_root.go"},
	{"files.*.hide", "policy.Files, wasiabi/internal/rootfs.matchAny", "TestHiddenFilesAreHiddenInAnySpelling, run_policy.txtar, hostile/hostleak/hidden_files.go"},
	{"files.*.create", "host.root", "run_policy.txtar"},
	{"files.*.protected", "policy.Files, wasiabi/internal/rootfs.guarded", "TestProtectedNamesAreRefusedInAnySpelling, hostile/escape/git_hooks.go, hostile/escape/agent_files.go"},
	{"network[].host", "", unenforced},
	{"network[].scheme", "", unenforced},
	{"network[].port", "", unenforced},
	{"network[].methods", "", unenforced},
	{"network[].paths", "", unenforced},
	{"network[].addresses", "", unenforced},
	{"secrets.*.from", "", unenforced},
	{"secrets.*.to", "", unenforced},
	{"secrets.*.in", "", unenforced},
	{"tools[].server", "", unenforced},
	{"tools[].allow", "", unenforced},
	{"tools[].deny-hints", "", unenforced},
	{"tools[].arguments", "", unenforced},
	{"limits.time", "policy.Limits, host.watch", "TestLimitsAreTheSmallestAndNeverOff, run_limits.txtar, hostile/hostdos/spin.go, hostile/hostdos/sleep.go"},
	{"limits.memory", "policy.Limits, host/internal/module.Prepare", "TestMemoryStopsAtTheLimitAndARefusalIsNoted, TestTablesStopAtTheLimit, run_limits.txtar"},
	{"limits.output", "policy.Limits, host.newStream", "run_limits.txtar, hostile/hostdos/output_storm.go"},
	{"limits.disk", "policy.Limits, wasiabi/internal/rootfs.room", "hostile/hostdos/disk.go"},
	{"limits.open-files", "policy.Limits, wasiabi.NewProcess", "hostile/hostdos/descriptors.go"},
	{"limits.processes", "", unenforced},
	{"limits.requests", "", unenforced},
	{"limits.upload", "", unenforced},
	{"limits.download", "", unenforced},
	{"limits.calls", "", unenforced},
	{"shared", "", unenforced},
	{"walls", "policy.Walls, host/internal/worker.Bind", "TestAnUnknownWallIsMissing, TestAMissingWallIsNamed"},
	{"tests.allow", "policy.RunTests", "TestRunTestsTellsWhatFailed, policy_check.txtar"},
	{"tests.deny", "policy.RunTests", "TestRunTestsTellsWhatFailed, policy_check.txtar"},
}

// Fields returns the table of all keys with the functions that enforce them and the tests that prove it. The caller
// owns the slice.
func Fields() []Field { return clone(fields) }

// parts splits a comma-separated cell.
func parts(cell string) []string {
	if cell == "" {
		return nil
	}
	return strings.Split(cell, ", ")
}
