package sys

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func run(t testing.TB, argv ...string) cmdtest.Result {
	t.Helper()
	return cmdtest.Run(t, Commands, t.TempDir(), "", argv...)
}

func TestDateTakesBSDSpellings(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"-r with a number is seconds", "-r 1700000000 +%F", "2023-11-14"},
		{"-j -f reads by a format", "-j -f %Y-%m-%d 2024-03-05 +%Y/%m/%d", "2024/03/05"},
		{"the letters may be bundled", "-juf %Y-%m-%dT%H:%M:%S 2024-03-05T10:20:30 +%s", "1709634030"},
		{"-f without -j is told by the percent sign", "-f %Y-%m-%d 2024-03-05 +%m", "03"},
		{"a zone in the input counts", "-j -f %Y-%m-%dT%H:%M:%S%z 2024-03-05T10:20:30+0200 +%H:%M", "08:20"},
		{"%s reads seconds", "-j -f %s 86400 +%F", "1970-01-02"},
		{"names of months are read", "-j -f %d%b%Y 5mar2024 +%F", "2024-03-05"},
		{"-v+1d adds a day", "-r 1709164800 -v+1d +%F", "2024-03-01"},
		{"-v-1d takes one", "-r 1709251200 -v-1d +%F", "2024-02-29"},
		{"-v+1m stays within the month", "-r 1706659200 -v+1m +%F", "2024-02-29"},
		{"-v-1y stays within the month", "-r 1709164800 -v-1y +%F", "2023-02-28"},
		{"several -v go in order", "-r 1700000000 -v17H -v0M -v0S +%T", "17:00:00"},
		{"-v1d is the first", "-r 1700000000 -v1d -v+1m -v-1d +%F", "2023-11-30"},
		{"-v+1w adds a week", "-r 1700000000 -v+1w +%F", "2023-11-21"},
		{"-v+mon is the next Monday", "-r 1700000000 -v+mon +%F", "2023-11-20"},
		{"-v-mon is the last Monday", "-r 1700000000 -v-mon +%F", "2023-11-13"},
		{"-v feb names a month", "-r 1700000000 -vfeb +%F", "2023-02-14"},
		{"-v before -j -f adjusts the input", "-j -v+2d -f %Y-%m-%d 2024-02-28 +%F", "2024-03-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, append([]string{"date"}, strings.Fields(c.args)...)...)
			if got.Stdout != c.want+"\n" || got.Code != 0 {
				t.Errorf("date %s: %q, exit code %d, %s; want %q", c.args, got.Stdout, got.Code, got.Stderr, c.want)
			}
		})
	}
	for _, args := range []string{"-v13X", "-vfoo", "-v+", "-v32d", "-j -f %Y x +%s", "-j -f %Y-%m-%d 2024-02-30 +%F", "-j 2024-02 +%s"} {
		if got := run(t, append([]string{"date"}, strings.Fields(args)...)...); got.Code != 1 || got.Stdout != "" || got.Stderr == "" {
			t.Errorf("date %s: %+v; want a refusal", args, got)
		}
	}
}

func TestDateAnswersTheFirstOfTwoSpellings(t *testing.T) {
	want := time.Now().UTC().AddDate(0, 0, -1).Format("2006-01-02") + "\n"
	for _, args := range [][]string{{"-d", "yesterday", "+%F"}, {"-v-1d", "+%F"}, {"-d", "1 day ago", "+%F"}, {"--date=-1 day", "+%F"}} {
		if got := run(t, append([]string{"date"}, args...)...); got.Stdout != want || got.Code != 0 {
			t.Errorf("date %q: %+v, want %q", args, got, want)
		}
	}
}

func TestDatePrefersAFileToSeconds(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "100")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2020, 5, 6, 7, 8, 9, 0, time.UTC)
	if err := os.Chtimes(name, when, when); err != nil {
		t.Fatal(err)
	}
	if got := cmdtest.Run(t, Commands, dir, "", "date", "-r", "100", "+%F %T"); got.Stdout != "2020-05-06 07:08:09\n" {
		t.Errorf("%+v", got)
	}
}

func TestDateDoesNotSetTheClock(t *testing.T) {
	for _, args := range [][]string{{"-s", "2020-01-01 00:00"}, {"010100002020"}} {
		if got := run(t, append([]string{"date"}, args...)...); got.Code != 1 || !strings.Contains(got.Stderr, "cannot set date: Operation not permitted") {
			t.Errorf("date %q: %+v", args, got)
		}
	}
}

// The relative words are compared with what package time says.
func TestDateUnderstandsRelativeWords(t *testing.T) {
	now := time.Date(2024, 1, 31, 15, 4, 5, 6, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"now": "2024-01-31 15:04:05", "today": "2024-01-31 15:04:05", "yesterday": "2024-01-30 15:04:05", "tomorrow": "2024-02-01 15:04:05",
		"next friday": "2024-02-02 00:00:00", "last monday": "2024-01-29 00:00:00", "wednesday": "2024-01-31 00:00:00", "next wednesday": "2024-02-07 00:00:00",
		"3 days ago": "2024-01-28 15:04:05", "+1 week": "2024-02-07 15:04:05", "-2 hours": "2024-01-31 13:04:05", "1 month": "2024-03-02 15:04:05",
		"last month": "2023-12-31 15:04:05", "next year": "2025-01-31 15:04:05", "fortnight ago": "2024-01-17 15:04:05", "10pm": "2024-01-31 22:00:00",
		"tomorrow 9:30": "2024-02-01 09:30:00", "5 Jan": "2024-01-05 00:00:00", "Jan 5 2023": "2023-01-05 00:00:00", "": "2024-01-31 00:00:00",
		"90 min ago": "2024-01-31 13:34:05", "third friday": "2024-02-16 00:00:00", "this friday": "2024-02-02 00:00:00",
	} {
		got, ok := parseDate(text, now)
		if !ok || got.Format("2006-01-02 15:04:05") != want {
			t.Errorf("%q: %v %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"noon", "tomorrow noon", "foo", "2024-02-30", "25:00", "10:00 11:00", "monday tuesday", "13pm"} {
		if got, ok := parseDate(text, now); ok {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
}

func TestZonesAreThoseOfTheDatabase(t *testing.T) {
	if n := len(zones().names); n < 590 {
		t.Fatalf("%d names", n)
	}
	for name := range zones().names {
		l := zone(name)
		if l == time.UTC && name != "UTC" {
			t.Errorf("%s is not read", name)
		}
	}
	for rule, want := range map[string]string{"CET-1CEST,M3.5.0,M10.5.0/3": "CEST 7200", "EST5": "EST -18000", "<-03>3": "-03 -10800", "EST5EDT": "EDT -14400", "Foo/Zone": "Foo 0", "bad": "bad 0"} {
		name, offset := time.Date(2024, 7, 1, 0, 0, 0, 0, zone(rule)).Zone()
		if got := fmt.Sprint(name, " ", offset); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
}

func TestTimeoutEndsItsCommand(t *testing.T) {
	began := time.Now()
	if got := run(t, "timeout", "0.05", "sleep", "10"); got.Code != 124 {
		t.Errorf("%+v", got)
	}
	if got := run(t, "timeout", "-s", "KILL", "0.05", "sleep", "10"); got.Code != 137 {
		t.Errorf("%+v", got)
	}
	if got := run(t, "timeout", "--preserve-status", "-s", "INT", "0.05", "sleep", "10"); got.Code != 130 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestTimeoutPassesItsOwnEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cmd.SIGINT) })
	c := &cmd.Call{Name: "timeout", Args: []string{"10", "sleep", "10"}, Stderr: &strings.Builder{}}
	c.Shell = inShell{}
	if code := cmd.Run(ctx, timeout, c); code != cmd.SIGINT.Code() {
		t.Errorf("exit code %d", code)
	}
}

type inShell struct{ cmd.Shell }

func (inShell) Find(*cmd.Call, string) (string, bool) { return "", true }
func (inShell) Run(ctx context.Context, c *cmd.Call, child cmd.Child) int {
	next := *c
	next.Name, next.Args = child.Argv[0], child.Argv[1:]
	return cmd.Run(ctx, Commands[next.Name], &next)
}

func TestMissingCommandsAreNamedAsGNUDoes(t *testing.T) {
	for argv, want := range map[string]string{
		"env nosuch": "env: 'nosuch': No such file or directory\n", "timeout 1 nosuch": "timeout: failed to run command 'nosuch': No such file or directory\n",
		"nice nosuch": "nice: 'nosuch': No such file or directory\n",
	} {
		if got := run(t, strings.Fields(argv)...); got.Code != 127 || got.Stderr != want {
			t.Errorf("%s: %+v", argv, got)
		}
	}
}

func TestGuestIsOneUserOnOneMachine(t *testing.T) {
	for argv, want := range map[string]string{
		"id": "uid=1000(guest) gid=1000(guest) groups=1000(guest)", "id -u": "1000", "id -un": "guest", "id -gn guest": "guest", "whoami": "guest", "groups": "guest",
		"uname": "Linux", "uname -sm": "Linux x86_64", "uname -n": "exthost", "hostname": "exthost", "arch": "x86_64", "nproc": "1", "nproc --all --ignore=5": "1", "uname -o": "GNU/Linux",
		"getconf _NPROCESSORS_ONLN": "1",
	} {
		if got := run(t, strings.Fields(argv)...); got.Stdout != want+"\n" || got.Code != 0 {
			t.Errorf("%s: %+v, want %q", argv, got, want)
		}
	}
	if got := run(t, "id", "root"); got.Code != 1 || got.Stderr != "id: 'root': no such user\n" {
		t.Errorf("%+v", got)
	}
	if got := run(t, "which", "date", "nosuch", "env"); got.Stdout != "/usr/bin/date\n/usr/bin/env\n" || got.Code != 1 {
		t.Errorf("%+v", got)
	}
}

func TestUUIDsHaveTheirVersion(t *testing.T) {
	for args, want := range map[string]byte{"": '4', "-r": '4', "-t": '1', "-m -n @dns -N example.com": '3', "-s -n @dns -N example.com": '5'} {
		got := run(t, append([]string{"uuidgen"}, strings.Fields(args)...)...)
		if len(got.Stdout) != 37 || got.Stdout[14] != want || !strings.ContainsRune("89ab", rune(got.Stdout[19])) {
			t.Errorf("uuidgen %s: %+v", args, got)
		}
	}
	if got := run(t, "uuidgen", "-s", "-n", "@dns", "-N", "example.com"); got.Stdout != "cfbff0d1-9375-5685-968c-48ce8b15ae17\n" {
		t.Errorf("%+v", got)
	}
}

func TestVersionTellsGNUFromBSD(t *testing.T) {
	for _, name := range []string{"date", "env", "sleep", "id", "uname", "timeout", "expr", "numfmt"} {
		if got := run(t, name, "--version"); got.Code != 0 || !strings.Contains(got.Stdout, "GNU") {
			t.Errorf("%s: %+v", name, got)
		}
		if got := run(t, name, "--help"); got.Code != 0 || !strings.HasPrefix(got.Stdout, "Usage: "+name) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestBCStaysWithinBounds(t *testing.T) {
	for name, c := range map[string][2]string{
		"endless recursion ends":         {"define f(x){return f(x)}\nf(1)\n5", "Function call too deep"},
		"deep nesting is a syntax error": {strings.Repeat("(", 5000) + "\n5", "too deeply nested"},
		"a power too large is refused":   {"9^999999999\n5", "exponent too large"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cmdtest.Run(t, Commands, t.TempDir(), c[0]+"\n", "bc")
			if got.Stdout != "5\n" || got.Code != 0 || !strings.Contains(got.Stderr, c[1]) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestBCEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cmd.SIGTERM) })
	c := &cmd.Call{Name: "bc", Stdin: strings.NewReader("while(1){i=i+1}\n"), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
	if code := cmd.Run(ctx, bc, c); code != cmd.SIGTERM.Code() {
		t.Errorf("exit code %d", code)
	}
}

// FuzzParseDate: no text panics, and what strftime wrote in an ISO form is read back as the same time.
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2024-01-31 10:00:00 +0200", "@1.5", "next friday", "TZ=\"Asia/Tokyo\" 10:00", "10 Sep 2023 2pm", "- 1 day", "(a) 1/2/3"} {
		f.Add(s, int64(1700000000), int64(5))
	}
	now := time.Date(2024, 1, 31, 15, 4, 5, 6, zone("Europe/Paris"))
	f.Fuzz(func(t *testing.T, s string, seconds, nanos int64) {
		if got, ok := parseDate(s, now); ok {
			strftime("%c %G %V %N %+F", got)
		}
		when := time.Unix(seconds%(1<<37), nanos%1e9).In(now.Location())
		if when.Year() < 1970 || when.Year() > 9999 {
			return
		}
		for _, format := range []string{"%FT%T.%N%:z", "%F %T.%N %z", "@%s.%N", "%a, %d %b %Y %T.%N %z"} {
			text := strftime(format, when)
			if got, ok := parseDate(text, now); !ok || !got.Equal(when) {
				t.Errorf("%q: %v %v, want %v", text, got, ok, when)
			}
		}
	})
}

// FuzzStrptime: what strftime wrote is read back.
func FuzzStrptime(f *testing.F) {
	f.Add("%Y-%m-%d %H", "2024-01-01 10", int64(1700000000))
	f.Fuzz(func(t *testing.T, format, s string, seconds int64) {
		now := time.Unix(0, 0).UTC()
		strptime(format, s, now)
		when := time.Unix(seconds%(1<<37), 0).UTC()
		if when.Year() < 1000 || when.Year() > 9999 {
			return
		}
		const full = "%Y-%m-%d %H:%M:%S"
		if got, rest, ok := strptime(full, strftime(full, when), now); !ok || rest != "" || !got.Equal(when) {
			t.Errorf("%v: %v %q %v", when, got, rest, ok)
		}
	})
}

// FuzzBC: no program panics, and the four operations agree with package big.
func FuzzBC(f *testing.F) {
	for _, s := range []string{"1+1", "define f(x){return x}\nf(2)", "a[1]=2;a[1]++", "scale=5;1/3", "\"x", "for(;;)break", "ibase=16;FF", "-a=3"} {
		f.Add(s, int64(17), int64(-5), uint8(3))
	}
	f.Fuzz(func(t *testing.T, program string, a, b int64, scale uint8) {
		calc := func(text string) string {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			var out strings.Builder
			c := &cmd.Call{Name: "bc", Stdin: strings.NewReader(text), Stdout: &out, Stderr: &strings.Builder{}, Environ: []string{"BC_LINE_LENGTH=0"}}
			cmd.Run(ctx, bc, c)
			return out.String()
		}
		if !strings.Contains(program, "^") { // powers may take their time
			calc(program)
		}
		x, y := big.NewInt(a), big.NewInt(b)
		program = fmt.Sprintf("a=%d;b=%d;a+b;a-b;a*b\n", a, b)
		want := fmt.Sprintf("%d\n%d\n%d\n", new(big.Int).Add(x, y), new(big.Int).Sub(x, y), new(big.Int).Mul(x, y))
		if b != 0 {
			q := new(big.Int).Quo(new(big.Int).Mul(x, pow10(int(scale))), y)
			digits := fmt.Sprintf("%0*d", int(scale)+1, new(big.Int).Abs(q))
			point := len(digits) - int(scale)
			whole := strings.TrimLeft(digits[:point], "0")
			text := whole + "." + digits[point:]
			if scale == 0 {
				text = digits
			}
			if q.Sign() == 0 {
				text = "0"
			} else if q.Sign() < 0 {
				text = "-" + text
			}
			want += text + "\n"
			program += fmt.Sprintf("scale=%d;a/b\n", scale)
		}
		if got := calc(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	})
}

func TestEveryCommandRefusesAnUnknownOption(t *testing.T) {
	table := maps.Clone(Commands)
	for name := range table {
		switch name {
		case "true", "false", "expr", "stty", "time", "getconf", "reset":
			continue // true and false take anything; the others have their own words
		}
		if got := run(t, name, "--no-such-option"); got.Code == 0 || got.Stderr == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
