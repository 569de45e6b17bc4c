package shell

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// setOptions are the options of set, in the order in which `set -o` lists them.
var setOptions = []struct {
	name   string
	letter byte
}{
	{"allexport", 'a'}, {"braceexpand", 'B'}, {"emacs", 0}, {"errexit", 'e'}, {"errtrace", 'E'}, {"functrace", 'T'},
	{"hashall", 'h'}, {"histexpand", 'H'}, {"history", 0}, {"ignoreeof", 0}, {"interactive-comments", 0}, {"keyword", 'k'},
	{"monitor", 'm'}, {"noclobber", 'C'}, {"noexec", 'n'}, {"noglob", 'f'}, {"nolog", 0}, {"notify", 'b'}, {"nounset", 'u'},
	{"onecmd", 't'}, {"physical", 'P'}, {"pipefail", 0}, {"posix", 0}, {"privileged", 'p'}, {"verbose", 'v'}, {"vi", 0},
	{"xtrace", 'x'},
}

// shoptOptions are those of shopt; a name with "+" is on from the start.
var shoptOptions = []string{
	"autocd", "assoc_expand_once", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize+", "cmdhist+", "compat31",
	"compat32", "compat40", "compat41", "compat42", "compat43", "compat44", "complete_fullquote+", "direxpand", "dirspell",
	"dotglob", "execfail", "expand_aliases", "extdebug", "extglob", "extquote+", "failglob", "force_fignore+",
	"globasciiranges+", "globskipdots+", "globstar", "gnu_errfmt", "histappend", "histreedit", "histverify", "hostcomplete+",
	"huponexit", "inherit_errexit", "interactive_comments+", "lastpipe", "lithist", "localvar_inherit", "localvar_unset",
	"login_shell", "mailwarn", "no_empty_cmd_completion", "nocaseglob", "nocasematch", "noexpand_translation", "nullglob",
	"patsub_replacement+", "progcomp+", "progcomp_alias", "promptvars+", "restricted_shell", "shift_verbose", "sourcepath+",
	"varredir_close", "xpg_echo",
}

// options is a set of both kinds: copied with a subshell.
type options struct{ set, shopt uint64 }

// opt is a bit of options; those of shopt are above 64.
type opt int

var optionIndex = sync.OnceValue(func() map[string]opt {
	m := make(map[string]opt, len(setOptions)+len(shoptOptions))
	for i, o := range setOptions {
		m[o.name] = opt(i)
	}
	for i, name := range shoptOptions {
		m[strings.TrimSuffix(name, "+")] = opt(64 + i)
	}
	return m
})

func (o *options) has(i opt) bool {
	if i >= 64 {
		return o.shopt>>(i-64)&1 != 0
	}
	return o.set>>i&1 != 0
}

func (o *options) put(i opt, on bool) {
	p, bit := &o.set, uint64(1)<<(i&63)
	if i >= 64 {
		p = &o.shopt
	}
	if on {
		*p |= bit
	} else {
		*p &^= bit
	}
}

// The options that the executor itself asks for, by their places in the lists.
const (
	optAllexport = opt(0)
	optErrexit   = opt(3)
	optErrtrace  = opt(4)
	optFunctrace = opt(5)
	optMonitor   = opt(12)
	optNoclobber = opt(13)
	optNoexec    = opt(14)
	optNounset   = opt(18)
	optPhysical  = opt(20)
	optPipefail  = opt(21)
	optPosix     = opt(22)
	optVerbose   = opt(24)
	optXtrace    = opt(26)

	optExpandAliases  = 64 + opt(20)
	optInheritErrexit = 64 + opt(35)
	optLastpipe       = 64 + opt(37)
	optLoginShell     = 64 + opt(41)
	optSourcepath     = 64 + opt(54)
)

func defaultOptions() (o options) {
	for _, name := range []string{"braceexpand", "hashall", "interactive-comments"} {
		o.put(optionIndex()[name], true)
	}
	for i, name := range shoptOptions {
		o.put(opt(64+i), strings.HasSuffix(name, "+"))
	}
	return o
}

// letters is $-.
func (o *options) letters() string {
	var b []byte
	for i, so := range setOptions {
		if so.letter != 0 && o.has(opt(i)) {
			b = append(b, so.letter)
		}
	}
	sort.Slice(b, func(i, j int) bool { return rank(b[i]) < rank(b[j]) })
	return string(b)
}

// rank orders letters as bash's $- does: small ones first.
func rank(c byte) int {
	return strings.IndexByte("abefhkmnptuvxBCEHPT", c)
}

// list is SHELLOPTS or BASHOPTS.
func (o *options) list(shopt bool) string {
	var on []string
	if shopt {
		for i, name := range shoptOptions {
			if o.has(opt(64 + i)) {
				on = append(on, strings.TrimSuffix(name, "+"))
			}
		}
		sort.Strings(on)
	} else {
		for i, so := range setOptions {
			if o.has(opt(i)) {
				on = append(on, so.name)
			}
		}
	}
	return strings.Join(on, ":")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// setBuiltin is set.
func (s *Shell) setBuiltin(c *callCtx, args []string) int {
	if len(args) == 0 {
		return s.listVariables(c)
	}
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			s.setParams(args[1:])
			return 0
		case a == "-":
			s.setOption(optXtrace, false)
			s.setOption(optVerbose, false)
			if len(args) > 1 {
				s.setParams(args[1:])
			}
			return 0
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			rest, ok := s.setLetters(c, a, args[1:])
			if !ok {
				return 2
			}
			args = rest
		default:
			s.setParams(args)
			return 0
		}
	}
	return 0
}

func (s *Shell) setParams(args []string) {
	s.params = append([]string(nil), args...)
	s.setCount++
}

// setLetters carries out one argument of set or of the command line, "-euo" or "+x". What -o takes comes off args.
func (s *Shell) setLetters(c *callCtx, a string, args []string) (rest []string, ok bool) {
	on := a[0] == '-'
letters:
	for i := 1; i < len(a); i++ {
		if a[i] == 'o' {
			if len(args) == 0 || args[0] == "" || args[0][0] == '-' || args[0][0] == '+' {
				for i, so := range setOptions {
					if on {
						fmt.Fprintf(c.stdout(), "%-15s\t%s\n", so.name, onOff(s.opts.has(opt(i))))
					} else {
						fmt.Fprintf(c.stdout(), "set %co %s\n", "+-"[bit(s.opts.has(opt(i)))], so.name)
					}
				}
				continue
			}
			o, found := optionIndex()[args[0]]
			if !found || o >= 64 {
				c.errorf("set: %s: invalid option name", args[0])
				return nil, false
			}
			s.setOption(o, on)
			args = args[1:]
			continue
		}
		for j, so := range setOptions {
			if so.letter == a[i] {
				s.setOption(opt(j), on)
				continue letters
			}
		}
		c.errorf("set: %c%c: invalid option", a[0], a[i])
		c.plain("set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]")
		return nil, false
	}
	return args, true
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Shell) setOption(o opt, on bool) {
	s.opts.put(o, on)
}

// Option tells whether an option of set or shopt is on, by its long name.
func (s *Shell) Option(name string) bool {
	o, ok := optionIndex()[name]
	return ok && s.opts.has(o)
}

// shoptBuiltin is shopt.
func (s *Shell) shoptBuiltin(c *callCtx, args []string) int {
	var set, unset, quiet, print, ofSet bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, l := range a[1:] {
			switch l {
			case 's':
				set = true
			case 'u':
				unset = true
			case 'q':
				quiet = true
			case 'p':
				print = true
			case 'o':
				ofSet = true
			default:
				c.errorf("shopt: -%c: invalid option", l)
				c.plain("shopt: usage: shopt [-pqsu] [-o] [optname ...]")
				return 2
			}
		}
	}
	if set && unset {
		c.errorf("shopt: cannot set and unset shell options simultaneously")
		return 1
	}
	names := args
	all := len(names) == 0
	if all {
		if ofSet {
			for _, so := range setOptions {
				names = append(names, so.name)
			}
		} else {
			for _, name := range shoptOptions {
				names = append(names, strings.TrimSuffix(name, "+"))
			}
		}
	}
	code := 0
	for _, name := range names {
		o, ok := optionIndex()[name]
		if !ok || (o < 64) != ofSet {
			kind := "shell option"
			if ofSet {
				kind = "option"
			}
			c.errorf("shopt: %s: invalid %s name", name, kind)
			code = 1
			continue
		}
		on := s.opts.has(o)
		switch {
		case all && (set || unset):
			if on != set {
				continue
			}
		case set || unset:
			s.setOption(o, set)
			continue
		case !all && !on:
			code = 1
		}
		switch {
		case quiet:
		case print && ofSet:
			fmt.Fprintf(c.stdout(), "set %co %s\n", "+-"[bit(on)], name)
		case print:
			fmt.Fprintf(c.stdout(), "shopt -%c %s\n", "us"[bit(on)], name)
		default:
			fmt.Fprintf(c.stdout(), "%-15s\t%s\n", name, onOff(on))
		}
	}
	return code
}
