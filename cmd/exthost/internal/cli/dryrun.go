package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/policy"
)

// binding is what run --dry-run --json prints: what the run would be bound to.
type binding struct {
	Version   int      `json:"version"` // of this object: 1
	Extension string   `json:"extension"`
	Path      string   `json:"path"`
	Digest    string   `json:"digest"`
	Script    string   `json:"script,omitempty"`
	Engine    string   `json:"engine"`
	GrantedBy []string `json:"granted_by"`
	Workspace string   `json:"workspace"`
	Mounts    []mount  `json:"mounts"`
	Env       []string `json:"env"` // names that the policy adds; values stay out of logs
	Limits    limits   `json:"limits"`
	Walls     []string `json:"walls"`             // required
	Refused   []string `json:"refused,omitempty"` // why the run would be refused
	Notes     []string `json:"notes,omitempty"`
}

// mount is one file root beside the base.
type mount struct {
	Guest     string   `json:"guest"`
	Host      string   `json:"host"`
	Access    string   `json:"access"` // read, write, overlay
	Create    bool     `json:"create,omitempty"`
	Hide      []string `json:"hide,omitempty"`
	Protected []string `json:"protected,omitempty"` // protected names that may be written after all
	Rule      string   `json:"rule,omitempty"`
	Missing   bool     `json:"missing,omitempty"` // the host path is not there
}

// limits are a run's budgets.
type limits struct {
	TimeNS      int64 `json:"time_ns"`
	MemoryBytes int64 `json:"memory_bytes"`
	OutputBytes int64 `json:"output_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
	OpenFiles   int   `json:"open_files"`
}

// dryRun prints the binding and runs nothing.
func (s *session) dryRun() error {
	a, eff := s.app, s.ext.Effective()
	roots, err := eff.Files(policy.Vars{
		Workspace: s.workspace, Skill: s.x.path, Data: a.dataFolder(s.x.name), Home: personHome(a.env),
		Denied: []string{a.cfg.home, a.cfg.cache},
	})
	if err != nil {
		return &failure{code: exitUnable, err: err}
	}
	l := eff.Limits()
	if s.job.Time != 0 {
		l.Time = s.job.Time
	}
	if s.job.Memory != 0 {
		l.Memory = s.job.Memory
	}
	b := binding{
		Version: 1, Extension: s.x.name, Path: s.x.path, Digest: s.ext.Digest(), Script: s.job.Script, Engine: s.engine,
		GrantedBy: s.grant.by(), Workspace: s.workspace, Mounts: []mount{}, Env: names(eff.Environ(a.env.list)),
		Limits: limits{int64(l.Time), l.Memory, l.Output, l.Disk, l.OpenFiles}, Walls: append([]string{}, eff.Walls()...),
		Notes: s.ext.Notes(),
	}
	for _, r := range roots {
		m := mount{Guest: r.Guest, Host: r.Host, Access: r.Access.String(), Create: r.Create, Hide: r.Hide,
			Protected: r.Protected, Rule: rule(r.Rule), Missing: !r.Optional && !exists(r.Host)}
		if m.Missing && !m.Create {
			b.Refused = append(b.Refused, fmt.Sprintf("%s: the host folder %s is not there", m.Guest, m.Host))
		}
		b.Mounts = append(b.Mounts, m)
	}
	for _, sc := range s.ext.Scripts() {
		if sc.Path == s.job.Script && sc.Missing != "" {
			b.Refused = append(b.Refused, sc.Missing)
		}
	}
	if a.global.json {
		err = a.printJSON(a.stdout, b)
	} else {
		err = a.printBinding(b)
	}
	if err == nil && len(b.Refused) > 0 {
		return exit(exitDenied)
	}
	return err
}

func (a *app) printBinding(b binding) error {
	var w strings.Builder
	row := func(key, format string, args ...any) {
		fmt.Fprintf(&w, "%-11s %s\n", key, printable(fmt.Sprintf(format, args...)))
	}
	row("extension", "%s %s", b.Extension, b.Digest)
	if b.Script != "" {
		row("script", "%s", b.Script)
	}
	row("engine", "%s", b.Engine)
	if len(b.GrantedBy) == 0 {
		row("grant", "none")
	}
	for _, g := range b.GrantedBy {
		row("grant", "%s", a.tilde(g))
	}
	row("mount", "/skill read (the extension)")
	row("mount", "/home/guest, /tmp write (private, gone after the run)")
	for _, m := range b.Mounts {
		extra := ""
		if len(m.Hide) > 0 {
			extra += ", hides " + strings.Join(m.Hide, " ")
		}
		if len(m.Protected) > 0 {
			extra += ", may write protected " + strings.Join(m.Protected, " ")
		}
		if m.Missing && m.Create {
			extra += ", made when it runs"
		}
		row("mount", "%s %s = %s%s", m.Guest, m.Access, a.tilde(m.Host), extra)
	}
	if len(b.Env) > 0 {
		row("env", "%s", strings.Join(b.Env, " "))
	}
	row("limits", "time %s, memory %s, output %s, disk %s, open files %d", policy.FormatTime(time.Duration(b.Limits.TimeNS)),
		formatBytes(b.Limits.MemoryBytes), formatBytes(b.Limits.OutputBytes), formatBytes(b.Limits.DiskBytes), b.Limits.OpenFiles)
	row("walls", "%s", strings.Join(b.Walls, ", "))
	for _, n := range b.Notes {
		row("note", "%s", n)
	}
	for _, r := range b.Refused {
		row("refused", "%s", r)
	}
	return a.say("%s", w.String())
}

// names takes the values off an environment.
func names(env []string) []string {
	all := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// dataFolder is what ${data} means for an extension.
func (a *app) dataFolder(name string) string {
	if a.cfg.home == "" {
		return ""
	}
	return filepath.Join(a.cfg.home, "data", name)
}
