package sys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

const (
	userName = "guest"
	userID   = "1000"
	hostName = "exthost"
	kernel   = "6.1.0-exthost"
	machine  = "x86_64"
)

func id(_ context.Context, c *cmd.Call) int {
	given, users, err := options(
		cmd.Opt{Short: 'a'}, cmd.Opt{Short: 'u', Long: "user"}, cmd.Opt{Short: 'g', Long: "group"}, cmd.Opt{Short: 'G', Long: "groups"},
		cmd.Opt{Short: 'n', Long: "name"}, cmd.Opt{Short: 'r', Long: "real"}, cmd.Opt{Short: 'z', Long: "zero"},
		cmd.Opt{Short: 'Z', Long: "context"},
	).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION]... [USER]...") {
		return 0
	}
	what, name, real, end := "", false, false, "\n"
	for _, g := range given {
		switch g.Key {
		case "u", "g", "G":
			if what != "" && what != g.Key {
				c.Errorf("cannot print \"only\" of more than one choice")
				return 1
			}
			what = g.Key
		case "n":
			name = true
		case "r":
			real = true
		case "z":
			end = "\x00"
		case "Z":
			c.Errorf("--context (-Z) works only on an SELinux-enabled kernel")
			return 1
		}
	}
	if what == "" && (name || real) {
		c.Errorf("cannot print only names or real IDs in default format")
		return 1
	}
	if what == "" && end == "\x00" {
		c.Errorf("option --zero not permitted in default format")
		return 1
	}
	text := "uid=1000(guest) gid=1000(guest) groups=1000(guest)"
	if what != "" {
		text = userID
		if name {
			text = userName
		}
	}
	code := 0
	if len(users) == 0 {
		users = []string{userName}
	}
	for _, u := range users {
		if u != userName && u != userID {
			c.Errorf("%s: no such user", cmd.Quote(u))
			code = 1
			continue
		}
		fmt.Fprint(c.Stdout, text+end)
	}
	return code
}

func whoami(_ context.Context, c *cmd.Call) int {
	code, done := noOperands(c, "[OPTION]...")
	if !done {
		fmt.Fprintln(c.Stdout, userName)
	}
	return code
}

func logname(_ context.Context, c *cmd.Call) int {
	code, done := noOperands(c, "[OPTION]")
	if !done {
		c.Errorf("no login name")
		return 1
	}
	return code
}

func groups(_ context.Context, c *cmd.Call) int {
	users, code, done := onlyCommon(c, "[OPTION]... [USERNAME]...", 1)
	if done {
		return code
	}
	if len(users) == 0 {
		fmt.Fprintln(c.Stdout, userName)
	}
	for _, u := range users {
		if u != userName {
			c.Errorf("%s: no such user", cmd.Quote(u))
			code = 1
			continue
		}
		fmt.Fprintf(c.Stdout, "%s : %s\n", u, userName)
	}
	return code
}

// users and who list who is logged in: nobody is.
func nobody(_ context.Context, c *cmd.Call) int {
	_, code, _ := onlyCommon(c, "[OPTION]... [FILE]", 1)
	return code
}

func who(_ context.Context, c *cmd.Call) int {
	given, _, err := options(
		cmd.Opt{Short: 'a', Long: "all"}, cmd.Opt{Short: 'b', Long: "boot"}, cmd.Opt{Short: 'd', Long: "dead"}, cmd.Opt{Short: 'H', Long: "heading"},
		cmd.Opt{Short: 'l', Long: "login"}, cmd.Opt{Short: 'm'}, cmd.Opt{Short: 'p', Long: "process"}, cmd.Opt{Short: 'q', Long: "count"},
		cmd.Opt{Short: 'r', Long: "runlevel"}, cmd.Opt{Short: 's', Long: "short"}, cmd.Opt{Short: 't', Long: "time"}, cmd.Opt{Short: 'T', Long: "mesg"},
		cmd.Opt{Short: 'w'}, cmd.Opt{Short: 'u', Long: "users"},
	).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION]... [ FILE | ARG1 ARG2 ]") {
		return 0
	}
	for _, g := range given {
		switch g.Key {
		case "q":
			fmt.Fprintln(c.Stdout, "# users=0")
			return 0
		case "H":
			fmt.Fprintln(c.Stdout, "NAME     LINE         TIME             COMMENT")
		}
	}
	return 0
}

func uname(_ context.Context, c *cmd.Call) int {
	given, operands, err := options(
		cmd.Opt{Short: 'a', Long: "all"}, cmd.Opt{Short: 's', Long: "kernel-name"}, cmd.Opt{Long: "sysname"}, cmd.Opt{Short: 'n', Long: "nodename"},
		cmd.Opt{Short: 'r', Long: "kernel-release"}, cmd.Opt{Long: "release"}, cmd.Opt{Short: 'v', Long: "kernel-version"},
		cmd.Opt{Short: 'm', Long: "machine"}, cmd.Opt{Short: 'p', Long: "processor"}, cmd.Opt{Short: 'i', Long: "hardware-platform"},
		cmd.Opt{Short: 'o', Long: "operating-system"},
	).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION]...") {
		return 0
	}
	if len(operands) > 0 {
		return c.BadUsage(fmt.Errorf("extra operand %s", cmd.Quote(operands[0])), 1)
	}
	want := map[string]bool{}
	for _, g := range given {
		switch g.Key {
		case "sysname":
			want["s"] = true
		case "release":
			want["r"] = true
		default:
			want[g.Key] = true
		}
	}
	var words []string
	for _, f := range [][2]string{{"s", "Linux"}, {"n", hostName}, {"r", kernel}, {"v", "#1 exthost"}, {"m", machine}, {"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"}} {
		if want[f[0]] || want["a"] && f[1] != "unknown" || len(want) == 0 && f[0] == "s" {
			words = append(words, f[1])
		}
	}
	fmt.Fprintln(c.Stdout, strings.Join(words, " "))
	return 0
}

func arch(_ context.Context, c *cmd.Call) int {
	code, done := noOperands(c, "[OPTION]...")
	if !done {
		fmt.Fprintln(c.Stdout, machine)
	}
	return code
}

func hostname(_ context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Opts{
		{Short: 's', Long: "short"}, {Short: 'f', Long: "fqdn"}, {Long: "long"}, {Short: 'd', Long: "domain"}, {Short: 'i', Long: "ip-address"},
		{Short: 'I', Long: "all-ip-addresses"}, {Short: 'A', Long: "all-fqdns"}, {Short: 'a', Long: "alias"}, {Short: 'y', Long: "yp"}, {Long: "nis"},
		{Short: 'V', Long: "version"}, {Short: 'h', Long: "help"}, {Short: 'F', Long: "file", Arg: cmd.Value}, {Short: 'b', Long: "boot"},
	}.Parse(c.Args)
	if err != nil {
		c.Errorf("%v", err)
		fmt.Fprintf(c.Stderr, "Usage: hostname [-s|-f|-d|-i|-I|-A|-a]\n")
		return 255
	}
	for _, g := range given {
		switch g.Key {
		case "d", "a":
			fmt.Fprintln(c.Stdout)
			return 0
		case "I", "A":
			fmt.Fprintln(c.Stdout) // there is no interface with an address
			return 0
		case "i":
			c.Errorf("Name or service not known")
			return 1
		case "y", "nis":
			c.Errorf("Local domain name not set")
			return 1
		case "F", "b":
			c.Errorf("you must be root to change the host name")
			return 1
		case "V":
			fmt.Fprintln(c.Stdout, "hostname (exthost, compatible with net-tools) 3.23")
			return 0
		case "h":
			fmt.Fprintln(c.Stdout, "Usage: hostname [-s|-f|-d|-i|-I|-A|-a]")
			return 0
		}
	}
	if len(operands) > 0 {
		c.Errorf("you must be root to change the host name")
		return 1
	}
	fmt.Fprintln(c.Stdout, hostName)
	return 0
}

// nproc tells 1: the guest has one thread.
func nproc(_ context.Context, c *cmd.Call) int {
	given, operands, err := options(cmd.Opt{Long: "all"}, cmd.Opt{Long: "ignore", Arg: cmd.Value}).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION]...") {
		return 0
	}
	for _, g := range given {
		if g.Key == "ignore" && (g.Value == "" || strings.Trim(g.Value, "0123456789") != "") {
			c.Errorf("invalid number: %s", cmd.Quote(g.Value))
			return 1
		}
	}
	if len(operands) > 0 {
		return c.BadUsage(fmt.Errorf("extra operand %s", cmd.Quote(operands[0])), 1)
	}
	fmt.Fprintln(c.Stdout, 1)
	return 0
}

func tty(_ context.Context, c *cmd.Call) int {
	given, operands, err := options(cmd.Opt{Short: 's', Long: "silent"}, cmd.Opt{Long: "quiet"}).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 2)
	}
	if help(c, given, "[OPTION]...") {
		return 0
	}
	if len(operands) > 0 {
		return c.BadUsage(fmt.Errorf("extra operand %s", cmd.Quote(operands[0])), 2)
	}
	if len(given) == 0 {
		fmt.Fprintln(c.Stdout, "not a tty")
	}
	return 1
}

func stty(_ context.Context, c *cmd.Call) int {
	name := "standard input"
	for i, a := range c.Args {
		switch {
		case a == "--help" || a == "--version":
			help(c, []cmd.Given{{Key: a[2:]}}, "[-F DEVICE | --file=DEVICE] [SETTING]...")
			return 0
		case a == "-F" && i+1 < len(c.Args):
			name = c.Args[i+1]
		case strings.HasPrefix(a, "--file="):
			name = a[len("--file="):]
		}
	}
	c.Errorf("'%s': Inappropriate ioctl for device", name)
	return 1
}

func getconf(_ context.Context, c *cmd.Call) int {
	args := c.Args
	if len(args) > 1 && args[0] == "-v" {
		args = args[2:]
	}
	if len(args) == 0 || len(args) > 2 {
		fmt.Fprintln(c.Stderr, "Usage: getconf [-v specification] variable_name [pathname]")
		return 2
	}
	values := [][2]string{
		{"ARG_MAX", "2097152"}, {"CHAR_BIT", "8"}, {"CHAR_MAX", "127"}, {"CHAR_MIN", "-128"}, {"CLK_TCK", "100"}, {"HOST_NAME_MAX", "64"},
		{"INT_MAX", "2147483647"}, {"INT_MIN", "-2147483648"}, {"IOV_MAX", "1024"}, {"LINE_MAX", "2048"}, {"LINK_MAX", "127"},
		{"LOGIN_NAME_MAX", "256"}, {"LONG_BIT", "64"}, {"LONG_MAX", "9223372036854775807"}, {"NAME_MAX", "255"}, {"OPEN_MAX", "1024"},
		{"PAGESIZE", "65536"}, {"PAGE_SIZE", "65536"}, {"PATH", "/bin:/usr/bin"}, {"PATH_MAX", "4096"}, {"PIPE_BUF", "4096"},
		{"UINT_MAX", "4294967295"}, {"WORD_BIT", "32"}, {"_NPROCESSORS_CONF", "1"}, {"_NPROCESSORS_ONLN", "1"}, {"NPROCESSORS_CONF", "1"},
		{"NPROCESSORS_ONLN", "1"}, {"_POSIX_VERSION", "200809"}, {"_POSIX_ARG_MAX", "4096"}, {"_POSIX_PATH_MAX", "256"},
	}
	if args[0] == "-a" {
		for _, v := range values {
			fmt.Fprintf(c.Stdout, "%-34s %s\n", v[0], v[1])
		}
		return 0
	}
	for _, v := range values {
		if v[0] == args[0] && len(args) == 1 && strings.Contains(" LINK_MAX NAME_MAX PATH_MAX PIPE_BUF ", " "+v[0]+" ") {
			fmt.Fprintln(c.Stderr, "Usage: getconf [-v specification] variable_name [pathname]")
			return 2 // these depend on where a file is
		}
		if v[0] == args[0] {
			fmt.Fprintln(c.Stdout, v[1])
			return 0
		}
	}
	c.Errorf("Unrecognized variable `%s'", args[0])
	return 2
}

// sync has nothing to do: what is written is with the host at once.
func syncFiles(_ context.Context, c *cmd.Call) int {
	given, files, err := options(cmd.Opt{Short: 'd', Long: "data"}, cmd.Opt{Short: 'f', Long: "file-system"}).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION] [FILE]...") {
		return 0
	}
	code := 0
	for _, name := range files {
		f, err := c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			c.Errorf("error opening '%s': %s", name, cmd.Reason(err))
			code = 1
			continue
		}
		f.Close()
	}
	return code
}

func pwd(_ context.Context, c *cmd.Call) int {
	given, operands, err := options(cmd.Opt{Short: 'L', Long: "logical"}, cmd.Opt{Short: 'P', Long: "physical"}).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, "[OPTION]...") {
		return 0
	}
	if len(operands) > 0 {
		c.Errorf("ignoring non-option arguments")
	}
	logical := c.Getenv("POSIXLY_CORRECT") != ""
	for _, g := range given {
		logical = g.Key == "L"
	}
	physical, err := realPath(c.Dir)
	if err != nil {
		physical = c.Dir
	}
	if logical {
		if p := c.Getenv("PWD"); path.IsAbs(p) && path.Clean(p) == p {
			if real, err := realPath(p); err == nil && real == physical {
				physical = p
			}
		}
	}
	fmt.Fprintln(c.Stdout, physical)
	return 0
}

// realPath resolves the links of an absolute path, without filepath's ideas of a working directory.
func realPath(p string) (string, error) {
	done, rest := "/", strings.Split(p, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		target, err := os.Readlink(next)
		if err != nil {
			done = next
			continue
		}
		if links++; links > 40 {
			return "", errors.New("too many links")
		}
		if path.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

func which(_ context.Context, c *cmd.Call) int {
	silent, code := false, 0
	args := c.Args
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, r := range a[1:] {
			switch r {
			case 'a': // a name has one place only
			case 's':
				silent = true
			default:
				fmt.Fprintf(c.Stderr, "Illegal option %s\n", a)
				fmt.Fprintln(c.Stdout, "Usage: /usr/bin/which [-a] args")
				return 2
			}
		}
	}
	if len(args) == 0 {
		return 1
	}
	for _, name := range args {
		p, ok := c.Shell.Find(c, name)
		if !ok {
			code = 1
			continue
		}
		if !silent {
			fmt.Fprintln(c.Stdout, p)
		}
	}
	return code
}

func succeed(_ context.Context, c *cmd.Call) int {
	if len(c.Args) == 1 && (c.Args[0] == "--help" || c.Args[0] == "--version") {
		help(c, []cmd.Given{{Key: c.Args[0][2:]}}, "[ignored command line arguments]\nOPTION")
	}
	return 0
}

func fail(ctx context.Context, c *cmd.Call) int {
	succeed(ctx, c)
	return 1
}
