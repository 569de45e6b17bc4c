// Package sys holds the commands that tell of the system, of time and of the environment, that run other commands, and
// that calculate.
//
// The guest has no users, no processes of its own and no terminal: id, who, tty and their like answer as a small container
// with one user does. Commands whose only honest answer would be an invention (ps, free, lsof, uptime) are not here.
package sys

import (
	"fmt"
	"io"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Commands are the commands by their names.
var Commands = map[string]cmd.Func{
	"arch": arch, "bc": cmd.Written(bc, 1), "clear": clearScreen, "date": date, "env": env, "envsubst": envsubst, "expr": expr, "factor": factor, "false": fail, "getconf": getconf, "groups": groups,
	"flock": flock, "hostname": hostname, "id": id, "logname": logname, "nice": nice, "nohup": nohup, "nproc": nproc, "numfmt": numfmt,
	"printenv": printenv, "pwd": pwd, "reset": resetTerminal, "sleep": sleep, "stty": stty, "sync": syncFiles, "time": timeCommand,
	"timeout": timeout, "tput": tput, "true": succeed, "tty": tty, "uname": uname, "uuidgen": uuidgen, "users": nobody, "which": which, "who": who,
	"whoami": whoami,
}

// help answers --help and --version, which scripts ask to tell GNU's tools from BSD's. It must be called with the
// options as they were given: GNU's tools know both only in full or shortened, and act on the first.
func help(c *cmd.Call, given []cmd.Given, usage string) bool {
	for _, g := range given {
		switch g.Key {
		case "help":
			for i, line := range strings.Split(usage, "\n") {
				word := "Usage:"
				if i > 0 {
					word = "  or: "
				}
				fmt.Fprintf(c.Stdout, "%s %s %s\n", word, c.Name, line)
			}
			return true
		case "version":
			io.WriteString(c.Stdout, versionLine(c.Name))
			return true
		}
	}
	return false
}

func versionLine(name string) string {
	return name + " (exthost, compatible with GNU coreutils) 9.1\n"
}

// common are the options that each of GNU's tools has.
var common = cmd.Opts{{Long: "help"}, {Long: "version"}}

// options appends common to the options of a command.
func options(opts ...cmd.Opt) cmd.Opts { return append(opts, common...) }

// onlyCommon parses the arguments of a command without options of its own. The command is over when done is true.
func onlyCommon(c *cmd.Call, usage string, failure int) (operands []string, code int, done bool) {
	given, operands, err := common.Parse(c.Args)
	if err != nil {
		return nil, c.BadUsage(err, failure), true
	}
	return operands, 0, help(c, given, usage)
}

func noOperands(c *cmd.Call, usage string) (code int, done bool) {
	operands, code, done := onlyCommon(c, usage, 1)
	if !done && len(operands) > 0 {
		return c.BadUsage(fmt.Errorf("extra operand %s", cmd.Quote(operands[0])), 1), true
	}
	return code, done
}

func tryHelp(c *cmd.Call, code int) int {
	fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Name)
	return code
}
