package cmd

import (
	"fmt"
	"strings"
)

// Arg says whether an option takes an argument.
type Arg uint8

const (
	Flag     Arg = iota
	Value        // -n5, -n 5, --lines=5, --lines 5
	Optional     // -i.bak, --color=always: only when it is attached
)

// Opt is an option: a letter, a long name, or both.
type Opt struct {
	Short rune   // 0: none
	Long  string // "": none
	Arg   Arg
}

// Opts are the options of a command. They are read as GNU's getopt_long does: letters bundled, long names shortened
// while they are unambiguous, "--" ends them, operands may stand between them.
type Opts []Opt

// Given is an option as it was given, in the order of the command line.
type Given struct {
	Key   string // the letter, or the long name of an option without one
	Value string
	Has   bool // there was an argument
}

// Parse splits args into options and operands. Its errors are worded as GNU's ("invalid option -- 'x'").
func (o Opts) Parse(args []string) ([]Given, []string, error) { return o.parse(args, true) }

// ParseLeading is Parse for commands whose operands are another command: the first operand ends the options.
func (o Opts) ParseLeading(args []string) ([]Given, []string, error) { return o.parse(args, false) }

func (o Opts) parse(args []string, permute bool) (given []Given, operands []string, err error) {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			return given, append(operands, args...), nil
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			opt, err := o.long(name)
			if err != nil {
				return nil, nil, err
			}
			switch {
			case opt.Arg == Flag && has:
				return nil, nil, fmt.Errorf("option '--%s' doesn't allow an argument", opt.Long)
			case opt.Arg == Value && !has:
				if len(args) == 0 {
					return nil, nil, fmt.Errorf("option '--%s' requires an argument", opt.Long)
				}
				value, has, args = args[0], true, args[1:]
			}
			given = append(given, Given{opt.key(), value, has})
		case len(a) > 1 && a[0] == '-':
			letters := a[1:]
			for i, r := range letters {
				opt, ok := o.short(r)
				if !ok {
					return nil, nil, fmt.Errorf("invalid option -- '%c'", r)
				}
				if opt.Arg == Flag {
					given = append(given, Given{Key: opt.key()})
					continue
				}
				value, has := letters[i+len(string(r)):], true
				if value == "" {
					has = false
					if opt.Arg == Value {
						if len(args) == 0 {
							return nil, nil, fmt.Errorf("option requires an argument -- '%c'", r)
						}
						value, has, args = args[0], true, args[1:]
					}
				}
				given = append(given, Given{opt.key(), value, has})
				break
			}
		default:
			operands = append(operands, a)
			if !permute {
				return given, append(operands, args...), nil
			}
		}
	}
	return given, operands, nil
}

func (o Opt) key() string {
	if o.Short != 0 {
		return string(o.Short)
	}
	return o.Long
}

func (o Opts) short(r rune) (Opt, bool) {
	for _, opt := range o {
		if opt.Short == r {
			return opt, true
		}
	}
	return Opt{}, false
}

func (o Opts) long(name string) (Opt, error) {
	var found []Opt
	for _, opt := range o {
		if opt.Long == name && name != "" {
			return opt, nil
		}
		if opt.Long != "" && strings.HasPrefix(opt.Long, name) {
			found = append(found, opt)
		}
	}
	switch len(found) {
	case 0:
		return Opt{}, fmt.Errorf("unrecognized option '--%s'", name)
	case 1:
		return found[0], nil
	}
	text := fmt.Sprintf("option '--%s' is ambiguous; possibilities:", name)
	for _, opt := range found {
		text += fmt.Sprintf(" '--%s'", opt.Long)
	}
	return Opt{}, fmt.Errorf("%s", text)
}

// BadUsage writes an error of the options as GNU's tools do, and returns code.
func (c *Call) BadUsage(err error, code int) int {
	c.Errorf("%v", err)
	fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Name)
	return code
}
