package policy

import (
	"fmt"
	"path"
	"strings"
)

// HostPath is a path of the host as a policy writes it, not yet resolved against a machine.
type HostPath struct {
	Base string // "/", "~", "${workspace}", "${skill}" or "${data}"
	Rest string // clean, relative; "" is Base itself
}

var hostBases = []string{"~", "${workspace}", "${skill}", "${data}"}

// ParseHostPath reads "/abs", "~/rest", "${workspace}[/rest]", "${skill}[/rest]" or "${data}[/rest]"; "~" alone is "~/".
func ParseHostPath(s string) (HostPath, error) {
	if badText(s) || len(s) > 4096 {
		return HostPath{}, fmt.Errorf("host path %q holds a control character or is longer than 4096 bytes", clip(s))
	}
	h := HostPath{}
	if strings.HasPrefix(s, "/") {
		h = HostPath{Base: "/", Rest: s[1:]}
	}
	for _, b := range hostBases {
		if rest, ok := strings.CutPrefix(s, b); ok && (rest == "" || rest[0] == '/') {
			h = HostPath{Base: b, Rest: strings.TrimPrefix(rest, "/")}
		}
	}
	if h.Base == "" {
		return HostPath{}, fmt.Errorf("host path %q does not begin with \"/\", \"~/\", \"${workspace}\", \"${skill}\" or \"${data}\"", clip(s))
	}
	if strings.Contains(h.Rest, "${") {
		return HostPath{}, fmt.Errorf("host path %q holds \"${\" in the middle: nothing is expanded there", clip(s))
	}
	for seg := range strings.SplitSeq(h.Rest, "/") {
		if seg == ".." {
			return HostPath{}, fmt.Errorf("host path %q holds \"..\"", clip(s))
		}
	}
	if h.Rest != "" {
		h.Rest = strings.TrimPrefix(path.Clean("/"+h.Rest), "/")
	}
	return h, nil
}

// String returns the form that [ParseHostPath] reads.
func (h HostPath) String() string {
	switch {
	case h.Base == "/":
		return "/" + h.Rest
	case h.Rest == "" && h.Base == "~":
		return "~/"
	case h.Rest == "":
		return h.Base
	}
	return h.Base + "/" + h.Rest
}

// MarshalText is [HostPath.String].
func (h HostPath) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// Vars are the paths of this machine that a policy is bound to. All are absolute host paths with links resolved by the
// caller; "" means that there is none, and a root that needs it is an error.
type Vars struct {
	Workspace string   // ${workspace}
	Skill     string   // ${skill}
	Data      string   // ${data}
	Home      string   // ~
	Denied    []string // never reachable, whatever a root covers: exthost's own home, caches, other extensions' folders
}

// expand returns the absolute host path of h in slashes.
func (v Vars) expand(h HostPath) (string, error) {
	base := ""
	switch h.Base {
	case "/":
		base = "/"
	case "~":
		base = v.Home
	case "${workspace}":
		base = v.Workspace
	case "${skill}":
		base = v.Skill
	case "${data}":
		base = v.Data
	}
	if base == "" {
		return "", fmt.Errorf("%s has no value here", h.Base)
	}
	return path.Join(slashed(base), h.Rest), nil
}

// slashed makes a host path comparable on a system that writes backslashes.
func slashed(p string) string {
	if len(p) > 1 && p[1] == ':' {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

// Denies reports whether the host path p, with links resolved, lies at or below a path that is always denied. The
// extension's own kept folder is not, although it lies in exthost's home.
func (v Vars) Denies(p string) bool {
	p = path.Clean(slashed(p))
	for _, own := range []string{v.Data, v.Skill} {
		if own != "" && within(slashed(own), p) {
			return false
		}
	}
	for _, d := range v.Denied {
		if d != "" && within(path.Clean(slashed(d)), p) {
			return true
		}
	}
	return false
}

// deniesBelow reports whether p, a path at or below a root's host path, is always denied.
func (v Vars) deniesBelow(root, p string) bool {
	if v.Denies(root) {
		return true
	}
	for _, d := range v.Denied {
		if d = path.Clean(slashed(d)); d != root && within(root, d) && within(d, p) {
			return true
		}
	}
	return false
}

// within reports whether p lies at or below dir. Both are clean and absolute.
func within(dir, p string) bool {
	_, ok := relTo(dir, p)
	return ok
}

// relTo returns p relative to dir, "" for dir itself.
func relTo(dir, p string) (string, bool) {
	if dir == p {
		return "", true
	}
	if !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	return strings.CutPrefix(p, dir)
}
