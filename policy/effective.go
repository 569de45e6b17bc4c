package policy

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Layers that a [Decision] names.
const (
	LayerBase    = "base"
	LayerGrant   = "grant"
	LayerCeiling = "ceiling"
	LayerAlways  = "always-denied"
	LayerNone    = "none" // nothing grants it
)

// Decision is the answer to one question and what it rests on.
type Decision struct {
	Allowed bool     `json:"allowed"`
	Layer   string   `json:"layer"`             // who decided
	Rule    Position `json:"rule,omitzero"`     // the line that decided; zero for the base and where no line covers the request
	Reason  string   `json:"reason"`            // one line, for the operator
	Nearest string   `json:"nearest,omitempty"` // on a refusal: the closest grant in force, as text with its position
}

// String returns "allowed by grant (file:3:5): reason" and the like.
func (d Decision) String() string {
	s := "denied by "
	if d.Allowed {
		s = "allowed by "
	}
	if d.Layer == LayerNone {
		s = "denied"
	} else {
		s += d.Layer
	}
	if !d.Rule.IsZero() {
		s += " (" + d.Rule.String() + ")"
	}
	return s + ": " + d.Reason
}

// Effective is what a principal may do: the base and one grant, less what ceilings and the always-denied list take away.
//
// It is immutable and safe for concurrent use. The zero value is not valid; use [New].
type Effective struct {
	Grant    *Policy // nil: the base alone
	Ceilings []*Policy

	vars  *Vars // nil: host paths are compared as they are written
	files map[string]*fileRule
	hide  [][]hideList // of each ceiling, of each of its roots
}

// fileRule is a root of the grant, prepared for decisions.
type fileRule struct {
	*File
	protected []Glob // exemptions that every ceiling shares
	folded    []Glob // the same, folded
	hide      hideList
}

// New combines a grant and ceilings. grant may be nil; nil ceilings are skipped. The policies must come from [Parse] and
// are not copied.
func New(grant *Policy, ceilings ...*Policy) *Effective {
	e := &Effective{Grant: grant}
	for _, c := range ceilings {
		if c != nil {
			e.Ceilings = append(e.Ceilings, c)
		}
	}
	e.prepare()
	return e
}

// Bind returns e with its host paths resolved by v, so that a ceiling that writes the same folder in another way is
// understood and host paths that are always denied are known. Without it, paths that begin differently are different.
func (e *Effective) Bind(v Vars) *Effective {
	v.Denied = clone(v.Denied)
	b := &Effective{Grant: e.Grant, Ceilings: e.Ceilings, vars: &v}
	b.prepare()
	return b
}

func (e *Effective) prepare() {
	e.files = map[string]*fileRule{}
	for _, c := range e.Ceilings {
		lists := make([]hideList, len(c.Files))
		for i := range c.Files {
			lists[i] = hideListOf(c.Files[i].Hide)
		}
		e.hide = append(e.hide, lists)
	}
	if e.Grant == nil {
		return
	}
	for i := range e.Grant.Files {
		f := &e.Grant.Files[i]
		r := &fileRule{File: f, protected: e.exemptions(f), hide: hideListOf(f.Hide)}
		for _, g := range r.protected {
			r.folded = append(r.folded, g.folded())
		}
		e.files[f.Guest] = r
	}
}

// exemptions returns the protected key of f without what a ceiling does not exempt as well. Patterns are not merged: an
// exemption stays when a ceiling writes it too, or when it is one path that a ceiling's pattern matches.
func (e *Effective) exemptions(f *File) []Glob {
	var out []Glob
	for _, g := range f.Protected {
		keep := true
		for _, c := range e.Ceilings {
			if c.Files != nil && !slices.ContainsFunc(c.Files, func(cf File) bool { return exempts(&cf, f.Guest, g) }) {
				keep = false
			}
		}
		if keep {
			out = append(out, g)
		}
	}
	return out
}

func exempts(c *File, guest string, g Glob) bool {
	rel, ok := relTo(c.Guest, guest)
	if !ok {
		return false
	}
	want := Glob{segs: append(segments(rel), g.segs...)}
	for _, q := range c.Protected {
		if q.String() == want.String() || want.literal() && q.Match(want.segs) {
			return true
		}
	}
	return false
}

// baseRoot is a part of the guest's file tree that is always there.
type baseRoot struct {
	guest  string
	access Access
	what   string
}

var baseRoots = []baseRoot{
	{"/dev/null", ReadWrite, "the null device"},
	{"/dev/urandom", ReadOnly, "random bytes"},
	{"/dev/zero", ReadOnly, "zero bytes"},
	{"/home/guest", ReadWrite, "a private home, wiped after the run"},
	{"/skill", ReadOnly, "the extension itself"},
	{"/tmp", ReadWrite, "a private folder, wiped after the run"},
	{"/usr/local", ReadOnly, "the runtime's library"},
}

// BaseEnv are the variables that every guest has, as NAME=VALUE.
func BaseEnv() []string { return []string{"HOME=/home/guest", "TMPDIR=/tmp"} }

// BaseWalls are the walls that every run needs on this system.
func BaseWalls() []string {
	if runtime.GOOS == "linux" {
		return []string{"landlock", "seccomp"}
	}
	return nil
}

// Decide answers whether c is allowed and names the rule. It is a pure function of e and c; a capability that is not
// well-formed is denied.
func (e *Effective) Decide(c Capability) Decision {
	switch c.Kind {
	case Read, Write:
		return e.decideFile(c)
	case HTTP:
		return e.decideHTTP(c)
	case Env:
		return e.decideEnv(c)
	case Secret:
		return e.decideSecret(c)
	case Tool:
		return e.decideTool(c)
	case Program:
		if !serverName(c.Name) {
			return invalid("not the name of a program")
		}
		return Decision{Allowed: true, Layer: LayerBase, Reason: "bundled programs run under the same grant"}
	}
	return invalid("no such kind of capability")
}

func invalid(reason string) Decision {
	return Decision{Layer: LayerAlways, Reason: reason}
}

// uncovered is the refusal when no line of the grant covers a request.
func (e *Effective) uncovered(section string, near string) Decision {
	if e.Grant == nil {
		return Decision{Layer: LayerNone, Reason: "no policy grants anything beyond the base"}
	}
	name := e.Grant.File
	if name == "" {
		name = "the policy"
	}
	return Decision{Layer: LayerNone, Reason: fmt.Sprintf("no %s line in %s covers it", section, name), Nearest: near}
}

func byCeiling(pos Position, file, section string) Decision {
	if pos.IsZero() {
		pos.File = file
	}
	return Decision{Layer: LayerCeiling, Rule: pos, Reason: "the ceiling's " + section + " does not cover it"}
}

func segments(p string) []string {
	p = strings.Trim(p, "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// rootOf returns the root of the grant that lies deepest at or above p, a clean absolute path.
func (e *Effective) rootOf(p string) *fileRule {
	if len(e.files) == 0 {
		return nil
	}
	for len(p) > 1 {
		if f := e.files[p]; f != nil {
			return f
		}
		p = p[:max(strings.LastIndexByte(p, '/'), 0)]
	}
	return e.files["/"]
}

func baseOf(p string) *baseRoot {
	for i := range baseRoots {
		if within(baseRoots[i].guest, p) {
			return &baseRoots[i]
		}
	}
	return nil
}

func (e *Effective) decideFile(c Capability) Decision {
	p, err := guestPath(c.Path)
	if err != nil {
		return invalid("not an absolute path without \"..\"")
	}
	need := ReadOnly
	if c.Kind == Write {
		need = Overlay
	}
	f, base := e.rootOf(p), baseOf(p)
	if base != nil && (f == nil || len(base.guest) > len(f.Guest)) {
		if base.access < need {
			return Decision{Layer: LayerBase, Reason: base.guest + " is " + base.what + " and can only be read", Nearest: "read " + base.guest}
		}
		return Decision{Allowed: true, Layer: LayerBase, Reason: base.guest + " is " + base.what}
	}
	if f == nil {
		return e.uncovered("files", e.nearestFile(p))
	}
	near := fmt.Sprintf("%s %s (%s)", f.Access, f.Guest, f.Pos)
	rel, _ := relTo(f.Guest, p)
	below := segments(rel)
	if e.vars != nil {
		if host, err := e.vars.expand(f.Host); err == nil && e.vars.deniesBelow(host, path.Join(host, rel)) {
			return Decision{Layer: LayerAlways, Rule: f.Pos, Reason: "it lies in a folder of the host that no policy can open"}
		}
	}
	if g, ok := f.hide.hides(below); ok {
		return Decision{Layer: LayerGrant, Rule: f.Pos, Reason: fmt.Sprintf("hidden by %q", g), Nearest: near}
	}
	if f.Access < need {
		return Decision{Layer: LayerNone, Rule: f.Pos, Reason: fmt.Sprintf("%s is granted for reading only", f.Guest), Nearest: near}
	}
	access := f.Access
	for n, ceiling := range e.Ceilings {
		if ceiling.Files == nil {
			continue
		}
		a, entry := e.ceilingAccess(ceiling, f.File, p)
		pos := ceiling.At("files")
		if entry != nil {
			pos = entry.Pos
		}
		if a < need {
			d := byCeiling(pos, ceiling.File, "files")
			d.Nearest = near
			return d
		}
		for i := range ceiling.Files {
			cf := &ceiling.Files[i]
			if r, ok := relTo(cf.Guest, p); ok {
				if g, ok := e.hide[n][i].hides(segments(r)); ok {
					return Decision{Layer: LayerCeiling, Rule: cf.Pos, Reason: fmt.Sprintf("hidden by %q", g), Nearest: near}
				}
			}
		}
		access = min(access, a)
	}
	if c.Kind == Write {
		if name, ok := protectedBy(e.above(f.File), below, f.folded); ok {
			return Decision{Layer: LayerAlways, Rule: f.Pos, Reason: fmt.Sprintf("%q is protected: it makes something else run code or steers an agent", strings.TrimPrefix(name, "**/")), Nearest: near}
		}
	}
	reason := fmt.Sprintf("%s %s", f.Access, f.Guest)
	if c.Kind == Write && access == Overlay {
		reason = "overlay " + f.Guest + ": the write is kept aside"
	}
	return Decision{Allowed: true, Layer: LayerGrant, Rule: f.Pos, Reason: reason}
}

// above are the host folders that f's root lies in, itself included, as far as they are known.
func (e *Effective) above(f *File) []string {
	if e.vars != nil {
		if host, err := e.vars.expand(f.Host); err == nil {
			return segments(host)
		}
	}
	return segments(f.Host.Rest)
}

// ceilingAccess returns what c allows at guest path p, which root f of the grant backs: the entry that lies deepest at
// or above p decides, and only if f's host path at p lies at or below the entry's.
func (e *Effective) ceilingAccess(c *Policy, f *File, p string) (Access, *File) {
	var entry *File
	for i := range c.Files {
		if cf := &c.Files[i]; within(cf.Guest, p) && (entry == nil || len(cf.Guest) > len(entry.Guest)) {
			entry = cf
		}
	}
	if entry == nil {
		return NoAccess, nil
	}
	rel, _ := relTo(f.Guest, p)
	if _, ok := e.hostBelow(entry.Host, HostPath{f.Host.Base, path.Join(f.Host.Rest, rel)}); !ok {
		return NoAccess, entry
	}
	return entry.Access, entry
}

// hostBelow returns inner relative to outer if inner lies at or below it.
func (e *Effective) hostBelow(outer, inner HostPath) (string, bool) {
	if e.vars != nil {
		o, err1 := e.vars.expand(outer)
		i, err2 := e.vars.expand(inner)
		if err1 != nil || err2 != nil {
			return "", false
		}
		return relTo(o, i)
	}
	if outer.Base != inner.Base {
		return "", false
	}
	return relTo("/"+outer.Rest, "/"+inner.Rest)
}

// nearestFile names the root that shares the most segments with p.
func (e *Effective) nearestFile(p string) string {
	if e.Grant == nil {
		return ""
	}
	var best *File
	most := 0
	want := segments(p)
	for i := range e.Grant.Files {
		f := &e.Grant.Files[i]
		n := 0
		for s := segments(f.Guest); n < len(s) && n < len(want) && s[n] == want[n]; n++ {
		}
		if best == nil || n > most {
			best, most = f, n
		}
	}
	if best == nil {
		return ""
	}
	return fmt.Sprintf("%s %s (%s)", best.Access, best.Guest, best.Pos)
}

// matches reports whether l covers a request.
func (l *Network) matches(method string, t *target) bool {
	return hostMatches(l.Host, t.host) && l.Scheme == t.scheme && l.Port == t.port &&
		(slices.Contains(l.Methods, method) || len(l.Methods) == 1 && l.Methods[0] == "*") &&
		(l.Paths == nil || slices.ContainsFunc(l.Paths, func(g Glob) bool { return g.Match(t.path) })) &&
		(!t.addr.IsValid() || l.addressAllowed(t.addr))
}

func (p *Policy) networkLine(method string, t *target) *Network {
	for i := range p.Network {
		if p.Network[i].matches(method, t) {
			return &p.Network[i]
		}
	}
	return nil
}

func (e *Effective) decideHTTP(c Capability) Decision {
	if !methodName(c.Method) || c.Method == "CONNECT" || c.Method == "TRACE" {
		return invalid("not a method that can be granted")
	}
	t, err := parseTarget(c.URL)
	if err != nil {
		return invalid(err.Error())
	}
	if e.Grant == nil {
		return e.uncovered("network", "")
	}
	l := e.Grant.networkLine(c.Method, &t)
	if l == nil {
		return e.uncovered("network", e.nearestNetwork(&t))
	}
	for _, ceiling := range e.Ceilings {
		if ceiling.Network != nil && ceiling.networkLine(c.Method, &t) == nil {
			d := byCeiling(ceiling.At("network"), ceiling.File, "network")
			d.Nearest = l.describe()
			return d
		}
	}
	return Decision{Allowed: true, Layer: LayerGrant, Rule: l.Pos, Reason: l.describe()}
}

// describe returns the line in words, with its position.
func (l *Network) describe() string {
	methods := strings.Join(l.Methods, ", ")
	if methods == "*" {
		methods = "any method"
	} else if methods == "" {
		methods = "no method"
	}
	host := l.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	s := fmt.Sprintf("%s %s://%s", methods, l.Scheme, host)
	if l.Port != defaultPorts[l.Scheme] {
		s += fmt.Sprintf(":%d", l.Port)
	}
	if l.Paths != nil {
		var paths []string
		for _, g := range l.Paths {
			paths = append(paths, g.String())
		}
		if len(paths) == 0 {
			paths = []string{"no path"}
		}
		s += " " + strings.Join(paths, ", ")
	}
	return s + " (" + l.Pos.String() + ")"
}

// nearestNetwork names the line that agrees with t longest: its host first, then scheme, port.
func (e *Effective) nearestNetwork(t *target) string {
	best, most := -1, 0
	for i := range e.Grant.Network {
		l := &e.Grant.Network[i]
		n := 1
		switch {
		case l.Host == t.host:
			n += 8
		case hostMatches(l.Host, t.host):
			n += 6
		case strings.HasSuffix(t.host, strings.TrimPrefix(l.Host, "*.")):
			n += 4
		}
		if l.Scheme == t.scheme {
			n++
		}
		if l.Port == t.port {
			n++
		}
		if n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return ""
	}
	return e.Grant.Network[best].describe()
}

func (e *Effective) decideEnv(c Capability) Decision {
	if !envName(c.Name) {
		return invalid("not the name of a variable")
	}
	if EnvForbidden(c.Name) {
		return invalid(c.Name + " is never given to a guest")
	}
	d, value, literal := e.grantEnv(c.Name)
	if !d.Allowed {
		return d
	}
	for _, ceiling := range e.Ceilings {
		if !ceilingEnv(ceiling, c.Name, value, literal) {
			if baseEnv(c.Name) {
				return Decision{Allowed: true, Layer: LayerBase, Reason: "every guest has its own " + c.Name}
			}
			return byCeiling(ceiling.At("env"), ceiling.File, "env")
		}
	}
	return d
}

// grantEnv decides by the grant and the base alone. value is the literal that env.set gives.
func (e *Effective) grantEnv(name string) (d Decision, value string, literal bool) {
	var sec *EnvSection
	if e.Grant != nil {
		sec = e.Grant.Env
	}
	if s, ok := sec.set(name); ok {
		return Decision{Allowed: true, Layer: LayerGrant, Rule: s.Pos, Reason: "env.set " + name}, s.Value, true
	}
	if p, ok := sec.pass(name); ok {
		return Decision{Allowed: true, Layer: LayerGrant, Rule: p.Pos, Reason: "env.pass " + p.Pattern}, "", false
	}
	if baseEnv(name) {
		return Decision{Allowed: true, Layer: LayerBase, Reason: "every guest has its own " + name}, "", true
	}
	d = e.uncovered("env", "")
	if sec != nil {
		for _, p := range sec.Pass {
			prefix, wild := strings.CutSuffix(p.Pattern, "*")
			if wild && strings.HasPrefix(name, prefix) {
				d.Reason = fmt.Sprintf("%s looks like a credential and needs its exact name in env.pass", name)
				d.Nearest = fmt.Sprintf("env %s (%s)", p.Pattern, p.Pos)
				d.Rule = p.Pos
			}
		}
	}
	if e.Grant != nil {
		if i := slices.IndexFunc(e.Grant.Secrets, func(s SecretGrant) bool { return s.Name == name }); i >= 0 {
			d.Reason = "the guest gets a placeholder, never the value"
			d.Rule = e.Grant.Secrets[i].Pos
		}
	}
	return d, "", false
}

func baseEnv(name string) bool {
	return slices.ContainsFunc(BaseEnv(), func(s string) bool { return strings.HasPrefix(s, name+"=") })
}

// ceilingEnv reports whether c lets the variable through. A literal of the grant needs the name in env.pass, or the same
// literal; a value of the host needs the name in env.pass.
func ceilingEnv(c *Policy, name, value string, literal bool) bool {
	if c.Env == nil {
		return true
	}
	if _, ok := c.Env.pass(name); ok {
		return true
	}
	s, ok := c.Env.set(name)
	return ok && literal && s.Value == value
}

func (e *Effective) decideSecret(c Capability) Decision {
	host, err := normalHost(c.Host)
	if err != nil || !envName(c.Name) {
		return invalid("not the name of a secret and a host")
	}
	if e.Grant == nil {
		return e.uncovered("secrets", "")
	}
	find := func(p *Policy) (hit, named *SecretGrant) {
		for i := range p.Secrets {
			if s := &p.Secrets[i]; s.Name == c.Name {
				named = s
				if slices.ContainsFunc(s.To, func(to string) bool { return hostMatches(to, host) }) {
					return s, s
				}
			}
		}
		return nil, named
	}
	hit, named := find(e.Grant)
	if hit == nil {
		near := ""
		if named != nil {
			near = fmt.Sprintf("secret %s to %s (%s)", named.Name, strings.Join(named.To, ", "), named.Pos)
		}
		return e.uncovered("secrets", near)
	}
	for _, ceiling := range e.Ceilings {
		if ceiling.Secrets != nil {
			if ok, _ := find(ceiling); ok == nil {
				return byCeiling(ceiling.At("secrets"), ceiling.File, "secrets")
			}
		}
	}
	return Decision{Allowed: true, Layer: LayerGrant, Rule: hit.Pos, Reason: fmt.Sprintf("secret %s to %s", hit.Name, strings.Join(hit.To, ", "))}
}

func (e *Effective) decideTool(c Capability) Decision {
	if !serverName(c.Server) || !toolName(c.Tool) {
		return invalid("not SERVER/TOOL")
	}
	if e.Grant == nil {
		return e.uncovered("tools", "")
	}
	find := func(p *Policy) (hit, server *ToolGrant) {
		for i := range p.Tools {
			if t := &p.Tools[i]; t.Server == c.Server {
				server = t
				if slices.ContainsFunc(t.Allow, func(pat string) bool { return wildcard(pat, c.Tool) }) {
					return t, t
				}
			}
		}
		return nil, server
	}
	hit, server := find(e.Grant)
	if hit == nil {
		near := ""
		if server != nil {
			near = fmt.Sprintf("tool %s/{%s} (%s)", server.Server, strings.Join(server.Allow, ", "), server.Pos)
		}
		return e.uncovered("tools", near)
	}
	for _, ceiling := range e.Ceilings {
		if ceiling.Tools != nil {
			if ok, _ := find(ceiling); ok == nil {
				return byCeiling(ceiling.At("tools"), ceiling.File, "tools")
			}
		}
	}
	return Decision{Allowed: true, Layer: LayerGrant, Rule: hit.Pos, Reason: fmt.Sprintf("tool %s/{%s}", hit.Server, strings.Join(hit.Allow, ", "))}
}

// Limits returns the limits in force: the grant's or the defaults, and of ceilings the smallest. No field is zero.
func (e *Effective) Limits() Limits {
	l := DefaultLimits()
	if e.Grant != nil {
		l = e.Grant.Limits.or(l)
	}
	for _, c := range e.Ceilings {
		l = c.Limits.or(l).min(l)
	}
	return l
}

// or returns l with its zero fields taken from d.
func (l Limits) or(d Limits) Limits {
	return Limits{
		orElse(l.Time, d.Time), orElse(l.Memory, d.Memory), orElse(l.Output, d.Output), orElse(l.Disk, d.Disk), orElse(l.OpenFiles, d.OpenFiles),
		orElse(l.Processes, d.Processes), orElse(l.Requests, d.Requests), orElse(l.Upload, d.Upload), orElse(l.Download, d.Download), orElse(l.Calls, d.Calls),
	}
}

func orElse[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

func (l Limits) min(m Limits) Limits {
	return Limits{
		min(l.Time, m.Time), min(l.Memory, m.Memory), min(l.Output, m.Output), min(l.Disk, m.Disk), min(l.OpenFiles, m.OpenFiles),
		min(l.Processes, m.Processes), min(l.Requests, m.Requests), min(l.Upload, m.Upload), min(l.Download, m.Download), min(l.Calls, m.Calls),
	}
}

// Walls returns the names of the walls without which a run is refused, sorted: the base's and all that any layer adds.
func (e *Effective) Walls() []string {
	out := BaseWalls()
	for _, p := range e.layers() {
		out = append(out, p.Walls...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (e *Effective) layers() []*Policy {
	if e.Grant == nil {
		return e.Ceilings
	}
	return append([]*Policy{e.Grant}, e.Ceilings...)
}

// Shared reports whether one instance may serve several sessions: the grant says so and no ceiling says otherwise.
func (e *Effective) Shared() bool {
	if e.Grant == nil || e.Grant.Shared == nil || !*e.Grant.Shared {
		return false
	}
	return !slices.ContainsFunc(e.Ceilings, func(c *Policy) bool { return c.Shared != nil && !*c.Shared })
}

// Environ returns the guest's environment, sorted NAME=VALUE: the base's variables, what env.pass picks out of host
// (NAME=VALUE, a later entry wins) and what env.set gives, which wins over both. The caller owns the slice.
func (e *Effective) Environ(host []string) []string {
	vars := map[string]string{}
	for _, s := range BaseEnv() {
		k, v, _ := strings.Cut(s, "=")
		vars[k] = v
	}
	put := func(k, v string, literal bool) {
		if !envName(k) || EnvForbidden(k) || strings.IndexByte(v, 0) >= 0 {
			return
		}
		if slices.ContainsFunc(e.Ceilings, func(c *Policy) bool { return !ceilingEnv(c, k, v, literal) }) {
			return
		}
		vars[k] = v
	}
	if e.Grant != nil && e.Grant.Env != nil {
		for _, s := range host {
			k, v, ok := strings.Cut(s, "=")
			if !ok {
				continue
			}
			if _, set := e.Grant.Env.set(k); set {
				continue
			}
			if _, pass := e.Grant.Env.pass(k); pass {
				put(k, v, false)
			}
		}
		for _, s := range e.Grant.Env.Set {
			put(s.Name, s.Value, true)
		}
	}
	out := make([]string, 0, len(vars))
	for k, v := range vars {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// Unenforced returns what the grant asks for and this version does not enforce yet. A run must not be bound to a policy
// for which it is not empty. Absent and empty sections and default values pass; ceilings pass, because what they take
// away was not there.
func (e *Effective) Unenforced() Errors {
	p := e.Grant
	if p == nil {
		return nil
	}
	var out Errors
	add := func(at string, is bool) {
		if !is {
			return
		}
		pos := p.At(at)
		msg := "not enforced by this version: " + at
		if pos.Line > 0 {
			msg += fmt.Sprintf(", line %d", pos.Line)
		}
		out = append(out, Error{Position: pos, Code: CodeUnenforced, Msg: msg})
	}
	d := DefaultLimits()
	add("network", len(p.Network) > 0)
	add("secrets", len(p.Secrets) > 0)
	add("tools", len(p.Tools) > 0)
	add("shared", p.Shared != nil && *p.Shared)
	add("limits.processes", orElse(p.Limits.Processes, d.Processes) != d.Processes)
	add("limits.requests", orElse(p.Limits.Requests, d.Requests) != d.Requests)
	add("limits.upload", orElse(p.Limits.Upload, d.Upload) != d.Upload)
	add("limits.download", orElse(p.Limits.Download, d.Download) != d.Download)
	add("limits.calls", orElse(p.Limits.Calls, d.Calls) != d.Calls)
	return out.sorted()
}
