package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written is no success, whoever prints it: a script goes on with half a file otherwise.
func TestAFullDiskIsNoSuccess(t *testing.T) {
	for text, want := range map[string]int{
		"awk '{print}' in > /dev/full":                             2,
		"awk '{print > \"/dev/full\"}' in":                         2,
		"awk 'BEGIN{print 1 > \"/dev/full\"; exit 0}'":             2,
		"jq -n 1 > /dev/full":                                      2,
		"grep x in > /dev/full":                                    2,
		"sed p in > /dev/full":                                     4,
		"sed -n 'w /dev/full' in":                                  4,
		"find . > /dev/full":                                       1,
		"find . -fprint /dev/full":                                 1,
		"echo 1+1 | bc > /dev/full":                                1,
		"sort in > /dev/full":                                      2,
		"awk 'BEGIN{exit 3}' > /dev/full":                          3,
		"set -o pipefail; awk 'BEGIN{print 1}' | cat > /dev/full":  1,
		"grep -q x in > /dev/full && bash -c 'awk 1 in' | head -1": 0,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "in"), []byte(strings.Repeat("x y\n", 5)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := run(t, dir, "", "-c", text)
		if code != want || (errs == "") != (want == 0 || want == 3) {
			t.Errorf("%s: code %d, want %d; stderr %q", text, code, want, errs)
		}
	}
}
