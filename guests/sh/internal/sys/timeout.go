package sys

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// timeout ends its command by a context with the signal as cause. A command cannot refuse to end, so the second signal of
// -k has nothing left to do, and there is neither foreground nor background: both options are taken and change nothing.
func timeout(ctx context.Context, c *cmd.Call) int {
	given, args, err := options(
		cmd.Opt{Short: 's', Long: "signal", Arg: cmd.Value}, cmd.Opt{Short: 'k', Long: "kill-after", Arg: cmd.Value},
		cmd.Opt{Long: "foreground"}, cmd.Opt{Long: "preserve-status"}, cmd.Opt{Short: 'v', Long: "verbose"},
	).ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, 125)
	}
	if help(c, given, "[OPTION] DURATION COMMAND [ARG]...\n[OPTION]") {
		return 0
	}
	sig, preserve, verbose := cmd.SIGTERM, false, false
	for _, g := range given {
		switch g.Key {
		case "s":
			s, ok := signalOf(g.Value)
			if !ok {
				return c.BadUsage(fmt.Errorf("%s: invalid signal", cmd.Quote(g.Value)), 125)
			}
			sig = s
		case "k":
			if _, ok := duration(g.Value); !ok {
				return c.BadUsage(fmt.Errorf("invalid time interval %s", cmd.Quote(g.Value)), 125)
			}
		case "preserve-status":
			preserve = true
		case "v":
			verbose = true
		}
	}
	if len(args) < 2 {
		return tryHelp(c, 125)
	}
	d, ok := duration(args[0])
	if !ok {
		return c.BadUsage(fmt.Errorf("invalid time interval %s", cmd.Quote(args[0])), 125)
	}
	if d == 0 || d == math.MaxInt64 || sig == 0 {
		return start(ctx, c, c, args[1:])
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fired := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		close(fired)
		cancel(sig)
	})
	code := startLimited(ctx, limited, c, args[1:])
	if timer.Stop() {
		return code
	}
	<-fired
	if verbose {
		c.Errorf("sending signal %s to command %s", signalName(sig), cmd.Quote(args[1]))
	}
	if preserve || sig == cmd.SIGKILL {
		return code
	}
	return 124
}

// startLimited is start with a context that may end before the caller's own.
func startLimited(ctx, limited context.Context, c *cmd.Call, argv []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			s, ok := p.(cmd.Signal)
			if !ok || ctx.Err() != nil {
				panic(p)
			}
			code = s.Code()
		}
	}()
	return start(limited, c, c, argv)
}

var signalNames = [...]string{"EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT",
	"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS"}

func signalOf(s string) (cmd.Signal, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return cmd.Signal(n), 0 <= n && n < len(signalNames)
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for i, name := range signalNames {
		if s == name {
			return cmd.Signal(i), true
		}
	}
	return 0, false
}

func signalName(s cmd.Signal) string {
	if 0 <= s && int(s) < len(signalNames) {
		return signalNames[s]
	}
	return strconv.Itoa(int(s))
}

// nice runs a command. The guest has one thread and no priorities: any niceness is the same, and the current one is 0.
func nice(ctx context.Context, c *cmd.Call) int {
	args := c.Args
	// nice -5 CMD and nice --5 CMD are old spellings of -n 5 and -n -5.
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(strings.TrimLeft(args[0][1:], "+-"), "0123456789") == "" && args[0] != "--" {
		args = append([]string{"-n", args[0][1:]}, args[1:]...)
	}
	given, args, err := options(cmd.Opt{Short: 'n', Long: "adjustment", Arg: cmd.Value}).ParseLeading(args)
	if err != nil {
		return c.BadUsage(err, 125)
	}
	if help(c, given, "[OPTION] [COMMAND [ARG]...]") {
		return 0
	}
	for _, g := range given {
		if _, err := strconv.Atoi(g.Value); err != nil {
			c.Errorf("invalid adjustment %s", cmd.Quote(g.Value))
			return 125
		}
	}
	if len(args) == 0 {
		if len(given) > 0 {
			return c.BadUsage(errors.New("a command must be given with an adjustment"), 125)
		}
		fmt.Fprintln(c.Stdout, 0)
		return 0
	}
	return start(ctx, c, c, args)
}

// nohup runs a command. No terminal is there to hang up, so its streams stay what they are, as nohup itself leaves them
// when they are no terminal.
func nohup(ctx context.Context, c *cmd.Call) int {
	given, args, err := common.ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, 125)
	}
	if help(c, given, "COMMAND [ARG]...\nOPTION") {
		return 0
	}
	if len(args) == 0 {
		return c.BadUsage(errors.New("missing operand"), 125)
	}
	return start(ctx, c, c, args)
}

// timeCommand is the program time. The guest's clock tells real time only: the CPU time of one command among the others
// of its process is not known, and is shown as the real time for user and zero for the system.
func timeCommand(ctx context.Context, c *cmd.Call) int {
	given, args, err := cmd.Opts{
		{Short: 'p', Long: "portability"}, {Short: 'f', Long: "format", Arg: cmd.Value}, {Short: 'o', Long: "output", Arg: cmd.Value},
		{Short: 'a', Long: "append"}, {Short: 'v', Long: "verbose"}, {Short: 'q', Long: "quiet"}, {Short: 'V', Long: "version"}, {Long: "help"},
	}.ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, 125)
	}
	format, output, flags := "", "", os.O_WRONLY|os.O_CREATE|os.O_TRUNC
	for _, g := range given {
		switch g.Key {
		case "p":
			format = "real %e\nuser %U\nsys %S"
		case "f":
			format = g.Value
		case "o":
			output = g.Value
		case "a":
			flags = flags&^os.O_TRUNC | os.O_APPEND
		case "v":
			format = "\tCommand being timed: \"%C\"\n\tUser time (seconds): %U\n\tSystem time (seconds): %S\n" +
				"\tElapsed (wall clock) time (h:mm:ss or m:ss): %E\n\tExit status: %x"
		case "V":
			fmt.Fprintln(c.Stdout, "time (exthost, compatible with GNU Time) 1.9")
			return 0
		case "help":
			help(c, given, "[OPTION]... COMMAND [ARG]...")
			return 0
		}
	}
	if len(args) == 0 {
		fmt.Fprintf(c.Stderr, "Usage: time [-apqvV] [-f format] [-o file] [--append] [--format=format] [--output=file] [--portability] [--quiet] [--verbose] [--version] [--help] command [arg...]\n")
		return 125
	}
	out := c.Stderr
	if output != "" {
		f, err := c.OpenFile(output, flags, 0o666)
		if err != nil {
			return c.Fail(output, err)
		}
		defer f.Close()
		out = f
	}
	began := time.Now()
	code := start(ctx, c, c, args)
	took := time.Since(began)
	if format == "" {
		format = "%Uuser %Ssystem %Eelapsed %PCPU"
	}
	seconds := took.Seconds()
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if (format[i] != '%' && format[i] != '\\') || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		escape := format[i] == '\\'
		i++
		switch {
		case escape && format[i] == 'n':
			b.WriteByte('\n')
		case escape && format[i] == 't':
			b.WriteByte('\t')
		case escape && format[i] == '\\', !escape && format[i] == '%':
			b.WriteByte(format[i])
		case escape:
			b.WriteString("?\\" + format[i:i+1])
		case format[i] == 'e':
			fmt.Fprintf(&b, "%.2f", seconds)
		case format[i] == 'U':
			fmt.Fprintf(&b, "%.2f", seconds)
		case format[i] == 'S':
			b.WriteString("0.00")
		case format[i] == 'P':
			b.WriteString("100%")
		case format[i] == 'E':
			if h := int(seconds) / 3600; h > 0 {
				fmt.Fprintf(&b, "%d:%02d:%02d", h, int(seconds)/60%60, int(seconds)%60)
			} else {
				fmt.Fprintf(&b, "%d:%05.2f", int(seconds)/60, math.Mod(seconds, 60))
			}
		case format[i] == 'C':
			b.WriteString(strings.Join(args, " "))
		case format[i] == 'x':
			b.WriteString(strconv.Itoa(code))
		default:
			b.WriteString("0") // memory, faults and switches are not counted
		}
	}
	fmt.Fprintln(out, b.String())
	return code
}
