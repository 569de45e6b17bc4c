package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Change is one difference between two policies.
type Change struct {
	Field    string   `json:"field"` // "files./out", "network", "limits.time"
	Grew     bool     `json:"grew"`  // the second policy allows something that the first did not
	Old      string   `json:"old,omitempty"`
	New      string   `json:"new,omitempty"`
	Position Position `json:"position,omitzero"` // in the second policy, else in the first
}

// String returns "more: files./out: write from ${workspace}/out" or "less: ..." for one line of output.
func (c Change) String() string {
	s := "less: "
	if c.Grew {
		s = "more: "
	}
	s += c.Field + ": "
	switch {
	case c.Old == "":
		s += c.New
	case c.New == "":
		s += "no longer " + c.Old
	default:
		s += c.Old + " -> " + c.New
	}
	if !c.Position.IsZero() {
		s += " (" + c.Position.String() + ")"
	}
	return s
}

// Diff compares what two grants allow, sorted by field. A difference that cannot be shown to take away counts as growth:
// another literal, another host folder, another schema. Labels and tests are not compared; a changed digest is listed
// and is no growth. A nil policy grants nothing.
func Diff(a, b *Policy) []Change {
	if a == nil {
		a = &Policy{}
	}
	if b == nil {
		b = &Policy{}
	}
	d := &differ{}
	if a.Digest != b.Digest {
		d.add("digest", false, orElse(a.Digest, "any"), orElse(b.Digest, "any"), b.At("digest"))
	}
	d.env(a, b)
	d.files(a, b)
	d.atoms("network", networkAtoms(a), networkAtoms(b))
	d.secrets(a, b)
	d.atoms("tools", toolAtoms(a), toolAtoms(b))
	d.limits(a, b)
	d.flags(a, b)
	slices.SortStableFunc(d.out, func(x, y Change) int { return strings.Compare(x.Field, y.Field) })
	return d.out
}

type differ struct{ out []Change }

func (d *differ) add(field string, grew bool, old, new string, pos Position) {
	d.out = append(d.out, Change{field, grew, old, new, pos})
}

// atom is a grant that can be compared with others of its section.
type atom struct {
	text   string
	pos    Position
	covers func(other atom) bool
	value  any
}

// atoms reports what of b no atom of a covers, and the other way round.
func (d *differ) atoms(field string, a, b []atom) {
	for _, x := range b {
		if !slices.ContainsFunc(a, func(y atom) bool { return y.covers(x) }) {
			d.add(field, true, "", x.text, x.pos)
		}
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y atom) bool { return y.covers(x) }) {
			d.add(field, false, x.text, "", x.pos)
		}
	}
}

func (d *differ) env(a, b *Policy) {
	passes := func(p *Policy) (out []atom) {
		if p.Env == nil {
			return nil
		}
		for _, e := range p.Env.Pass {
			out = append(out, atom{e.Pattern, e.Pos, func(o atom) bool {
				other := o.value.(string)
				if prefix, wild := strings.CutSuffix(e.Pattern, "*"); wild && strings.HasSuffix(other, "*") {
					return strings.HasPrefix(other, prefix)
				}
				return e.Pattern == other || passMatches(e.Pattern, other)
			}, e.Pattern})
		}
		return out
	}
	d.atoms("env.pass", passes(a), passes(b))
	sets := func(p *Policy) (out []atom) {
		if p.Env == nil {
			return nil
		}
		for _, e := range p.Env.Set {
			out = append(out, atom{fmt.Sprintf("%s=%q", e.Name, clip(e.Value)), e.Pos, func(o atom) bool {
				other := o.value.(EnvSet)
				return other.Name == e.Name && other.Value == e.Value
			}, e})
		}
		return out
	}
	d.atoms("env.set", sets(a), sets(b))
}

// view is what a policy gives at one guest path.
type view struct {
	access    Access
	host      HostPath
	hide      []string
	protected []string
	create    bool
	pos       Position
}

func viewOf(e *Effective, guest string) view {
	f := e.rootOf(guest)
	if f == nil {
		return view{}
	}
	rel, _ := relTo(f.Guest, guest)
	v := view{access: f.Access, host: HostPath{f.Host.Base, path.Join(f.Host.Rest, rel)}, pos: f.Pos, create: f.Create && rel == ""}
	for _, g := range f.Hide {
		more, all := g.below(segments(rel))
		if all {
			return view{}
		}
		for _, m := range more {
			v.hide = append(v.hide, m.String())
		}
	}
	for _, g := range f.Protected {
		more, all := g.below(segments(rel))
		if all {
			v.protected = append(v.protected, "**")
		}
		for _, m := range more {
			v.protected = append(v.protected, m.String())
		}
	}
	return v
}

// within reports whether everything that v allows, o allows too.
func (v view) within(o view) bool {
	if v.access == NoAccess {
		return true
	}
	return v.access <= o.access && v.host == o.host && subset(o.hide, v.hide) && subset(v.protected, o.protected) && (o.create || !v.create)
}

func (v view) String() string {
	if v.access == NoAccess {
		return ""
	}
	s := fmt.Sprintf("%s from %s", v.access, v.host)
	if len(v.hide) > 0 {
		s += ", hiding " + strings.Join(v.hide, " ")
	}
	if len(v.protected) > 0 {
		s += ", with protected " + strings.Join(v.protected, " ")
	}
	if v.create {
		s += ", made if missing"
	}
	return s
}

func subset[T comparable](a, b []T) bool {
	return !slices.ContainsFunc(a, func(x T) bool { return !slices.Contains(b, x) })
}

func (d *differ) files(a, b *Policy) {
	ea, eb := New(a), New(b)
	var guests []string
	for _, p := range []*Policy{a, b} {
		for _, f := range p.Files {
			guests = append(guests, f.Guest)
		}
	}
	slices.Sort(guests)
	for _, g := range slices.Compact(guests) {
		va, vb := viewOf(ea, g), viewOf(eb, g)
		more, less := !vb.within(va), !va.within(vb)
		if !more && !less {
			continue
		}
		pos := vb.pos
		if pos.IsZero() {
			pos = va.pos
		}
		d.add("files."+g, more, va.String(), vb.String(), pos)
	}
}

func networkAtoms(p *Policy) (out []atom) {
	for i := range p.Network {
		l := &p.Network[i]
		text, _, _ := strings.Cut(l.describe(), " (")
		if len(l.Addresses) > 0 {
			text += fmt.Sprintf(" at %v", l.Addresses)
		}
		out = append(out, atom{text, l.Pos, func(o atom) bool { return l.covers(o.value.(*Network)) }, l})
	}
	return out
}

// covers reports whether l alone allows all that o allows.
func (l *Network) covers(o *Network) bool {
	if len(o.Methods) == 0 || o.Paths != nil && len(o.Paths) == 0 {
		return true
	}
	paths := l.Paths == nil
	if !paths && o.Paths != nil {
		paths = !slices.ContainsFunc(o.Paths, func(g Glob) bool {
			return !slices.ContainsFunc(l.Paths, func(h Glob) bool { return h.String() == g.String() || g.literal() && h.Match(g.segs) })
		})
	}
	return paths && hostCovers(l.Host, o.Host) && l.Scheme == o.Scheme && l.Port == o.Port &&
		(slices.Contains(l.Methods, "*") || subset(o.Methods, l.Methods)) && subset(o.Addresses, l.Addresses)
}

func (d *differ) secrets(a, b *Policy) {
	atoms := func(p *Policy) (out []atom) {
		for i := range p.Secrets {
			s := &p.Secrets[i]
			for _, to := range s.To {
				for _, in := range s.In {
					key := [4]string{s.Name, s.From, to, in}
					out = append(out, atom{fmt.Sprintf("%s from %s to %s in %s", s.Name, s.From, to, in), s.Pos, func(o atom) bool {
						k := o.value.([4]string)
						return k[0] == key[0] && k[1] == key[1] && k[3] == key[3] && hostCovers(key[2], k[2])
					}, key})
				}
			}
		}
		return out
	}
	d.atoms("secrets", atoms(a), atoms(b))
}

type toolAtom struct {
	line    *ToolGrant
	pattern string
}

func toolAtoms(p *Policy) (out []atom) {
	for i := range p.Tools {
		t := &p.Tools[i]
		for _, pat := range t.Allow {
			text := t.Server + "/" + pat
			if len(t.DenyHints) > 0 {
				text += " but not " + strings.Join(t.DenyHints, ", ")
			}
			for _, a := range t.Arguments {
				if wildcard(pat, a.Tool) {
					text += fmt.Sprintf(" with arguments of %s as %s", a.Tool, clip(string(a.Schema)))
				}
			}
			me := toolAtom{t, pat}
			out = append(out, atom{text, t.Pos, func(o atom) bool { return me.covers(o.value.(toolAtom)) }, me})
		}
	}
	return out
}

func (t toolAtom) covers(o toolAtom) bool {
	if t.line.Server != o.line.Server || !wildcard(t.pattern, strings.TrimSuffix(o.pattern, "*")) ||
		strings.HasSuffix(o.pattern, "*") && !strings.HasSuffix(t.pattern, "*") || !subset(t.line.DenyHints, o.line.DenyHints) {
		return false
	}
	for _, a := range t.line.Arguments {
		if wildcard(o.pattern, a.Tool) && !slices.ContainsFunc(o.line.Arguments, func(b ToolArguments) bool {
			return b.Tool == a.Tool && string(b.Schema) == string(a.Schema)
		}) {
			return false
		}
	}
	return true
}

func (d *differ) limits(a, b *Policy) {
	la, lb := a.Limits.or(DefaultLimits()), b.Limits.or(DefaultLimits())
	for i, x := range la.list() {
		if y := lb.list()[i]; x.n != y.n {
			d.add("limits."+x.key, y.n > x.n, x.text, y.text, b.At("limits."+x.key))
		}
	}
}

type limitValue struct {
	key, text string
	n         int64
}

// list returns the limits in the order of the file format.
func (l Limits) list() []limitValue {
	size := func(key string, n int64) limitValue { return limitValue{key, FormatSize(n), n} }
	count := func(key string, n int) limitValue { return limitValue{key, fmt.Sprint(n), int64(n)} }
	return []limitValue{
		{"time", FormatTime(l.Time), int64(l.Time)}, size("memory", l.Memory), size("output", l.Output), size("disk", l.Disk),
		count("open-files", l.OpenFiles), count("processes", l.Processes), count("requests", l.Requests),
		size("upload", l.Upload), size("download", l.Download), count("calls", l.Calls),
	}
}

func (d *differ) flags(a, b *Policy) {
	if sa, sb := New(a).Shared(), New(b).Shared(); sa != sb {
		d.add("shared", sb, fmt.Sprint(sa), fmt.Sprint(sb), b.At("shared"))
	}
	wa, wb := New(a).Walls(), New(b).Walls()
	if !slices.Equal(wa, wb) {
		d.add("walls", !subset(wa, wb), strings.Join(wa, " "), strings.Join(wb, " "), b.At("walls"))
	}
}
