package text

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// run runs a command that has to succeed, with an exit code of at most most.
func run(t testing.TB, dir, stdin string, most int, argv ...string) string {
	t.Helper()
	r := cmdtest.Run(t, Commands, dir, stdin, argv...)
	if r.Code > most {
		t.Fatalf("%q: exit code %d, %s", argv, r.Code, r.Stderr)
	}
	return r.Stdout
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzBase64RoundTrip(f *testing.F) {
	f.Add([]byte("apple\x00\xff"), 76)
	f.Add([]byte(""), 0)
	f.Add(bytes.Repeat([]byte{1, 2}, 9000), 5)
	f.Fuzz(func(t *testing.T, data []byte, wrap int) {
		wrap = max(wrap, 0)
		for _, tool := range []string{"base64", "base32"} {
			coded := run(t, ".", string(data), 0, tool, "-w", fmt.Sprint(wrap))
			for line := range strings.Lines(coded) {
				if wrap > 0 && len(strings.TrimSuffix(line, "\n")) > wrap {
					t.Fatalf("line of %d, not %d", len(line), wrap)
				}
			}
			if back := run(t, ".", coded, 0, tool, "-d"); back != string(data) {
				t.Fatalf("%s: %q came back as %q", tool, data, back)
			}
		}
	})
}

func FuzzXxdRoundTrip(f *testing.F) {
	f.Add([]byte("apple\x00\xff"), uint8(16), false)
	f.Add(bytes.Repeat([]byte{0}, 200), uint8(5), true)
	f.Fuzz(func(t *testing.T, data []byte, columns uint8, plain bool) {
		columns = max(columns, 1)
		args := []string{"xxd", "-c", fmt.Sprint(columns)}
		if plain {
			args = append(args, "-p")
		}
		dump := run(t, ".", string(data), 0, args...)
		if back := run(t, ".", dump, 0, append(args, "-r")...); back != string(data) {
			t.Fatalf("%q came back as %q", data, back)
		}
	})
}

// FuzzSort: what comes out is what went in, in order.
func FuzzSort(f *testing.F) {
	f.Add("b\na\n\n10\n9\n-1.5\n1K\n", "n")
	f.Add("v1.10\nv1.9\nx", "V")
	f.Add("a b\nb a\n", "k2,2")
	f.Fuzz(func(t *testing.T, text, letters string) {
		if len(letters) > 6 || strings.Trim(letters, "nfbdghirMVsk123,.") != "" {
			t.Skip()
		}
		args := []string{"sort"}
		if letters != "" {
			args = append(args, "-"+letters)
		}
		r := cmdtest.Run(t, Commands, ".", text, args...)
		if r.Code == 2 {
			t.Skip() // options that make no sense
		}
		in := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		out := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
		slices.Sort(in)
		sorted := slices.Sorted(slices.Values(out))
		if text == "" {
			in, sorted = nil, nil
			if r.Stdout != "" {
				t.Fatal("lines out of nothing")
			}
		}
		if !slices.Equal(in, sorted) {
			t.Fatalf("%q became %q", text, r.Stdout)
		}
		if c := cmdtest.Run(t, Commands, ".", r.Stdout, append(args, "-c")...); c.Code != 0 {
			t.Fatalf("not in order: %q: %s", r.Stdout, c.Stderr)
		}
	})
}

// FuzzPatchOfDiff: a patch made by diff gives the other file, in every format and backwards.
func FuzzPatchOfDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc", uint8(0))
	f.Add("", "a\n", uint8(1))
	f.Add("a\na\nb\na\n", "b\na\na\nc\na", uint8(2))
	f.Fuzz(func(t *testing.T, a, b string, format uint8) {
		if a == b || strings.ContainsRune(a+b, 0) || strings.Contains(a+b, "\r") {
			t.Skip()
		}
		dir := t.TempDir()
		write(t, dir, map[string]string{"a": a, "b": b, "x": a, "y": b})
		style := []string{"-U1", "-u", "-c", "--normal", "-U0", "-ud"}[format%6]
		p := run(t, dir, "", 1, "diff", style, "a", "b")
		// An empty file would be removed or made: that is another test.
		if a != "" {
			run(t, dir, p, 0, "patch", "--binary", "x")
			if got := read(t, dir, "x"); got != b {
				t.Fatalf("patch gave %q, not %q:\n%s", got, b, p)
			}
		}
		if b != "" {
			run(t, dir, p, 0, "patch", "--binary", "-R", "y")
			if got := read(t, dir, "y"); got != a {
				t.Fatalf("patch -R gave %q, not %q:\n%s", got, a, p)
			}
		}
	})
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// FuzzTailOfHead: head and tail cut a stream in two at the same place, in blocks of any size.
func FuzzTailOfHead(f *testing.F) {
	f.Add("a\nb\nc", 2)
	f.Add(strings.Repeat("x\n", 50000), 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 1 || n > 1<<30 {
			t.Skip()
		}
		for _, unit := range []string{"-n", "-c"} {
			first := run(t, ".", text, 0, "head", unit, fmt.Sprint(n))
			rest := run(t, ".", text, 0, "tail", unit, fmt.Sprintf("+%d", n+1))
			if first+rest != text {
				t.Fatalf("%s %d: %q and %q", unit, n, first, rest)
			}
			most := run(t, ".", text, 0, "head", unit, fmt.Sprint(-n))
			last := run(t, ".", text, 0, "tail", unit, fmt.Sprint(n))
			if most+last != text {
				t.Fatalf("%s -%d: %q and %q", unit, n, most, last)
			}
		}
	})
}

// FuzzSplitAndCat: the pieces put together are the whole.
func FuzzSplitAndCat(f *testing.F) {
	f.Add("a\nb\nc", uint8(2), uint8(0))
	f.Add(strings.Repeat("some text\n", 40), uint8(9), uint8(4))
	f.Fuzz(func(t *testing.T, text string, n, mode uint8) {
		if n == 0 || len(text) > 600 {
			t.Skip()
		}
		dir := t.TempDir()
		how := [][2]string{{"-l", ""}, {"-b", ""}, {"-C", ""}, {"-n", ""}, {"-n", "l/"}}[mode%5]
		run(t, dir, text, 0, "split", "-a", "3", how[0], how[1]+fmt.Sprint(n))
		names, _ := filepath.Glob(dir + "/x*")
		whole := ""
		for _, name := range names {
			whole += read(t, dir, filepath.Base(name))
		}
		if whole != text {
			t.Fatalf("split %s %s%d: %q became %q", how[0], how[1], n, text, whole)
		}
	})
}

// TestRandomInputsAsTheRealTools compares on inputs nobody thought of.
func TestRandomInputsAsTheRealTools(t *testing.T) {
	if testing.Short() {
		t.Skip("runs other programs")
	}
	rounds := 40
	if os.Getenv("TEXT_ROUNDS") != "" {
		fmt.Sscan(os.Getenv("TEXT_ROUNDS"), &rounds)
	}
	r := rand.New(rand.NewPCG(7, 11))
	lines := func(n, kinds int) string {
		var b strings.Builder
		for range n {
			switch k := r.IntN(kinds); {
			case k%7 == 6:
				fmt.Fprintf(&b, "%d %c.%d\n", r.IntN(200)-100, 'a'+r.IntN(4), r.IntN(30))
			default:
				fmt.Fprintf(&b, "%c%d\t x\n", 'a'+k%5, k)
			}
		}
		s := b.String()
		if r.IntN(4) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	change := func(s string) string {
		list := strings.SplitAfter(s, "\n")
		for range r.IntN(12) {
			if i := r.IntN(len(list)); r.IntN(2) == 0 {
				list = slices.Delete(list, i, min(len(list), i+1+r.IntN(3)))
			} else {
				list = slices.Insert(list, i, list[r.IntN(len(list))], "new\n")
			}
			if len(list) == 0 {
				list = []string{"z\n"}
			}
		}
		return strings.Join(list, "")
	}
	commands := []string{
		"diff a b", "diff -U1 --label a --label b a b", "diff -u --label a --label b a b", "diff -c --label a --label b a b",
		"diff -wB a b", "diff -e a b", "diff -y -W 40 a b", "cmp -l a b", "comm --nocheck-order a b",
		"sort -k2,2 a", "sort -n a", "sort -V a", "sort -h a", "sort -k2.2n -k1,1r a", "sort -fu a", "sort -t . -k 2n a", "sort -sb -k 2 a",
		"sort -m a b", "uniq -c a", "uniq -D -f 1 a", "cut -f2 a", "cut -c 2-4,6- a", "cut -d . -f 2 -s a", "paste -d ,: a b a",
		"fold -w 7 -s a", "fmt -w 30 a", "expand -t 3 a", "unexpand -a -t 3 a", "unexpand -a a", "column a", "column -t a", "wc a b", "tac a", "nl -ba a",
		"od -c a", "od -t x2u1 a", "xxd a", "hexdump a", "base64 -w 11 a", "cksum a b", "sum a", "tail -n 3 a b", "head -n -2 a b", "join --nocheck-order a b",
		"split -n l/4 a", "csplit -s a 2", "shuf --random-source=b a", "fmt -s a", "tail -c 15 a", "strings -n 2 a",
	}
	for i := range rounds {
		a := lines(r.IntN(40)+1, 3+r.IntN(40))
		if i%10 == 9 {
			a = lines(1500, 400)
		}
		b := change(a)
		for _, line := range commands {
			argv := strings.Fields(line)
			path, err := exec.LookPath(argv[0])
			if err != nil {
				if os.Getenv("REQUIRE_SHELLS") == "1" {
					t.Fatalf("%s is needed and not there", argv[0])
				}
				continue
			}
			dir := t.TempDir()
			write(t, dir, map[string]string{"a": a, "b": b})
			c := exec.Command(path, argv[1:]...)
			c.Dir, c.Env = dir, []string{"PATH=/usr/bin:/bin"}
			want, _ := c.Output()
			got := cmdtest.Run(t, Commands, dir, "", argv...)
			if got.Stdout != string(want) || got.Code != c.ProcessState.ExitCode() {
				t.Errorf("%s: a=%q b=%q\ngot %d\n%swant %d\n%s", line, a, b, got.Code, got.Stdout, c.ProcessState.ExitCode(), want)
				commands = slices.DeleteFunc(slices.Clone(commands), func(s string) bool { return s == line })
			}
		}
	}
}

func benchmarkInput() string {
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for range 200000 {
		fmt.Fprintf(&b, "%d\tuser%d\tsome text, and more\n", r.IntN(1000000), r.IntN(5000))
	}
	return b.String()
}

func BenchmarkLines200000(b *testing.B) {
	in := benchmarkInput()
	for _, line := range []string{
		"sort", "sort -n", "sort -k2,2 -k1,1n", "sort -u -k2,2", "wc", "wc -l", "cut -f2", "cut -c1-5", "tr a-z A-Z", "tr -d e", "uniq -c",
		"head -n -1", "tail -n 1000", "fold -w 20", "nl", "tac", "sha256sum", "base64",
	} {
		b.Run(line, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				run(b, ".", in, 0, strings.Fields(line)...)
			}
		})
	}
}
