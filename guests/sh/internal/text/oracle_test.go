package text

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mvdan.cc/sh/v3/shell"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

var update = flag.Bool("update", false, "record what the tools of the machine answer as what is wanted")

// answer is what a command left behind.
type answer struct {
	stdout, stderr string
	code           int
	files          map[string]string // those that it wrote
}

// fixtures are the files that commands find.
var fixtures = sync.OnceValue(func() map[string]string {
	files := made()
	names, err := filepath.Glob("testdata/files/*")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		files[filepath.Base(name)] = string(data)
	}
	return files
})

func made() map[string]string {
	var numbers, long strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		fmt.Fprintf(&numbers, "%d\n", r.IntN(40)-10)
	}
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d of a longer file\n", i+1)
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	text := "The quick brown fox jumps over the lazy dog. It barked!  And then (as dogs do) it slept.\n"
	return map[string]string{
		"abc":     "apple\nbanana\ncherry\n",
		"open":    "apple\nbanana\ncherry",
		"mixed":   "banana\nApple\ncherry\napple\nBanana\n\n  lead\n\ttab\n_x\n10\n9\n-1\n",
		"numbers": numbers.String(),
		"floats":  "1.5\n-2.25\n1e3\n0x10\nnan\ninf\n-inf\nabc\n\n.5\n1.50\n+3\n1e-2\n",
		"human":   "1K\n2M\n1G\n500\n1.5K\n-3K\n10k\n0\nx\n1023\n900M\n",
		"months":  "mar x\nJan\nDEC\n  feb\nfoo\nmay\nAug\n",
		"version": "v1.10\nv1.9\nv1.2.3\nv1.2\nv1.2-rc1\na.tar.gz\na-1.tar.gz\na-10.tar.gz\na-2.tar.gz\n.hidden\n..\n.\n1.0~rc1\n1.0\nfile001\nfile1\nfile01\n",
		"table":   "alice 30 paris\nbob 5 london\ncarol 30 berlin\ndave 100 \neve  7 rome\n",
		"colon":   "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:\nnobody\nu:p:10:5:A B:/h:/bin/sh\n",
		"csv":     "name,qty,price\napple,3,1.20\npear,,0.5\nfig,10,\n\nlast,1,2,extra\n",
		"dups":    "a\na\nb\nB\nb\nc\n\n\nd d\nd  d\nx 1\ny 1\nz 2\n",
		"tabs":    "a\tb\n\tc\n        d\n    e\n  \t f\nx       y       z\nab cd   ef      gh  ij\n1234567 8\n12345678 9\n a  b   c\td\n",
		"prose":   strings.Repeat(text, 6) + "\n  Indented paragraph with some words that go on and on and on until the line is too long for one.\n  Second line.\n\n* item one which is long enough to be wrapped around at some point I think\n  and goes on\n\nshort\n",
		"bytes":   string(all),
		"zeros":   strings.Repeat("\x00", 100) + "x" + strings.Repeat("\x00", 64),
		"empty":   "",
		"long":    long.String(),
		"hundred": long.String()[:strings.Index(long.String(), "line 121 ")],
		"wide":    strings.Repeat("0123456789", 30) + "\n" + strings.Repeat("ab cd\tef ", 20) + "\n\b\bxy\r12\n",
		"utf8":    "héllo wörld\n日本語 テキスト\nna\u00efve\u00a0x\n\xff\xfe bad\n",
		"crlf":    "one\r\ntwo\r\n\r\nthree\r\n",
		"left":    "1 a\n2 b\n2 bb\n4 d\n6 f\n",
		"right":   "1 A\n2 B\n3 C\n4 D\n4 DD\n7 G\n",
		"unsort":  "3 c\n1 a\n2 b\n",
		"old":     "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n",
		"new":     "one\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine and a half\nten\neleven\ntwelve\nthirteen\n",
		"spacey":  "one \n two\nthree\t\nfour\n\nfive\n",
		"nospace": "one\ntwo\nthree\nFOUR\nfive\n",
		"nl":      "head\n\\:\\:\\:\nh1\n\\:\\:\nb1\n\nb2\n\n\nb3\n\\:\nf1\n",
		"d1/same": "same\n", "d2/same": "same\n", "d1/diff": "a\nb\n", "d2/diff": "a\nc\n", "d1/only1": "x\n", "d2/only2": "y\n",
		"d1/sub/deep": "1\n", "d2/sub/deep": "2\n", "d1/sub2/f": "q\n",
		"nulls": "b\x00a\x00c\x00a\x00",
		"c.old": "int main(void)\n{\n\tint a = 1;\n\tint b = 2;\n\treturn a + b;\n}\n\nstatic int f(int x)\n{\n\tint y;\n\ty = x;\n\ty++;\n\ty++;\n\treturn y;\n}\n",
		"c.new": "int main(void)\n{\n\tint a = 1;\n\tint b = 3;\n\treturn a + b;\n}\n\nstatic int f(int x)\n{\n\tint y;\n\ty = x;\n\ty++;\n\ty++;\n\treturn y + 1;\n}\n",
	}
}

// pool is a folder with the fixtures in it, made anew once a command has changed something there.
type pool struct {
	root string
	n    int
	dir  string
}

func (p *pool) get(t testing.TB) string {
	if p.dir == "" {
		p.n++
		p.dir = filepath.Join(p.root, strconv.Itoa(p.n))
		place(t, p.dir)
	}
	return p.dir
}

func (p *pool) put(files map[string]string) {
	if len(files) > 0 {
		p.dir = ""
	}
}

// placed is when the fixtures were written: what has another time was written by a command.
var placed = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// place makes the fixtures in dir.
func place(t testing.TB, dir string) {
	for name, data := range fixtures() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, placed, placed); err != nil {
			t.Fatal(err)
		}
	}
}

// written are the files in dir that are not as place made them; nil for those that are gone.
func written(t testing.TB, dir string) map[string]string {
	was := maps.Clone(fixtures())
	now := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		old, ok := was[name]
		delete(was, name)
		if ok && info.ModTime().Equal(placed) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && (!ok || old != string(data)) {
			now[name] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range was {
		now[name] = "(removed)"
	}
	return now
}

// parseCommand takes "LANG=C.UTF-8 tool args < file" apart.
func parseCommand(t testing.TB, line string) (env, argv []string, stdin string) {
	fields, err := shell.Fields(line, func(string) string { return "" })
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], "LANG=") {
		env, fields = append(env, fields[0]), fields[1:]
	}
	if n := len(fields); n > 2 && fields[n-2] == "@" {
		stdin, fields = fixtures()[fields[n-1]], fields[:n-2]
	}
	return env, fields, stdin
}

func ours(t testing.TB, p *pool, line string) answer {
	env, argv, stdin := parseCommand(t, line)
	dir := p.get(t)
	table := maps.Clone(Commands)
	table["run"] = func(ctx context.Context, c *cmd.Call) int {
		c.Environ = append(c.Environ, env...)
		c.Name, c.Args = c.Args[0], c.Args[1:]
		return Commands[c.Name](ctx, c)
	}
	if Commands[argv[0]] == nil {
		t.Fatalf("%s: no such command", argv[0])
	}
	r := cmdtest.Run(t, table, dir, stdin, append([]string{"run"}, argv...)...)
	files := written(t, dir)
	p.put(files)
	return answer{r.Stdout, r.Stderr, r.Code, files}
}

func theirs(t testing.TB, p *pool, line string) (answer, bool) {
	env, argv, stdin := parseCommand(t, line)
	if testing.Short() {
		return answer{}, false
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		if os.Getenv("REQUIRE_SHELLS") == "1" {
			t.Fatalf("%s is needed and not there", argv[0])
		}
		return answer{}, false
	}
	dir := p.get(t)
	c := exec.Command(path, argv[1:]...)
	c.Args[0] = argv[0]
	c.Dir = dir
	c.Env = append([]string{"HOME=" + dir, "PATH=/usr/bin:/bin", "TZ=UTC"}, env...)
	c.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	files := written(t, dir)
	p.put(files)
	return answer{out.String(), errs.String(), c.ProcessState.ExitCode(), files}, true
}

// record is the form of an answer in testdata: a line of text each, quoted.
func (a answer) record() string {
	var b strings.Builder
	put := func(what, text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&b, "%s %s\n", what, strconv.QuoteToASCII(line))
		}
	}
	put("out", a.stdout)
	if a.code != 0 {
		fmt.Fprintf(&b, "code %d\n", a.code)
	}
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		fmt.Fprintf(&b, "file %s\n", strconv.QuoteToASCII(name))
		put("has", a.files[name])
	}
	return b.String()
}

// TestAsTheRealTools compares with recorded answers of the real tools, and those with the tools where they are there.
// Each command is a line that starts with "$ "; "@ FILE" at its end is its input, a "#" before it says that the real
// tool of a machine may have another answer.
func TestAsTheRealTools(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	root := t.TempDir()
	own, real := &pool{root: filepath.Join(root, "own")}, &pool{root: filepath.Join(root, "real")}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for i, text := range strings.Split("\n"+string(data), "\n$ ") {
			if i == 0 {
				out.WriteString(strings.TrimPrefix(text, "\n"))
				continue
			}
			line, want, _ := strings.Cut(text, "\n")
			if want != "" && !strings.HasSuffix(want, "\n") {
				want += "\n"
			}
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt")+"/"+line, func(t *testing.T) {
				theirs, ok := theirs(t, real, line)
				switch {
				case ok && *update:
					want = theirs.record()
				case ok && theirs.record() != want:
					t.Errorf("recorded answer is not that of the real tool:\n%sbut\n%s", want, theirs.record())
				}
				ours := ours(t, own, line)
				if got := ours.record(); got != want {
					t.Errorf("got\n%swant\n%s(%q, %q)", got, want, ours.stderr, theirs.stderr)
				}
				if ok && testing.Verbose() && ours.stderr != theirs.stderr {
					t.Logf("stderr %q\nwant   %q", ours.stderr, theirs.stderr)
				}
			})
			out.WriteString("$ " + line + "\n" + want)
		}
		if *update {
			if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
