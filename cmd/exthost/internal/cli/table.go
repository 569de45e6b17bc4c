package cli

import (
	"slices"
	"strings"
)

// table makes the commands of this version, in the order of help. Each call makes fresh flag values, so that Main can
// run several times, and at the same time, in one process.
func table() []*command {
	return []*command{
		newRun(),
		newWASI(),
		newGrant(),
		newRevoke(),
		newPolicyCheck(),
		newPolicyExplain(),
		newPolicyDiff(),
		newPolicySchema(),
		newRuntimeList(),
		newRuntimeWarm(),
		newDoctor(),
		newVersion(),
		newCompletion(),
		newCacheClean(),
		newHelp(),
	}
}

// later are the commands that the contract has and this version has not. They are listed nowhere; asking for one is
// answered plainly instead of with "unknown command".
var later = []string{
	"trust", "serve", "setup", "test", "policy init", "policy learn", "skill", "mcp", "catalog", "inspect", "secret",
	"journal", "stats", "logs", "replay", "runtime install", "runtime verify", "attack",
}

// find looks up the command that args begin with. A noun without a verb ("policy") is answered with a nil command.
func find(args []string) (cmd *command, rest []string, err error) {
	noun := args[0]
	cmds := table()
	for _, c := range cmds {
		if c.name == noun {
			return c, args[1:], nil
		}
	}
	if slices.Contains(later, noun) {
		return nil, nil, notYet(noun)
	}
	if !isNoun(cmds, noun) {
		return nil, nil, unknownCommand(cmds, noun)
	}
	// Global flags may stand between noun and verb: exthost policy --json check x.yaml
	for i, arg := range args[1:] {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		name := noun + " " + arg
		for _, c := range cmds {
			if c.name == name {
				rest := slices.Concat(args[1:1+i], args[2+i:])
				return c, rest, nil
			}
		}
		if slices.Contains(later, name) {
			return nil, nil, notYet(name)
		}
		return nil, nil, unknownCommand(cmds, name)
	}
	return nil, args[1:], nil
}

func isNoun(cmds []*command, word string) bool {
	return slices.ContainsFunc(cmds, func(c *command) bool { return strings.HasPrefix(c.name, word+" ") })
}

func notYet(name string) error {
	return fail(exitCannot, "exthost help", "this version does not have %q", name)
}

func unknownCommand(cmds []*command, name string) error {
	hint := "exthost help"
	best := 3 // more edits than that are a different word
	for _, c := range cmds {
		if d := distance(name, c.name); d < best {
			best, hint = d, "exthost "+c.name+" --help"
		}
	}
	return fail(exitCannot, hint, "unknown command %q", name)
}

// distance is the number of edits between two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, row[j-1]+1, diagonal+cost)
			diagonal, row[j] = row[j], next
		}
	}
	return row[len(b)]
}
