package policy

import (
	"fmt"
	"strings"
)

// Explain returns the whole of e in words, one line each: what the base gives, what the grant adds, what ceilings take
// away, and what this version does not enforce yet.
func (e *Effective) Explain() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	p := e.Grant
	if p == nil {
		say("no policy: the base alone")
		p = &Policy{}
	} else {
		say("grant %s for extension %s", orElse(p.File, "(unnamed)"), p.Extension)
		say("  binds to %s", orElse(p.Digest, "any content: it has no digest"))
	}
	for _, c := range e.Ceilings {
		say("ceiling %s", orElse(c.File, "(unnamed)"))
	}

	say("files")
	for _, b := range baseRoots {
		if e.files[b.guest] == nil {
			say("  %s: %s, %s (base)", b.guest, b.access, b.what)
		}
	}
	for _, f := range p.Files {
		say("  %s: %s (%s)", f.Guest, viewOf(e, f.Guest), f.Pos)
		for _, c := range e.Ceilings {
			if c.Files == nil {
				continue
			}
			if a, entry := e.ceilingAccess(c, &f, f.Guest); a < f.Access {
				pos := c.At("files")
				if entry != nil {
					pos = entry.Pos
				}
				say("    a ceiling leaves %s at this path (%s)", a, pos)
			}
			for _, cf := range c.Files {
				if cf.Guest != f.Guest && within(f.Guest, cf.Guest) {
					a, _ := e.ceilingAccess(c, &f, cf.Guest)
					say("    a ceiling leaves %s below %s (%s)", min(a, f.Access), cf.Guest, cf.Pos)
				}
			}
		}
	}

	say("environment")
	say("  %s (base)", strings.Join(BaseEnv(), ", "))
	if p.Env != nil {
		for _, v := range p.Env.Pass {
			say("  %s from the host%s (%s)", v.Pattern, e.envNote(v.Pattern, "", false), v.Pos)
		}
		for _, v := range p.Env.Set {
			say("  %s=%q%s (%s)", v.Name, clip(v.Value), e.envNote(v.Name, v.Value, true), v.Pos)
		}
	}

	section(&out, "network", len(p.Network), "none, names are not resolved")
	for i := range p.Network {
		say("  %s", p.Network[i].describe())
	}
	e.opinions(&out, func(c *Policy) (string, int, bool) { return "network", len(c.Network), c.Network != nil })
	section(&out, "secrets", len(p.Secrets), "none")
	for _, s := range p.Secrets {
		say("  %s from %s to %s in %s (%s)", s.Name, s.From, strings.Join(s.To, ", "), strings.Join(s.In, ", "), s.Pos)
	}
	e.opinions(&out, func(c *Policy) (string, int, bool) { return "secrets", len(c.Secrets), c.Secrets != nil })
	section(&out, "tools", len(p.Tools), "none")
	for _, a := range toolAtoms(p) {
		say("  %s (%s)", a.text, a.pos)
	}
	e.opinions(&out, func(c *Policy) (string, int, bool) { return "tools", len(c.Tools), c.Tools != nil })

	say("limits")
	for _, l := range e.Limits().list() {
		say("  %s %s", l.key, l.text)
	}
	say("shared %v", e.Shared())
	say("walls %s", orElse(strings.Join(e.Walls(), ", "), "none"))
	say("always denied: writing %d protected names such as .git, .vscode and AGENTS.md, exthost's own folders, and the environment of loaders, interpreters and proxies", len(protectedNames))
	for _, u := range e.Unenforced() {
		say("%s", u.Msg)
	}
	return out
}

func section(out *[]string, name string, n int, none string) {
	if n == 0 {
		name += ": " + none
	}
	*out = append(*out, name)
}

func (e *Effective) opinions(out *[]string, get func(c *Policy) (string, int, bool)) {
	if e.Grant == nil {
		return
	}
	for _, c := range e.Ceilings {
		if name, n, has := get(c); has {
			*out = append(*out, fmt.Sprintf("  only what one of %d lines of a ceiling allows too (%s)", n, c.At(name)))
		}
	}
}

// envNote says what a ceiling takes away of one line of env.
func (e *Effective) envNote(name, value string, literal bool) string {
	for _, c := range e.Ceilings {
		switch {
		case c.Env == nil:
		case strings.HasSuffix(name, "*"):
			return fmt.Sprintf(", of these what the ceiling covers too (%s)", c.At("env"))
		case !ceilingEnv(c, name, value, literal):
			return fmt.Sprintf(", but the ceiling does not cover it (%s)", c.At("env"))
		}
	}
	return ""
}
