package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

// runFlags are the flags of run.
type runFlags struct {
	policy    string
	allow     []string
	workspace string
	engine    string
	time      span
	memory    byteSize
	strict    bool
	report    string
	dryRun    bool
	ceilings  []string
	weakWalls bool
}

func newRun() *command {
	var f runFlags
	dash := -1
	return &command{
		name: "run", args: "EXT [SCRIPT] [-- ARG...]", short: "run a script of an extension in the sandbox",
		guest: true, dash: &dash,
		long: "EXT is a folder with SKILL.md, or a file (.sh, .py, .wasm), and begins with ./ ../ / or ~/. SCRIPT is a path in\n" +
			"the folder; without it the only script there is run. What stands after -- is the script's.",
		examples: []string{
			"run ./pdf-report scripts/report.py -- --in /workspace/q3.csv",
			"run --policy p.yaml --json ./tool.wasm",
			"run --dry-run ./pdf-report scripts/report.py",
		},
		flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&f.policy, "policy", "", "the one `FILE` that grants (default policies/NAME.yaml of the home folder)")
			fs.StringArrayVar(&f.allow, "allow", nil, "add a `CAP`ability to the grant for this run (needs a terminal; repeat)")
			fs.StringVar(&f.workspace, "workspace", "", "`DIR` that ${workspace} means (default the current folder)")
			fs.StringVar(&f.engine, "engine", "", "`ENGINE`: wasmtime or wazero")
			fs.Var(&f.time, "time", "end the run after this `TIME`; no more than the policy's")
			fs.Var(&f.memory, "memory", "`SIZE` of the guest's memory; no more than the policy's")
			fs.BoolVar(&f.strict, "strict", false, "exit with 126 if anything was denied")
			fs.StringVar(&f.report, "report", "", "write the report, one JSON object, to `FILE`")
			fs.BoolVar(&f.dryRun, "dry-run", false, "print what the run would be bound to, and run nothing")
			fs.StringArrayVar(&f.ceilings, "ceiling", nil, "policy `FILE` that only takes away (repeat)")
			fs.BoolVar(&f.weakWalls, "weak-walls", false, "run even if a wall is missing (needs a terminal)")
		},
		run: func(a *app, args []string) error {
			before, after := args, []string(nil)
			if dash >= 0 {
				before, after = args[:dash], args[dash:]
			}
			switch {
			case len(before) == 0:
				return fail(0, "exthost run --help", "no extension was named")
			case len(before) > 2:
				return fail(0, shellCommand(append([]string{"exthost", "run", before[0], before[1], "--"}, before[2:]...)...),
					"the script's own arguments come after --")
			}
			script := ""
			if len(before) == 2 {
				script = before[1]
			}
			return a.run(&f, before[0], script, after)
		},
	}
}

// run is the command run.
func (a *app) run(f *runFlags, extArg, script string, args []string) error {
	x, err := a.resolve(extArg)
	if err != nil {
		return err
	}
	if len(f.allow) > 0 {
		if err := personThere("--allow", "use --policy FILE"); err != nil {
			return err
		}
	}
	if f.weakWalls {
		if err := personThere("--weak-walls", ""); err != nil {
			return err
		}
		a.warn("--weak-walls: a missing wall does not stop this run; what the guest can reach then depends on the engine alone")
	}
	ws, err := workspace(f.workspace)
	if err != nil {
		return err
	}
	g, err := a.findGrant(x, f.policy)
	if err != nil {
		return err
	}
	began := func() {}
	if err := g.add("terminal", f.allow...); err != nil {
		return err
	}
	if !f.dryRun {
		taken, err := a.takeOnce(a.ctx, x, g)
		if err != nil {
			return err
		}
		defer func() {
			if err := a.putBack(taken); err != nil {
				a.note("what was granted once is gone: %v", err)
			}
		}()
		began = func() { taken = nil }
	}
	ceilings, err := a.findCeilings(f.ceilings)
	if err != nil {
		return err
	}
	h, err := a.newHost(ceilings, f.weakWalls)
	if err != nil {
		return err
	}
	defer h.Close() // ends the workers; there is nobody to tell

	ext, err := h.Open(a.ctx, x.path, g.policy, host.Bindings{
		Name: x.name, Workspace: ws, Home: personHome(a.env), PinDigest: g.pinned,
	})
	if err != nil {
		return a.openError(x, g, err)
	}
	defer ext.Close()
	if script, err = pickScript(x, ext, script); err != nil {
		return err
	}
	limits := ext.Effective().Limits()
	if err := narrows(f.time, f.memory, limits, g); err != nil {
		return err
	}
	if f.report != "" && !isDir(filepath.Dir(f.report)) { // better now than after the run
		return fail(exitUnable, "", "report: %s is not a folder", filepath.Dir(f.report))
	}
	s := &session{
		app: a, x: x, ext: ext, grant: g, workspace: ws, strict: f.strict, report: f.report, engine: h.Engine(),
		job: host.Job{
			Script: script, Args: args, Env: a.env.list, Time: time.Duration(f.time), Memory: int64(f.memory),
		},
	}
	if f.dryRun {
		return s.dryRun()
	}
	if !isTerminal(a.stdin) { // a script that asks a question gets an end of file, never a hang
		s.job.Stdin = a.stdin
	}
	began()
	return s.run(limits.Output)
}

// personThere fails unless there is a controlling terminal.
func personThere(flag, hint string) error {
	c, err := needTTY(exitUnable, flag, hint)
	if err != nil {
		return err
	}
	return c.Close()
}

// narrows refuses --time and --memory beyond what the policy gives: a flag never widens.
func narrows(t span, memory byteSize, limits policy.Limits, g *grant) error {
	if time.Duration(t) > limits.Time {
		return fail(exitUnable, "", "--time %s is more than the limit of %s (%s)", policy.FormatTime(time.Duration(t)),
			policy.FormatTime(limits.Time), g.describe())
	}
	if int64(memory) > limits.Memory {
		return fail(exitUnable, "", "--memory %s is more than the limit of %s (%s)", formatBytes(int64(memory)),
			formatBytes(limits.Memory), g.describe())
	}
	return nil
}

func (a *app) newHost(ceilings []*policy.Policy, weakWalls bool) (*host.Host, error) {
	c := host.Config{
		Home: a.cfg.home, Cache: a.cfg.cache, Engine: a.cfg.engine, Workers: a.cfg.workers, Ceilings: ceilings,
		Progress: a.progress(), WeakWalls: weakWalls, OneRun: true, Spares: 1,
	}
	if person := personHome(a.env); person != "" {
		c.Deny = []string{filepath.Join(person, ".exthost")} // the usual home, also when this run has another
	}
	if a.global.verbose {
		c.Events = func(e host.Event) {
			denied := ""
			if e.Denied {
				denied = " denied"
			}
			a.debug("%s%s %s %s (%s)", e.Op, denied, e.Capability, e.Detail, e.Source)
		}
	}
	h, err := host.New(c)
	if err == nil {
		return h, nil
	}
	err = a.hostError(err)
	var f *failure
	if weakWalls && errors.As(err, &f) && errors.Is(err, host.ErrWalls) {
		f.hint = []string{"--weak-walls --engine wazero"} // the engine itself asks for the walls
	}
	return nil, err
}

// openError explains why an extension could not be bound.
func (a *app) openError(x extension, g *grant, err error) error {
	var refused *host.RefusedError
	if errors.As(err, &refused) {
		f := &failure{code: exitDenied, err: refused}
		if g.source == fromHome {
			f.hint = []string{a.command("grant", x.arg)}
		}
		return f
	}
	return a.hostError(err)
}

// command is a command line of exthost for a hint, with the same home folder as this one.
func (a *app) command(words ...string) string {
	all := []string{"exthost"}
	if a.global.home != "" {
		all = append(all, "--home", a.global.home)
	}
	return shellCommand(append(all, words...)...)
}

// hostError adds the exit code and the hint that go with an error of package host.
func (a *app) hostError(err error) error {
	f := &failure{code: host.ExitCode(nil, err, false), err: err}
	switch {
	case errors.Is(err, host.ErrNoRuntime):
		f.hint = []string{"exthost runtime list"}
	case errors.Is(err, host.ErrWalls):
		f.hint = []string{"exthost doctor"}
	case errors.Is(err, host.ErrNoEngine):
		f.hint = []string{"exthost version"}
	}
	return f
}

// session is one run of one extension, from the command line's side.
type session struct {
	app       *app
	x         extension
	ext       *host.Extension
	grant     *grant
	workspace string
	strict    bool
	report    string // --report
	engine    string
	job       host.Job
}

// runObject is what --json prints and --report writes.
type runObject struct {
	host.Report
	GrantedBy    []string `json:"granted_by"`              // policy files, "terminal", "once", "flags"
	Strict       bool     `json:"strict,omitempty"`        // --strict turned the exit code into 126
	Hints        []string `json:"hints,omitempty"`         // commands that would lift a denial, in the order of denials
	Stdout       *string  `json:"stdout,omitempty"`        // --json, when it is UTF-8
	StdoutBase64 []byte   `json:"stdout_base64,omitempty"` // --json, when it is not
	Stderr       *string  `json:"stderr,omitempty"`
	StderrBase64 []byte   `json:"stderr_base64,omitempty"`
}

// setStreams puts what was captured into the object.
func (o *runObject) setStreams(stdout, stderr []byte) {
	o.Stdout, o.StdoutBase64 = text(stdout)
	o.Stderr, o.StderrBase64 = text(stderr)
}

func text(b []byte) (*string, []byte) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

// run runs the job, prints what a person has to know and returns the exit code as an error. output is the limit of
// each captured stream in bytes; the host cuts there already.
func (s *session) run(output int64) error {
	a := s.app
	var outBuf, errBuf bytes.Buffer
	if a.global.json {
		s.job.Stdout, s.job.Stderr = &capped{&outBuf, output}, &capped{&errBuf, output}
	} else {
		s.job.Stdout, s.job.Stderr = a.guestStreams()
	}
	report, err := s.ext.Run(a.ctx, s.job)
	if report == nil {
		if err == nil {
			err = errors.New("the host gave no report")
		}
		if a.ctx.Err() != nil {
			return fail(exitUnable, "", "interrupted")
		}
		return a.hostError(err)
	}
	code := host.ExitCode(report, err, s.strict)
	o := &runObject{Report: *report, GrantedBy: s.grant.by()}
	if o.ExitCode != code {
		o.Strict = s.strict
		o.ExitCode = code
	}
	if a.global.json {
		o.setStreams(outBuf.Bytes(), errBuf.Bytes())
	}
	denials := s.denials(report.Denials)
	for _, d := range denials {
		if h := s.grantHint(d); h != "" {
			o.Hints = append(o.Hints, h)
		}
	}
	if s.grant.source == fromHome || s.grant.source == fromNothing { // elsewhere "grant" would change nothing
		if err := a.logDenials(denials); err != nil {
			a.note("the denials were not remembered: %v", err)
		}
	}
	s.explain(report, denials, code)
	s.explainSilence(report)
	if s.report != "" {
		data, err := encodeJSON(o)
		if err == nil {
			err = writeFile(s.report, data)
		}
		if err != nil {
			return fail(exitUnable, "", "report: %w", err)
		}
	}
	if a.global.json {
		if err := a.printJSON(a.stdout, o); err != nil {
			return err
		}
	}
	return exit(code)
}

// guestStreams are where a guest's text goes when it is not captured. A terminal gets it without escape sequences.
func (a *app) guestStreams() (stdout, stderr io.Writer) {
	stdout, stderr = a.stdout, a.out
	if isTerminal(a.stdout) {
		if a.out.tty { // most likely the same terminal: our lines must not continue the guest's
			stdout = &sharedLine{a.stdout, a.out}
		}
		stdout = &cleaner{w: stdout}
	}
	if a.out.tty {
		stderr = &cleaner{w: stderr}
	}
	return stdout, stderr
}

// sharedLine writes to stdout and tells the terminal of stderr whether the line is open.
type sharedLine struct {
	w io.Writer
	t *terminal
}

func (s *sharedLine) Write(p []byte) (int, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if len(p) > 0 {
		s.t.open = p[len(p)-1] != '\n'
	}
	return s.w.Write(p)
}

// capped keeps at most n bytes and swallows the rest: the host already stops there, and memory is not its to decide.
type capped struct {
	buf *bytes.Buffer
	n   int64
}

func (c *capped) Write(p []byte) (int, error) {
	c.buf.Write(p[:min(int64(len(p)), max(0, c.n-int64(c.buf.Len())))])
	return len(p), nil
}

// denials turns a report's denials into lines of the log, with what would have to be granted.
func (s *session) denials(list []host.Denial) []denial {
	var all []denial
	for _, d := range list {
		line := denial{
			Version: stateVersion, Time: time.Now().UTC(), Name: s.x.name, Path: s.x.path, Digest: s.ext.Digest(),
			Script: s.job.Script, Capability: d.Capability, Reason: d.Reason,
		}
		c, err := policy.ParseCapability(d.Capability)
		if err == nil {
			decision := s.ext.Effective().Decide(c)
			line.Reason = s.reason(c, decision, d)
			line.Ceiling = decision.Layer == policy.LayerCeiling
			if decision.Layer == policy.LayerNone || line.Ceiling {
				line.Suggest = s.suggest(c)
			}
		}
		all = append(all, line)
	}
	return all
}

// reason is the second line of a denial.
func (s *session) reason(c policy.Capability, d policy.Decision, reported host.Denial) string {
	switch {
	case c.Kind == policy.HTTP:
		return "this version has no network: no request can be granted"
	case len(reported.Targets) > 0:
		return reported.Reason + ": " + strings.Join(reported.Targets, "; ")
	case d.Allowed:
		return reported.Reason // the policy alone does not explain it: a link that leaves its root, for instance
	case s.grant.source == fromFlags && d.Layer == policy.LayerNone && d.Rule.IsZero():
		return "no --dir covers it"
	case s.grant.file == "" && d.Layer == policy.LayerNone && d.Rule.IsZero():
		return fmt.Sprintf("nothing is granted to %s: it has no policy", s.x.name)
	}
	reason := d.Reason
	if r := rule(d.Rule); r != "" {
		reason += " (" + s.app.tilde(r) + ")"
	}
	if s.grant.file != "" {
		reason = strings.ReplaceAll(reason, s.grant.file, s.app.tilde(s.grant.file))
	}
	return reason
}

// explain prints what became of a run, most important last.
func (s *session) explain(r *host.Report, denials []denial, code int) {
	a := s.app
	who := s.x.name
	if r.Script != "" && !s.x.file {
		who += " " + r.Script
	}
	for _, n := range r.Notes {
		// That a policy binds to no digest is worth a word only if it is a file that somebody keeps.
		if s.grant.source == fromFlag || !slices.Contains(s.ext.Notes(), n) {
			a.note("%s", n)
		}
	}
	if a.global.verbose {
		s.explainVerbose(r)
	}
	for _, d := range denials {
		a.out.line("denied", printable(who+": "+d.Capability))
		if d.Reason != "" {
			a.out.line("", "  "+printable(d.Reason))
		}
		a.hint(s.grantHint(d))
	}
	switch r.Outcome {
	case host.Limit:
		a.out.line("limit", printable(fmt.Sprintf("%s: %s", who, describe(r.Limit, r.Detail))))
	case host.Trap:
		a.out.line("trap", printable(fmt.Sprintf("%s: %s", who, describe(r.Trap, r.Detail))))
	case host.HostError:
		if a.ctx.Err() != nil {
			a.out.line("error", "interrupted")
			break
		}
		a.out.line("error", printable(fmt.Sprintf("%s: %s", who, r.Detail)))
	case host.Denied:
		a.out.line("denied", printable(fmt.Sprintf("%s: refused before it ran: %s", who, r.Detail)))
	}
	switch {
	case s.strict && code == exitDenied && len(r.Denials) > 0:
		a.out.line("strict", printable(fmt.Sprintf("%s: %d denied; without --strict the exit code is %d", who, len(r.Denials), r.ExitCode)))
	case r.Outcome == host.Exit && slices.Contains([]int{exitLimit, exitUnable, exitDenied, exitNotFound, exitTrap}, code):
		a.out.line("exit", printable(fmt.Sprintf("%s: %d is the guest's own exit code", who, code)))
	}
}

// explainSilence helps with a run that failed and was denied nothing: a test such as [ -f FILE ] of what is not granted
// finds nothing, and only the script says that a file is missing. It speaks of the arguments alone, which the person
// wrote, and of those that name something in the workspace.
func (s *session) explainSilence(r *host.Report) {
	if r.Outcome != host.Exit || r.ExitCode == 0 || len(r.Denials) > 0 {
		return
	}
	var unseen []host.Denial
	for _, arg := range s.job.Args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		c, err := policy.ParseCapability("read " + arg)
		if err != nil || s.ext.Effective().Decide(c).Allowed {
			continue
		}
		rest, ok := below(c.Path, "/workspace")
		if ok && rest != "" && exists(filepath.Join(s.workspace, filepath.FromSlash(rest))) {
			unseen = append(unseen, host.Denial{Capability: c.String()})
		}
	}
	for _, d := range s.denials(unseen) {
		s.app.note("%s is not granted: for the script it is not there", printable(d.Capability))
		s.app.hint(s.grantHint(d))
	}
}

func describe(word, detail string) string {
	if detail == "" || detail == word {
		return word
	}
	return word + " (" + detail + ")"
}

func (s *session) explainVerbose(r *host.Report) {
	a := s.app
	a.debug("run %s, engine %s, walls %s", r.Run, r.Engine, strings.Join(r.Walls, ", "))
	for _, c := range r.Changes {
		a.debug("%s %s (%s)", c.Op, c.Path, c.Layer)
	}
	a.debug("took %s, CPU %s, memory %s, written %s", r.Duration.Round(time.Millisecond), r.Usage.CPU.Round(time.Millisecond),
		formatBytes(r.Usage.MemoryBytes), formatBytes(r.Usage.DiskBytes))
}

// grantHint is a command that makes the denial go away, or "" when there is none.
func (s *session) grantHint(d denial) string {
	switch {
	case d.Suggest == "":
		return ""
	case s.grant.source == fromFlags:
		return ""
	case s.grant.source == fromFlag && !d.Ceiling:
		// The file is the person's own; nothing edits it for them.
		return shellCommand("exthost", "policy", "explain", s.grant.file, d.Capability)
	case s.app.cfg.home == "" || !validName(s.x.name):
		return ""
	case d.Ceiling:
		return s.app.command("grant", "--ceiling", s.x.name, d.Suggest)
	}
	return s.app.command("grant", s.x.name, d.Suggest)
}

// takeOnce adds what was granted for one run, and crosses it out. It returns what it took: a run that does not begin
// gives it back.
func (a *app) takeOnce(ctx context.Context, x extension, g *grant) (taken []once, err error) {
	all, err := a.readGrants()
	if err != nil {
		return nil, err
	}
	mine := func(o once) bool { return o.Name == x.name }
	if g.source == fromFlag || !slices.ContainsFunc(all.Once, mine) {
		return nil, nil
	}
	digest, err := host.TreeDigest(ctx, x.path)
	if err != nil {
		return nil, a.hostError(err)
	}
	var caps []string
	err = a.locked(func() error {
		all, err := a.readGrants() // again: now nobody else changes it
		if err != nil {
			return err
		}
		all.Once = slices.DeleteFunc(all.Once, func(o once) bool {
			if !mine(o) {
				return false
			}
			if o.Digest == digest {
				caps = append(caps, o.Capability)
				taken = append(taken, o)
			}
			return true // of another tree: it can never fit again
		})
		return a.writeGrants(all)
	})
	if err != nil {
		return nil, err
	}
	err = g.add("once", caps...)
	if err == nil && len(caps) > 0 && g.source == fromNothing {
		err = g.pin(digest) // the tree may change until the host copies it
	}
	if err != nil {
		return nil, errors.Join(err, a.putBack(taken))
	}
	return taken, nil
}

// putBack returns grants for one run that no run used.
func (a *app) putBack(taken []once) error {
	if len(taken) == 0 {
		return nil
	}
	return a.locked(func() error {
		all, err := a.readGrants()
		if err != nil {
			return err
		}
		all.Once = append(all.Once, taken...)
		return a.writeGrants(all)
	})
}
