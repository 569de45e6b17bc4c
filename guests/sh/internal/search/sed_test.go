package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func TestSedIsGNUs(t *testing.T) {
	cmdtest.Require(t, "sed", "4.9")
	calls := cmdtest.Calls(`
sed s/foo/bar/ t
sed s/foo/bar/g t
sed s/foo/bar/2 t
sed s/o/0/2g t
sed -n s/foo/bar/p t
sed -n 's/foo/bar/gp' t
sed -n s/FOO/bar/Ip t
sed 's/FOO/bar/i' t
sed -n 2p nums
sed -n '2,4p' nums
sed -n '$p' nums
sed '$d' nums
sed 1d nums
sed '2,4d' nums
sed '/3/,/5/d' nums
sed '/3/d' nums
sed '/^$/d' t
sed -n '/3/,$p' nums
sed -n '/3/,+2p' nums
sed -n '2,~4p' nums
sed -n '1~3p' nums
sed -n '0~3p' nums
sed -n '2~0p' nums
sed '0,/1/d' nums
sed '0,/5/s/^/x/' nums
sed '1,/1/d' nums
sed '3!d' nums
sed '2,3!s/^/# /' nums
sed '5,2p' nums
sed -n '/2/,3p' nums
sed -n '/5/,3p' nums
sed -n '$=' nums
sed = t
sed -n '/foo/=' t
sed 2q nums
sed -n '3{p;q}' nums
sed 5q7 nums
sed 3Q nums
sed 3Q4 nums
sed '2a hello' nums
sed '2i hello' nums
sed '2c hello' nums
sed '2,4c hello' nums
sed '2,4!c hello' nums
sed '$a end' noeol
sed '$!d' noeol
sed p noeol
sed 'a\  two spaces' noeol
sed 'a\text' noeol
sed '/a/a\	tab' noeol
sed 'a hello\nworld' noeol
sed 'a\\thello' noeol
sed 'a hello\tworld' noeol
sed 'i a\\b' noeol
sed -e '2a\' -e '  text' nums
sed -e 'a one' -e 'i two' noeol
sed '1{h;d};G' nums
sed -n '1!G;h;$p' nums
sed '1!G;h;$!d' nums
sed 'N;s/\n/,/' nums
sed 'N;N;s/\n/,/g' nums
sed '$!N;P;D' nums
sed '$!N;s/\n/ /' nums
sed ':a;N;$!ba;s/\n/ /g' nums
sed -e ':a' -e '$!N;s/\n//;ta' nums
sed -n 'H;${x;s/\n/,/g;s/^,//;p}' nums
sed 'n;d' nums
sed 'n;n;s/^/x/' nums
sed -n '/section/{n;p}' conf
sed -n '/^\[section\]/,/^\[/p' conf
sed -n '/^\[section\]/,/^\[/{/^\[/!p}' conf
sed 's/^[ \t]*//;s/[ \t]*$//' conf
sed '/^#/d;/^$/d' conf
sed -E 's/^([a-z]+) *= *(.*)$/\2=\1/' conf
sed 's/\([a-z]*\)=\([0-9]\)/\2=\1/' conf
sed -n 's/^key=//p' conf
sed -n 's/.*"version": *"\([^"]*\)".*/\1/p' json
sed -E 's/.*"version": "([^"]+)".*/\1/' json
sed 's/"[^"]*"/X/3' json
sed 's|/|_|g' t
sed 's,foo,a/b,' t
sed 's#foo#<&>#g' t
sed 's/foo/\&/g' t
sed 's/foo/a\/b/' t
sed 's|a\|b|x|' noeol
sed 's+a\+b+x+' noeol
sed 's.a\.b.x.' noeol
sed -E 's|(a\|b)|x|' noeol
sed 's/[/]/x/' t
sed 's/foo/\n/' t
sed 's/foo/\t/' t
sed 's/foo/a\
b/' t
sed 's/.*/\U&/' t
sed 's/.*/\u&/' t
sed -E 's/(.)(.*)/\U\1\E\2/' t
sed -E 's/(\w+)/\u\1/g' t
sed -E 's/\b(.)/\u\1/g' t
sed 's/.*/\L\u&/' log
sed -E 's/([A-Z])([A-Z]+)/\1\L\2/g' log
sed 's/x*/-/g' noeol
sed 's/a*/x/g' t
sed 's/o*/x/2' t
sed 's/$/!/' nums
sed 's/^/> /' t
sed 's/\(foo\)*/[&]/g' t
sed -E 's/(foo|x) ?/<\1>/g' t
sed 's/[0-9]\{2\}/N/' log
sed -E 's/[0-9]{4}-([0-9]{2})-([0-9]{2})/\2.\1./' log
sed '/ERROR/!d' log
sed -n '/ERROR/p;/WARN/p' log
sed -n '/ERROR/{s/.*ERROR //;p}' log
sed '/ERROR/{s//FAIL/}' log
sed 's/ERROR/&!/;s//X/' log
sed 'y/abc/xyz/' conf
sed 'y/abc/\n\t\\/' conf
sed 'y,a/,b\,,' conf
sed 'y/éÜ/eU/' uni
sed 's/./X/g' uni
sed 's/é/e/g' uni
sed 's/.*/\U&/' uni
sed -n l uni
sed -n l bin
sed -n 'l 10' log
sed -n -l 20 l log
sed -n 'l 1' log
sed --line-length=15 -n l log
sed -s -n '$p' t nums
sed -n '$p' t nums
sed -n '1p' t nums
sed -s -n '1p' t nums
sed -s 'F' t noeol
sed F
sed -n '$=' t nums
sed -s -n '$=' t nums
sed 's/foo/bar/w out' t
sed -n '/foo/w out' t
sed 's/foo/bar/w /dev/stdout' t
sed 'w /dev/stdout' noeol
sed '1r noeol' nums
sed 'r nope' t
sed '$r t' noeol
sed '1R noeol' nums
sed 'R noeol' nums
sed 'W out' t
sed '2{h;d};${G}' nums
sed x nums
sed 'x;p;x' noeol
sed G t
sed -n 'G;p' noeol
sed z t
sed 'zd' t
sed -z 's/\n/,/g' t
sed -z 's/^./X/' zeros
sed -n -z p zeros
sed -z 's/a$/X/M' zeros
sed 'N;s/^b/X/M' noeol
sed 'N;s/a$/X/M' noeol
sed 'N;s/a$/X/' noeol
sed -e 's/a/b/' -e 's/b/c/' noeol
sed -f script.sed t
sed -n -f scriptn.sed nums
sed -E -f script.sed t
sed '' t
sed -n '' t
sed '#n' t
sed '# comment
s/foo/bar/' t
sed 's/a/b/ # comment' noeol
sed 's/a/b/ ; s/b/c/' noeol
sed '{p}' noeol
sed '{p;p}' noeol
sed '{;p;;}' noeol
sed '/a/{/b/{p}}' noeol
sed -n '/foo/{p;q;}' t
sed 'b;d' t
sed 'bend;d;:end' t
sed '/foo/b end;d;: end' t
sed 's/foo/X/;T;s/$/ changed/' t
sed 's/foo/X/;t;s/$/ same/' t
sed -E ':a;s/^([0-9]+)([0-9]{3})/\1,\2/;ta' nums
sed ':a;s/^\(\s*\)x/\1y/;ta' t
sed -u p noeol
sed --posix 's/a/b/' noeol
sed --posix N noeol nums
sed N noeol nums
sed -s N noeol nums
sed -n --expression=p noeol
sed --quiet p noeol
sed --regexp-extended 's/(a)/\1\1/' noeol
sed -nE 's/(a)/\1\1/p' noeol
sed s/foo/bar/ nope t
sed s/foo/bar/ d
sed p empty
sed '$!N' empty
sed k t
sed 's/a/b' t
sed 's/a' t
sed 'y/ab/c/' t
sed 's/a/b/gg' t
sed 's/a/b/x' t
sed 's/a/\2/' t
sed 's/\(a/b/' t
sed '/a' t
sed '{p' t
sed 'p}' t
sed 'b nope' t
sed 3p4 t
sed ',3p' t
sed '3,p' t
sed '0p' t
sed '0,3p' t
sed '1,2q' t
sed '1,2=' nums
sed a t
sed 's//x/' t
sed ':' t
sed '1:a' t
sed '}' t
sed r t
sed '+1p' t
sed
sed --nope
sed 's/[[:upper:]]/x/g' log
sed 's/[[:space:]]\+/ /g' conf
sed 's/\s\+$//' conf
sed 's/\bfoo\b/X/g' t
sed 's/\<foo/X/g' t
sed 's/\w\+/W/2' log
sed 's/[^,]*,//' log
sed 's/\x41/X/g' log
sed 's/a\x26b/&/' noeol
sed 's/a/\x26/' noeol
sed 's/a/\o101/' noeol
sed 's/a/\d065/' noeol
sed 's/a/\cA/' noeol
sed '\,foo,d' t
sed '\|foo|s|o|0|g' t
sed '\cfoocd' t
sed -n '/FOO/Ip' t
sed '/foo/I,/z/Id' t
sed -E '/^(key|name)/!d' conf
sed -E 's/a|b//' noeol
sed -E 's/(^|[^a-z])z/\1Z/' t
sed -E 's/^(.{3}).*/\1/' log
sed -E 's/(.*)(foo)/\1X/' t
sed 's/.*foo//' t
sed 's/caf./X/' latin
sed 's/.*/X/' latin
sed -i s/foo/bar/ t
sed -i.bak s/foo/bar/ t
sed -i 2d t nums
sed -i 2q nums
sed -n -i p t
sed -i -e 's/a/b/' -e '$a end' noeol
sed -i 's/a/b/' nope t
sed -i s/a/b/ d
sed -Ei 's/(fo)o/\1/' t
sed --in-place=.orig 's/foo/bar/' t
sed -ibak_* 's/foo/bar/' t
sed -i 's/foo/bar/w out' t
sed -i '/foo/w /dev/stdout' t
sed -i '$!N;s/\n/ /' nums t
sed -i '1i header' t
sed -i '$a\' noeol
sed '$a\' noeol
sed 'i\' t
sed '1i\   lead' t
sed '1i\
  first\
  second' t
sed '2,3{s/^/x/
s/$/y/
}' nums
sed '/a/,/b/{//!d}' nums
sed '$!{h;d}' nums
sed -n '2{p}' nums
sed -n '2{p};3{p}' nums
sed '1~2d;s/^/e/' nums
sed 10q nums
sed '11,20p' nums
sed -n '$!p' nums
sed 's/1/a/;s/0/b/' nums
sed '2!{s/^/x/}' nums
sed 'v' t
sed 's/a/b/;;p' noeol
sed '/x/ s/foo/bar/' t
sed -n '/start/,/end/ { /start/n; /end/!p }' t
sed "s/'//g" script.sh
sed 's/\$1/ARG/' script.sh
sed 's/^\(.*\)$/"\1"/' script.sh
sed 's/[]]/X/;s/[[]/Y/' conf
sed 's/[^]]*]/X/' conf
sed -E 's/\[|\]//g' conf
sed 's/\[\([^]]*\)\]/(\1)/' conf
sed 's/a\{1,\}/x/' noeol
sed 's/**/x/' noeol
sed 's/\(^a\)/x/' noeol
sed 's/a\|b/x/' noeol
sed 's/a\?b/x/' noeol
sed 's/^*/x/' noeol
sed 's/\n/x/' noeol
sed 's/a$b/x/' noeol
sed 's/[\n]/x/' t
sed 's/[.]/x/' json
sed 's/\./x/g' json
sed 's/\-/x/' log
sed 's/\//|/g' t
sed -e '1{' -e 'p' -e '}' noeol
sed -n '/foo/{=;p}' t
sed '1!{$!d}' nums
sed -n 'x;n;p' nums
sed 'D' nums
sed 'N;D' nums
sed '$!{N;D}' nums
sed 'N;N;D' nums
sed 'N;P;D' nums
sed 's/foo/bar/;n;s/foo/baz/' t
`, "foo\nbar foo\nbaz\n")
	for i := range calls {
		calls[i].After = []string{"t", "nums", "noeol", "out", "t.bak", "t.orig", "bak_t"}
	}
	cmdtest.Compare(t, Commands, samples, calls)
}

func TestSedReadsBSDsSuffix(t *testing.T) {
	for _, c := range []struct{ argv, backup string }{
		{"sed -i '' s/foo/bar/g t", ""},
		{"sed -i '' -e s/foo/bar/g t", ""},
		{"sed -i .bak s/foo/bar/g t", "t.bak"},
		{"sed -E -i '' s/(foo)/bar/g t", ""},
	} {
		dir := sample(t)
		argv := cmdtest.Words(c.argv)
		if got := cmdtest.Run(t, Commands, dir, "", argv...); got.Code != 0 || got.Stdout+got.Stderr != "" {
			t.Errorf("%s: %+v", c.argv, got)
		}
		if b, _ := os.ReadFile(filepath.Join(dir, "t")); string(b) != "x bar bar\nybar\n\nz\n" {
			t.Errorf("%s: %q", c.argv, b)
		}
		if b, err := os.ReadFile(filepath.Join(dir, c.backup)); c.backup != "" && string(b) != "x foo foo\nyfoo\n\nz\n" {
			t.Errorf("%s: %q %v", c.argv, b, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "sed*")); len(left) > 0 {
			t.Errorf("%s leaves %v", c.argv, left)
		}
	}
}

func TestSedRefusesToRunCommands(t *testing.T) {
	for _, argv := range []string{"sed 'e date' t", "sed s/x/date/e t"} {
		got := cmdtest.Run(t, Commands, sample(t), "", cmdtest.Words(argv)...)
		if got.Code != 1 || !strings.Contains(got.Stderr, "runs no other commands") {
			t.Errorf("%s: %+v", argv, got)
		}
	}
}

// A script is read or refused, never a panic; without commands that change it, the text passes as it is.
func FuzzSed(f *testing.F) {
	for _, s := range []string{"s/a/b/g;p", "1~2{N;P;D}", "/a/,/b/!s//\\U&/2w /dev/stdout", ":a;s/a/b/;ta", "y/ab/cd/;l", "0,/x/{=;F}", "a\\\nfoo\n$!N"} {
		f.Add(s, "a\nb\nxx\n")
	}
	f.Fuzz(func(t *testing.T, script, text string) {
		if strings.ContainsAny(script, "wWrRbtTD") || len(script) > 60 || len(text) > 200 {
			return // no files, and nothing that runs for ever
		}
		got := cmdtest.Run(t, Commands, t.TempDir(), text, "sed", "--", script)
		if got.Code != 0 && got.Stderr == "" && !strings.ContainsAny(script, "qQ") {
			t.Errorf("%q: code %d without a word", script, got.Code)
		}
		if got := cmdtest.Run(t, Commands, t.TempDir(), text, "sed", ""); got.Stdout != text {
			t.Errorf("%q became %q", text, got.Stdout)
		}
	})
}

func BenchmarkSed(b *testing.B) {
	var s strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&s, "2024-05-01T12:00:00Z host app[%d]: level=info path=/api/items status=%d ms=35\n", i, 200+i%300)
	}
	in := s.String()
	for _, script := range []string{"s/level=info/L/", `s/status=\([0-9]*\)/<\1>/g`, "/status=404/!d", "$!d", `s/[^ ]* //;s/ms=.*$//`} {
		b.Run(script, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				cmdtest.Run(b, Commands, "/", in, "sed", script)
			}
		})
	}
}
