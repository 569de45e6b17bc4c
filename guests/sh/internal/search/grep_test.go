package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func TestGrepIsGNUs(t *testing.T) {
	cmdtest.Require(t, "grep", "3.8")
	cmdtest.Compare(t, Commands, samples, cmdtest.Calls(`
grep foo t
grep -n foo t
grep -T foo t
grep -nT foo t
grep -HnT foo t
grep -bT foo t
grep -L foo t
grep -L nope t
grep -L foo t bin nope
grep foo d
grep -s foo d
grep -r foo d/f1
grep -rn foo d/sub
grep -rh bar d/sub/f2.txt
grep --include=*.txt -r bar d
grep --include='*.md' -rl bar d
grep --exclude=*.txt -r foo d
grep --exclude-dir=sub -r foo d
grep --exclude-dir=d -r foo d
grep --exclude-dir=sub/ -r foo d
grep -rc zzz d/sub/f2.txt
grep foo bin
grep -c foo bin
grep -o foo bin
grep -a foo bin
grep -I foo bin
grep -l foo bin t
grep --binary-files=text foo bin
grep --binary-files=without-match foo bin
grep -v zzz bin
grep foo latin
grep caf latin
grep -a caf latin
grep -c . latin
grep -ob foo t
grep -on foo t
grep -ov foo t
grep -vc foo t
grep -n --color=always foo t
grep -nH --color=always -A1 yfoo t
grep --color=always -v foo t
grep -nv --color=always -C1 z t
grep --color=never foo t
grep --color=auto foo t
grep -Z -l foo t
grep -HZn foo t
grep -q foo t nope
grep -q foo nope
grep foo nope
grep -s foo nope
grep -m1 -A1 foo t
grep -m1 foo t
grep -m 2 -c . nums
grep -m0 foo t
grep -w '' t
grep -x '' t
grep '' t
grep '^$' t
grep -c '^$' t
grep -v '^$' t
grep
grep -E
grep -y FOO t
grep -i FOO t
grep --nope x
grep -A x foo t
grep -m x foo t
grep -C foo t
grep -P -E foo t
grep -1 yfoo t
grep -2 5 nums
grep -B2 -A1 5 nums
grep -B1 -e 3 -e 7 nums
grep -A1 -e 3 -e 7 -n nums
grep -C 2 -n -e 3 -e 8 nums
grep -A1 -c 3 nums
grep -zo '^b' zeros
grep -z b zeros
grep -zc a zeros
grep -zx c zeros
grep -n -A1 foo t d/f1
grep -c foo t d/f1
grep -h foo t d/f1
grep -H foo t
grep --group-separator=XX -A0 -n 'foo\|z' t
grep --no-group-separator -A0 -n 'foo\|z' t
grep -c x /dev/null
grep -f /dev/null t
grep -f pats t
grep -F -f pats t
grep -vf pats t
grep -e foo -e z t
grep -E 'foo|z' t
grep -F '' t
grep -ow foo t
grep -nb foo t
grep --line-number --with-filename foo t
grep -lv foo t
grep -hc foo t d/f1
grep -e
grep foo
grep foo -
grep -H foo
grep -H --label=lab foo
grep -c foo -
grep -n foo d t
grep -E '^[0-9]{4}-[0-9]{2}-[0-9]{2} (ERROR|WARN)' log
grep -oE '[0-9]+ms' log
grep -oE '[A-Z]{4,}' log
grep -oP '\d+(?=ms)' log
grep -oP 'ERROR \K.*' log
grep -oP '(?<=ERROR )\w+' log
grep -P '^\d{4}-\d\d-0[35]' log
grep -oP '"version": "\K[^"]+' json
grep -oP '"name":\s*"\K[^"]*(?=")' json
grep -o '"version": *"[^"]*"' json
grep -o '[0-9.]*' json
grep -oE '[0-9]+\.[0-9]+\.[0-9]+' json
grep -c ERROR log
grep -ic error log
grep -vE '^\s*(#|$)' conf
grep -A3 '^\[section\]' conf
grep -E '^key[0-9]?\s*=' conf
grep '^\[.*\]$' conf
grep -n '^#' script.sh
grep -w f script.sh
grep -E '\bfunction\b' script.sh
grep '\$1' script.sh
grep -F '$1' script.sh
grep -F -x z t
grep -x 'yfoo' t
grep -i 'ÉTÉ' uni
grep 'ß' uni
grep -o 'é' uni
grep -o '[[:upper:]]' uni
grep -oE '\w+' uni
grep -P '[^\x00-\x7F]' uni
grep -oP '\p{Lu}\w' uni
grep -E '(o)\1' t
grep '\(o\)\1' t
grep 'a\{2,1\}' t
grep '[a' t
grep '\(a' t
grep -E '(a' t
grep -E 'a)' t
grep -P '(a' t
grep -E '*foo' t
grep 'a\d' t
grep '[:space:]' t
grep '[[:foo:]]' t
grep -e '-x' t
grep -- -x t
grep -v -e foo -e z t
grep -on '' t
grep -E 'fo{1,2}' t
grep -E 'x|' t
grep -qv foo t
grep -L . empty t
grep -c . noeol
grep b noeol
grep -A1 a noeol
grep foo t -n
grep -rl --include='*.sh' echo .
grep -lr bar d/sub/f3.md
grep -F -e foo -e z -e q -e nope t
grep -Fo -e fo -e foo -e yfo -e zz t
grep -Fw -e foo -e z -e q -e nope t
grep -Fx -e yfoo -e z -e q -e nope t
grep -Fc -e foo -e z -e q -e nope t
grep --no-messages foo nope
grep -d skip foo d t
grep -d recurse foo d/f1
grep --max-count=1 foo t
grep --count foo t
grep --only-matching --ignore-case FOO t
grep -E '^.{5,}$' t
grep -E '[^ ]+$' log
grep -nE '^(1|10)$' nums
grep -c 1 nums t
grep -w 1 nums
grep -nw '1\|2' nums
grep -bo o t
grep -x -e 1 -e 2 nums
egrep 'foo|z' t
fgrep f.o t
fgrep foo t
`, "foo\nbar foo\nbaz\n"))
}

func TestGrepWithoutNativeTool(t *testing.T) {
	dir := sample(t)
	for _, c := range []struct {
		argv string
		out  string
		code int
	}{
		{"grep -rl foo d", "d/f1\nd/sub/f2.txt\n", 0},
		{"grep -rl bar d --include=*.md", "d/sub/f3.md\n", 0},
		{"grep -oP (?<=ERROR\u00a0) log", "", 1},
		{"grep -n foo t", "1:x foo foo\n2:yfoo\n", 0},
	} {
		got := cmdtest.Run(t, Commands, dir, "", cmdtest.Words(c.argv)...)
		if got.Stdout != c.out || got.Code != c.code {
			t.Errorf("%s: %d %q %s", c.argv, got.Code, got.Stdout, got.Stderr)
		}
	}
}

// Lines longer than what is read at once, and matches across the ends of reads.
func TestGrepFindsAcrossReads(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 3*chunkSize)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d of some text that fills\n", i)
	}
	in := long + "needle\n" + b.String() + "needle" + long + "\nlast needle"
	got := cmdtest.Run(t, Commands, dir, in, "grep", "-nob", "needle")
	want := fmt.Sprintf("1:%d:needle\n5002:%d:needle\n5003:%d:needle\n", len(long), strings.LastIndex(in, "needle"+long), len(in)-6)
	if got.Stdout != want {
		t.Errorf("%q, want %q", got.Stdout, want)
	}
	if got := cmdtest.Run(t, Commands, dir, in, "grep", "-c", "[0-9]"); got.Stdout != "5000\n" {
		t.Errorf("%q", got.Stdout)
	}
}

func BenchmarkGrep(b *testing.B) {
	var s strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&s, "2024-05-01T12:00:00Z host app[%d]: level=info path=/api/items status=%d ms=35\n", i, 200+i%300)
	}
	in := s.String()
	for _, argv := range []string{"grep -c status=404", "grep -cE status=4[0-9]{2}", "grep -ciE error|status=499", "grep -cv foo", "grep -c [a-z]*[0-9]$"} {
		b.Run(argv, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				cmdtest.Run(b, Commands, "/", in, strings.Fields(argv)...)
			}
		})
	}
}
