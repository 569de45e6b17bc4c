package policy

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// normalHost returns the one spelling under which a host is compared: lower-case A-labels without the final dot, or an
// address without brackets. Anything that a resolver could read in two ways is an error.
func normalHost(s string) (string, error) {
	if s == "" || len(s) > 1024 {
		return "", fmt.Errorf("host %q is empty or too long", clip(s))
	}
	if strings.HasPrefix(s, "[") || strings.Contains(s, ":") {
		a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
		if err != nil || a.Zone() != "" || strings.HasPrefix(s, "[") != strings.HasSuffix(s, "]") || !a.Is6() {
			return "", fmt.Errorf("host %q is neither a name nor an address", clip(s))
		}
		return a.Unmap().String(), nil
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`%/\@?#"'<>^|{}*,;`, c) >= 0 {
			return "", fmt.Errorf("host %q holds %q", clip(s), string(c))
		}
	}
	h, err := idna.Lookup.ToASCII(s)
	if err != nil {
		return "", fmt.Errorf("host %q is not a valid name", clip(s))
	}
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if h == "" || len(h) > 253 {
		return "", fmt.Errorf("host %q is empty or too long", clip(s))
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return "", fmt.Errorf("host %q is not a valid name", clip(s))
		}
		for i := range len(l) {
			if c := l[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
				return "", fmt.Errorf("host %q is not a valid name", clip(s))
			}
		}
	}
	// A last label of digits makes resolvers read the whole as an IPv4 address, in forms such as 2130706433 or 0x7f.1.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return "", fmt.Errorf("host %q is neither a name nor an address", clip(s))
		}
		return a.String(), nil
	}
	return h, nil
}

// normalHostPattern reads the host of a network line: a host, "*.name" or "*".
func normalHostPattern(s string) (string, error) {
	if s == "*" {
		return s, nil
	}
	if rest, ok := strings.CutPrefix(s, "*."); ok {
		h, err := normalHost(rest)
		if err != nil {
			return "", err
		}
		if _, err := netip.ParseAddr(h); err == nil {
			return "", fmt.Errorf("host %q: an address has no names below it", clip(s))
		}
		return "*." + h, nil
	}
	switch {
	case strings.Contains(s, "://"):
		return "", fmt.Errorf("host %q holds a scheme: use the keys host, scheme, port and paths", clip(s))
	case strings.Contains(s, "*"):
		return "", fmt.Errorf("host %q: \"*\" stands alone or as the first label, as in \"*.example.com\"", clip(s))
	case strings.Contains(s, "/"):
		return "", fmt.Errorf("host %q holds a path: use the key paths", clip(s))
	case strings.Count(s, ":") == 1:
		return "", fmt.Errorf("host %q holds a port: use the key port", clip(s))
	}
	return normalHost(s)
}

// hostMatches compares label by label: "*.example.com" is one label or more below, never the apex.
func hostMatches(pattern, host string) bool {
	if pattern == "*" || pattern == host {
		return true
	}
	rest, ok := strings.CutPrefix(pattern, "*")
	if !ok || !strings.HasSuffix(host, rest) || len(host) == len(rest) {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

// hostCovers reports whether every host that inner matches is matched by outer.
func hostCovers(outer, inner string) bool {
	if outer == "*" || outer == inner {
		return true
	}
	o, ok := strings.CutPrefix(outer, "*")
	return ok && strings.HasSuffix(strings.TrimPrefix(inner, "*"), o) && inner != o[1:]
}

// reserved are ranges that netip does not name but that are not public.
var reserved = func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}()

// PublicAddress reports whether a is an ordinary address of the internet: not private, loopback, link-local, multicast,
// reserved, nor one that carries another address inside (NAT64, 6to4, Teredo).
func PublicAddress(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// addressAllowed reports whether a line lets a connection go to a.
func (n *Network) addressAllowed(a netip.Addr) bool {
	if PublicAddress(a) {
		return true
	}
	for _, p := range n.Addresses {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// target is a URL taken apart for matching.
type target struct {
	scheme, host string
	port         int
	path         []string // decoded segments
	addr         netip.Addr
}

var defaultPorts = map[string]int{"https": 443, "http": 80}

// parseTarget normalises a URL. Everything that two parsers could read in two ways is an error: user information, control
// bytes, blanks, backslashes, an encoded slash, "..", an empty segment, ";".
func parseTarget(raw string) (target, error) {
	var t target
	if len(raw) > 8192 {
		return t, fmt.Errorf("URL is longer than 8192 bytes")
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return t, fmt.Errorf("URL %q holds a blank, a control byte or a backslash", clip(raw))
		}
	}
	if badText(raw) {
		return t, fmt.Errorf("URL %q holds a control character", clip(raw))
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return t, fmt.Errorf("URL %q does not begin with https:// or http://", clip(raw))
	}
	t.scheme = strings.ToLower(scheme)
	if defaultPorts[t.scheme] == 0 {
		return t, fmt.Errorf("URL %q: scheme is not https or http", clip(raw))
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.Contains(authority, "@") {
		return t, fmt.Errorf("URL %q holds user information", clip(raw))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return t, fmt.Errorf("URL %q is not valid", clip(raw))
	}
	if t.host, err = normalHost(trimPort(authority)); err != nil {
		return t, fmt.Errorf("URL %q: %w", clip(raw), err)
	}
	t.port = defaultPorts[t.scheme]
	if p, found := portOf(authority); found {
		n, err := parseCount(p)
		if err != nil || n > 65535 {
			return t, fmt.Errorf("URL %q: port is not valid", clip(raw))
		}
		t.port = int(n)
	}
	if a, err := netip.ParseAddr(t.host); err == nil {
		t.addr = a.Unmap()
	} else if t.host == "localhost" || strings.HasSuffix(t.host, ".localhost") {
		t.addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	t.path, err = pathSegments(u.EscapedPath())
	if err != nil {
		return t, fmt.Errorf("URL %q: %w", clip(raw), err)
	}
	return t, nil
}

func trimPort(authority string) string {
	if p, ok := portOf(authority); ok {
		return authority[:len(authority)-len(p)-1]
	}
	return authority
}

func portOf(authority string) (string, bool) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.Contains(authority[i:], "]") {
		return "", false
	}
	return authority[i+1:], true
}

// pathSegments decodes once and drops "." segments.
func pathSegments(escaped string) ([]string, error) {
	escaped = strings.TrimPrefix(escaped, "/")
	raw := strings.Split(escaped, "/")
	if len(raw) > maxSegments {
		return nil, fmt.Errorf("path has more than %d segments", maxSegments)
	}
	out := make([]string, 0, len(raw))
	for i, r := range raw {
		last := i == len(raw)-1
		seg, err := url.PathUnescape(r)
		switch {
		case err != nil:
			return nil, fmt.Errorf("path holds an invalid escape")
		case strings.ContainsAny(seg, `/\`):
			return nil, fmt.Errorf("path holds an encoded slash or backslash")
		case strings.Contains(seg, ";"):
			return nil, fmt.Errorf("path holds \";\"")
		case seg == "..":
			return nil, fmt.Errorf("path holds \"..\"")
		case badText(seg):
			return nil, fmt.Errorf("path holds a control character")
		case hasEncodedSlash(seg):
			return nil, fmt.Errorf("path is encoded twice")
		case seg == "." && last:
			out = append(out, "")
		case seg == ".":
		case seg == "" && !last:
			return nil, fmt.Errorf("path holds an empty segment")
		default:
			out = append(out, seg)
		}
	}
	return out, nil
}

// hasEncodedSlash reports whether decoded text still holds an escape of a dot, a slash, a backslash or a percent sign.
func hasEncodedSlash(s string) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 || i+3 > len(s) {
			return false
		}
		switch strings.ToLower(s[i+1 : i+3]) {
		case "2e", "2f", "5c", "25":
			return true
		}
		s = s[i+1:]
	}
}

// String returns the canonical URL. Query and fragment are not part of it: the one is not matched, the other not sent.
func (t target) String() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.port != defaultPorts[t.scheme] {
		host += ":" + strconv.Itoa(t.port)
	}
	segs := make([]string, len(t.path))
	for i, s := range t.path {
		segs[i] = url.PathEscape(s)
	}
	return t.scheme + "://" + host + "/" + strings.Join(segs, "/")
}
