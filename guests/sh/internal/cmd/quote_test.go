package cmd_test

import (
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"x": "‘x’", "": "‘’", "it's": "‘it's’", `a\b`: `‘a\\b’`, "a\nb\x01": `‘a\nb\001’`, "‘é’": `‘‘é\’’`,
	} {
		if got := cmd.Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestLocalized(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{nil, "seq: bad 'x'\n"},
		{[]string{"LANG=C.UTF-8"}, "seq: bad ‘x’\n"},
		{[]string{"LANG=C.UTF-8", "LC_ALL=C"}, "seq: bad 'x'\n"},
		{[]string{"LANG=C", "LC_CTYPE=en_US.utf8"}, "seq: bad ‘x’\n"},
	} {
		var b strings.Builder
		c := &cmd.Call{Name: "seq", Environ: tt.env, Stderr: &b}
		c.Errorf("bad %s", cmd.Quote("x"))
		if b.String() != tt.want {
			t.Errorf("%q: %q, want %q", tt.env, b.String(), tt.want)
		}
	}
}

func TestBadWord(t *testing.T) {
	want := "ambiguous argument ‘a’ for ‘--color’\nValid arguments are:\n  - ‘always’, ‘yes’\n  - ‘auto’"
	if got := cmd.BadWord("a", "--color", "always yes", "auto").Error(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
