package policy

import (
	"bytes"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The generators draw from few names, so that policies, ceilings and questions meet often.
var (
	genSegment = rapid.SampledFrom([]string{"a", "b", ".git", ".env", "AGENTS.md", "hooks", "c.pem"})
	genMount   = rapid.SampledFrom([]string{"/", "/w", "/w/a", "/w/a/b", "/w/b", "/tmp", "/tmp/a", "/home/guest/a", "/out"})
	genBase    = rapid.SampledFrom([]string{"${workspace}", "${data}", "~", "/"})
	genHost    = rapid.SampledFrom([]string{"api.test", "*.api.test", "a.api.test", "*", "other.test"})
	genMethod  = rapid.SampledFrom([]string{"GET", "HEAD", "POST", "DELETE"})
	genEnv     = rapid.SampledFrom([]string{"LANG", "LC_ALL", "LC_TOKEN", "API_TOKEN", "PATH", "HOME", "A", "AB"})
	genHideSet = rapid.SampledFrom([]string{"**/.env*", "a", "a/b", "**/*.pem", "*", "a/**", "**", "b/**/a"})
)

func genPolicy(file string) *rapid.Generator[*Policy] {
	return rapid.Custom(func(t *rapid.T) *Policy {
		p := &Policy{Version: 1, Extension: "x", File: file, at: map[string]Position{"files": {File: file, Line: 1}}}
		if rapid.Bool().Draw(t, "env") {
			p.Env = &EnvSection{}
			for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"LANG", "LC_*", "A*", "API_TOKEN", "HOME"}), 0, 3, rapid.ID[string]).Draw(t, "pass") {
				p.Env.Pass = append(p.Env.Pass, EnvPass{Pattern: n})
			}
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "LANG", "HOME", "Z"}), 0, 3, rapid.ID[string]).Draw(t, "set")
			slices.Sort(names)
			for _, n := range names {
				p.Env.Set = append(p.Env.Set, EnvSet{Name: n, Value: rapid.SampledFrom([]string{"1", "two words", "", "yes", "#"}).Draw(t, "value")})
			}
		}
		if rapid.Bool().Draw(t, "files") {
			p.Files = []File{}
			guests := rapid.SliceOfNDistinct(genMount, 0, 4, rapid.ID[string]).Draw(t, "guests")
			slices.Sort(guests)
			for i, g := range guests {
				f := File{Guest: g, Pos: Position{File: file, Line: i + 2}, Hide: defaultHideGlobs, Access: Access(rapid.IntRange(1, 3).Draw(t, "access"))}
				rest := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "rest")
				f.Host = HostPath{genBase.Draw(t, "base"), strings.Join(rest, "/")}
				if rapid.Bool().Draw(t, "hideset") {
					f.HideSet = true
					f.Hide = mustGlobs(rapid.SliceOfNDistinct(genHideSet, 0, 2, rapid.ID[string]).Draw(t, "hide"))
				}
				if f.Access > ReadOnly && rapid.Bool().Draw(t, "protected") {
					f.Protected = mustGlobs(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"AGENTS.md", ".git", "**/.git", "a/.git", "**/AGENTS.md", ".git/hooks"}), 0, 2, rapid.ID[string]).Draw(t, "exempt"))
				}
				f.Create = f.Access > ReadOnly && rapid.Bool().Draw(t, "create")
				p.Files = append(p.Files, f)
			}
		}
		if rapid.Bool().Draw(t, "network") {
			p.Network = []Network{}
			for range rapid.IntRange(0, 3).Draw(t, "lines") {
				l := Network{Host: genHost.Draw(t, "host"), Scheme: rapid.SampledFrom([]string{"https", "http"}).Draw(t, "scheme")}
				l.Port = rapid.SampledFrom([]int{defaultPorts[l.Scheme], 8080}).Draw(t, "port")
				l.Methods = rapid.SliceOfNDistinct(genMethod, 1, 3, rapid.ID[string]).Draw(t, "methods")
				if rapid.Bool().Draw(t, "any") {
					l.Methods = []string{"*"}
				}
				if rapid.Bool().Draw(t, "paths") {
					l.Paths = []Glob{}
					for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/", "/a", "/a/*", "/a/**", "/**", "/*/b"}), 0, 2, rapid.ID[string]).Draw(t, "globs") {
						g, err := ParsePathGlob(s)
						if err != nil {
							t.Fatal(err)
						}
						l.Paths = append(l.Paths, g)
					}
				}
				p.Network = append(p.Network, l)
			}
			if rapid.Bool().Draw(t, "secrets") && len(p.Network) > 0 && p.Network[0].Host != "*" {
				p.Secrets = []SecretGrant{{Name: "TOK", From: "env:X", To: []string{p.Network[0].Host}, In: []string{"header:Authorization"}}}
			}
		}
		if rapid.Bool().Draw(t, "tools") {
			p.Tools = []ToolGrant{}
			for range rapid.IntRange(0, 2).Draw(t, "lines") {
				p.Tools = append(p.Tools, ToolGrant{
					Server: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "server"),
					Allow:  rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"*", "get_*", "get_a", "del"}), 0, 2, rapid.ID[string]).Draw(t, "allow"),
				})
			}
		}
		if rapid.Bool().Draw(t, "limits") {
			p.Limits.Memory = int64(rapid.IntRange(1, 4096).Draw(t, "memory")) << 20
			p.Limits.OpenFiles = rapid.IntRange(1, 4096).Draw(t, "open")
		}
		if rapid.Bool().Draw(t, "shared?") {
			b := rapid.Bool().Draw(t, "shared")
			p.Shared = &b
		}
		if rapid.Bool().Draw(t, "walls?") {
			p.Walls = rapid.SliceOfNDistinct(rapid.SampledFrom(wallNames), 0, 3, rapid.ID[string]).Draw(t, "walls")
			slices.Sort(p.Walls)
		}
		return p
	})
}

var genCapability = rapid.Custom(func(t *rapid.T) Capability {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		c := Capability{Kind: rapid.SampledFrom([]Kind{Read, Write}).Draw(t, "rw")}
		c.Path = path.Join(append([]string{genMount.Draw(t, "mount")}, rapid.SliceOfN(genSegment, 0, 3).Draw(t, "rest")...)...)
		return c
	case 2:
		host := rapid.SampledFrom([]string{"api.test", "a.api.test", "other.test", "x.y.api.test", "api.test:8080"}).Draw(t, "host")
		scheme := rapid.SampledFrom([]string{"https", "http"}).Draw(t, "scheme")
		p := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/c/b", "/a/"}).Draw(t, "path")
		return Capability{Kind: HTTP, Method: genMethod.Draw(t, "method"), URL: scheme + "://" + host + p}
	case 3:
		return Capability{Kind: Env, Name: genEnv.Draw(t, "env")}
	case 4:
		return Capability{Kind: Tool, Server: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "server"), Tool: rapid.SampledFrom([]string{"get_a", "get_b", "del"}).Draw(t, "tool")}
	default:
		return Capability{Kind: Secret, Name: "TOK", Host: rapid.SampledFrom([]string{"api.test", "a.api.test", "other.test"}).Draw(t, "host")}
	}
})

var lawVars = Vars{Workspace: "/srv/w", Data: "/ex/data/x", Home: "/home/u", Skill: "/ex/snap", Denied: []string{"/ex", "/srv/w/a/secret"}}

// bindings are the two ways in which a decision can be asked for.
func bindings(e *Effective) []*Effective { return []*Effective{e, e.Bind(lawVars)} }

func TestAddingACeilingNeverAllowsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := genPolicy("g").Draw(t, "grant")
		ceilings := rapid.SliceOfN(genPolicy("c"), 0, 2).Draw(t, "ceilings")
		more := genPolicy("m").Draw(t, "more")
		c := genCapability.Draw(t, "capability")
		before, after := bindings(New(grant, ceilings...)), bindings(New(grant, append(slices.Clone(ceilings), more)...))
		for i := range before {
			if a, b := before[i].Decide(c), after[i].Decide(c); b.Allowed && !a.Allowed {
				t.Fatalf("%s: %s, but with one more ceiling %s", c, a, b)
			}
		}
		la, lb := before[0].Limits(), after[0].Limits()
		for i, l := range lb.list() {
			if l.n > la.list()[i].n {
				t.Fatalf("limit %s grew", l.key)
			}
		}
		if !subset(before[0].Walls(), after[0].Walls()) || after[0].Shared() && !before[0].Shared() {
			t.Fatalf("a wall fell, or shared was switched on")
		}
		host := []string{"LANG=x", "LC_ALL=x", "LC_TOKEN=x", "API_TOKEN=x", "PATH=x", "A=x", "AB=x", "HOME=x"}
		for _, kv := range after[0].Environ(host) {
			if !slices.Contains(before[0].Environ(host), kv) && !slices.Contains(BaseEnv(), kv) {
				t.Fatalf("%s is new", kv)
			}
		}
	})
}

func TestOrderAndRepetitionOfCeilingsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := genPolicy("g").Draw(t, "grant")
		ceilings := rapid.SliceOfN(genPolicy("c"), 1, 3).Draw(t, "ceilings")
		other := rapid.Permutation(append(slices.Clone(ceilings), ceilings[0])).Draw(t, "permutation")
		c := genCapability.Draw(t, "capability")
		a, b := bindings(New(grant, ceilings...)), bindings(New(grant, other...))
		for i := range a {
			if x, y := a[i].Decide(c), b[i].Decide(c); x.Allowed != y.Allowed {
				t.Fatalf("%s: %s, in another order %s", c, x, y)
			}
		}
		if a[0].Limits() != b[0].Limits() || !slices.Equal(a[0].Walls(), b[0].Walls()) || a[0].Shared() != b[0].Shared() || !slices.Equal(a[0].Environ([]string{"A=x", "LANG=y"}), b[0].Environ([]string{"A=x", "LANG=y"})) {
			t.Fatalf("limits, walls, shared or the environment depend on the order")
		}
		ra, errA := New(grant, ceilings...).Files(lawVars)
		rb, errB := New(grant, other...).Files(lawVars)
		if (errA == nil) != (errB == nil) || !reflect.DeepEqual(ra, rb) {
			t.Fatalf("roots depend on the order:\n%+v %v\n%+v %v", ra, errA, rb, errB)
		}
	})
}

// rootDecision decides as the holder of the minted roots would: by the root that lies deepest at or above the path.
func rootDecision(roots []Root, c Capability) bool {
	var root *Root
	for i := range roots {
		if within(roots[i].Guest, c.Path) && (root == nil || len(roots[i].Guest) > len(root.Guest)) {
			root = &roots[i]
		}
	}
	need := ReadOnly
	if c.Kind == Write {
		need = Overlay
	}
	if b := baseOf(c.Path); b != nil && (root == nil || len(b.guest) > len(root.Guest)) {
		return b.access >= need
	}
	if root == nil {
		return false
	}
	access, longest := root.Access, 0
	for _, n := range root.Narrow {
		if within(n.Guest, c.Path) && len(n.Guest) > longest {
			access, longest = n.Access, len(n.Guest)
		}
	}
	rel, _ := relTo(root.Guest, c.Path)
	if _, ok := hiddenBy(segments(rel), mustGlobs(root.Hide)); ok {
		return false
	}
	var exempt []Glob
	for _, s := range root.Protected {
		g, err := ParseGlob(s)
		if err != nil {
			panic(err)
		}
		exempt = append(exempt, g.folded())
	}
	if _, ok := protectedBy(segments(root.Host), segments(rel), exempt); ok && c.Kind == Write {
		return false
	}
	return access >= need
}

func TestMintedRootsAllowWhatIsDecided(t *testing.T) {
	allowed := 0
	rapid.Check(t, func(t *rapid.T) {
		grant := genPolicy("g").Draw(t, "grant")
		e := New(grant, rapid.SliceOfN(genPolicy("c"), 0, 3).Draw(t, "ceilings")...)
		roots, err := e.Files(lawVars)
		if err != nil {
			return // refused as a whole
		}
		for i, r := range roots {
			if r.Access == NoAccess || i > 0 && roots[i-1].Guest >= r.Guest {
				t.Fatalf("roots are not sorted, distinct and accessible: %+v", roots)
			}
			for _, n := range r.Narrow {
				if n.Access > r.Access || !within(r.Guest, n.Guest) || n.Access == Overlay && r.Access == ReadWrite {
					t.Fatalf("a root is not narrowed by %+v: %+v", n, r)
				}
			}
		}
		for range 8 {
			c := genCapability.Draw(t, "capability")
			if c.Kind != Read && c.Kind != Write {
				continue
			}
			want := e.Bind(lawVars).Decide(c)
			if got := rootDecision(roots, c); got != want.Allowed {
				t.Fatalf("%s: %s, but the roots say %v: %+v", c, want, got, roots)
			}
			if want.Allowed && want.Layer == LayerGrant {
				allowed++
			}
		}
	})
	if allowed == 0 {
		t.Error("no question was ever allowed: the test proves nothing")
	}
}

// stripped returns p without positions, for comparison.
func stripped(p *Policy) *Policy {
	q := *p
	q.File, q.at = "", nil
	q.Files, q.Network, q.Secrets, q.Tools = clone(p.Files), clone(p.Network), clone(p.Secrets), clone(p.Tools)
	if p.Env != nil {
		q.Env = &EnvSection{clone(p.Env.Pass), clone(p.Env.Set)}
		for i := range q.Env.Pass {
			q.Env.Pass[i].Pos = Position{}
		}
		for i := range q.Env.Set {
			q.Env.Set[i].Pos = Position{}
		}
	}
	for i := range q.Files {
		q.Files[i].Pos = Position{}
	}
	for i := range q.Network {
		q.Network[i].Pos = Position{}
	}
	for i := range q.Secrets {
		q.Secrets[i].Pos = Position{}
	}
	for i := range q.Tools {
		q.Tools[i].Pos = Position{}
		q.Tools[i].Arguments = clone(q.Tools[i].Arguments)
		for j := range q.Tools[i].Arguments {
			q.Tools[i].Arguments[j].Pos = Position{}
		}
	}
	for _, list := range []*[]Test{&q.Tests.Allow, &q.Tests.Deny} {
		*list = clone(*list)
		for i := range *list {
			(*list)[i].Pos = Position{}
		}
	}
	return &q
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func roundTrip(t fataler, p *Policy) {
	text := Format(p)
	q, err := Parse("again", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if a, b := stripped(p), stripped(q); !reflect.DeepEqual(a, b) {
		t.Fatalf("another policy came back:\n%+v\n%+v\n%s", a, b, text)
	}
	if again := Format(q); !bytes.Equal(again, text) {
		t.Fatalf("another text came back:\n%s\n%s", text, again)
	}
	if d := Diff(p, q); len(d) != 0 {
		t.Fatalf("a policy differs from itself: %v", d)
	}
}

func TestParseFormatParseIsEqual(t *testing.T) {
	for name, data := range validFiles(t) {
		p, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, p)
	}
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, genPolicy("g").Draw(t, "policy")) })
}

func TestDiffOfAPolicyWithItselfIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPolicy("g").Draw(t, "policy")
		if d := Diff(p, p); len(d) != 0 {
			t.Fatalf("%v", d)
		}
	})
}

func TestDiffNamesGrowthWheneverMoreIsAllowed(t *testing.T) {
	grew := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := genPolicy("a").Draw(t, "a"), genPolicy("b").Draw(t, "b")
		changes := Diff(a, b)
		if slices.ContainsFunc(changes, func(c Change) bool { return c.Grew }) {
			return
		}
		for range 8 {
			c := genCapability.Draw(t, "capability")
			if x, y := New(a).Decide(c), New(b).Decide(c); y.Allowed && !x.Allowed && y.Layer != LayerBase {
				t.Fatalf("%s: %s, then %s, but the changes are %v", c, x, y, changes)
			}
			grew++
		}
	})
	if grew == 0 {
		t.Error("every pair grew: the test proves nothing")
	}
}

func TestDiffSaysWhatChanged(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want []string
	}{
		{"", "env: {pass: [LANG]}", []string{"more: env.pass: LANG (b:3:14)"}},
		{"env: {pass: ['LC_*']}", "env: {pass: [LC_ALL, 'LC_A*']}", []string{"less: env.pass: no longer LC_* (a:3:14)"}},
		{"env: {set: {A: x}}", "env: {set: {A: y}}", []string{`more: env.set: A="y" (b:3:13)`, `less: env.set: no longer A="x" (a:3:13)`}},
		{"files: {/w: {host: /w, access: write}}", "files: {/w: {host: /w, access: read}}", []string{"less: files./w: write from /w, hiding **/.env* **/.git/config -> read from /w, hiding **/.env* **/.git/config (b:3:9)"}},
		{"files: {/w: {host: /w, access: read}}", "files: {/w: {host: /w, access: read, hide: []}}", []string{"more: files./w: read from /w, hiding **/.env* **/.git/config -> read from /w (b:3:9)"}},
		{"files: {/w: {host: /w, access: write, hide: []}}", "files: {/w: {host: /w, access: write, hide: []}, /w/a: {host: /w/a, access: read, hide: []}}", []string{"less: files./w/a: write from /w/a -> read from /w/a (b:3:50)"}},
		{"network: [{host: '*.a.test'}]", "network: [{host: b.a.test, paths: [/x]}]", []string{"less: network: no longer GET, HEAD https://*.a.test (a:3:11)"}},
		{"network: [{host: a.test}]", "network: [{host: a.test}, {host: a.test, methods: [POST]}]", []string{"more: network: POST https://a.test (b:3:27)"}},
		{"tools: [{server: s, allow: ['get_*'], deny-hints: [destructive]}]", "tools: [{server: s, allow: [get_a]}]", []string{"more: tools: s/get_a (b:3:9)", "less: tools: no longer s/get_* but not destructive (a:3:9)"}},
		{"limits: {time: 2m}", "limits: {memory: 1GiB}", []string{"more: limits.memory: 256MiB -> 1GiB (b:3:10)", "less: limits.time: 2m -> 1m"}},
		{"shared: true", "walls: [userns]", []string{"less: shared: true -> false", "less: walls: landlock seccomp -> landlock seccomp userns (b:3:1)"}},
	} {
		a, err := Parse("a", []byte(head+tc.a))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse("b", []byte(head+tc.b))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range Diff(a, b) {
			got = append(got, c.String())
		}
		if !slices.Equal(got, tc.want) && !(len(BaseWalls()) == 0 && tc.a == "shared: true") {
			t.Errorf("%s -> %s:\n got %s\nwant %s", tc.a, tc.b, strings.Join(got, "\n     "), strings.Join(tc.want, "\n     "))
		}
	}
}

func TestAddGrantGrantsWithoutAnythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Format(genPolicy("g").Draw(t, "policy"))
		c := genCapability.Draw(t, "capability")
		before, err := Parse("p", text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		out, err := AddGrant(text, c, "")
		if err != nil {
			return
		}
		after, err := Parse("p", out)
		if err != nil || !New(after).Decide(c).Allowed {
			t.Fatalf("%s is not granted: %v\n%s", c, err, out)
		}
		for range 6 {
			q := genCapability.Draw(t, "other")
			if New(before).Decide(q).Allowed || !New(after).Decide(q).Allowed {
				continue
			}
			if !related(c, q) {
				t.Fatalf("granting %s also granted %s\n%s", c, q, out)
			}
		}
	})
}

// related reports whether q may come with a grant of c: what lies below a path, and reading what may be written.
func related(c, q Capability) bool {
	if c.Kind == Read || c.Kind == Write {
		return (q.Kind == Read || q.Kind == c.Kind) && within(c.Path, q.Path)
	}
	return c == q || c.Kind == HTTP && q.Kind == HTTP && fmt.Sprint(c) == fmt.Sprint(q)
}
