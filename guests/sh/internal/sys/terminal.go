package sys

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// terminals are the kinds of terminal that tput knows, each as names of capabilities and their values. A name in front of
// a colon is that of the terminal it goes by; "-" takes a capability away. Only what scripts print is here.
var terminals = map[string]string{
	"dumb": `longname=80-column_dumb_tty cols#80 am bel=\a cr=\r cud1=\n ind=\n`,
	"ansi": `dumb: longname=ansi/pc-term_compatible_with_color lines#24 it#8 colors#8 pairs#64 bold=\e[1m smul=\e[4m rmul=\e[m smso=\e[7m rmso=\e[m rev=\e[7m ` +
		`blink=\e[5m invis=\e[8m sgr0=\e[0;10m setaf=\e[3%fm setab=\e[4%fm el=\e[K el1=\e[1K ed=\e[J clear=\e[H\e[J cup=\e[%i%d;%dH home=\e[H ` +
		`cuu1=\e[A cuu=\e[%dA cud1=\e[B cud=\e[%dB cuf1=\e[C cuf=\e[%dC cub1=\e[D cub=\e[%dD hpa=\e[%i%dG op=\e[39;49m dl1=\e[M il1=\e[L ht=\e[I`,
	"vt100": `dumb: longname=DEC_VT100_(w/advanced_video) lines#24 it#8 bold=\e[1m smul=\e[4m rmul=\e[m smso=\e[7m rmso=\e[m rev=\e[7m blink=\e[5m ` +
		`sgr0=\e[m^O el=\e[K el1=\e[1K ed=\e[J clear=\e[H\e[J cup=\e[%i%d;%dH home=\e[H cuu1=\e[A cuu=\e[%dA cud=\e[%dB cuf1=\e[C cuf=\e[%dC ` +
		`cub1=\b cub=\e[%dD sc=\e7 rc=\e8 ht=\t`,
	"linux": `vt100: longname=Linux_console colors#8 pairs#64 dim=\e[2m rmul=\e[24m rmso=\e[27m setaf=\e[3%fm setab=\e[4%fm clear=\e[H\e[J\e[3J ` +
		`civis=\e[?25l\e[?1c cnorm=\e[?25h\e[?0c op=\e[39;49m hpa=\e[%i%dG vpa=\e[%i%dd ich1=\e[@ dl1=\e[M il1=\e[L dch1=\e[P ech=\e[%dX`,
	"screen": `vt100: longname=VT_100/ANSI_X3.64_virtual_terminal colors#8 pairs#64 dim=\e[2m rmul=\e[24m smso=\e[3m rmso=\e[23m setaf=\e[3%fm ` +
		`setab=\e[4%fm civis=\e[?25l cnorm=\e[34h\e[?25h smcup=\e[?1049h rmcup=\e[?1049l cuu1=\eM op=\e[39;49m hpa=\e[%i%dG vpa=\e[%i%dd dl1=\e[M il1=\e[L dch1=\e[P`,
	"screen-256color": `screen: longname=GNU_Screen_with_256_colors colors#256 pairs#65536 setaf=\e[%Fm setab=\e[%Bm`,
	"tmux-256color":   `screen-256color: longname=tmux_with_256_colors smso=\e[7m rmso=\e[27m clear=\e[H\e[J\e[3J sitm=\e[3m ritm=\e[23m invis=\e[8m`,
	"xterm": `vt100: longname=xterm_terminal_emulator_(X_Window_System) colors#8 pairs#64 dim=\e[2m rmul=\e[24m rmso=\e[27m invis=\e[8m sgr0=\e(B\e[m ` +
		`setaf=\e[3%fm setab=\e[4%fm clear=\e[H\e[2J\e[3J civis=\e[?25l cnorm=\e[?12l\e[?25h smcup=\e[?1049h\e[22;0;0t rmcup=\e[?1049l\e[23;0;0t ` +
		`op=\e[39;49m hpa=\e[%i%dG vpa=\e[%i%dd dl1=\e[M il1=\e[L dch1=\e[P ech=\e[%dX sitm=\e[3m ritm=\e[23m km`,
	"xterm-256color": `xterm: longname=xterm_with_256_colors colors#256 pairs#65536 setaf=\e[%Fm setab=\e[%Bm`,
	"xterm-color":    `vt100: longname=generic_color_xterm colors#8 pairs#64 rmul=\e[m setaf=\e[3%fm setab=\e[4%fm op=\e[m dl1=\e[M il1=\e[L`,
}

// terminalNames are the names of capabilities that tput may be asked for without being unknown.
const terminalNames = " am bce bel blink bold cbt clear cnorm colors cols cr csr cub cub1 cud cud1 cuf cuf1 cup cuu cuu1 cvvis civis dch dch1 dim dl dl1 ech ed el el1 " +
	"flash home hpa ht hts ich ich1 il il1 ind invis it km kbs kcub1 kcud1 kcuf1 kcuu1 kdch1 kend khome knp kpp lines longname mc5i mir msgr op pairs " +
	"rc rep rev ri ritm rmacs rmcup rmir rmkx rmso rmul rs1 rs2 sc setab setaf setb setf sgr sgr0 sitm smacs smcup smir smkx smso smul tbc u6 u7 u8 u9 vpa xenl xt " +
	"kf1 kf2 kf3 kf4 kf5 kf6 kf7 kf8 kf9 kf10 kf11 kf12 tsl fsl dsl hs smam rmam oc initc ccc "

// terminal returns the capabilities of a kind of terminal: numbers and strings by name; a flag is "".
func terminal(name string) (map[string]string, bool) {
	text, ok := terminals[name]
	if !ok {
		return nil, false
	}
	caps := map[string]string{}
	words := strings.Fields(text)
	if base, ok := strings.CutSuffix(words[0], ":"); ok {
		caps, _ = terminal(base)
		words = words[1:]
	}
	for _, w := range words {
		if i := strings.IndexAny(w, "=#"); i >= 0 {
			value := w[i+1:]
			if w[:i] == "longname" {
				value = strings.ReplaceAll(value, "_", " ")
			}
			caps[w[:i]] = strings.NewReplacer(`\e`, "\x1b", `\a`, "\a", `\r`, "\r", `\n`, "\n", `\b`, "\b", `\t`, "\t", "^O", "\x0f").Replace(value)
		} else {
			caps[w] = ""
		}
	}
	return caps, true
}

// tput answers as it does without a terminal: what TERM says, 80 columns and 24 lines unless the environment tells.
func tput(_ context.Context, c *cmd.Call) int {
	given, args, err := cmd.Opts{{Short: 'S'}, {Short: 'T', Arg: cmd.Value}, {Short: 'V'}, {Short: 'x'}}.ParseLeading(c.Args)
	usage := func() int {
		fmt.Fprint(c.Stderr, "Usage: tput [options] [command]\n\nOptions:\n  -S <<       read commands from standard input\n  -T TERM     use this instead of $TERM\n"+
			"  -V          print curses-version\n  -x          do not try to clear scrollback\n\nCommands:\n  clear       clear the screen\n  init        initialize the terminal\n"+
			"  reset       reinitialize the terminal\n  capname     unlike clear/init/reset, print value for capability \"capname\"\n")
		return 2
	}
	if err != nil {
		c.Errorf("%v", err)
		return usage()
	}
	term, stdin, keep := c.Getenv("TERM"), false, false
	for _, g := range given {
		switch g.Key {
		case "S":
			stdin = true
		case "T":
			term = g.Value
		case "V":
			fmt.Fprintln(c.Stdout, "ncurses 6.4.20221231")
			return 0
		case "x":
			keep = true
		}
	}
	if term == "" {
		c.Errorf("No value for $TERM and no -T specified")
		return 2
	}
	if len(args) == 0 && !stdin {
		return usage()
	}
	if len(args) > 0 && (args[0] == "init" || args[0] == "reset") {
		c.Errorf("terminal attributes: No such device or address\n")
		return 10
	}
	caps, ok := terminal(term)
	if !ok {
		c.Errorf("unknown terminal \"%s\"", term)
		return 3
	}
	if !stdin {
		return capabilities(c, caps, args, keep)
	}
	code := 0
	lines := bufio.NewScanner(c.Stdin)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 0 {
			if n := capabilities(c, caps, words, keep); n != 0 {
				code = 4
			}
		}
	}
	return code
}

// capabilities prints one capability with its parameters, and those that follow.
func capabilities(c *cmd.Call, caps map[string]string, args []string, keep bool) int {
	code := 0
	for len(args) > 0 {
		name := args[0]
		args = args[1:]
		var params []int
		value, ok := caps[name]
		for ok && len(args) > 0 && len(params) < strings.Count(value, "%")-strings.Count(value, "%i") {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				break
			}
			params = append(params, n)
			args = args[1:]
		}
		switch {
		case name == "cols" || name == "lines":
			n := 80
			if name == "lines" {
				n = 24
			}
			if e, err := strconv.Atoi(c.Getenv(map[string]string{"cols": "COLUMNS", "lines": "LINES"}[name])); err == nil && e > 0 {
				n = e
			}
			fmt.Fprintln(c.Stdout, n)
			code = 0
		case name == "colors" || name == "pairs" || name == "it":
			if !ok {
				value = "-1"
			}
			fmt.Fprintln(c.Stdout, value)
			code = 0
		case !strings.Contains(terminalNames, " "+name+" "):
			c.Errorf("unknown terminfo capability '%s'", name)
			return 4
		case !ok:
			code = 1
			if name == "clear" {
				code = 2
			}
			// Its parameters, if they are numbers, are no capabilities.
			for len(args) > 0 && strings.Trim(args[0], "0123456789") == "" {
				args = args[1:]
			}
		case name == "clear" && keep:
			fmt.Fprint(c.Stdout, strings.TrimSuffix(value, "\x1b[3J"))
			code = 0
		default:
			fmt.Fprint(c.Stdout, parameters(value, params))
			code = 0
		}
	}
	return code
}

// parameters fills in a string: %d a number, %i counts from one, %f one of the eight colours, %F and %B one of 256.
func parameters(s string, params []int) string {
	var b strings.Builder
	next := func() int {
		if len(params) == 0 {
			return 0
		}
		n := params[0]
		params = params[1:]
		return n
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'i':
			params = append([]int(nil), params...)
			for j := 0; j < len(params) && j < 2; j++ {
				params[j]++
			}
			if len(params) == 0 {
				params = []int{1, 1}
			}
		case 'd', 'f':
			b.WriteString(strconv.Itoa(next()))
		case 'F', 'B':
			n, base := next(), 30
			if s[i] == 'B' {
				base = 40
			}
			switch {
			case n < 8:
				b.WriteString(strconv.Itoa(base + n))
			case n < 16:
				b.WriteString(strconv.Itoa(base + 60 + n - 8))
			default:
				fmt.Fprintf(&b, "%d;5;%d", base+8, n)
			}
		}
	}
	return b.String()
}

func clearScreen(_ context.Context, c *cmd.Call) int {
	given, _, err := cmd.Opts{{Short: 'T', Arg: cmd.Value}, {Short: 'V'}, {Short: 'x'}}.Parse(c.Args)
	if err != nil {
		c.Errorf("%v", err)
		fmt.Fprintln(c.Stderr, "Usage: clear [options]")
		return 1
	}
	term, keep := c.Getenv("TERM"), false
	for _, g := range given {
		switch g.Key {
		case "T":
			term = g.Value
		case "V":
			fmt.Fprintln(c.Stdout, "ncurses 6.4.20221231")
			return 0
		case "x":
			keep = true
		}
	}
	if term == "" {
		fmt.Fprintln(c.Stderr, "TERM environment variable not set.")
		return 1
	}
	caps, ok := terminal(term)
	if !ok {
		fmt.Fprintf(c.Stderr, "'%s': unknown terminal type.\n", term)
		return 1
	}
	if caps["clear"] == "" {
		return 1
	}
	return capabilities(c, caps, []string{"clear"}, keep)
}

// resetTerminal is reset, which needs a terminal that the guest never has.
func resetTerminal(_ context.Context, c *cmd.Call) int {
	c.Errorf("terminal attributes: No such device or address\n")
	return 10
}
