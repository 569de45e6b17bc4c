package rootfs

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/exthost/exthost/policy"
)

func TestProtectedNamesAreThoseOfThePolicy(t *testing.T) {
	table, err := os.ReadFile("../../../testdata/policies/protected-names.txt")
	if err != nil {
		t.Fatal(err)
	}
	fs := &FS{protected: parseNames(policy.Protected())}
	n := 0
	for line := range strings.Lines(string(table)) {
		word, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || word == "#" {
			continue
		}
		for {
			before, rest, ok := strings.Cut(name, `\u{`)
			if !ok {
				break
			}
			digits, after, _ := strings.Cut(rest, "}")
			r, err := strconv.ParseInt(digits, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			name = before + string(rune(r)) + after
		}
		if got := fs.guarded(&mount{}, foldAll(components(name))); got != (word == "protected") {
			t.Errorf("%s: %t", line, got)
		}
		n++
	}
	if n < 40 {
		t.Errorf("only %d names in the table", n)
	}
}
