package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

// grantFlags are the flags of grant.
type grantFlags struct {
	once    bool
	ceiling bool
	yes     bool
}

func newGrant() *command {
	var f grantFlags
	return &command{
		name: "grant", args: "[NAME [CAP...]]", short: "grant an extension what it was denied",
		long: "Without NAME it lists recent denials and asks about each: once, always, never. NAME is the name in a denial, or\n" +
			"EXT. NAME alone renews the grant of an extension that changed. A path may be followed by =HOST; without it\n" +
			"/workspace means ${workspace} and /data means ${data}. It needs a terminal, except with NAME, CAP and --yes.",
		examples: []string{
			"grant",
			"grant pdf-report 'read /workspace/q3.csv'",
			"grant pdf-report 'write /out=${workspace}/reports' --yes",
		},
		flags: func(fs *pflag.FlagSet) {
			fs.BoolVar(&f.once, "once", false, "for the next run only")
			fs.BoolVar(&f.ceiling, "ceiling", false, "add the line to ceiling.yaml instead")
			fs.BoolVar(&f.yes, "yes", false, "do not ask; needs no terminal")
		},
		run: func(a *app, args []string) error { return a.grant(&f, args) },
	}
}

// grant is the command grant.
func (a *app) grant(f *grantFlags, args []string) error {
	if f.once && f.ceiling {
		return fail(exitCannot, "exthost grant --help", "--once and --ceiling exclude each other")
	}
	var person *console
	if !f.yes || len(args) < 2 {
		var err error
		hint := ""
		if len(args) >= 2 {
			hint = shellCommand(append([]string{"exthost", "grant", "--yes"}, args...)...)
		}
		if person, err = needTTY(exitUnable, "grant", hint); err != nil {
			return err
		}
		defer person.Close()
	}
	if a.cfg.home == "" {
		return errNoHome
	}
	if len(args) == 0 {
		return a.grantAsk(person)
	}
	t, err := a.grantTarget(args[0])
	if err != nil {
		return err
	}
	for _, c := range args[1:] { // all of them, before anything is written
		parsed, _, err := parseGrant(c)
		if err != nil {
			return err
		}
		if k := parsed.Kind; !f.ceiling && k != policy.Read && k != policy.Write && k != policy.Env {
			return fail(exitCannot, "exthost help policy", "%s: this version can grant read, write and env only", printable(c))
		}
	}
	if f.yes {
		person = nil
	}
	switch {
	case f.once:
		if len(args) < 2 {
			return fail(exitCannot, "", "--once needs a capability")
		}
		return a.grantOnce(t, args[1:], person)
	case f.ceiling:
		if len(args) < 2 {
			return fail(exitCannot, "", "--ceiling needs a capability")
		}
		return a.grantCeiling(args[1:], person)
	}
	if t.path == "" && len(args) < 2 {
		return fail(exitCannot, "name it by its path, for example ./"+t.name, "nothing remembers where %q is, so there is no tree to renew its grant for", t.name)
	}
	return a.grantLines(t, args[1:], person)
}

// target is the extension that a grant is for.
type target struct {
	name   string
	path   string // absolute; "" when nothing remembers where it is
	digest string // of the tree as it is now; of the tree that has the grant, if path is ""
}

// grantTarget resolves NAME: a path, the name of an extension that a denial remembers, or else of one that has a grant
// already. The last is for the tree that has it: another tree of that name still has none.
func (a *app) grantTarget(arg string) (target, error) {
	t := target{name: arg}
	if isPath(arg) {
		x, err := a.resolve(arg)
		if err != nil {
			var f *failure
			if errors.As(err, &f) {
				f.code = exitCannot
			}
			return t, err
		}
		t.name, t.path = x.name, x.path
	}
	if !validName(t.name) {
		return t, fail(exitCannot, "", "%q cannot be the name of a policy file: letters, digits and . _ - only, at most 64", t.name)
	}
	if t.path == "" {
		all, err := a.readDenials()
		if err != nil {
			return t, err
		}
		for _, d := range slices.Backward(all) {
			if d.Name == t.name && exists(d.Path) {
				t.path = d.Path
				break
			}
		}
	}
	if t.path == "" {
		if _, p, err := readPolicy(a.policyFile(t.name)); err == nil && p.Digest != "" {
			t.digest = p.Digest
			return t, nil
		}
		return t, fail(exitCannot, "name it by its path, for example ./"+t.name,
			"nothing remembers where %q is: it has no denial in the log", t.name)
	}
	var err error
	if t.digest, err = host.TreeDigest(a.ctx, t.path); err != nil {
		return t, err
	}
	return t, nil
}

// grantLines writes policies/NAME.yaml.
func (a *app) grantLines(t target, caps []string, person *console) error {
	file := a.policyFile(t.name)
	edit := func() (data []byte, before, after *policy.Policy, err error) {
		old, before, err := readPolicy(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil, err
		}
		if before == nil && len(caps) == 0 {
			return nil, nil, nil, fail(exitCannot, shellCommand("exthost", "grant", t.name, "read /workspace"),
				"%s has no grant to renew", t.name)
		}
		if data, err = addLines(t.name, old, caps); err != nil {
			return nil, nil, nil, err
		}
		if data, err = policy.SetDigest(data, t.digest); err != nil {
			return nil, nil, nil, err
		}
		if after, err = policy.Parse(file, data); err != nil {
			return nil, nil, nil, err
		}
		return data, before, after, testsPass(after)
	}
	_, before, after, err := edit()
	if err != nil {
		return err
	}
	if before != nil && before.Digest != t.digest {
		a.warn("%s changed since the grant", t.name)
		a.warn("  it was %s", orNone(before.Digest))
		a.warn("  it is  %s, at %s; this renews its whole grant", t.digest, a.tilde(t.path))
	}
	a.warnWrites(after, caps)
	// The person may think as long as they like: nobody else waits for the lock meanwhile.
	if err := a.confirm(person, "grant", t.name, caps); err != nil {
		return err
	}
	return a.locked(func() error {
		data, _, _, err := edit() // again, of what is there now
		if err != nil {
			return err
		}
		if err := writeFile(file, data); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		if err := a.forget(t.name, caps); err != nil {
			return err
		}
		return a.granted(t, file, caps, "always")
	})
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// grantOnce remembers capabilities for the next run of exactly this tree.
func (a *app) grantOnce(t target, caps []string, person *console) error {
	if err := a.confirm(person, "grant once", t.name, caps); err != nil {
		return err
	}
	return a.locked(func() error {
		all, err := a.readGrants()
		if err != nil {
			return err
		}
		for _, c := range caps {
			o := once{Name: t.name, Digest: t.digest, Capability: c}
			if !slices.Contains(all.Once, o) {
				all.Once = append(all.Once, o)
			}
		}
		if err := a.writeGrants(all); err != nil {
			return err
		}
		if err := a.forget(t.name, caps); err != nil {
			return err
		}
		return a.granted(t, filepath.Join(a.cfg.home, "grants.json"), caps, "once")
	})
}

// grantCeiling writes ceiling.yaml.
func (a *app) grantCeiling(caps []string, person *console) error {
	file := filepath.Join(a.cfg.home, "ceiling.yaml")
	edit := func() (data []byte, before *policy.Policy, err error) {
		old, before, err := readPolicy(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if data, err = addLines("ceiling", old, caps); err != nil {
			return nil, nil, err
		}
		after, err := policy.Parse(file, data)
		if err != nil {
			return nil, nil, err
		}
		return data, before, testsPass(after)
	}
	_, before, err := edit()
	if err != nil {
		return err
	}
	if before == nil {
		a.warn("there is no ceiling yet: from now on no extension gets more of that kind than these lines")
	}
	if err := a.confirm(person, "let the ceiling allow", "", caps); err != nil {
		return err
	}
	return a.locked(func() error {
		data, _, err := edit()
		if err != nil {
			return err
		}
		if err := writeFile(file, data); err != nil {
			return fmt.Errorf("ceiling: %w", err)
		}
		return a.granted(target{}, file, caps, "ceiling")
	})
}

// confirm asks the person, if there is one to ask.
func (a *app) confirm(person *console, what, name string, caps []string) error {
	if person == nil {
		return nil
	}
	question := "exthost: " + what
	if name != "" {
		question += " " + name
	}
	if len(caps) == 0 {
		question += " what its file says"
	}
	for _, c := range caps {
		question += "\n  " + printable(c)
		if c, hostPath, err := parseGrant(c); err == nil && hostPath != "" {
			question += "\n    " + printable(fmt.Sprintf("the script's %s is %s of this machine", c.Path, hostPath))
		}
	}
	answer, err := person.ask(question + "\nyes or no? ")
	if err != nil {
		return err
	}
	if answer != "y" && answer != "yes" {
		return fail(exitFinding, "", "nothing was granted")
	}
	return nil
}

// granted is the answer of grant.
func (a *app) granted(t target, file string, caps []string, how string) error {
	if a.global.json {
		return a.printJSON(a.stdout, struct {
			Version int      `json:"version"`
			Name    string   `json:"name,omitempty"`
			Digest  string   `json:"digest,omitempty"`
			File    string   `json:"file"`
			Granted []string `json:"granted"`
			How     string   `json:"how"` // always, once, ceiling
		}{1, t.name, t.digest, file, append([]string{}, caps...), how})
	}
	for _, c := range caps {
		if err := a.say("granted (%s): %s\n", how, printable(c)); err != nil {
			return err
		}
	}
	return a.say("wrote %s\n", printable(a.tilde(file)))
}

// forget takes granted capabilities out of the denial log. Preconditions: the home folder is locked.
func (a *app) forget(name string, caps []string) error {
	all, err := a.readDenials()
	if err != nil {
		return err
	}
	n := len(all)
	all = slices.DeleteFunc(all, func(d denial) bool {
		return d.Name == name && (slices.Contains(caps, d.Suggest) || slices.Contains(caps, d.Capability))
	})
	if len(all) == n {
		return nil
	}
	return a.writeDenials(all)
}

// testsPass runs a policy's own tests, so that one which fails them replaces nothing.
func testsPass(p *policy.Policy) error {
	failed := failedTests(p)
	if len(failed) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("nothing was written: the file's own tests would fail")
	for _, f := range failed {
		b.WriteString("\n" + f.String())
	}
	return &failure{code: exitFinding, err: errors.New(b.String())}
}

// failedTests runs a policy's own tests and returns those that fail.
func failedTests(p *policy.Policy) []policy.TestResult {
	return slices.DeleteFunc(policy.RunTests(p), func(r policy.TestResult) bool { return r.OK })
}

// warnWrites says what a write root on a source tree means.
func (a *app) warnWrites(p *policy.Policy, caps []string) {
	for _, text := range caps {
		c, hostPath, err := parseGrant(text)
		if err != nil || c.Kind != policy.Write || c.Path != "/workspace" && hostPath != "${workspace}" {
			continue
		}
		a.warn("%s can change every file of the workspace; what builds or runs them later runs what it wrote", p.Extension)
		a.hint("access: overlay in the policy keeps its writes aside")
	}
}

// grantAsk lists recent denials and asks about each.
func (a *app) grantAsk(person *console) error {
	all, err := a.readDenials()
	if err != nil {
		return err
	}
	grants, err := a.readGrants()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d denial) bool {
		return d.Suggest == "" || !validName(d.Name) || slices.Contains(grants.Never, never{d.Name, d.Capability})
	})
	if len(all) == 0 {
		return a.say("no denials that a grant could change\n")
	}
	for i, d := range slices.Backward(all) {
		err := person.say("\n%s: %s %s\n  asked for: %s\n  %s\n  grant:     %s\n", d.Time.Local().Format("2006-01-02 15:04"),
			printable(d.Name), printable(d.Script), printable(d.Capability), printable(d.Reason), printable(d.Suggest))
		if err != nil {
			return err
		}
		answer, err := person.ask(fmt.Sprintf("once, always, never, skip or quit (%d left)? ", i))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch answer {
		case "o", "once":
			err = a.answer(d, false, func(t target) error { return a.grantOnce(t, []string{d.Suggest}, nil) })
		case "a", "always":
			err = a.answer(d, d.Ceiling, func(t target) error { return a.grantLines(t, []string{d.Suggest}, nil) })
		case "n", "never":
			err = a.grantNever(d)
		case "q", "quit":
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer grants what one denial asked for. The tree must still be the one that asked.
func (a *app) answer(d denial, ceiling bool, give func(target) error) error {
	if ceiling {
		return a.grantCeiling([]string{d.Suggest}, nil)
	}
	if _, err := os.Stat(d.Path); err != nil {
		a.warn("%s is not at %s any more", d.Name, a.tilde(d.Path))
		return nil
	}
	digest, err := host.TreeDigest(a.ctx, d.Path)
	if err != nil {
		return err
	}
	if digest != d.Digest {
		a.warn("%s changed since it asked: run it again first", d.Name)
		return nil
	}
	return give(target{name: d.Name, path: d.Path, digest: digest})
}

func (a *app) grantNever(d denial) error {
	return a.locked(func() error {
		all, err := a.readGrants()
		if err != nil {
			return err
		}
		all.Never = append(all.Never, never{d.Name, d.Capability})
		return a.writeGrants(all)
	})
}

func newRevoke() *command {
	return &command{
		name: "revoke", args: "NAME [CAP...]", short: "take back what was granted",
		long:     "Without CAP the whole grant goes. CAP is spelt as in grant.",
		examples: []string{"revoke pdf-report", "revoke pdf-report 'write /out'"},
		run: func(a *app, args []string) error {
			if len(args) == 0 {
				return fail(exitCannot, "exthost revoke --help", "no extension was named")
			}
			return a.revoke(args[0], args[1:])
		},
	}
}

// revoke is the command revoke. It works for an extension that is gone.
func (a *app) revoke(name string, caps []string) error {
	if a.cfg.home == "" {
		return errNoHome
	}
	if isPath(name) {
		name = nameOf(filepath.Clean(name))
	}
	file := a.policyFile(name)
	if file == "" {
		return fail(exitCannot, "", "%q cannot be the name of a policy file", name)
	}
	return a.locked(func() error {
		n, err := a.revokeOnce(name, caps)
		if err != nil {
			return err
		}
		data, _, err := readPolicy(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if n == 0 {
				return fail(exitFinding, "", "%s has no grant", name)
			}
			return a.revoked(name, caps, "")
		case len(caps) == 0: // also of a file that does not parse
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("policy: %w", err)
			}
			return a.revoked(name, nil, "")
		case err != nil:
			return err
		}
		for _, text := range caps {
			c, _, err := parseGrant(text)
			if err != nil {
				return err
			}
			if data, err = policy.RemoveGrant(data, c); err != nil {
				return &failure{code: exitFinding, err: err, hint: []string{a.command("policy", "explain", name)}}
			}
		}
		after, err := policy.Parse(file, data)
		if err != nil {
			return err
		}
		if err := testsPass(after); err != nil {
			return err
		}
		if err := writeFile(file, data); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		return a.revoked(name, caps, file)
	})
}

// revokeOnce takes back grants for the next run and reports how many there were. Preconditions: the home is locked.
func (a *app) revokeOnce(name string, caps []string) (int, error) {
	all, err := a.readGrants()
	if err != nil {
		return 0, err
	}
	before := len(all.Once)
	all.Once = slices.DeleteFunc(all.Once, func(o once) bool {
		return o.Name == name && (len(caps) == 0 || slices.Contains(caps, o.Capability))
	})
	if len(all.Once) == before {
		return 0, nil
	}
	return before - len(all.Once), a.writeGrants(all)
}

func (a *app) revoked(name string, caps []string, file string) error {
	if a.global.json {
		return a.printJSON(a.stdout, struct {
			Version int      `json:"version"`
			Name    string   `json:"name"`
			Revoked []string `json:"revoked"` // empty: everything
			File    string   `json:"file,omitempty"`
		}{1, name, append([]string{}, caps...), file})
	}
	if len(caps) == 0 {
		return a.say("revoked everything of %s\n", name)
	}
	for _, c := range caps {
		if err := a.say("revoked: %s\n", printable(c)); err != nil {
			return err
		}
	}
	return nil
}
