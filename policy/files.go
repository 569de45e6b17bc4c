package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Root is one file root for the host to mint, with every ceiling already taken into account.
//
// It never covers more than the grant: Access is the strongest that any part of it has, Narrow the parts that have less.
type Root struct {
	Guest     string // absolute, clean guest path
	Host      string // absolute host path, not yet resolved against links
	Access    Access // never NoAccess
	Hide      []string
	Protected []string // exemptions from the protected names, relative to Guest
	Within    string   // host folder that the resolved path must stay in: that of ${workspace}, ${skill} or ${data}; "" for any other
	Create    bool     // make the host folder if missing
	Optional  bool     // a part of a root that only a ceiling singles out: nothing is mounted when the host has none
	Rule      Position // the line of the grant
	Narrow    []Narrow // sorted by Guest; the longest prefix of a path counts
}

// Narrow is the access at and below a guest path within a root. NoAccess takes all access away.
type Narrow struct {
	Guest  string
	Access Access
}

// Files returns the roots to mint, sorted by guest path, without those of the base. v gives the paths of this machine.
//
// An error is an [Errors]: a variable without a value, a host path that is always denied, or a ceiling that takes away
// a root which stands in place of a folder of the base. A root's host path is not touched here: the caller resolves
// links and asks [Vars.Denies] about what it found.
func (e *Effective) Files(v Vars) ([]Root, error) {
	if e.Grant == nil {
		return nil, nil
	}
	b := e.Bind(v)
	var errs Errors
	fail := func(pos Position, format string, args ...any) {
		errs = append(errs, Error{Position: pos, Code: CodeValue, Msg: fmt.Sprintf(format, args...)})
	}
	var out []Root
	var gone []*File
	for i := range b.Grant.Files {
		f := &b.Grant.Files[i]
		host, err := v.expand(f.Host)
		switch {
		case err != nil:
			fail(f.Pos, "files %s: %v", f.Guest, err)
			continue
		case v.Denies(host):
			fail(f.Pos, "files %s: %s lies in a folder that no policy can open", f.Guest, f.Host)
			continue
		}
		if name, ok := protectedBy(nil, segments(host), nil); ok && f.Access > ReadOnly && f.Host.Base != "${data}" {
			fail(f.Pos, "files %s: its host folder lies in %q, which is protected and can only be read", f.Guest, strings.TrimPrefix(name, "**/"))
			continue
		}
		parts, whole := b.parts(f, host)
		out = append(out, parts...)
		if !whole {
			gone = append(gone, f)
		}
	}
	// A root that is gone must not let what it covered show through.
	for _, f := range gone {
		above := -1
		for i := range out {
			if within(out[i].Guest, f.Guest) && out[i].Guest != f.Guest && (above < 0 || len(out[i].Guest) > len(out[above].Guest)) {
				above = i
			}
		}
		if base := baseOf(f.Guest); base != nil && (above < 0 || len(base.guest) > len(out[above].Guest)) {
			fail(f.Pos, "files %s: a ceiling takes this root away, and %s of the base would show in its place", f.Guest, base.guest)
			continue
		}
		if above >= 0 {
			out[above].Narrow = append(out[above].Narrow, Narrow{f.Guest, NoAccess})
		}
	}
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	for i := range out {
		slices.SortFunc(out[i].Narrow, func(a, b Narrow) int { return strings.Compare(a.Guest, b.Guest) })
		out[i].Narrow = slices.CompactFunc(out[i].Narrow, func(a, b Narrow) bool { return a.Guest == b.Guest })
	}
	slices.SortFunc(out, func(a, b Root) int { return strings.Compare(a.Guest, b.Guest) })
	return out, nil
}

// parts cuts one root of the grant along the lines of the ceilings. whole is false if the root's own path has no access.
//
// The access under a root changes only at guest paths that a ceiling names, or that are backed by a host path that a
// ceiling names. At each of them the ceilings are asked; nothing is computed from two patterns.
func (e *Effective) parts(f *File, host string) (out []Root, whole bool) {
	points := []string{f.Guest}
	for _, c := range e.Ceilings {
		for i := range c.Files {
			cf := &c.Files[i]
			from := f.Guest
			if rel, ok := relTo(f.Guest, cf.Guest); ok && rel != "" {
				from = cf.Guest
				points = append(points, from)
			} else if !within(cf.Guest, f.Guest) {
				continue
			}
			rel, _ := relTo(f.Guest, from)
			if deeper, ok := e.hostBelow(HostPath{f.Host.Base, path.Join(f.Host.Rest, rel)}, cf.Host); ok {
				points = append(points, path.Join(from, deeper))
			}
		}
	}
	slices.Sort(points)
	points = slices.Compact(points)
	current := map[string]Access{} // access that was set at a point
	for _, q := range points {
		if e.rootOf(q).Guest != f.Guest {
			continue // a deeper root of the grant is there
		}
		if base := baseOf(q); base != nil && len(base.guest) > len(f.Guest) {
			continue // the base is there, which ceilings do not touch
		}
		access := f.Access
		for _, c := range e.Ceilings {
			if c.Files != nil {
				a, _ := e.ceilingAccess(c, f, q)
				access = min(access, a)
			}
		}
		rel, _ := relTo(f.Guest, q)
		hide, hidden := e.hidden(f, host, q)
		if hidden {
			access = NoAccess
		}
		if q == f.Guest {
			whole = access > NoAccess
		}
		mount, inherited := -1, NoAccess
		for i := range out {
			if within(out[i].Guest, q) && (mount < 0 || len(out[i].Guest) > len(out[mount].Guest)) {
				mount = i
			}
		}
		longest := -1
		for p, a := range current {
			if within(p, q) && len(p) > longest {
				inherited, longest = a, len(p)
			}
		}
		current[q] = access
		switch {
		case longest >= 0 && access == inherited, mount < 0 && access == NoAccess:
		case mount >= 0 && (access <= ReadOnly || access == out[mount].Access) && access <= out[mount].Access:
			out[mount].Narrow = append(out[mount].Narrow, Narrow{q, access})
		default:
			r := Root{Guest: q, Host: path.Join(host, rel), Access: access, Hide: hide, Rule: f.Pos, Optional: q != f.Guest}
			if strings.HasPrefix(f.Host.Base, "$") {
				r.Within, _ = e.vars.expand(HostPath{Base: f.Host.Base})
			}
			r.Create = f.Create && q == f.Guest && access > ReadOnly
			for _, g := range e.rootOf(q).protected {
				more, all := g.below(segments(rel))
				if all {
					more = []Glob{{segs: []string{"**"}}}
				}
				for _, m := range more {
					r.Protected = append(r.Protected, m.String())
				}
			}
			out = append(out, r)
		}
	}
	return out, whole
}

// hidden returns the patterns that hide something below guest path q, relative to it; all is true if they hide q.
func (e *Effective) hidden(f *File, host, q string) (out []string, all bool) {
	add := func(g Glob, from string) {
		if rel, ok := relTo(from, q); ok {
			more, whole := g.below(segments(rel))
			if _, folded := hiddenBy(segments(rel), []Glob{g}); folded {
				whole = true
			}
			all = all || whole
			for _, m := range more {
				out = append(out, m.String())
			}
		} else if rel, ok := relTo(q, from); ok {
			out = append(out, Glob{segs: append(segments(rel), g.segs...)}.String())
		}
	}
	for _, g := range f.Hide {
		add(g, f.Guest)
	}
	for _, c := range e.Ceilings {
		for i := range c.Files {
			for _, g := range c.Files[i].Hide {
				add(g, c.Files[i].Guest)
			}
		}
	}
	rel, _ := relTo(f.Guest, q)
	here := path.Join(host, rel)
	for _, d := range e.vars.Denied {
		if r, ok := relTo(here, path.Clean(slashed(d))); ok && d != "" && r != "" {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), all
}
