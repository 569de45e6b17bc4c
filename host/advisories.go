package host

// advisories are the known faults of an engine of this binary.
func advisories(name string) []Advisory { return nil }
