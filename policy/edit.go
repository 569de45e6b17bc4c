package policy

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// NewFile returns the text of a policy that grants nothing. digest may be "".
func NewFile(extension, digest string) []byte {
	return Format(&Policy{Version: 1, Extension: extension, Digest: digest})
}

// SetDigest returns data with its digest key set. Comments stay; blank lines may not.
func SetDigest(data []byte, digest string) ([]byte, error) {
	return edit(data, func(_ *Policy, root *yaml.Node) error {
		if v := child(root, "digest"); v != nil {
			v.Value, v.Style = digest, 0
			return nil
		}
		at := 0
		for i := 0; i+1 < len(root.Content); i += 2 {
			if k := root.Content[i].Value; k == "version" || k == "extension" {
				at = max(at, i+2)
			}
		}
		root.Content = slices.Insert(root.Content, at, scalar("digest"), scalar(digest))
		return nil
	})
}

// AddGrant returns data with the smallest addition that grants c, or data itself when c is granted already.
//
// hostPath backs a path capability, in the forms of [ParseHostPath]; "" means the place in the root that encloses the
// path, else "${workspace}" for /workspace and "${data}" for /data, and is an error for any other path. A protected name
// below a writable root is added to the root's protected key; a hidden path becomes a root of its own.
//
// Comments stay; blank lines may not. The result was parsed again and grants c.
func AddGrant(data []byte, c Capability, hostPath string) ([]byte, error) {
	c, err := ParseCapability(c.String())
	if err != nil {
		return nil, err
	}
	p, err := Parse("", data)
	if err != nil {
		return nil, err
	}
	if hostPath != "" && c.Kind != Read && c.Kind != Write {
		return nil, fmt.Errorf("%s: only a path has a host path", c)
	}
	if New(p).Decide(c).Allowed {
		f := New(p).rootOf(c.Path)
		if hostPath != "" && (f == nil || f.Guest != c.Path || f.Host.String() != hostPath) {
			return nil, fmt.Errorf("%s is granted already, from another place of the host", c)
		}
		return data, nil
	}
	out, err := edit(data, func(p *Policy, root *yaml.Node) error { return add(p, root, c, hostPath) })
	if err != nil {
		return nil, err
	}
	p, err = Parse("", out)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be granted: %w", c, err)
	}
	if d := New(p).Decide(c); !d.Allowed {
		return nil, fmt.Errorf("%s cannot be granted: %s", c, d.Reason)
	}
	return out, nil
}

// RemoveGrant returns data without the line that grants c and nothing else: a root at that path, a variable, a method of
// a line with that one path, a host of a secret, a tool. "write PATH" leaves the root readable, "read PATH" removes it.
//
// It is an error when no such line is there, or when a broader line still grants c: that one is named.
func RemoveGrant(data []byte, c Capability) ([]byte, error) {
	c, err := ParseCapability(c.String())
	if err != nil {
		return nil, err
	}
	out, err := edit(data, func(p *Policy, root *yaml.Node) error { return remove(p, root, c) })
	if err != nil {
		return nil, err
	}
	p, err := Parse("", out)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be revoked: %w", c, err)
	}
	if d := New(p).Decide(c); d.Allowed && d.Layer != LayerBase {
		return nil, fmt.Errorf("%s is still granted by line %d: %s", c, d.Rule.Line, d.Reason)
	}
	return out, nil
}

// edit parses data, lets change alter the tree, and writes it again.
func edit(data []byte, change func(p *Policy, root *yaml.Node) error) ([]byte, error) {
	p, err := Parse("", data)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if err := change(p, doc.Content[0]); err != nil {
		return nil, err
	}
	out, err := encode(&doc)
	if err != nil {
		return nil, err
	}
	if _, err := Parse("", out); err != nil {
		return nil, err
	}
	return out, nil
}

func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func scalar(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	return &n
}

func mapping(kv ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: kv}
}

func sequence(items ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, s := range items {
		n.Content = append(n.Content, scalar(s))
	}
	return n
}

func child(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// ensure returns the value of key, which is made with kind when it is missing. An empty flow collection becomes a block,
// so that lines can be added one below the other.
func ensure(m *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	if v := child(m, key); v != nil {
		if len(v.Content) == 0 {
			v.Style = 0
		}
		return v
	}
	v := &yaml.Node{Kind: kind}
	m.Content = append(m.Content, scalar(key), v)
	return v
}

func drop(m *yaml.Node, key string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content = slices.Delete(m.Content, i, i+2)
			return
		}
	}
}

func setWord(m *yaml.Node, key, value string) {
	if v := child(m, key); v != nil {
		v.Value, v.Style, v.Tag = value, 0, "!!str"
		return
	}
	m.Content = append(m.Content, scalar(key), scalar(value))
}

func add(p *Policy, root *yaml.Node, c Capability, hostPath string) error {
	switch c.Kind {
	case Read, Write:
		return addFile(p, root, c, hostPath)
	case Env:
		if EnvForbidden(c.Name) {
			return fmt.Errorf("%s cannot be granted: it is never given to a guest", c)
		}
		pass := ensure(ensure(root, "env", yaml.MappingNode), "pass", yaml.SequenceNode)
		pass.Content = append(pass.Content, scalar(c.Name))
	case HTTP:
		t, err := parseTarget(c.URL)
		if err != nil {
			return err
		}
		exact := "/" + strings.Join(t.path, "/")
		if strings.Contains(exact, "*") {
			return fmt.Errorf("%s cannot be granted: its path holds \"*\", which a policy reads as a wildcard", c)
		}
		lines := ensure(root, "network", yaml.SequenceNode)
		for i := range p.Network {
			if l := &p.Network[i]; l.exact(&t, exact) {
				m := child(lines.Content[i], "methods")
				if m == nil {
					m = sequence(l.Methods...)
					lines.Content[i].Content = append(lines.Content[i].Content, scalar("methods"), m)
				}
				m.Content = append(m.Content, scalar(c.Method))
				return nil
			}
		}
		line := mapping(scalar("host"), scalar(t.host))
		if t.scheme != "https" {
			line.Content = append(line.Content, scalar("scheme"), scalar(t.scheme))
		}
		if t.port != defaultPorts[t.scheme] {
			line.Content = append(line.Content, scalar("port"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(t.port)})
		}
		line.Content = append(line.Content, scalar("methods"), sequence(c.Method), scalar("paths"), sequence(exact))
		if t.addr.IsValid() && !PublicAddress(t.addr) {
			line.Content = append(line.Content, scalar("addresses"), sequence(fmt.Sprintf("%s/%d", t.addr, t.addr.BitLen())))
		}
		lines.Content = append(lines.Content, line)
	case Secret:
		secrets := ensure(root, "secrets", yaml.MappingNode)
		if s := child(secrets, c.Name); s != nil {
			to := child(s, "to")
			to.Content = append(to.Content, scalar(c.Host))
			return nil
		}
		if !serverName(c.Name) {
			return fmt.Errorf("%s cannot be granted: the name is too long", c)
		}
		secrets.Content = append(secrets.Content, scalar(c.Name), mapping(scalar("from"), scalar("host:"+c.Name), scalar("to"), sequence(c.Host)))
	case Tool:
		lines := ensure(root, "tools", yaml.SequenceNode)
		for i := range p.Tools {
			if t := &p.Tools[i]; t.Server == c.Server {
				allow := child(lines.Content[i], "allow")
				allow.Content = append(allow.Content, scalar(c.Tool))
				return nil
			}
		}
		lines.Content = append(lines.Content, mapping(scalar("server"), scalar(c.Server), scalar("allow"), sequence(c.Tool)))
	default:
		return fmt.Errorf("%s cannot be granted", c)
	}
	return nil
}

// exact reports whether l is a line for the one path of t and nothing else.
func (l *Network) exact(t *target, path string) bool {
	return l.Host == t.host && l.Scheme == t.scheme && l.Port == t.port && len(l.Paths) == 1 && l.Paths[0].String() == path && !slices.Contains(l.Methods, "*")
}

func addFile(p *Policy, root *yaml.Node, c Capability, hostPath string) error {
	e := New(p)
	f := e.rootOf(c.Path)
	if f == nil {
		if b := baseOf(c.Path); b != nil {
			return fmt.Errorf("%s cannot be granted: %s is %s", c, b.guest, b.what)
		}
	}
	files := ensure(root, "files", yaml.MappingNode)
	// A protected name in a root that may be written otherwise needs its exemption, not another root.
	if f != nil && f.Access > ReadOnly && c.Kind == Write && hostPath == "" {
		rel, _ := relTo(f.Guest, c.Path)
		below := segments(rel)
		if _, hidden := f.hide.hides(below); !hidden && rel != "" {
			if strings.ContainsAny(rel, `*\`) {
				return fmt.Errorf("%s cannot be granted: its path holds \"*\" or a backslash", c)
			}
			node := fileNode(files, f.Guest)
			free := ensure(node, "protected", yaml.SequenceNode)
			free.Content = append(free.Content, scalar(rel))
			return nil
		}
	}
	if f != nil && f.Guest == c.Path {
		if hostPath != "" && hostPath != f.Host.String() {
			return fmt.Errorf("%s: the policy already has %s, from %s", c, f.Guest, f.Host)
		}
		setWord(fileNode(files, f.Guest), "access", "write")
		return nil
	}
	host := hostPath
	if host == "" {
		var h HostPath
		switch {
		case f != nil:
			rel, _ := relTo(f.Guest, c.Path)
			h = HostPath{f.Host.Base, path.Join(f.Host.Rest, rel)}
		case within("/workspace", c.Path):
			rel, _ := relTo("/workspace", c.Path)
			h = HostPath{"${workspace}", rel}
		case within("/data", c.Path):
			rel, _ := relTo("/data", c.Path)
			h = HostPath{"${data}", rel}
		default:
			return fmt.Errorf("%s: say which path of the host it is, as in '%s=${workspace}/...'", c, c)
		}
		host = h.String()
	}
	access := "read"
	if c.Kind == Write {
		access = "write"
	}
	node := mapping(scalar("host"), scalar(host), scalar("access"), scalar(access))
	// A folder to write to may be missing still. What has an extension is more likely a file, which nobody can make.
	if c.Kind == Write && path.Ext(host) == "" && !strings.HasSuffix(host, "}") {
		node.Content = append(node.Content, scalar("create"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	files.Content = append(files.Content, scalar(c.Path), node)
	return nil
}

// fileNode finds a root by its clean path.
func fileNode(files *yaml.Node, guest string) *yaml.Node {
	if n := child(files, guest); n != nil {
		return n
	}
	return child(files, guest+"/")
}

func remove(p *Policy, root *yaml.Node, c Capability) error {
	gone := fmt.Errorf("%s: no line of the policy grants just this", c)
	if d := New(p).Decide(c); d.Allowed && d.Layer == LayerGrant {
		gone = fmt.Errorf("%s: no line of the policy grants just this; line %d does, with more: %s", c, d.Rule.Line, d.Reason)
	}
	switch c.Kind {
	case Read, Write:
		files := child(root, "files")
		node := fileNode(files, c.Path)
		if node == nil {
			return removeExemption(p, root, c, gone)
		}
		if c.Kind == Read {
			drop(files, c.Path)
			drop(files, c.Path+"/")
			return nil
		}
		if child(node, "access").Value == "read" {
			return gone
		}
		setWord(node, "access", "read")
		drop(node, "create")
		drop(node, "protected")
	case Env:
		env := child(root, "env")
		if set := child(env, "set"); child(set, c.Name) != nil {
			drop(set, c.Name)
			return nil
		}
		return removeItem(child(env, "pass"), c.Name, gone)
	case HTTP:
		t, err := parseTarget(c.URL)
		if err != nil {
			return err
		}
		lines := child(root, "network")
		found := false
		for i := len(p.Network) - 1; i >= 0; i-- {
			l := &p.Network[i]
			if !l.exact(&t, "/"+strings.Join(t.path, "/")) || !slices.Contains(l.Methods, c.Method) {
				continue
			}
			found = true
			if len(l.Methods) == 1 {
				lines.Content = slices.Delete(lines.Content, i, i+1)
				continue
			}
			rest := slices.DeleteFunc(slices.Clone(l.Methods), func(m string) bool { return m == c.Method })
			if m := child(lines.Content[i], "methods"); m != nil {
				m.Content = sequence(rest...).Content
			} else {
				lines.Content[i].Content = append(lines.Content[i].Content, scalar("methods"), sequence(rest...))
			}
		}
		if !found {
			return gone
		}
	case Secret:
		secrets := child(root, "secrets")
		s := child(secrets, c.Name)
		if s == nil {
			return gone
		}
		to := child(s, "to")
		if len(to.Content) == 1 && to.Content[0].Value == c.Host {
			drop(secrets, c.Name)
			return nil
		}
		return removeItem(to, c.Host, gone)
	case Tool:
		lines := child(root, "tools")
		for i := range p.Tools {
			if t := &p.Tools[i]; t.Server == c.Server && slices.Contains(t.Allow, c.Tool) {
				if len(t.Allow) == 1 {
					lines.Content = slices.Delete(lines.Content, i, i+1)
					return nil
				}
				if args := child(lines.Content[i], "arguments"); args != nil {
					drop(args, c.Tool)
				}
				return removeItem(child(lines.Content[i], "allow"), c.Tool, gone)
			}
		}
		return gone
	default:
		return gone
	}
	return nil
}

// removeExemption takes a path out of the protected key of the root that encloses it.
func removeExemption(p *Policy, root *yaml.Node, c Capability, gone error) error {
	f := New(p).rootOf(c.Path)
	if f == nil || c.Kind != Write {
		return gone
	}
	rel, _ := relTo(f.Guest, c.Path)
	return removeItem(child(fileNode(child(root, "files"), f.Guest), "protected"), rel, gone)
}

func removeItem(list *yaml.Node, value string, gone error) error {
	if list == nil {
		return gone
	}
	i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return n.Value == value })
	if i < 0 {
		return gone
	}
	list.Content = slices.Delete(list.Content, i, i+1)
	return nil
}
