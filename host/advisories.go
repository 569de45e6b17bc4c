package host

import "github.com/exthost/exthost/host/internal/engine"

// advisories are the known faults that the engine's version in this binary has.
func advisories(name string) []Advisory {
	var out []Advisory
	for _, a := range engine.Advisories(name) {
		if a.Has(engine.Version(name)) {
			out = append(out, Advisory{ID: a.ID, CVE: a.CVE, Title: a.Title, Severity: a.Severity, Verdict: string(a.Status), Why: a.Why})
		}
	}
	return out
}
