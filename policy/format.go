package policy

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// The types below are the file as it is written. [Format] marshals them, [Schema] is generated from them, and a test
// holds them against what the parser accepts. The rule tag is read by schema.go; doc ends up in the JSON Schema.

type fileDoc struct {
	Version   int                   `yaml:"version" rule:"required,one" doc:"The version of the format: 1."`
	Extension string                `yaml:"extension" rule:"required,name" doc:"A label for people, never the identity of the extension."`
	Digest    string                `yaml:"digest,omitempty" rule:"digest" doc:"Tree digest of the extension; written by 'exthost grant', required in policies/."`
	Env       *envDoc               `yaml:"env,omitempty" doc:"Environment variables of the guest."`
	Files     *map[string]rootDoc   `yaml:"files,omitempty" rule:"guestkeys" doc:"File roots; the key is where the guest sees them."`
	Network   *[]networkDoc         `yaml:"network,omitempty" doc:"HTTP requests. Absent or []: no network, names are not resolved."`
	Secrets   *map[string]secretDoc `yaml:"secrets,omitempty" rule:"envkeys" doc:"Secrets; the guest's environment holds a placeholder."`
	Tools     *[]toolDoc            `yaml:"tools,omitempty" doc:"Tools of MCP servers."`
	Limits    *limitsDoc            `yaml:"limits,omitempty" doc:"Budgets of a run; none can be switched off."`
	Shared    *bool                 `yaml:"shared,omitempty" doc:"Adapters: one instance for all sessions."`
	Walls     *[]string             `yaml:"walls,omitempty,flow" rule:"wall" doc:"Walls without which the run is refused, beside those of the base."`
	Tests     *testsDoc             `yaml:"tests,omitempty" doc:"What this policy must allow and deny, as capability strings."`
}

type envDoc struct {
	Pass []string          `yaml:"pass,omitempty,flow" rule:"envpattern" doc:"Copied from the host: names, or a prefix and '*'."`
	Set  map[string]string `yaml:"set,omitempty" rule:"envkeys" doc:"Literal values, no expansion."`
}

type rootDoc struct {
	Host      string    `yaml:"host" rule:"required,hostpath" doc:"Begins with '/', '~/', '${workspace}', '${skill}' or '${data}'; a folder or one file."`
	Access    string    `yaml:"access" rule:"required,access" doc:"read, write (implies read), or overlay (reads through, writes kept aside)."`
	Hide      *[]string `yaml:"hide,omitempty,flow" rule:"glob" doc:"Patterns that are not there for the guest. Default: dot-env files anywhere and .git/config; [] shows all."`
	Create    bool      `yaml:"create,omitempty" doc:"Make the host folder if it is missing."`
	Protected *[]string `yaml:"protected,omitempty,flow" rule:"glob" doc:"Protected files that may be written after all."`
}

type networkDoc struct {
	Host      string    `yaml:"host" rule:"required,hostpattern" doc:"A name, '*.example.com' (names below it), '*', or an address."`
	Scheme    string    `yaml:"scheme,omitempty" rule:"scheme" doc:"https (default) or http."`
	Port      int       `yaml:"port,omitempty" rule:"port" doc:"Default by scheme."`
	Methods   []string  `yaml:"methods,flow" rule:"method" doc:"Default [GET, HEAD]; ['*'] is any."`
	Paths     *[]string `yaml:"paths,omitempty,flow" rule:"pathglob" doc:"Default every path."`
	Addresses *[]string `yaml:"addresses,omitempty,flow" rule:"cidr" doc:"Address ranges that the name may resolve to beside public ones."`
}

type secretDoc struct {
	From string   `yaml:"from" rule:"required,secretfrom" doc:"env:NAME, file:PATH or host:NAME."`
	To   []string `yaml:"to,flow" rule:"required,secretto,nonempty" doc:"Hosts; each must be reachable by a network line."`
	In   []string `yaml:"in,flow" rule:"secretin,nonempty" doc:"header:NAME, basic, query:NAME or body. Default [header:Authorization]."`
}

type toolDoc struct {
	Server    string               `yaml:"server" rule:"required,name" doc:"Name of the MCP server."`
	Allow     []string             `yaml:"allow,flow" rule:"required,toolpattern" doc:"Names of tools; '*' only at the end."`
	DenyHints []string             `yaml:"deny-hints,omitempty,flow" rule:"hint" doc:"Refuse tools with these annotations; an annotation never allows."`
	Arguments map[string]yaml.Node `yaml:"arguments,omitempty" rule:"toolkeys" doc:"JSON Schema that the arguments of a tool must fit."`
}

type limitsDoc struct {
	Time      string `yaml:"time,omitempty" rule:"time" doc:"A run; for an adapter each request. Default 60s."`
	Memory    string `yaml:"memory,omitempty" rule:"size" doc:"Linear memory and tables, for the life of the guest. Default 256MiB."`
	Output    string `yaml:"output,omitempty" rule:"size" doc:"Each of stdout and stderr, per run. Default 1MiB."`
	Disk      string `yaml:"disk,omitempty" rule:"size" doc:"Written to scratch, overlay and write roots together. Default 256MiB."`
	OpenFiles int    `yaml:"open-files,omitempty" rule:"count=4096" doc:"Open descriptors. Default 256."`
	Processes int    `yaml:"processes,omitempty" rule:"count=256" doc:"Nested guests alive at once. Default 16."`
	Requests  int    `yaml:"requests,omitempty" rule:"count=1000000" doc:"HTTP requests per run. Default 100."`
	Upload    string `yaml:"upload,omitempty" rule:"size" doc:"Every byte sent. Default 1MiB."`
	Download  string `yaml:"download,omitempty" rule:"size" doc:"After decompression. Default 64MiB."`
	Calls     int    `yaml:"calls,omitempty" rule:"count=1000000" doc:"MCP tool calls. Default 50."`
}

type testsDoc struct {
	Allow *[]string `yaml:"allow,omitempty" rule:"capability" doc:"Capabilities that must be allowed."`
	Deny  *[]string `yaml:"deny,omitempty" rule:"capability" doc:"Capabilities that must be denied."`
}

// Format writes p as a policy file. Parsing the result gives an equal policy, positions and comments apart.
//
// A policy that was built in code should go through Format and [Parse], which checks it. Limits that are no whole number
// of KiB or milliseconds are rounded down.
func Format(p *Policy) []byte {
	d := fileDoc{Version: p.Version, Extension: p.Extension, Digest: p.Digest, Shared: p.Shared}
	if p.Env != nil {
		d.Env = &envDoc{Set: map[string]string{}}
		for _, e := range p.Env.Pass {
			d.Env.Pass = append(d.Env.Pass, e.Pattern)
		}
		for _, e := range p.Env.Set {
			d.Env.Set[e.Name] = e.Value
		}
	}
	if p.Files != nil {
		m := map[string]rootDoc{}
		for _, f := range p.Files {
			r := rootDoc{Host: f.Host.String(), Access: f.Access.String(), Create: f.Create}
			if f.HideSet {
				r.Hide = globTexts(f.Hide)
			}
			if f.Protected != nil {
				r.Protected = globTexts(f.Protected)
			}
			m[f.Guest] = r
		}
		d.Files = &m
	}
	if p.Network != nil {
		list := []networkDoc{}
		for _, l := range p.Network {
			n := networkDoc{Host: l.Host, Methods: l.Methods}
			if l.Scheme != "https" {
				n.Scheme = l.Scheme
			}
			if l.Port != defaultPorts[l.Scheme] {
				n.Port = l.Port
			}
			if l.Paths != nil {
				n.Paths = globTexts(l.Paths)
			}
			if l.Addresses != nil {
				s := []string{}
				for _, a := range l.Addresses {
					s = append(s, a.String())
				}
				n.Addresses = &s
			}
			list = append(list, n)
		}
		d.Network = &list
	}
	if p.Secrets != nil {
		m := map[string]secretDoc{}
		for _, s := range p.Secrets {
			m[s.Name] = secretDoc{s.From, s.To, s.In}
		}
		d.Secrets = &m
	}
	if p.Tools != nil {
		list := []toolDoc{}
		for _, t := range p.Tools {
			n := toolDoc{Server: t.Server, Allow: t.Allow, DenyHints: t.DenyHints}
			for _, a := range t.Arguments {
				if n.Arguments == nil {
					n.Arguments = map[string]yaml.Node{}
				}
				n.Arguments[a.Tool] = jsonNode(a.Schema)
			}
			list = append(list, n)
		}
		d.Tools = &list
	}
	if l := p.Limits; l != (Limits{}) {
		d.Limits = &limitsDoc{OpenFiles: l.OpenFiles, Processes: l.Processes, Requests: l.Requests, Calls: l.Calls}
		if l.Time != 0 {
			d.Limits.Time = FormatTime(l.Time)
		}
		for _, s := range []struct {
			to *string
			n  int64
		}{{&d.Limits.Memory, l.Memory}, {&d.Limits.Output, l.Output}, {&d.Limits.Disk, l.Disk}, {&d.Limits.Upload, l.Upload}, {&d.Limits.Download, l.Download}} {
			if s.n != 0 {
				*s.to = FormatSize(s.n)
			}
		}
	}
	if p.Walls != nil {
		d.Walls = &p.Walls
	}
	if p.Tests.Allow != nil || p.Tests.Deny != nil {
		d.Tests = &testsDoc{testTexts(p.Tests.Allow), testTexts(p.Tests.Deny)}
	}
	var n yaml.Node
	err := n.Encode(d)
	if err == nil {
		var out []byte
		if out, err = encode(&n); err == nil {
			return out
		}
	}
	// Every value above is a string, a number, or a node that came out of the same library.
	panic("policy: cannot be written: " + err.Error())
}

func globTexts(list []Glob) *[]string {
	out := []string{}
	for _, g := range list {
		out = append(out, g.String())
	}
	return &out
}

func testTexts(list []Test) *[]string {
	if list == nil {
		return nil
	}
	out := []string{}
	for _, t := range list {
		out = append(out, t.Capability.String())
	}
	return &out
}

// jsonNode turns canonical JSON into YAML, of which it is a subset.
func jsonNode(raw json.RawMessage) yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil || len(doc.Content) != 1 {
		return yaml.Node{Kind: yaml.MappingNode}
	}
	return *doc.Content[0]
}
