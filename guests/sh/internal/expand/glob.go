package expand

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Match tells whether a pattern matches the whole of s (case, with nocasematch). Extended patterns are read only with
// extglob, as everywhere but in [[ ]].
func (e *Expander) Match(pattern, s string) bool {
	return e.pattern(pattern, e.Host.Option("extglob"), e.Host.Option("nocasematch")).match(s)
}

// pattern compiles a pattern, or finds it compiled: scripts use few patterns, often.
func (e *Expander) pattern(s string, ext, fold bool) *pattern {
	key := patternKey{s, ext, fold}
	if p, ok := e.patterns[key]; ok {
		return p
	}
	if e.patterns == nil || len(e.patterns) >= 256 {
		e.patterns = map[patternKey]*pattern{}
	}
	p := compile(s, ext, fold)
	e.patterns[key] = p
	return p
}

type patternKey struct {
	s         string
	ext, fold bool
}

// glob adds the file names that match a field, or the field itself.
func (x *expansion) glob(field []seg, out []string) ([]string, error) {
	ext := false
	if !x.wild(field, &ext) || x.Host.Option("noglob") {
		return append(out, join(field)), nil
	}
	g := &globber{
		e: x.Expander, ctx: x.ctx, ext: ext, star: x.Host.Option("globstar"), fold: x.Host.Option("nocaseglob"),
		dots: x.Host.Option("dotglob"), root: x.Host.Dir(),
	}
	ignore := x.Vars.Str("GLOBIGNORE")
	g.dots = g.dots || ignore != ""
	pat := patternOf(field)
	prefix := ""
	if trimmed := strings.TrimLeft(pat, "/"); len(trimmed) < len(pat) {
		prefix, pat = pat[:len(pat)-len(trimmed)], trimmed
	}
	g.walk(prefix, components(pat))
	if ignore != "" {
		g.found = slices.DeleteFunc(g.found, func(name string) bool {
			return slices.ContainsFunc(strings.Split(ignore, ":"), func(p string) bool {
				return x.pattern(p, ext, false).match(name)
			})
		})
	}
	if len(g.found) > 0 {
		slices.Sort(g.found)
		return append(out, slices.Compact(g.found)...), nil
	}
	switch {
	case x.Host.Option("failglob"):
		return nil, &NoMatch{join(field)}
	case x.Host.Option("nullglob"):
		return out, nil
	}
	return append(out, join(field)), nil
}

// wild tells whether a field has a character outside of quotes that makes it a pattern.
func (x *expansion) wild(field []seg, ext *bool) bool {
	open := false // a bracket that has no end is a character: the command [ is no pattern
	for _, s := range field {
		if s.quoted {
			continue
		}
		for i := range len(s.s) {
			switch s.s[i] {
			case '[':
				open = true
			case '*', '?', ']':
				if s.s[i] == ']' && !open {
					continue
				}
				*ext = x.Host.Option("extglob")
				return true
			case '(':
				if i > 0 && strings.IndexByte("+@!", s.s[i-1]) >= 0 && x.Host.Option("extglob") {
					*ext = true
					return true
				}
			}
		}
	}
	return false
}

// components splits a pattern at its slashes, but not at those in groups.
func components(pat string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(pat); i++ {
		switch pat[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case '/':
			if depth == 0 {
				out = append(out, pat[from:i])
				from = i + 1
			}
		}
	}
	return append(out, pat[from:])
}

type globber struct {
	e                     *Expander
	ctx                   context.Context
	ext, star, fold, dots bool
	root                  string
	found                 []string
}

func (g *globber) abs(name string) string {
	if path.IsAbs(name) {
		return name
	}
	if name == "" {
		return g.root
	}
	return strings.TrimSuffix(g.root, "/") + "/" + name
}

// walk matches the rest of a pattern below prefix, which is empty or ends with a slash.
func (g *globber) walk(prefix string, parts []string) {
	cmd.Check(g.ctx)
	for len(parts) > 1 && parts[0] == "" { // a//b
		prefix += "/"
		parts = parts[1:]
	}
	part, rest := parts[0], parts[1:]
	if !special(part, g.ext) && !(g.fold && part != "") {
		name := prefix + unescape(part)
		if len(rest) > 0 {
			g.walk(name+"/", rest)
			return
		}
		if _, err := os.Lstat(g.abs(name)); err == nil {
			g.found = append(g.found, name)
		}
		return
	}
	if part == "**" && g.star {
		g.below(prefix, rest, true)
		return
	}
	p := g.e.pattern(part, g.ext, g.fold)
	for _, d := range g.read(prefix) {
		name := d.Name()
		if name[0] == '.' && !g.dots && !opensWithDot(p.tokens) || !p.match(name) {
			continue
		}
		if len(rest) == 0 {
			g.found = append(g.found, prefix+name)
		} else if g.dir(prefix+name, d) {
			g.walk(prefix+name+"/", rest)
		}
	}
}

// below is ** : everything below prefix, or the folders below it that the rest is matched in.
func (g *globber) below(prefix string, rest []string, top bool) {
	cmd.Check(g.ctx)
	for len(rest) > 0 && rest[0] == "**" {
		rest = rest[1:]
	}
	switch {
	case len(rest) > 0 && rest[0] == "" && len(rest) == 1: // **/
		if !top || prefix != "" {
			g.found = append(g.found, prefix)
		}
	case len(rest) > 0:
		g.walk(prefix, rest)
	case top && prefix != "":
		g.found = append(g.found, prefix)
	}
	for _, d := range g.read(prefix) {
		name := d.Name()
		if name[0] == '.' && !g.dots {
			continue
		}
		if len(rest) == 0 {
			g.found = append(g.found, prefix+name)
		}
		if d.IsDir() { // links to folders are not followed
			g.below(prefix+name+"/", rest, false)
		}
	}
}

func (g *globber) read(prefix string) []os.DirEntry {
	entries, err := os.ReadDir(g.abs(prefix))
	if err != nil {
		return nil // what cannot be read has no names
	}
	return entries
}

func (g *globber) dir(name string, d os.DirEntry) bool {
	if d.Type()&os.ModeSymlink == 0 {
		return d.IsDir()
	}
	info, err := os.Stat(g.abs(name))
	return err == nil && info.IsDir()
}

// opensWithDot tells whether a pattern begins with a dot that is written: only that matches a hidden name.
func opensWithDot(tokens []token) bool {
	if len(tokens) == 0 {
		return false
	}
	switch t := tokens[0]; t.kind {
	case literal:
		return t.lit[0] == '.'
	case group:
		if t.op == '!' {
			return false
		}
		return slices.ContainsFunc(t.alts, opensWithDot) || t.op != '+' && t.op != '@' && opensWithDot(tokens[1:])
	}
	return false
}
