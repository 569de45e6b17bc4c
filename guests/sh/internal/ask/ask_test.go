package ask

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutAHostEverythingIsDenied(t *testing.T) {
	var d *Denied
	if err := HTTP("GET", "https://api.example.test/v1?key=1"); !errors.As(err, &d) || d.Reason == "" {
		t.Errorf("HTTP: %v, want a denial with a reason", err)
	}
	d = nil
	if err := Program("git", []string{"clone", "x"}); !errors.As(err, &d) || d.Reason != "no such program in the sandbox" {
		t.Errorf("Program: %v, want a denial", err)
	}
	Log("nothing happens")
}

func TestWhatIsTooLongIsCutNotRefused(t *testing.T) {
	var d *Denied
	if err := HTTP("GET", "https://api.example.test/"+strings.Repeat("\x01", 20000)); !errors.As(err, &d) {
		t.Errorf("HTTP with a long URL: %v, want a denial", err)
	}
	args := make([]string, 5000)
	for i := range args {
		args[i] = strings.Repeat("\"", i%50)
	}
	if err := Program(strings.Repeat("a", 70000), args); !errors.As(err, &d) {
		t.Errorf("Program with many arguments: %v, want a denial", err)
	}
}

func TestCutKeepsWholeCharacters(t *testing.T) {
	for n := range 8 {
		if got := cut("aä€b", n); !strings.HasPrefix("aä€b", got) || len(got) > n || clean(got) != got {
			t.Errorf("cut to %d bytes = %q", n, got)
		}
	}
}
