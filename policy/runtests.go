package policy

import "fmt"

// TestResult is one expectation of a policy and what came of it.
type TestResult struct {
	Capability string   `json:"capability"`
	Want       string   `json:"want"` // "allow" or "deny"
	OK         bool     `json:"ok"`
	Position   Position `json:"position"`
	Decision   Decision `json:"decision"`
}

// String returns "ok ..." or "expected denied, got allowed: ..." for one line of output.
func (r TestResult) String() string {
	if r.OK {
		return fmt.Sprintf("ok %s %s", r.Want, r.Capability)
	}
	want, got := "allowed", "denied"
	if r.Want == "deny" {
		want, got = got, want
	}
	return fmt.Sprintf("%s: %s: expected %s, got %s: %s", r.Position, r.Capability, want, got, r.Decision)
}

// RunTests decides the tests of p by p alone: no ceiling, no variables of a machine. The order is the file's, allow first.
func RunTests(p *Policy) []TestResult {
	e := New(p)
	var out []TestResult
	run := func(want string, tests []Test) {
		for _, t := range tests {
			d := e.Decide(t.Capability)
			out = append(out, TestResult{t.Capability.String(), want, d.Allowed == (want == "allow"), t.Pos, d})
		}
	}
	run("allow", p.Tests.Allow)
	run("deny", p.Tests.Deny)
	return out
}
