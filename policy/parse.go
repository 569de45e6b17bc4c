package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxFile  = 256 << 10
	maxItems = 10000 // entries of one list or mapping
	maxDepth = 64    // of a tool's schema
)

// Parse reads one policy file. file is only used in positions and may be "".
//
// Reading is strict: unknown and duplicate keys, wrong types, null, anchors, aliases, tags, merges, several documents
// and files above 256 KiB are errors. An error is always an [Errors] with all faults, sorted by position; the policy is
// then nil. data is not kept.
func Parse(file string, data []byte) (*Policy, error) {
	p := &parser{file: file, p: &Policy{File: file, at: map[string]Position{}}}
	if root := p.document(data); root != nil {
		p.policy(root)
	}
	if len(p.errs) > 0 {
		return nil, p.errs.sorted()
	}
	return p.p, nil
}

type parser struct {
	file string
	errs Errors
	p    *Policy
}

func (p *parser) pos(n *yaml.Node) Position {
	return Position{File: p.file, Line: n.Line, Column: n.Column}
}

func (p *parser) errorf(n *yaml.Node, code, format string, args ...any) {
	p.errs = append(p.errs, Error{Position: p.pos(n), Code: code, Msg: fmt.Sprintf(format, args...)})
}

func (p *parser) hint(format string, args ...any) {
	p.errs[len(p.errs)-1].Hint = fmt.Sprintf(format, args...)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// document returns the root mapping, or nil after an error.
func (p *parser) document(data []byte) *yaml.Node {
	start := &yaml.Node{Line: 1, Column: 1}
	if len(data) > maxFile {
		p.errorf(start, CodeSize, "file is larger than 256 KiB")
		return nil
	}
	if !utf8.Valid(data) {
		line := 1 + bytes.Count(data[:firstInvalid(data)], []byte("\n"))
		p.errorf(&yaml.Node{Line: line, Column: 1}, CodeSyntax, "file is not UTF-8")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := decodeNode(dec, &doc)
	if errors.Is(err, io.EOF) {
		p.errorf(start, CodeSyntax, "file is empty")
		return nil
	}
	if err != nil {
		p.syntax(err)
		return nil
	}
	var second yaml.Node
	if err := decodeNode(dec, &second); err == nil {
		p.errorf(&second, CodeDocuments, "file holds more than one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		p.errorf(start, CodeSyntax, "file is empty")
		return nil
	}
	n := len(p.errs)
	p.features(doc.Content[0], 0)
	if len(p.errs) > n {
		return nil
	}
	return doc.Content[0]
}

// decodeNode turns a panic of the YAML library into an error: the file may come from anywhere.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: cannot be read")
		}
	}()
	return dec.Decode(n)
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

func (p *parser) syntax(err error) {
	n := &yaml.Node{Line: 1, Column: 1}
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		n.Line, _ = strconv.Atoi(m[1])
		msg = strings.Replace(msg, m[0], "", 1)
	}
	p.errorf(n, CodeSyntax, "not valid YAML: %s", printable(clip(msg)))
}

// features refuses what YAML can do beyond plain data. It looks at every node once, before anything is understood.
func (p *parser) features(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth+16:
		p.errorf(n, CodeYAMLFeature, "nested deeper than %d levels", maxDepth+16)
		return
	case n.Kind == yaml.AliasNode:
		p.errorf(n, CodeYAMLFeature, "aliases are not allowed")
		return
	case n.Anchor != "":
		p.errorf(n, CodeYAMLFeature, "anchors are not allowed")
	case n.Style&yaml.TaggedStyle != 0:
		p.errorf(n, CodeYAMLFeature, "tags are not allowed")
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		p.errorf(n, CodeYAMLFeature, "merge keys are not allowed")
	}
	for _, c := range n.Content {
		p.features(c, depth+1)
	}
}

type pair struct {
	key  string
	k, v *yaml.Node
}

// mapping returns the entries of a mapping with string keys, each once. what names it in messages.
func (p *parser) mapping(n *yaml.Node, what string) ([]pair, bool) {
	if !p.kind(n, yaml.MappingNode, what, "a mapping") {
		return nil, false
	}
	if len(n.Content)/2 > maxItems {
		p.errorf(n, CodeValue, "%s has more than %d entries", what, maxItems)
		return nil, false
	}
	seen := map[string]int{}
	var out []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
			p.errorf(k, CodeType, "%s: a key must be a string", what)
			continue
		}
		if badText(k.Value) {
			p.errorf(k, CodeValue, "%s: key %q holds a control character", what, clip(k.Value))
			continue
		}
		if line, ok := seen[k.Value]; ok {
			p.errorf(k, CodeDuplicateKey, "duplicate key %q, first on line %d", clip(k.Value), line)
			continue
		}
		seen[k.Value] = k.Line
		out = append(out, pair{k.Value, k, v})
	}
	return out, true
}

// fields reads a mapping whose keys are known. handlers are called in file order; a missing key calls nothing.
func (p *parser) fields(n *yaml.Node, what, at string, handlers map[string]func(k, v *yaml.Node)) {
	pairs, ok := p.mapping(n, what)
	if !ok {
		return
	}
	for _, e := range pairs {
		h, ok := handlers[e.key]
		if !ok {
			p.errorf(e.k, CodeUnknownKey, "unknown key %q in %s", clip(e.key), what)
			if near := nearest(e.key, handlers); near != "" {
				p.hint("did you mean %q?", near)
			}
			continue
		}
		p.p.at[join(at, e.key)] = p.pos(e.k)
		h(e.k, e.v)
	}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func (p *parser) kind(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		p.errorf(n, CodeNull, "%s is null, not %s", what, want)
		p.hint("leave the key out, or write [] or {} to grant nothing")
		return false
	}
	if n.Kind != kind {
		p.errorf(n, CodeType, "%s must be %s, not %s", what, want, kindName(n))
		return false
	}
	return true
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int":
		return "a number"
	case "!!float":
		return "a fraction"
	case "!!bool":
		return "true or false"
	case "!!str":
		return "a string"
	case "!!null":
		return "null"
	case "!!timestamp":
		return "a date"
	}
	return "something else"
}

func (p *parser) list(n *yaml.Node, what string) ([]*yaml.Node, bool) {
	if !p.kind(n, yaml.SequenceNode, what, "a list") {
		return nil, false
	}
	if len(n.Content) > maxItems {
		p.errorf(n, CodeValue, "%s has more than %d entries", what, maxItems)
		return nil, false
	}
	return n.Content, true
}

func (p *parser) str(n *yaml.Node, what string) (string, bool) {
	if !p.kind(n, yaml.ScalarNode, what, "a string") {
		return "", false
	}
	if n.ShortTag() != "!!str" {
		p.errorf(n, CodeType, "%s must be a string, not %s", what, kindName(n))
		p.hint("write it in quotes")
		return "", false
	}
	if badText(n.Value) {
		p.errorf(n, CodeValue, "%s holds a control character", what)
		return "", false
	}
	return n.Value, true
}

func (p *parser) boolean(n *yaml.Node, what string) (bool, bool) {
	if !p.kind(n, yaml.ScalarNode, what, "true or false") {
		return false, false
	}
	if n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
		p.errorf(n, CodeType, "%s must be true or false, not %s", what, kindName(n))
		return false, false
	}
	return n.Value == "true", true
}

func (p *parser) count(n *yaml.Node, what string, most int64) (int64, bool) {
	if !p.kind(n, yaml.ScalarNode, what, "a whole number") {
		return 0, false
	}
	if n.ShortTag() != "!!int" {
		p.errorf(n, CodeType, "%s must be a whole number, not %s", what, kindName(n))
		return 0, false
	}
	v, err := parseCount(n.Value)
	if err != nil {
		p.errorf(n, CodeValue, "%s: %v", what, err)
		return 0, false
	}
	if v > most {
		p.errorf(n, CodeValue, "%s is larger than %d", what, most)
		return 0, false
	}
	return v, true
}

// strings reads a list of strings; each is called with its node and may report.
func (p *parser) strings(n *yaml.Node, what string, each func(n *yaml.Node, s string)) bool {
	items, ok := p.list(n, what)
	if !ok {
		return false
	}
	for _, it := range items {
		if s, ok := p.str(it, "an entry of "+what); ok {
			each(it, s)
		}
	}
	return true
}

func (p *parser) word(n *yaml.Node, what string, words ...string) (string, bool) {
	s, ok := p.str(n, what)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		p.errorf(n, CodeValue, "%s is %q, not one of %s", what, clip(s), strings.Join(words, ", "))
		return "", false
	}
	return s, true
}

func (p *parser) policy(root *yaml.Node) {
	pol := p.p
	p.fields(root, "the policy", "", map[string]func(k, v *yaml.Node){
		"version": func(_, v *yaml.Node) {
			if !p.kind(v, yaml.ScalarNode, "version", "a number") {
				return
			}
			if v.ShortTag() != "!!int" {
				p.errorf(v, CodeType, "version must be a number, not %s", kindName(v))
				return
			}
			if v.Value != "1" {
				p.errorf(v, CodeValue, "version %q is not known here: this program reads version 1", clip(v.Value))
				return
			}
			pol.Version = 1
		},
		"extension": func(_, v *yaml.Node) {
			if s, ok := p.str(v, "extension"); ok {
				if !serverName(s) {
					p.errorf(v, CodeValue, "extension %q is not 1 to 64 of a-z A-Z 0-9 . _ - +", clip(s))
				}
				pol.Extension = s
			}
		},
		"digest": func(_, v *yaml.Node) {
			if s, ok := p.str(v, "digest"); ok {
				if !digestForm.MatchString(s) {
					p.errorf(v, CodeValue, "digest %q is not \"sha256:\" and 64 hex digits in lower case", clip(s))
				}
				pol.Digest = s
			}
		},
		"env":     func(_, v *yaml.Node) { p.env(v) },
		"files":   func(_, v *yaml.Node) { p.files(v) },
		"network": func(_, v *yaml.Node) { p.network(v) },
		"secrets": func(_, v *yaml.Node) { p.secrets(v) },
		"tools":   func(_, v *yaml.Node) { p.tools(v) },
		"limits":  func(_, v *yaml.Node) { p.limits(v) },
		"shared": func(_, v *yaml.Node) {
			if b, ok := p.boolean(v, "shared"); ok {
				pol.Shared = &b
			}
		},
		"walls": func(_, v *yaml.Node) {
			pol.Walls = []string{}
			p.strings(v, "walls", func(n *yaml.Node, s string) {
				if !slices.Contains(wallNames, s) {
					p.errorf(n, CodeValue, "wall %q is not one of %s", clip(s), strings.Join(wallNames, ", "))
				} else if slices.Contains(pol.Walls, s) {
					p.errorf(n, CodeDuplicateKey, "wall %q stands twice", s)
				} else {
					pol.Walls = append(pol.Walls, s)
				}
			})
			slices.Sort(pol.Walls)
		},
		"tests": func(_, v *yaml.Node) { p.tests(v) },
	})
	if root.Kind != yaml.MappingNode {
		return
	}
	for _, key := range []string{"version", "extension"} {
		if _, ok := pol.at[key]; !ok {
			p.errorf(root, CodeMissingKey, "key %q is missing", key)
		}
	}
	p.consistent()
}

var (
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	wallNames  = []string{"job", "landlock", "seatbelt", "seccomp", "userns"}
)

func (p *parser) env(n *yaml.Node) {
	sec := &EnvSection{}
	p.p.Env = sec
	p.fields(n, "env", "env", map[string]func(k, v *yaml.Node){
		"pass": func(_, v *yaml.Node) {
			seen := map[string]bool{}
			p.strings(v, "env.pass", func(n *yaml.Node, s string) {
				name, wild := strings.CutSuffix(s, "*")
				switch {
				case s == "*":
					p.errorf(n, CodeValue, "env.pass: \"*\" alone would pass the whole environment")
				case !envName(name):
					p.errorf(n, CodeValue, "env.pass: %q is not a name, nor a prefix followed by \"*\"", clip(s))
				case forbiddenEnvPattern(s):
					p.errorf(n, CodeValue, "env.pass: %s is never given to a guest", s)
				case wild && EnvLooksSecret(name):
					p.errorf(n, CodeValue, "env.pass: %s looks like a credential and needs the exact name", s)
				case seen[s]:
					p.errorf(n, CodeDuplicateKey, "env.pass: %q stands twice", s)
				default:
					sec.Pass = append(sec.Pass, EnvPass{s, p.pos(n)})
				}
				seen[s] = true
			})
		},
		"set": func(_, v *yaml.Node) {
			pairs, _ := p.mapping(v, "env.set")
			for _, e := range pairs {
				if !p.kind(e.v, yaml.ScalarNode, "env.set."+clip(e.key), "a string") {
					continue
				}
				switch {
				case !envName(e.key):
					p.errorf(e.k, CodeValue, "env.set: %q is not the name of a variable", clip(e.key))
				case EnvForbidden(e.key):
					p.errorf(e.k, CodeValue, "env.set: %s is never given to a guest", e.key)
				case e.v.ShortTag() != "!!str":
					p.errorf(e.v, CodeType, "env.set.%s must be a string, not %s", e.key, kindName(e.v))
					p.hint("write it in quotes")
				case badText(strings.ReplaceAll(strings.ReplaceAll(e.v.Value, "\n", ""), "\t", "")) || len(e.v.Value) > 32<<10:
					p.errorf(e.v, CodeValue, "env.set.%s holds a control character or is longer than 32 KiB", e.key)
				default:
					p.p.at["env.set."+e.key] = p.pos(e.k)
					sec.Set = append(sec.Set, EnvSet{e.key, e.v.Value, p.pos(e.k)})
				}
			}
			slices.SortFunc(sec.Set, func(a, b EnvSet) int { return strings.Compare(a.Name, b.Name) })
		},
	})
}

func (p *parser) files(n *yaml.Node) {
	p.p.Files = []File{}
	pairs, _ := p.mapping(n, "files")
	seen := map[string]int{}
	for _, e := range pairs {
		f := File{Pos: p.pos(e.k), Hide: defaultHideGlobs}
		guest, err := guestPath(e.key)
		switch {
		case err != nil:
			p.errorf(e.k, CodeValue, "files: %v", err)
		case guest != e.key && guest+"/" != e.key:
			p.errorf(e.k, CodeValue, "files: path %q is not clean, write %q", clip(e.key), clip(guest))
		case strings.ContainsAny(guest, `*\`):
			p.errorf(e.k, CodeValue, "files: path %q holds \"*\" or a backslash: a root is one path, not a pattern", clip(e.key))
		case reservedGuest(guest) != "":
			p.errorf(e.k, CodeValue, "files: %q belongs to the built-in base", reservedGuest(guest))
		case seen[guest] > 0:
			p.errorf(e.k, CodeDuplicateKey, "duplicate key %q, first on line %d", clip(guest), seen[guest])
		}
		seen[guest] = e.k.Line
		f.Guest = guest
		at := "files." + guest
		p.p.at[at] = f.Pos
		p.file1(e, at, &f)
		p.p.Files = append(p.p.Files, f)
	}
	slices.SortStableFunc(p.p.Files, func(a, b File) int { return strings.Compare(a.Guest, b.Guest) })
}

// reservedGuest names the part of the base that a root may not replace.
func reservedGuest(guest string) string {
	for _, r := range []string{"/skill", "/dev", "/proc", "/sys"} {
		if within(r, guest) {
			return r
		}
	}
	return ""
}

func (p *parser) file1(e pair, at string, f *File) {
	what := "files." + clip(e.key)
	haveHost, haveAccess := false, false
	p.fields(e.v, what, at, map[string]func(k, v *yaml.Node){
		"host": func(_, v *yaml.Node) {
			haveHost = true
			if s, ok := p.str(v, what+".host"); ok {
				h, err := ParseHostPath(s)
				if err != nil {
					p.errorf(v, CodeValue, "%s: %v", what, err)
				}
				f.Host = h
			}
		},
		"access": func(_, v *yaml.Node) {
			haveAccess = true
			if s, ok := p.word(v, what+".access", "read", "write", "overlay"); ok {
				f.Access = map[string]Access{"read": ReadOnly, "write": ReadWrite, "overlay": Overlay}[s]
			}
		},
		"hide": func(_, v *yaml.Node) {
			f.HideSet = true
			f.Hide = p.globs(v, what+".hide")
		},
		"create": func(_, v *yaml.Node) {
			f.Create, _ = p.boolean(v, what+".create")
		},
		"protected": func(_, v *yaml.Node) {
			f.Protected = p.globs(v, what+".protected")
			for i, g := range f.Protected {
				if strings.Trim(g.String(), "*/") == "" {
					p.errorf(v.Content[min(i, len(v.Content)-1)], CodeValue, "%s.protected: %q would free every protected file", what, g)
					p.hint("name the files")
				}
			}
		},
	})
	if e.v.Kind != yaml.MappingNode {
		return
	}
	if !haveHost {
		p.errorf(e.k, CodeMissingKey, "%s: key \"host\" is missing", what)
	}
	if !haveAccess {
		p.errorf(e.k, CodeMissingKey, "%s: key \"access\" is missing", what)
	}
	if f.Host.Base == "${skill}" && f.Access > ReadOnly {
		p.errorf(e.k, CodeConflict, "%s: ${skill} can only be read", what)
	}
	if name, ok := protectedBy(nil, segments(f.Host.Rest), nil); ok && f.Access > ReadOnly {
		p.errorf(e.k, CodeConflict, "%s: host path %s lies in %q, which is protected and can only be read", what, f.Host, strings.TrimPrefix(name, "**/"))
		p.hint("grant the folder above it and name the file in its protected key")
	}
	if f.Create && f.Access == ReadOnly {
		p.errorf(e.k, CodeConflict, "%s: create needs access write or overlay", what)
	}
	if len(f.Protected) > 0 && f.Access == ReadOnly {
		p.errorf(e.k, CodeConflict, "%s: protected needs access write or overlay", what)
	}
}

func (p *parser) globs(n *yaml.Node, what string) []Glob {
	out := []Glob{}
	seen := map[string]bool{}
	p.strings(n, what, func(n *yaml.Node, s string) {
		g, err := ParseGlob(s)
		switch {
		case err != nil:
			p.errorf(n, CodeValue, "%s: %v", what, err)
		case seen[s]:
			p.errorf(n, CodeDuplicateKey, "%s: %q stands twice", what, clip(s))
		default:
			out = append(out, g)
		}
		seen[s] = true
	})
	return out
}

func (p *parser) network(n *yaml.Node) {
	p.p.Network = []Network{}
	items, _ := p.list(n, "network")
	for i, it := range items {
		at := fmt.Sprintf("network[%d]", i)
		p.p.at[at] = p.pos(it)
		l := Network{Scheme: "https", Pos: p.pos(it)}
		var hostNode *yaml.Node
		port := false
		p.fields(it, at, at, map[string]func(k, v *yaml.Node){
			"host": func(_, v *yaml.Node) {
				hostNode = v
				if s, ok := p.str(v, at+".host"); ok {
					h, err := normalHostPattern(s)
					if err != nil {
						p.errorf(v, CodeValue, "%s: %v", at, err)
					}
					l.Host = h
				}
			},
			"scheme": func(_, v *yaml.Node) {
				if s, ok := p.word(v, at+".scheme", "https", "http"); ok {
					l.Scheme = s
				}
			},
			"port": func(_, v *yaml.Node) {
				port = true
				if c, ok := p.count(v, at+".port", 65535); ok {
					l.Port = int(c)
				}
			},
			"methods": func(_, v *yaml.Node) { l.Methods = p.methods(v, at+".methods") },
			"paths": func(_, v *yaml.Node) {
				l.Paths = []Glob{}
				seen := map[string]bool{}
				p.strings(v, at+".paths", func(n *yaml.Node, s string) {
					g, err := ParsePathGlob(s)
					if err != nil {
						p.errorf(n, CodeValue, "%s.paths: %v", at, err)
						return
					}
					if seen[s] {
						p.errorf(n, CodeDuplicateKey, "%s.paths: %q stands twice", at, clip(s))
						return
					}
					seen[s] = true
					l.Paths = append(l.Paths, g)
				})
			},
			"addresses": func(_, v *yaml.Node) {
				l.Addresses = []netip.Prefix{}
				p.strings(v, at+".addresses", func(n *yaml.Node, s string) {
					pre, err := netip.ParsePrefix(s)
					if err != nil || pre.Masked() != pre || pre.Addr().Is4In6() {
						p.errorf(n, CodeValue, "%s.addresses: %q is not a CIDR such as 10.0.0.0/8 with no bits set after the prefix", at, clip(s))
						return
					}
					if slices.Contains(l.Addresses, pre) {
						p.errorf(n, CodeDuplicateKey, "%s.addresses: %q stands twice", at, s)
						return
					}
					l.Addresses = append(l.Addresses, pre)
				})
			},
		})
		if it.Kind == yaml.MappingNode && hostNode == nil {
			p.errorf(it, CodeMissingKey, "%s: key \"host\" is missing", at)
		}
		if !port {
			l.Port = defaultPorts[l.Scheme]
		}
		if _, ok := p.p.at[at+".methods"]; !ok {
			l.Methods = []string{"GET", "HEAD"}
		}
		if a, err := netip.ParseAddr(l.Host); err == nil && hostNode != nil && !l.addressAllowed(a) {
			p.errorf(hostNode, CodeValue, "%s: %s is not a public address and needs a line in addresses", at, l.Host)
		}
		p.p.Network = append(p.p.Network, l)
	}
}

func (p *parser) methods(n *yaml.Node, what string) []string {
	out := []string{}
	p.strings(n, what, func(n *yaml.Node, s string) {
		switch {
		case s == "CONNECT" || s == "TRACE":
			p.errorf(n, CodeValue, "%s: %s cannot be granted", what, s)
		case s != "*" && !methodName(s):
			p.errorf(n, CodeValue, "%s: %q is not a method in capitals, nor \"*\"", what, clip(s))
		case slices.Contains(out, s):
			p.errorf(n, CodeDuplicateKey, "%s: %q stands twice", what, s)
		default:
			out = append(out, s)
		}
	})
	if len(out) > 1 && slices.Contains(out, "*") {
		p.errorf(n, CodeConflict, "%s: \"*\" stands alone", what)
	}
	return out
}

func (p *parser) secrets(n *yaml.Node) {
	p.p.Secrets = []SecretGrant{}
	pairs, _ := p.mapping(n, "secrets")
	for _, e := range pairs {
		what := "secrets." + clip(e.key)
		at := "secrets." + e.key
		s := SecretGrant{Name: e.key, Pos: p.pos(e.k), In: []string{"header:Authorization"}}
		p.p.at[at] = s.Pos
		if !envName(e.key) || EnvForbidden(e.key) {
			p.errorf(e.k, CodeValue, "secrets: %q cannot be the name of a variable of a guest", clip(e.key))
		}
		have := map[string]bool{}
		p.fields(e.v, what, at, map[string]func(k, v *yaml.Node){
			"from": func(_, v *yaml.Node) {
				have["from"] = true
				if t, ok := p.str(v, what+".from"); ok {
					if err := secretSource(t); err != nil {
						p.errorf(v, CodeValue, "%s: %v", what, err)
					}
					s.From = t
				}
			},
			"to": func(_, v *yaml.Node) {
				have["to"] = true
				s.To = []string{}
				p.strings(v, what+".to", func(n *yaml.Node, t string) {
					h, err := normalHostPattern(t)
					switch {
					case err != nil:
						p.errorf(n, CodeValue, "%s.to: %v", what, err)
					case h == "*":
						p.errorf(n, CodeValue, "%s.to: a secret needs hosts, not \"*\"", what)
					case slices.Contains(s.To, h):
						p.errorf(n, CodeDuplicateKey, "%s.to: %q stands twice", what, h)
					default:
						p.p.at[at+".to."+h] = p.pos(n)
						s.To = append(s.To, h)
					}
				})
				if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
					p.errorf(v, CodeValue, "%s.to is empty", what)
				}
			},
			"in": func(_, v *yaml.Node) {
				s.In = []string{}
				p.strings(v, what+".in", func(n *yaml.Node, t string) {
					c, err := secretPlace(t)
					switch {
					case err != nil:
						p.errorf(n, CodeValue, "%s.in: %v", what, err)
					case slices.Contains(s.In, c):
						p.errorf(n, CodeDuplicateKey, "%s.in: %q stands twice", what, c)
					default:
						s.In = append(s.In, c)
					}
				})
				if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
					p.errorf(v, CodeValue, "%s.in is empty", what)
				}
			},
		})
		if e.v.Kind == yaml.MappingNode {
			for _, k := range []string{"from", "to"} {
				if !have[k] {
					p.errorf(e.k, CodeMissingKey, "%s: key %q is missing", what, k)
				}
			}
		}
		p.p.Secrets = append(p.p.Secrets, s)
	}
	slices.SortStableFunc(p.p.Secrets, func(a, b SecretGrant) int { return strings.Compare(a.Name, b.Name) })
}

func secretSource(s string) error {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case kind == "env" && envName(rest), kind == "host" && serverName(rest):
		return nil
	case kind == "file":
		h, err := ParseHostPath(rest)
		if err == nil && h.Base != "/" && h.Base != "~" {
			err = fmt.Errorf("secret file %q must begin with \"/\" or \"~/\": a folder that a guest may write is no place for a secret", clip(rest))
		}
		return err
	}
	return fmt.Errorf("from %q is not env:NAME, file:PATH or host:NAME", clip(s))
}

// forbiddenSecretHeaders frame a message or choose its receiver.
var forbiddenSecretHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "trailer", "expect", "upgrade", "te", "keep-alive", "proxy-authorization", "proxy-connection"}

func secretPlace(s string) (string, error) {
	kind, rest, ok := strings.Cut(s, ":")
	switch {
	case !ok && (kind == "basic" || kind == "body"):
		return s, nil
	case kind == "query" && nameOf(rest, 128, "._-[]"):
		return s, nil
	case kind == "header" && nameOf(rest, 128, "!#$%&'*+-.^_`|~"):
		if slices.Contains(forbiddenSecretHeaders, strings.ToLower(rest)) {
			return "", fmt.Errorf("a secret cannot stand in the header %s", rest)
		}
		return s, nil
	}
	return "", fmt.Errorf("%q is not header:NAME, basic, query:NAME or body", clip(s))
}

func (p *parser) tools(n *yaml.Node) {
	p.p.Tools = []ToolGrant{}
	items, _ := p.list(n, "tools")
	for i, it := range items {
		at := fmt.Sprintf("tools[%d]", i)
		p.p.at[at] = p.pos(it)
		t := ToolGrant{Pos: p.pos(it)}
		have := map[string]bool{}
		p.fields(it, at, at, map[string]func(k, v *yaml.Node){
			"server": func(_, v *yaml.Node) {
				have["server"] = true
				if s, ok := p.str(v, at+".server"); ok {
					if !serverName(s) {
						p.errorf(v, CodeValue, "%s.server: %q is not 1 to 64 of a-z A-Z 0-9 . _ - +", at, clip(s))
					}
					t.Server = s
				}
			},
			"allow": func(_, v *yaml.Node) {
				have["allow"] = true
				t.Allow = []string{}
				p.strings(v, at+".allow", func(n *yaml.Node, s string) {
					name, wild := strings.CutSuffix(s, "*")
					switch {
					case !toolName(name) && !(wild && name == ""):
						p.errorf(n, CodeValue, "%s.allow: %q is not a tool's name, and \"*\" stands only at the end", at, clip(s))
					case slices.Contains(t.Allow, s):
						p.errorf(n, CodeDuplicateKey, "%s.allow: %q stands twice", at, s)
					default:
						t.Allow = append(t.Allow, s)
					}
				})
			},
			"deny-hints": func(_, v *yaml.Node) {
				t.DenyHints = []string{}
				p.strings(v, at+".deny-hints", func(n *yaml.Node, s string) {
					switch {
					case !slices.Contains(hintNames, s):
						p.errorf(n, CodeValue, "%s.deny-hints: %q is not one of %s", at, clip(s), strings.Join(hintNames, ", "))
					case slices.Contains(t.DenyHints, s):
						p.errorf(n, CodeDuplicateKey, "%s.deny-hints: %q stands twice", at, s)
					default:
						t.DenyHints = append(t.DenyHints, s)
					}
				})
			},
			"arguments": func(_, v *yaml.Node) {
				pairs, _ := p.mapping(v, at+".arguments")
				for _, e := range pairs {
					what := at + ".arguments." + clip(e.key)
					if !toolName(e.key) {
						p.errorf(e.k, CodeValue, "%s.arguments: %q is not a tool's name", at, clip(e.key))
						continue
					}
					p.p.at[at+".arguments."+e.key] = p.pos(e.k)
					if raw, ok := p.schema(e.v, what); ok {
						t.Arguments = append(t.Arguments, ToolArguments{e.key, raw, p.pos(e.k)})
					}
				}
				slices.SortFunc(t.Arguments, func(a, b ToolArguments) int { return strings.Compare(a.Tool, b.Tool) })
			},
		})
		if it.Kind == yaml.MappingNode {
			for _, k := range []string{"server", "allow"} {
				if !have[k] {
					p.errorf(it, CodeMissingKey, "%s: key %q is missing", at, k)
				}
			}
		}
		for _, a := range t.Arguments {
			if have["allow"] && !slices.ContainsFunc(t.Allow, func(pat string) bool { return wildcard(pat, a.Tool) }) {
				p.errs = append(p.errs, Error{Position: a.Pos, Code: CodeConflict, Msg: fmt.Sprintf("%s.arguments: %s is not allowed by this line", at, a.Tool)})
			}
		}
		p.p.Tools = append(p.p.Tools, t)
	}
}

var hintNames = []string{"destructive", "not-read-only", "open-world"}

// schema turns a node into JSON and checks that it is a JSON Schema.
func (p *parser) schema(n *yaml.Node, what string) (json.RawMessage, bool) {
	before := len(p.errs)
	v := p.jsonValue(n, what, 0)
	if len(p.errs) > before {
		return nil, false
	}
	if err := validSchema(v); err != nil {
		p.errorf(n, CodeValue, "%s is not a valid JSON Schema: %s", what, printable(clip(err.Error())))
		return nil, false
	}
	raw, err := json.Marshal(v)
	if err != nil {
		p.errorf(n, CodeValue, "%s cannot be written as JSON", what)
		return nil, false
	}
	return raw, true
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (p *parser) jsonValue(n *yaml.Node, what string, depth int) any {
	if depth > maxDepth {
		p.errorf(n, CodeValue, "%s is nested deeper than %d levels", what, maxDepth)
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		pairs, _ := p.mapping(n, what)
		for _, e := range pairs {
			out[e.key] = p.jsonValue(e.v, what, depth+1)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			out = append(out, p.jsonValue(c, what, depth+1))
		}
		return out
	}
	switch n.ShortTag() {
	case "!!str":
		if !badText(n.Value) {
			return n.Value
		}
	case "!!null":
		return nil
	case "!!bool":
		if n.Value == "true" || n.Value == "false" {
			return n.Value == "true"
		}
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) && len(n.Value) <= 32 {
			return json.Number(n.Value)
		}
	}
	p.errorf(n, CodeType, "%s: %q is not a JSON value", what, clip(n.Value))
	return nil
}

func (p *parser) limits(n *yaml.Node) {
	l := &p.p.Limits
	size := func(key string, to *int64, most int64) func(k, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			if s, ok := p.quantity(v, "limits."+key); ok {
				b, err := ParseSize(s)
				if err != nil {
					p.errorf(v, CodeValue, "limits.%s: %v", key, err)
				} else if b > most {
					p.errorf(v, CodeValue, "limits.%s is larger than %s", key, FormatSize(most))
				} else {
					*to = b
				}
			}
		}
	}
	count := func(key string, to *int, most int64) func(k, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			if c, ok := p.count(v, "limits."+key, most); ok {
				*to = int(c)
			}
		}
	}
	p.fields(n, "limits", "limits", map[string]func(k, v *yaml.Node){
		"time": func(_, v *yaml.Node) {
			if s, ok := p.quantity(v, "limits.time"); ok {
				d, err := ParseTime(s)
				if err != nil {
					p.errorf(v, CodeValue, "limits.time: %v", err)
				} else if d > maxLimits.Time {
					p.errorf(v, CodeValue, "limits.time is larger than %s", FormatTime(maxLimits.Time))
				} else {
					l.Time = d
				}
			}
		},
		"memory":     size("memory", &l.Memory, maxLimits.Memory),
		"output":     size("output", &l.Output, maxLimits.Output),
		"disk":       size("disk", &l.Disk, maxLimits.Disk),
		"open-files": count("open-files", &l.OpenFiles, int64(maxLimits.OpenFiles)),
		"processes":  count("processes", &l.Processes, int64(maxLimits.Processes)),
		"requests":   count("requests", &l.Requests, int64(maxLimits.Requests)),
		"upload":     size("upload", &l.Upload, maxLimits.Upload),
		"download":   size("download", &l.Download, maxLimits.Download),
		"calls":      count("calls", &l.Calls, int64(maxLimits.Calls)),
	})
}

// quantity reads the text of a size or time. A bare number gets its own message: the unit is what is missing.
func (p *parser) quantity(n *yaml.Node, what string) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		p.errorf(n, CodeType, "%s needs a unit", what)
		return "", false
	}
	return p.str(n, what)
}

// maxLimits bound what a file may ask for: beyond them a number is a mistake.
var maxLimits = Limits{
	Time: 24 * 3600 * 1e9, Memory: 4 << 30, Output: 1 << 30, Disk: 1 << 40, OpenFiles: 4096,
	Processes: 256, Requests: 1e6, Upload: 1 << 40, Download: 1 << 40, Calls: 1e6,
}

func (p *parser) tests(n *yaml.Node) {
	read := func(what string, to *[]Test) func(k, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			*to = []Test{}
			p.strings(v, what, func(n *yaml.Node, s string) {
				c, err := ParseCapability(s)
				if err != nil {
					p.errorf(n, CodeValue, "%s: %v", what, err)
					return
				}
				*to = append(*to, Test{c, p.pos(n)})
			})
		}
	}
	p.fields(n, "tests", "tests", map[string]func(k, v *yaml.Node){
		"allow": read("tests.allow", &p.p.Tests.Allow),
		"deny":  read("tests.deny", &p.p.Tests.Deny),
	})
}

// consistent checks what needs two sections.
func (p *parser) consistent() {
	for _, s := range p.p.Secrets {
		for _, to := range s.To {
			if !slices.ContainsFunc(p.p.Network, func(l Network) bool { return hostCovers(l.Host, to) }) {
				p.errs = append(p.errs, Error{
					Position: p.p.at["secrets."+s.Name+".to."+to], Code: CodeConflict,
					Msg: fmt.Sprintf("secrets.%s.to: no network line reaches %s", s.Name, to),
				})
			}
		}
		if _, ok := p.p.Env.set(s.Name); ok {
			p.errs = append(p.errs, Error{Position: s.Pos, Code: CodeConflict, Msg: fmt.Sprintf("secrets.%s: env.set names it too", s.Name)})
		}
		if e, ok := p.p.Env.pass(s.Name); ok && e.Pattern == s.Name {
			p.errs = append(p.errs, Error{Position: s.Pos, Code: CodeConflict, Msg: fmt.Sprintf("secrets.%s: env.pass would give the guest the value itself", s.Name)})
		}
	}
}

// nearest returns the known key that a misspelling is close to, or "".
func nearest[V any](key string, known map[string]V) string {
	best, bestD := "", 3
	if len(key) <= 5 {
		bestD = 2
	}
	for k := range known {
		if d := distance(key, k); d < bestD || d == bestD && best != "" && k < best {
			best, bestD = k, d
		}
	}
	return best
}

// distance is the number of inserted, removed or changed bytes between a and b; long keys are never close.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 99
	}
	a, b = strings.ToLower(strings.ReplaceAll(a, "_", "-")), strings.ToLower(b)
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
		}
		prev = cur
	}
	return prev[len(b)]
}
