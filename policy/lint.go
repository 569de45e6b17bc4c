package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Lint returns warnings about a policy that is valid but gives more than its author may see. The code of each is
// [CodeWarning]; an empty result promises nothing.
func Lint(p *Policy) Errors {
	var out Errors
	warn := func(pos Position, hint, format string, args ...any) {
		out = append(out, Error{Position: pos, Code: CodeWarning, Msg: fmt.Sprintf(format, args...), Hint: hint})
	}
	if p.Digest == "" {
		warn(p.At("extension"), "exthost grant writes it", "no digest: the policy binds to whatever content the extension has")
	}
	if p.Env != nil {
		for _, e := range p.Env.Pass {
			if EnvLooksSecret(strings.TrimSuffix(e.Pattern, "*")) {
				warn(e.Pos, "use secrets, which gives a placeholder", "env.pass: %s looks like a credential and the guest will read its value", e.Pattern)
			} else if strings.HasSuffix(e.Pattern, "*") && len(e.Pattern) < 4 {
				warn(e.Pos, "name the variables", "env.pass: %s passes many variables", e.Pattern)
			}
		}
		for _, e := range p.Env.Set {
			if EnvLooksSecret(e.Name) && e.Value != "" {
				warn(e.Pos, "use secrets, which gives a placeholder", "env.set: %s looks like a credential that is written in the policy", e.Name)
			}
		}
	}
	for _, f := range p.Files {
		lintFile(&f, warn)
	}
	for _, l := range p.Network {
		switch {
		case l.Host == "*":
			warn(l.Pos, "name the hosts", "network: host \"*\" reaches every public site: whatever the guest can read it can send there")
		case strings.HasPrefix(l.Host, "*.") && strings.Count(l.Host, ".") == 1:
			warn(l.Pos, "name the hosts", "network: host %q covers a whole top-level domain", l.Host)
		}
		if l.Scheme == "http" {
			warn(l.Pos, "", "network: http to %s can be read and changed on the way", l.Host)
		}
		if len(l.Addresses) > 0 {
			warn(l.Pos, "", "network: %s may lead to the inner addresses %v", l.Host, l.Addresses)
		}
		if len(l.Methods) == 0 || l.Paths != nil && len(l.Paths) == 0 {
			warn(l.Pos, "remove the line, or leave the key out for its default", "network: the line for %s allows nothing", l.Host)
		}
	}
	for _, s := range p.Secrets {
		for _, to := range s.To {
			if !slices.ContainsFunc(p.Network, func(l Network) bool { return l.Scheme == "https" && hostCovers(l.Host, to) }) {
				warn(s.Pos, "", "secrets.%s would go to %s without encryption", s.Name, to)
			}
		}
		for _, in := range s.In {
			if in == "body" || strings.HasPrefix(in, "query:") {
				warn(s.Pos, "prefer a header", "secrets.%s in %s: the receiver may keep it or show it again", s.Name, in)
			}
		}
	}
	for _, t := range p.Tools {
		if slices.Contains(t.Allow, "*") && len(t.DenyHints) == 0 {
			warn(t.Pos, "", "tools: every tool of %s is allowed, also those it will have tomorrow", t.Server)
		}
	}
	if len(p.Tests.Allow)+len(p.Tests.Deny) == 0 {
		warn(p.At("version"), "", "no tests: nothing holds the policy to what it is meant to say")
	}
	return out.sorted()
}

func lintFile(f *File, warn func(pos Position, hint, format string, args ...any)) {
	whole := f.Host.Rest == ""
	switch {
	case f.Access == ReadWrite && f.Host.Base == "${workspace}" && whole:
		warn(f.Pos, "access: overlay keeps the writes aside for review", "files %s: what is written into a source tree is run by someone sooner or later (Makefile, package.json)", f.Guest)
	case f.Host.Base == "/" && whole:
		warn(f.Pos, "name the folder", "files %s: this is the whole machine", f.Guest)
	case f.Host.Base == "~" && whole:
		warn(f.Pos, "name the folder", "files %s: this is the whole home folder, with its keys", f.Guest)
	}
	if f.HideSet && len(f.Hide) == 0 && f.Access > NoAccess && (f.Host.Base == "${workspace}" || whole) {
		warn(f.Pos, "", "files %s: hide [] shows .env files and .git/config, where credentials are", f.Guest)
	}
	for _, g := range f.Protected {
		warn(f.Pos, "", "files %s: %s may be written, and makes something else run code or steers an agent", f.Guest, g)
	}
	for _, g := range append(slices.Clone(f.Hide), f.Protected...) {
		if strings.ContainsAny(g.String(), "?[]{}") {
			warn(f.Pos, "", "files %s: %q: ? [ ] { } stand for themselves, only * and ** are special", f.Guest, g)
		}
	}
}

// OutsideProject returns an error for each host path that a project's own file must not name: all but ${workspace} and
// what lies below it.
func (p *Policy) OutsideProject() Errors {
	var out Errors
	for _, f := range p.Files {
		if f.Host.Base != "${workspace}" {
			out = append(out, Error{Position: f.Pos, Code: CodeValue, Msg: fmt.Sprintf("files %s: a project's file names only ${workspace}, not %s", f.Guest, f.Host)})
		}
	}
	return out.sorted()
}
