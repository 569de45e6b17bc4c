package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

func noArgs(name string, args []string) error {
	if len(args) > 0 {
		return fail(exitCannot, "exthost "+name+" --help", "%s takes no argument", name)
	}
	return nil
}

func newRuntimeList() *command {
	return &command{
		name: "runtime list", short: "list the language runtimes of this binary",
		run: func(a *app, args []string) error {
			if err := noArgs("runtime list", args); err != nil {
				return err
			}
			all := host.Runtimes()
			if a.global.json {
				return a.printJSON(a.stdout, struct {
					Version  int                `json:"version"`
					Runtimes []host.RuntimeInfo `json:"runtimes"`
				}{1, all})
			}
			for _, r := range all {
				err := a.say("%-8s %-9s %-9s %s\n", r.Name, dash(r.Version), r.State, strings.Join(r.Extensions, " "))
				if err != nil {
					return err
				}
				if r.Hint != "" {
					a.hint(r.Name + ": " + r.Hint)
				}
			}
			return nil
		},
	}
}

func newRuntimeWarm() *command {
	return &command{
		name: "runtime warm", args: "[NAME...]", short: "unpack and compile runtimes, so that the first run is fast",
		long:     "Without NAME it takes all that are in this binary. The work is done once; later runs of any extension use it.",
		examples: []string{"runtime warm", "runtime warm sh"},
		run:      func(a *app, args []string) error { return a.runtimeWarm(args) },
	}
}

// runtimeWarm is the command runtime warm.
func (a *app) runtimeWarm(names []string) error {
	known := map[string]bool{}
	all := len(names) == 0
	for _, r := range host.Runtimes() {
		known[r.Name] = true
		if all && r.State == "embedded" {
			names = append(names, r.Name)
		}
	}
	for _, name := range names {
		if !known[name] {
			return fail(exitCannot, "exthost runtime list", "no runtime is called %q", name)
		}
	}
	ceilings, err := a.findCeilings(nil) // a limit of memory is part of what is compiled
	if err != nil {
		return err
	}
	h, err := a.newHost(ceilings, false)
	if err != nil {
		return cannot(err)
	}
	defer h.Close()
	type warmed struct {
		Name     string        `json:"name"`
		Duration time.Duration `json:"duration_ns"`
	}
	done := []warmed{}
	for _, name := range names {
		begin := time.Now()
		if err := h.Warm(a.ctx, name); err != nil {
			return cannot(a.hostError(err))
		}
		took := time.Since(begin)
		done = append(done, warmed{name, took})
		if !a.global.json {
			if err := a.say("%-8s ready on %s, %.1f s\n", name, h.Engine(), took.Seconds()); err != nil {
				return err
			}
		}
	}
	if !a.global.json {
		return nil
	}
	return a.printJSON(a.stdout, struct {
		Version  int      `json:"version"`
		Engine   string   `json:"engine"`
		Runtimes []warmed `json:"runtimes"`
	}{1, h.Engine(), done})
}

// cannot gives an error of package host the exit code of a command that runs no guest.
func cannot(err error) error {
	var f *failure
	if errors.As(err, &f) {
		f.code = exitCannot
	}
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newDoctor() *command {
	return &command{
		name: "doctor", short: "check walls, engines, runtimes and files of this machine",
		long: "Exit code 1 if a check failed; a warning does not change it.",
		run: func(a *app, args []string) error {
			if err := noArgs("doctor", args); err != nil {
				return err
			}
			return a.doctor()
		},
	}
}

// doctor is the command doctor: the host's checks and those of the command line's own files.
func (a *app) doctor() error {
	checks := host.Doctor(a.ctx, host.Config{
		Home: a.cfg.home, Cache: a.cfg.cache, Engine: a.cfg.engine, Workers: a.cfg.workers,
	})
	checks = append(checks, a.checkFiles()...)
	code := exitOK
	for _, c := range checks {
		if c.State == "fail" {
			code = exitFinding
		}
	}
	if a.global.json {
		err := a.printJSON(a.stdout, struct {
			Version int          `json:"version"`
			OK      bool         `json:"ok"`
			Checks  []host.Check `json:"checks"`
		}{1, code == exitOK, checks})
		if err != nil {
			return err
		}
		return exit(code)
	}
	for _, c := range checks {
		if err := a.say("%-4s  %-18s %s\n", c.State, printable(c.Name), printable(c.Detail)); err != nil {
			return err
		}
		if c.Hint != "" {
			a.hint(c.Hint)
		}
	}
	return exit(code)
}

// checkFiles looks at every file of the home folder that a command of this version reads.
func (a *app) checkFiles() []host.Check {
	if a.cfg.home == "" {
		return []host.Check{{Name: "home", State: "warn", Detail: "there is none: nothing is remembered, only --policy grants",
			Hint: "set EXTHOST_HOME"}}
	}
	checks := []host.Check{checkPrivate("home", a.cfg.home)}
	add := func(name, detail string, err error) {
		if err != nil {
			checks = append(checks, host.Check{Name: name, State: "fail", Detail: err.Error()})
		} else {
			checks = append(checks, host.Check{Name: name, State: "ok", Detail: detail})
		}
	}
	ceilings, err := a.findCeilings(nil)
	add("ceiling.yaml", count(len(ceilings), "ceiling"), err)
	grants, err := a.readGrants()
	add("grants.json", fmt.Sprintf("%d once, %d never", len(grants.Once), len(grants.Never)), err)
	denials, err := a.readDenials()
	add("denials.jsonl", count(len(denials), "denial"), err)
	for _, file := range a.policyFiles() {
		_, p, err := readPolicy(file)
		name := "policies/" + filepath.Base(file)
		switch {
		case err != nil:
			add(name, "", err)
		case p.Digest == "":
			checks = append(checks, host.Check{Name: name, State: "warn", Detail: "has no digest: it binds to nothing",
				Hint: shellCommand("exthost", "grant", strings.TrimSuffix(filepath.Base(file), ".yaml"))})
		default:
			if refused := policy.New(p).Unenforced(); len(refused) > 0 {
				checks = append(checks, host.Check{Name: name, State: "warn", Detail: "every run is refused: " + refused[0].Msg})
				continue
			}
			add(name, p.Digest, nil)
		}
	}
	return checks
}

func newVersion() *command {
	return &command{
		name: "version", short: "say what is in this binary",
		run: func(a *app, args []string) error {
			if err := noArgs("version", args); err != nil {
				return err
			}
			v := host.Versions()
			if a.global.json {
				return a.printJSON(a.stdout, v)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "exthost %s", v.Version)
			if v.Commit != "" {
				fmt.Fprintf(&b, " (%s)", v.Commit)
			}
			cgo := "without cgo"
			if v.Cgo {
				cgo = "cgo"
			}
			fmt.Fprintf(&b, "\n%s %s/%s, %s\n", v.Go, v.OS, v.Arch, cgo)
			for _, e := range v.Engines {
				fmt.Fprintf(&b, "engine %s %s", e.Name, e.Version)
				if e.Default {
					b.WriteString(" (default)")
				}
				b.WriteString("\n")
				closed := 0
				for _, ad := range e.Advisories {
					if ad.Verdict != host.AdvisoryOpen && !a.global.verbose {
						closed++
						continue
					}
					fmt.Fprintf(&b, "  %s (%s): %s", ad.ID, ad.Severity, ad.Verdict)
					if ad.Why != "" {
						b.WriteString(": " + ad.Why)
					}
					b.WriteString("\n")
				}
				if closed > 0 {
					fmt.Fprintf(&b, "  known and mitigated or not reachable: %d (exthost version -v)\n", closed)
				}
			}
			return a.say("%s", b.String())
		},
	}
}

func versionText() string { return host.Versions().Version }

func newCacheClean() *command {
	return &command{
		name: "cache clean", short: "remove compiled modules, unpacked runtimes and snapshots",
		run: func(a *app, args []string) error {
			if err := noArgs("cache clean", args); err != nil {
				return err
			}
			c, err := host.CleanCache(a.cfg.cache)
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(a.stdout, struct {
					Version int `json:"version"`
					host.Cleaned
				}{1, c})
			}
			return a.say("removed %s, %s, from %s\n", count(c.Files, "file"), formatBytes(c.Bytes), printable(a.tilde(c.Dir)))
		},
	}
}
