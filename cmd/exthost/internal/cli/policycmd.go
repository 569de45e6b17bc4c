package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exthost/exthost/policy"
)

func newPolicyCheck() *command {
	return &command{
		name: "policy check", args: "FILE...", short: "parse and lint policies, and run their own tests",
		long:     "Warnings do not change the exit code. A file that fails to parse or whose tests fail is a finding (1).",
		examples: []string{"policy check policies/*.yaml"},
		run: func(a *app, args []string) error {
			if len(args) == 0 {
				return fail(exitCannot, "exthost policy check --help", "no file was named")
			}
			return a.policyCheck(args)
		},
	}
}

// checked is the answer of policy check for one file.
type checked struct {
	File     string              `json:"file"`
	OK       bool                `json:"ok"`
	Errors   policy.Errors       `json:"errors,omitempty"`
	Warnings policy.Errors       `json:"warnings,omitempty"`
	Tests    int                 `json:"tests"`
	Failed   []policy.TestResult `json:"failed,omitempty"`
	Unable   string              `json:"unable,omitempty"` // why it could not be read
}

// policyCheck is the command policy check.
func (a *app) policyCheck(files []string) error {
	code := exitOK
	var all []checked
	for _, file := range files {
		c := checkPolicy(file)
		all = append(all, c)
		switch {
		case c.Unable != "":
			code = exitCannot
		case !c.OK && code == exitOK:
			code = exitFinding
		}
	}
	if a.global.json {
		err := a.printJSON(a.stdout, struct {
			Version int       `json:"version"`
			Files   []checked `json:"files"`
		}{1, all})
		return errors.Join(err, exit(code))
	}
	for _, c := range all {
		if c.Unable != "" {
			a.out.line("error", printable(c.Unable))
			continue
		}
		var b strings.Builder
		for _, e := range c.Errors {
			fmt.Fprintln(&b, printable(e.Error()))
		}
		for _, r := range c.Failed {
			fmt.Fprintln(&b, printable(r.String()))
		}
		for _, e := range c.Warnings {
			w := e
			w.Msg = "warning: " + w.Msg
			fmt.Fprintln(&b, printable(w.Error()))
		}
		if c.OK {
			fmt.Fprintf(&b, "%s: ok, %s\n", printable(c.File), count(c.Tests, "test"))
		}
		if err := a.say("%s", b.String()); err != nil {
			return err
		}
	}
	return exit(code)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func checkPolicy(file string) checked {
	c := checked{File: file}
	data, err := readState(file, maxPolicyFile)
	if err != nil {
		c.Unable = err.Error()
		return c
	}
	p, err := policy.Parse(file, data)
	if err != nil {
		if !errors.As(err, &c.Errors) {
			c.Unable = err.Error()
		}
		return c
	}
	c.Warnings = policy.Lint(p)
	c.Tests = len(p.Tests.Allow) + len(p.Tests.Deny)
	c.Failed = failedTests(p)
	c.OK = len(c.Failed) == 0
	return c
}

func newPolicyExplain() *command {
	var fields bool
	return &command{
		name: "policy explain", args: "NAME|FILE [CAP]", short: "say who decided, or the whole grant in words",
		long: "NAME is a grant of the home folder; FILE is a path. With CAP the exit code is 0 if it is allowed and 1 if not.\n" +
			"ceiling.yaml of the home folder counts.",
		examples: []string{"policy explain pdf-report", "policy explain p.yaml 'GET https://evil.test/'", "policy explain --fields"},
		flags: func(fs *pflag.FlagSet) {
			fs.BoolVar(&fields, "fields", false, "print each field, what enforces it and the test that proves it")
		},
		run: func(a *app, args []string) error {
			switch {
			case fields && len(args) == 0:
				return a.policyFields()
			case fields:
				return fail(exitCannot, "exthost policy explain --fields", "--fields takes no argument")
			case len(args) == 0:
				return fail(exitCannot, "exthost policy explain --help", "no policy was named")
			case len(args) > 2:
				return fail(exitCannot, shellCommand("exthost", "policy", "explain", args[0], strings.Join(args[1:], " ")),
					"a capability is one argument")
			}
			return a.policyExplain(args[0], args[1:])
		},
	}
}

// namedPolicy reads a policy by the name of an extension or by path. A bare word is a name if there is such a grant.
func (a *app) namedPolicy(arg string) (*policy.Policy, error) {
	file := arg
	if !isPath(arg) {
		if named := a.policyFile(arg); named != "" && exists(named) {
			file = named
		}
	}
	_, p, err := readPolicy(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitCannot, "", "%q is neither the name of a grant nor a file", arg)
	}
	if err != nil {
		var errs policy.Errors
		if errors.As(err, &errs) {
			return nil, &failure{code: exitFinding, err: err, hint: []string{shellCommand("exthost", "policy", "check", file)}}
		}
		return nil, err
	}
	return p, nil
}

// policyExplain is the command policy explain.
func (a *app) policyExplain(arg string, caps []string) error {
	p, err := a.namedPolicy(arg)
	if err != nil {
		return err
	}
	ceilings, err := a.findCeilings(nil)
	if err != nil {
		return err
	}
	eff := policy.New(p, ceilings...)
	if len(caps) == 0 {
		if a.global.json {
			return a.printJSON(a.stdout, struct {
				Version int      `json:"version"`
				File    string   `json:"file"`
				Words   []string `json:"words"`
			}{1, p.File, eff.Explain()})
		}
		for _, line := range eff.Explain() {
			if err := a.say("%s\n", printable(line)); err != nil {
				return err
			}
		}
		return nil
	}
	c, err := policy.ParseCapability(caps[0])
	if err != nil {
		return err
	}
	d := eff.Decide(c)
	code := exitOK
	if !d.Allowed {
		code = exitFinding
	}
	if a.global.json {
		err := a.printJSON(a.stdout, struct {
			Version    int    `json:"version"`
			Capability string `json:"capability"`
			Allowed    bool   `json:"allowed"`
			Layer      string `json:"layer"` // grant, base, ceiling, always-denied, none
			Rule       string `json:"rule,omitempty"`
			Reason     string `json:"reason"`
			Nearest    string `json:"nearest,omitempty"`
		}{1, c.String(), d.Allowed, d.Layer, rule(d.Rule), d.Reason, d.Nearest})
		return errors.Join(err, exit(code))
	}
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", verdict, printable(c.String()))
	fmt.Fprintf(&b, "  %s\n", printable(d.Reason))
	if r := rule(d.Rule); r != "" {
		fmt.Fprintf(&b, "  decided by %s (%s)\n", printable(r), d.Layer)
	} else {
		fmt.Fprintf(&b, "  decided by %s\n", layerWords(d.Layer))
	}
	if d.Nearest != "" {
		fmt.Fprintf(&b, "  nearest: %s\n", printable(d.Nearest))
	}
	if err := a.say("%s", b.String()); err != nil {
		return err
	}
	return exit(code)
}

func rule(p policy.Position) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func layerWords(layer string) string {
	switch layer {
	case policy.LayerBase:
		return "the built-in base"
	case policy.LayerAlways:
		return "the list of what is always denied"
	case policy.LayerNone:
		return "the default: nothing grants it"
	}
	return layer
}

// policyFields prints the table of fields.
func (a *app) policyFields() error {
	fields := policy.Fields()
	if a.global.json {
		return a.printJSON(a.stdout, struct {
			Version int            `json:"version"`
			Fields  []policy.Field `json:"fields"`
		}{1, fields})
	}
	var b strings.Builder
	for _, f := range fields {
		enforced := f.Enforcer
		if enforced == "" {
			enforced = "not enforced by this version: a run is refused"
		}
		fmt.Fprintf(&b, "%-22s %-48s %s\n", f.Name, enforced, f.Test)
	}
	return a.say("%s", b.String())
}

func newPolicyDiff() *command {
	return &command{
		name: "policy diff", args: "A B", short: "say what B allows that A does not, and the other way round",
		long:     "Exit code 1 if authority grew.",
		examples: []string{"policy diff main.yaml pr.yaml"},
		run: func(a *app, args []string) error {
			if len(args) != 2 {
				return fail(exitCannot, "exthost policy diff --help", "two policies are expected")
			}
			return a.policyDiff(args[0], args[1])
		},
	}
}

// policyDiff is the command policy diff.
func (a *app) policyDiff(from, to string) error {
	var two [2]*policy.Policy
	for i, arg := range []string{from, to} {
		p, err := a.namedPolicy(arg)
		if err != nil {
			var f *failure
			if errors.As(err, &f) {
				f.code = exitCannot // there is nothing to compare, which is not the finding that was asked for
			}
			return err
		}
		two[i] = p
	}
	changes := policy.Diff(two[0], two[1])
	code := exitOK
	for _, c := range changes {
		if c.Grew {
			code = exitFinding
		}
	}
	if a.global.json {
		err := a.printJSON(a.stdout, struct {
			Version int             `json:"version"`
			Grew    bool            `json:"grew"`
			Changes []policy.Change `json:"changes"`
		}{1, code == exitFinding, append([]policy.Change{}, changes...)})
		return errors.Join(err, exit(code))
	}
	for _, c := range changes {
		if err := a.say("%s\n", printable(c.String())); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		if err := a.say("no difference in what is allowed\n"); err != nil {
			return err
		}
	}
	return exit(code)
}

func newPolicySchema() *command {
	return &command{
		name: "policy schema", short: "print the JSON Schema of policies, for editors",
		examples: []string{"policy schema > policy.schema.json"},
		run: func(a *app, args []string) error {
			if len(args) > 0 {
				return fail(exitCannot, "", "policy schema takes no argument")
			}
			return a.say("%s\n", strings.TrimRight(string(policy.Schema()), "\n"))
		},
	}
}
