package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/exthost/exthost/policy"
)

// grantSource says where the one grant of a run came from.
type grantSource uint8

const (
	fromNothing grantSource = iota // no file: the base alone
	fromHome                       // policies/NAME.yaml
	fromFlag                       // --policy
	fromFlags                      // the flags of wasi
)

// grant is the one file that grants, with what a person added to it for one run.
type grant struct {
	source grantSource
	name   string // of the extension
	file   string // "" without a file
	data   []byte // text of the policy, with additions
	policy *policy.Policy
	pinned bool     // the file binds only with a digest
	extra  []string // who added to it: "terminal", "once"
}

const maxPolicyFile = 256 << 10

// findGrant finds the one file that grants: --policy, else policies/NAME.yaml of the home folder, else none.
func (a *app) findGrant(x extension, flag string) (*grant, error) {
	g := &grant{name: x.name}
	if flag != "" {
		g.source, g.file = fromFlag, flag
	} else {
		file := a.policyFile(x.name)
		if file == "" || !exists(file) {
			return g, nil
		}
		g.source, g.file, g.pinned = fromHome, file, true
	}
	var err error
	if g.data, g.policy, err = readPolicy(g.file); err != nil {
		return nil, &failure{code: exitUnable, err: err}
	}
	return g, nil
}

// policyFile is the file of an extension in the home folder, or "" if there cannot be one.
func (a *app) policyFile(name string) string {
	if a.cfg.home == "" || !validName(name) {
		return ""
	}
	return filepath.Join(a.cfg.home, "policies", name+".yaml")
}

func readPolicy(file string) ([]byte, *policy.Policy, error) {
	data, err := readState(file, maxPolicyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	p, err := policy.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	return data, p, nil
}

// findCeilings reads ceiling.yaml of the home folder, if it is there, and those that were named.
func (a *app) findCeilings(files []string) ([]*policy.Policy, error) {
	var all []*policy.Policy
	if a.cfg.home != "" {
		file := filepath.Join(a.cfg.home, "ceiling.yaml")
		_, p, err := readPolicy(file)
		switch {
		case err == nil:
			all = append(all, p)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err // one that cannot be read must not count as none
		}
	}
	for _, file := range files {
		_, p, err := readPolicy(file)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// add widens the grant for this run; by says who.
func (g *grant) add(by string, caps ...string) error {
	if len(caps) == 0 {
		return nil
	}
	data, err := addLines(g.name, g.data, caps)
	if err != nil {
		return err
	}
	p, err := policy.Parse(g.describe(), data)
	if err != nil {
		return err
	}
	g.data, g.policy = data, p
	g.extra = append(g.extra, by)
	return nil
}

// pin binds the grant to a tree.
func (g *grant) pin(digest string) error {
	data, err := policy.SetDigest(g.data, digest)
	if err != nil {
		return err
	}
	p, err := policy.Parse(g.describe(), data)
	if err != nil {
		return err
	}
	g.data, g.policy = data, p
	return nil
}

// by lists who granted, for the report.
func (g *grant) by() []string {
	all := []string{}
	switch {
	case g.source == fromFlags:
		all = append(all, "flags")
	case g.file != "":
		all = append(all, g.file)
	}
	return append(all, g.extra...)
}

func (g *grant) describe() string {
	switch {
	case g.source == fromFlags:
		return "flags"
	case g.file != "":
		return g.file
	case len(g.extra) > 0:
		return g.extra[0]
	}
	return "default"
}

// addLines adds capabilities in the spelling of grant to a policy's text; data may be nil.
func addLines(name string, data []byte, caps []string) ([]byte, error) {
	if data == nil {
		data = policy.NewFile(name, "")
	}
	for _, text := range caps {
		c, hostPath, err := parseGrant(text)
		if err != nil {
			return nil, err
		}
		more, err := policy.AddGrant(data, c, hostPath)
		if err != nil {
			return nil, &failure{err: err}
		}
		data = more
	}
	return data, nil
}

// parseGrant reads a capability as grant and --allow spell it: a path may be followed by =HOST. Without it, hostPath is
// "" and the policy decides what the path means.
func parseGrant(text string) (c policy.Capability, hostPath string, err error) {
	spelt := text
	if strings.HasPrefix(text, "read ") || strings.HasPrefix(text, "write ") {
		for _, begin := range []string{"=/", "=~/", "=${"} { // a host path begins with one of these; a guest's may hold "="
			if before, after, ok := strings.Cut(text, begin); ok && len(before) < len(spelt) {
				spelt, hostPath = before, begin[1:]+after
			}
		}
	}
	c, err = policy.ParseCapability(spelt)
	return c, hostPath, err
}

// below reports whether a clean guest path is root or lies under it, and what follows root.
func below(p, root string) (rest string, ok bool) {
	if p == root {
		return "", true
	}
	if strings.HasPrefix(p, root+"/") {
		return p[len(root):], true
	}
	return "", false
}

// suggest is what to grant so that a denied capability is allowed, as narrow as it can be: the file itself if it is
// there, else the folder it would be in. "" if no sensible line would do it.
func (s *session) suggest(c policy.Capability) string {
	switch c.Kind {
	case policy.Env:
		return c.String()
	case policy.Read, policy.Write:
	default:
		return "" // this version cannot enforce it, so granting it would only refuse the run
	}
	if rest, ok := below(c.Path, "/workspace"); ok {
		if rest == "" || exists(filepath.Join(s.workspace, filepath.FromSlash(rest))) {
			return spell(c.Kind, c.Path, "")
		}
		return spell(c.Kind, path.Dir(c.Path), "")
	}
	if rest, ok := below(c.Path, "/data"); ok {
		if rest == "" {
			return spell(c.Kind, c.Path, "")
		}
		return spell(c.Kind, path.Dir(c.Path), "")
	}
	for _, base := range []string{"/skill", "/usr/local", "/home/guest", "/tmp", "/dev"} {
		if _, ok := below(c.Path, base); ok {
			return ""
		}
	}
	// A path of the script's own making, such as /out/report.pdf: a folder of that name in the workspace.
	dir := path.Dir(c.Path)
	if dir == "/" || c.Kind == policy.Read && !isDir(filepath.Join(s.workspace, filepath.FromSlash(dir))) {
		return ""
	}
	return spell(c.Kind, dir, "${workspace}"+dir)
}

// spell is a capability as grant reads it, or "" if it cannot be spelt: the script chose the path, and one such as
// "/workspace/x=/etc" would be read as another root of the host.
func spell(kind policy.Kind, guest, hostPath string) string {
	text := policy.Capability{Kind: kind, Path: guest}.String()
	if hostPath != "" {
		text += "=" + hostPath
	}
	if c, h, err := parseGrant(text); err != nil || c.Path != guest || h != hostPath {
		return ""
	}
	return text
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
