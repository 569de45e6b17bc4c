package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGlobGrammar(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"**/.env*", ".env", true},
		{"**/.env*", "a/b/.env.local", true},
		{"**/.env*", "a/env", false},
		{"**/*.pem", "x.pem", true},
		{"**/*.pem", "x.pem/y", false},
		{"*", "a", true},
		{"*", "a/b", false},
		{"**", "a/b/c", true},
		{"**", "", true},
		{"a/**", "a", true},
		{"a/**", "a/b/c", true},
		{"a/**", "b", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/b/y", false},
		{"a*c", "ac", true},
		{"a*c", "abbc", true},
		{"a*c", "ab/c", false},
		{"a?c", "abc", false},
		{"[a]", "a", false},
		{"{a,b}", "a", false},
		{"**/a/**/b", "a/a/b/b", true},
		{"*a*a*a*a*b", strings.Repeat("a", 200), false},
	} {
		g, err := ParseGlob(tc.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Match(segments(tc.path)); got != tc.want {
			t.Errorf("%q matches %q: %v", tc.pattern, tc.path, got)
		}
		// The same text as a URL pattern must answer alike: there is one matcher.
		u, err := ParsePathGlob("/" + tc.pattern)
		if err != nil {
			if !strings.ContainsAny(tc.pattern, "?#;") {
				t.Fatal(err)
			}
			continue
		}
		if got := u.Match(segments(tc.path)); got != tc.want {
			t.Errorf("as a URL path, %q matches %q: %v", tc.pattern, tc.path, got)
		}
	}
}

func TestAStarIsNotAnEmptyLastSegmentOfAURL(t *testing.T) {
	p := mustParse(t, head+"network: [{host: a.test, paths: ['/issues/*']}, {host: b.test, paths: ['/issues/**']}, {host: c.test, paths: ['/issues/']}]")
	for c, want := range map[string]bool{
		"GET https://a.test/issues/7": true, "GET https://a.test/issues/": false, "GET https://a.test/issues": false, "GET https://a.test/issues/7/x": false,
		"GET https://b.test/issues": true, "GET https://b.test/issues/": true, "GET https://b.test/issues/7/x": true, "GET https://b.test/issuesx": false,
		"GET https://c.test/issues/": true, "GET https://c.test/issues": false,
	} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
}

func TestHostRulesMatchLabelByLabel(t *testing.T) {
	p := mustParse(t, head+"network: [{host: example.test}, {host: '*.wild.test'}]")
	for host, want := range map[string]bool{
		"example.test": true, "EXAMPLE.TEST": true, "example.test.": true, "EXAMPLE。test": true,
		"evil-example.test": false, "example.test.evil.test": false, "a.example.test": false, "test": false,
		"a.wild.test": true, "a.b.wild.test": true, "wild.test": false, "evilwild.test": false, "wild.test.evil.test": false,
	} {
		c, err := ParseCapability("GET https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		if d := New(p).Decide(c); d.Allowed != want {
			t.Errorf("%s: %s", host, d)
		}
	}
}

func TestURLsHaveOneReadingOrNone(t *testing.T) {
	for in, want := range map[string]string{
		"https://A.test":                       "https://a.test/",
		"HTTPS://a.test:443/x?q=1#f":           "https://a.test/x",
		"http://a.test:80/":                    "http://a.test/",
		"http://a.test:8080":                   "http://a.test:8080/",
		"https://a.test/%61b/./c":              "https://a.test/ab/c",
		"https://a.test/a%20b":                 "https://a.test/a%20b",
		"https://a.test/é":                     "https://a.test/%C3%A9",
		"https://a.test/a/.":                   "https://a.test/a/",
		"https://bücher.test/":                 "https://xn--bcher-kva.test/",
		"https://[2001:DB8::1]:8443/":          "https://[2001:db8::1]:8443/",
		"https://[::ffff:10.0.0.1]/":           "https://10.0.0.1/",
		"https://ａ.test/":                      "https://a.test/",
		"http://other.test#@allowed.test":      "http://other.test/",
		"http://other.test?@allowed.test":      "http://other.test/",
		"http://allowed.test@other.test/":      "",
		"http://allowed.test:x@other.test/":    "",
		`http:\\other.test`:                    "",
		`http://other.test\@allowed.test/`:     "",
		"http://allowed.test%09.other.test/":   "",
		"http://a%2etest/":                     "",
		"http:///x":                            "",
		"http://":                              "",
		"//a.test/":                            "",
		"ftp://a.test/":                        "",
		"file:///etc/passwd":                   "",
		"data:text/plain,x":                    "",
		"ws://a.test/":                         "",
		"http:a.test":                          "",
		"https://a.test:0/":                    "",
		"https://a.test:65536/":                "",
		"https://a.test:44x/":                  "",
		"https://a.test:/":                     "",
		"https://a..test/":                     "",
		"https://a.test../":                    "",
		"https://2130706433/":                  "",
		"https://0x7f000001/":                  "",
		"https://127.1/":                       "",
		"https://010.0.0.1/":                   "",
		"https://[fe80::1%25eth0]/":            "",
		"https://a_b.test/":                    "",
		"https://a.test/a%2Fb":                 "",
		"https://a.test/a%5cb":                 "",
		"https://a.test/%2e%2e/b":              "",
		"https://a.test/../b":                  "",
		"https://a.test/x/..":                  "",
		"https://a.test//b":                    "",
		"https://a.test/a;b":                   "",
		"https://a.test/..;/b":                 "",
		"https://a.test/%252e%252e/b":          "",
		"https://a.test/a%00":                  "",
		"https://a.test/a%0d%0aHost:x":         "",
		"https://a.test/%zz":                   "",
		"https://a.test/%e2%80%ae":             "",
		"https://" + strings.Repeat("a", 8200): "",
	} {
		c, err := ParseCapability("GET " + in)
		if want == "" {
			if err == nil {
				t.Errorf("%.60q is accepted as %q", in, c.URL)
			}
			// A decision that skips the parser must refuse it as well.
			if d := New(mustParse(t, head+"network: [{host: '*', methods: ['*']}]")).Decide(Capability{Kind: HTTP, Method: "GET", URL: in}); d.Allowed {
				t.Errorf("%.60q is allowed", in)
			}
			continue
		}
		if err != nil || c.URL != want {
			t.Errorf("%q: got %q, %v, want %q", in, c.URL, err, want)
		}
	}
}

func TestInnerAddressesNeedTheirRange(t *testing.T) {
	p := mustParse(t, head+"network: [{host: '*'}, {host: 10.0.0.1, addresses: [10.0.0.0/8]}, {host: '*', port: 8443, addresses: [192.168.0.0/16, '::1/128']}]")
	for c, want := range map[string]bool{
		"GET https://93.184.216.34/": true, "GET https://[2606:4700::1]/": true, "GET https://example.com/": true,
		"GET https://10.0.0.1/": true, "GET https://10.0.0.2/": false, "GET https://192.168.1.1:8443/": true, "GET https://192.168.1.1/": false,
		"GET https://127.0.0.1/": false, "GET https://localhost/": false, "GET https://x.localhost./": false, "GET https://169.254.169.254/": false,
		"GET https://[::1]:8443/": true, "GET https://[::1]/": false, "GET https://[::ffff:127.0.0.1]/": false, "GET https://[fe80::1]/": false, "GET https://[fd00::1]/": false,
		"GET https://100.64.0.1/": false, "GET https://0.0.0.0/": false, "GET https://224.0.0.1/": false, "GET https://[64:ff9b::7f00:1]/": false, "GET https://[2002:7f00:1::]/": false, "GET https://255.255.255.255/": false,
	} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
	if PublicAddress(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

func TestEmptyAndAbsentSectionsGrantNothing(t *testing.T) {
	caps := []string{"read /workspace/a", "GET https://a.test/", "env LANG", "tool s/t", "secret A a.test"}
	for _, text := range []string{"", "files: {}\nnetwork: []\nenv: {}\ntools: []\nsecrets: {}\n"} {
		for _, c := range caps {
			if d := New(mustParse(t, head+text)).Decide(capability(t, c)); d.Allowed || d.Layer != LayerNone {
				t.Errorf("%q: %s: %s", text, c, d)
			}
		}
	}
	for _, c := range caps {
		if d := New(nil).Decide(capability(t, c)); d.Allowed {
			t.Errorf("no policy: %s: %s", c, d)
		}
	}
}

func TestAnEmptyCeilingSectionTakesAllAndAnAbsentOneNothing(t *testing.T) {
	grant := mustParse(t, head+"files: {/workspace: {host: '${workspace}', access: write}}\nnetwork: [{host: a.test}]\nenv: {pass: [LANG]}\ntools: [{server: s, allow: [t]}]\nsecrets: {A: {from: 'env:A', to: [a.test]}}\n")
	for section, c := range map[string]string{
		"files: {}": "read /workspace/a", "network: []": "GET https://a.test/", "env: {}": "env LANG", "tools: []": "tool s/t", "secrets: {}": "secret A a.test",
	} {
		if d := New(grant, mustParse(t, head)).Decide(capability(t, c)); !d.Allowed {
			t.Errorf("a ceiling without an opinion: %s: %s", c, d)
		}
		d := New(grant, mustParse(t, head+section)).Decide(capability(t, c))
		if d.Allowed || d.Layer != LayerCeiling || d.Rule.Line != 3 {
			t.Errorf("%s: %s: %s", section, c, d)
		}
	}
}

func TestTheBaseIsAlwaysThere(t *testing.T) {
	ceiling := mustParse(t, head+"files: {}\nenv: {}\n")
	for _, e := range []*Effective{New(nil), New(mustParse(t, head)), New(nil, ceiling)} {
		for c, want := range map[string]bool{
			"read /skill/x": true, "write /skill/x": false, "write /tmp/x": true, "write /home/guest/.bashrc": true, "write /dev/null": true, "read /dev/urandom": true,
			"write /dev/urandom": false, "read /dev/mem": false, "read /usr/local/lib/x": true, "write /usr/local/lib/x": false, "read /tmpx": false, "program sh": true, "env HOME": true, "env PATH": false,
		} {
			if d := e.Decide(capability(t, c)); d.Allowed != want || want && d.Layer != LayerBase {
				t.Errorf("%s: %s", c, d)
			}
		}
		if err := e.Unenforced(); len(err) > 0 {
			t.Error(err)
		}
	}
}

func TestTheDeepestRootDecides(t *testing.T) {
	p := mustParse(t, head+"files: {/: {host: ~/all, access: read}, /w: {host: '${workspace}', access: write}, /w/ro: {host: '${workspace}/ro', access: read}}\n")
	for c, want := range map[string]bool{
		"read /x": true, "write /x": false, "write /w": true, "write /w/x": true, "write /w/ro": false, "write /w/ro/x": false, "read /w/ro/x": true, "write /w/rox": true, "write /tmp/x": true, "read /": true,
	} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
}

func TestADecisionNamesItsRuleAndTheNearestGrant(t *testing.T) {
	p := mustParse(t, head+`files:
  /workspace: {host: "${workspace}", access: read}
  /out: {host: "${workspace}/out", access: write}
network:
  - {host: api.test, methods: [GET], paths: ["/a/**"]}
  - {host: "*.other.test"}
env: {pass: [LANG, "AWS_*"]}
tools: [{server: s, allow: [get_*]}]
secrets: {TOK: {from: "env:X", to: [api.test]}}
`)
	for _, tc := range []struct{ c, layer, rule, reason, nearest string }{
		{"read /workspace/x", LayerGrant, "p.yaml:4:3", "read /workspace", ""},
		{"write /workspace/x", LayerNone, "p.yaml:4:3", "reading only", "read /workspace (p.yaml:4:3)"},
		{"read /workspace/.env", LayerGrant, "p.yaml:4:3", `hidden by "**/.env*"`, "read /workspace"},
		{"write /out/.git/config", LayerGrant, "p.yaml:5:3", "hidden", "write /out"},
		{"write /out/.git/HEAD", LayerAlways, "p.yaml:5:3", "protected", "write /out"},
		{"read /workspac", LayerNone, "-", "no files line in p.yaml covers it", ""},
		{"POST https://api.test/a/b", LayerNone, "-", "no network line in p.yaml covers it", "GET https://api.test /a/** (p.yaml:7:5)"},
		{"GET https://other.test/", LayerNone, "-", "no network line", "GET, HEAD https://*.other.test (p.yaml:8:5)"},
		{"GET https://api.test/a", LayerGrant, "p.yaml:7:5", "GET https://api.test /a/**", ""},
		{"env AWS_SECRET_KEY", LayerNone, "p.yaml:9:20", "exact name", "env AWS_*"},
		{"env AWS_REGION", LayerGrant, "p.yaml:9:20", "env.pass AWS_*", ""},
		{"env TOK", LayerNone, "p.yaml:11:11", "placeholder", ""},
		{"env LD_PRELOAD", LayerAlways, "-", "never given", ""},
		{"tool s/del", LayerNone, "-", "no tools line", "tool s/{get_*} (p.yaml:10:9)"},
		{"secret TOK evil.test", LayerNone, "-", "no secrets line", "secret TOK to api.test"},
	} {
		d := New(p).Decide(capability(t, tc.c))
		if d.Layer != tc.layer || d.Rule.String() != tc.rule || !strings.Contains(d.Reason, tc.reason) || !strings.Contains(d.Nearest, tc.nearest) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.c, d, tc)
		}
	}
	err := error(&DeniedError{"guest:x", "read /x", New(p).Decide(capability(t, "read /x"))})
	if !errors.Is(err, ErrDenied) || err.Error() != "guest:x: denied: read /x (no files line in p.yaml covers it)" {
		t.Error(err)
	}
}

func TestMalformedCapabilitiesAreDenied(t *testing.T) {
	p := mustParse(t, head+"files: {/: {host: /, access: write}}\nnetwork: [{host: '*', methods: ['*']}]\nenv: {pass: ['A*']}\ntools: [{server: s, allow: ['*']}]\n")
	for _, c := range []Capability{
		{}, {Kind: 99}, {Kind: Read}, {Kind: Read, Path: "x"}, {Kind: Read, Path: "/a/../b"}, {Kind: Read, Path: "/a\x00"}, {Kind: Write, Path: "/" + strings.Repeat("a", 5000)},
		{Kind: HTTP, Method: "get", URL: "https://a.test/"}, {Kind: HTTP, Method: "CONNECT", URL: "https://a.test/"}, {Kind: HTTP, Method: "GET / HTTP/1.1\r\nX:", URL: "https://a.test/"}, {Kind: HTTP, Method: "GET"},
		{Kind: Env}, {Kind: Env, Name: "A=B"}, {Kind: Env, Name: "A\n"}, {Kind: Tool, Server: "s"}, {Kind: Tool, Server: "s", Tool: "a b"}, {Kind: Secret, Name: "A"}, {Kind: Program}, {Kind: Program, Name: "a/b"},
	} {
		if d := New(p).Decide(c); d.Allowed || d.Reason == "" {
			t.Errorf("%q: %s", c, d)
		}
		if s := c.String(); strings.ContainsAny(s, "\n\r\x00") {
			t.Errorf("%q holds control characters", s)
		}
	}
}

func TestACeilingNeedsTheSamePlaceOfTheHost(t *testing.T) {
	grant := mustParse(t, head+"files: {/workspace: {host: '${workspace}', access: write}, /out: {host: /srv/out, access: write}}\n")
	for _, tc := range []struct {
		ceiling, c  string
		want, bound bool
	}{
		{"/workspace: {host: '${workspace}', access: write}", "write /workspace/x", true, true},
		{"/workspace: {host: '${workspace}', access: read}", "write /workspace/x", false, false},
		{"/workspace: {host: '${workspace}', access: overlay}", "write /workspace/x", true, true},
		{"/workspace: {host: '${workspace}/a', access: write}", "write /workspace/x", false, false},
		{"/workspace: {host: '${workspace}/a', access: write}", "write /workspace/a/x", true, true},
		{"/workspace: {host: '${data}', access: write}", "write /workspace/x", false, false},
		{"/: {host: /, access: write}", "write /out/x", true, true},
		{"/: {host: /, access: write}", "write /workspace/x", false, true}, // only the machine knows that ${workspace} lies below /
		{"/out: {host: /srv, access: write}", "write /out/x", true, true},
		{"/out: {host: /srv/out2, access: write}", "write /out/x", false, false},
		{"/out/a: {host: /srv/out/a, access: write}", "write /out/x", false, false},
		{"/out/a: {host: /srv/out/a, access: write}", "write /out/a/x", true, true},
		{"/out/a: {host: /srv/out/b, access: write}", "write /out/a/x", false, false},
		{"/out: {host: /srv/out, access: write, hide: [x]}", "read /out/x/y", false, false},
	} {
		e := New(grant, mustParse(t, head+"files: {"+tc.ceiling+"}\n"))
		if d := e.Decide(capability(t, tc.c)); d.Allowed != tc.want {
			t.Errorf("%s: %s: %s", tc.ceiling, tc.c, d)
		}
		if d := e.Bind(Vars{Workspace: "/srv/w", Data: "/d", Home: "/h"}).Decide(capability(t, tc.c)); d.Allowed != tc.bound {
			t.Errorf("bound: %s: %s: %s", tc.ceiling, tc.c, d)
		}
	}
}

func TestFilesRefusesWhatNoPolicyCanOpen(t *testing.T) {
	v := Vars{Workspace: "/w", Home: "/home/u", Data: "/home/u/.exthost/data/x", Skill: "/cache/snap", Denied: []string{"/home/u/.exthost", "/cache"}}
	for text, want := range map[string]string{
		"/a: {host: ~/.exthost, access: read}":                                  "no policy can open",
		"/a: {host: ~/.exthost/policies, access: read}":                         "no policy can open",
		"/a: {host: /cache/modules, access: read}":                              "no policy can open",
		"/a: {host: '${data}', access: write}":                                  "",
		"/a: {host: '${skill}/x', access: read}":                                "",
		"/a: {host: ~/, access: read}":                                          "",
		"/a: {host: ~/.exthostx, access: read}":                                 "",
		"/a: {host: '${workspace}/x/.git/y', access: read}":                     "",
		"/a: {host: /repo, access: read}\n  , /tmp/x: {host: /q, access: read}": "",
	} {
		roots, err := New(mustParse(t, head+"files: {"+text+"}\n")).Files(v)
		if want == "" && (err != nil || len(roots) == 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
		for _, r := range roots {
			if r.Host == "/home/u" && !slices.Contains(r.Hide, ".exthost") {
				t.Errorf("the home of the program shows in %+v", r)
			}
		}
	}
	if _, err := New(mustParse(t, head+"files: {/a: {host: '${data}', access: read}}\n")).Files(Vars{Workspace: "/w"}); err == nil || !strings.Contains(err.Error(), "${data} has no value") {
		t.Errorf("a variable without a value: %v", err)
	}
	if _, err := New(mustParse(t, head+"files: {/a: {host: '${workspace}', access: write}}\n")).Files(Vars{Workspace: "/repo/.git/hooks"}); err == nil || !strings.Contains(err.Error(), "protected") {
		t.Errorf("a writable root in .git: %v", err)
	}
	ceiling := mustParse(t, head+"files: {}\n")
	if _, err := New(mustParse(t, head+"files: {/tmp/x: {host: /q, access: read}}\n"), ceiling).Files(v); err == nil || !strings.Contains(err.Error(), "would show in its place") {
		t.Errorf("a root of the base's place that is gone: %v", err)
	}
	if !v.Denies("/home/u/.exthost/data/other") || v.Denies("/home/u/.exthost/data/x/f") || v.Denies("/home/u") {
		t.Error("another extension's folder is not denied, or the own one is")
	}
}

func TestProtectedNameOfTwoPartsCountsTheFolderAboveTheRoot(t *testing.T) {
	p := mustParse(t, head+"files: {/g: {host: '${workspace}/.github', access: write}, /e: {host: '${workspace}/.github', access: write, protected: [workflows]}, /w: {host: '${workspace}', access: write}}\n")
	for c, want := range map[string]bool{"write /g/workflows/x.yml": false, "write /g/x": true, "write /e/workflows/x.yml": true, "write /w/workflows/x.yml": true} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
	bound := New(p).Bind(Vars{Workspace: "/repo/.github"})
	if d := bound.Decide(capability(t, "write /w/workflows/x.yml")); d.Allowed {
		t.Errorf("a workspace in a folder of that name: %s", d)
	}
}

func TestHiddenNamesAreHiddenWithAColon(t *testing.T) {
	p := mustParse(t, head+"files: {/w: {host: '${workspace}', access: read, hide: ['**/*.pem']}}\n")
	for c, want := range map[string]bool{"read /w/a:b.pem": false, "read /w/a:B.PEM": false, "read /w/b.pem:x": false, "read /w/a:b": true} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
}

func TestProtectedNamesAreRefusedInAnySpelling(t *testing.T) {
	for _, line := range nameTable(t) {
		word, name, _ := strings.Cut(line, " ")
		if got := IsProtected(segments(unescape(name))...); got != (word == "protected") {
			t.Errorf("%s: %v", line, got)
		}
	}
	p := mustParse(t, head+"files: {/w: {host: '${workspace}', access: overlay}}\n")
	for c, want := range map[string]bool{"write /w/.GIT/hooks/x": false, "write /w/a/CLAUDE.md": false, "write /w/x.pth": false, "write /w/x:y.pth": false, "read /w/.git/HEAD": true, "write /w/git": true, "write /w/Makefile": true} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
}

// nameTable returns the lines of testdata/policies/protected-names.txt: "protected PATH" or "free PATH", with \u escapes.
func nameTable(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(examples + "/protected-names.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSuffix(l, "\n"); l != "" && l[0] != '#' {
			out = append(out, l)
		}
	}
	if len(out) < 40 {
		t.Fatalf("only %d names", len(out))
	}
	return out
}

func unescape(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, `\u{`)
		if i < 0 {
			return b.String() + s
		}
		var r rune
		end := i + strings.IndexByte(s[i:], '}')
		fmt.Sscanf(s[i+3:end], "%x", &r)
		b.WriteString(s[:i] + string(r))
		s = s[end+1:]
	}
}

func TestProtectedListIsFoldedAndParses(t *testing.T) {
	for _, s := range Protected() {
		g, err := ParseGlob(s)
		if err != nil {
			t.Errorf("%v", err)
		}
		if g.folded().String() != s {
			t.Errorf("%q is not folded: %q", s, g.folded())
		}
		if !strings.HasPrefix(s, "**/") {
			t.Errorf("%q is not meant for every depth", s)
		}
	}
	list := Protected()
	list[0] = "x"
	if Protected()[0] == "x" {
		t.Error("the caller can change the list")
	}
}

func TestHiddenFilesAreHiddenInAnySpelling(t *testing.T) {
	p := mustParse(t, head+"files: {/w: {host: '${workspace}', access: read}}\n")
	for c, want := range map[string]bool{
		"read /w/.env": false, "read /w/.ENV": false, "read /w/a/.env.local": false, "read /w/.env/x": false, "read /w/.git/config": false, "read /w/sub/.git/config": false, "read /w/.GIT/CONFIG": false,
		"read /w/env": true, "read /w/.git/HEAD": true, "read /w/config": true,
	} {
		if d := New(p).Decide(capability(t, c)); d.Allowed != want {
			t.Errorf("%s: %s", c, d)
		}
	}
}

func TestForbiddenVariablesAreNeverGiven(t *testing.T) {
	for _, n := range []string{"PATH", "Path", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONSTARTUP", "pythonpath", "http_proxy", "ALL_PROXY", "EXTHOST_ENGINE", "BASH_ENV", "GIT_SSH_COMMAND", "PERL5OPT"} {
		if !EnvForbidden(n) {
			t.Errorf("%s is not forbidden", n)
		}
		if _, err := Parse("p", []byte(head+"env: {pass: ["+n+"]}")); err == nil {
			t.Errorf("%s can be passed", n)
		}
		if _, err := Parse("p", []byte(head+"env: {set: {"+n+": x}}")); err == nil {
			t.Errorf("%s can be set", n)
		}
	}
	for _, n := range []string{"LANG", "HOME", "MEMORY_FILE_PATH", "NODE_ENV", "PROXYLESS", "TZ"} {
		if EnvForbidden(n) {
			t.Errorf("%s is forbidden", n)
		}
	}
	for n, want := range map[string]bool{"GITHUB_TOKEN": true, "api_key": true, "DB_PASSWORD": true, "MY_SECRET_X": true, "PWD": false, "OLDPWD": false, "DB_PWD": true, "LANG": false, "TZ": false, "DATABASE_URL": true} {
		if EnvLooksSecret(n) != want {
			t.Errorf("%s looks secret: %v", n, !want)
		}
	}
	// A name that a pattern covers by accident stays out, and so does a value with a NUL.
	p := mustParse(t, head+"env: {pass: ['N*', 'L*', GITHUB_TOKEN]}")
	got := New(p).Environ([]string{"NODE_OPTIONS=x", "LD_PRELOAD=x", "LANG=a\x00b", "N_KEY=x", "NAME=n", "GITHUB_TOKEN=t", "broken", "=x", "N=1=2"})
	if want := []string{"GITHUB_TOKEN=t", "HOME=/home/guest", "N=1=2", "NAME=n", "TMPDIR=/tmp"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCeilingsOfTheEnvironment(t *testing.T) {
	grant := mustParse(t, head+"env: {pass: [LANG, TZ], set: {A: x, B: y}}")
	ceiling := mustParse(t, head+"env: {pass: [LANG, B], set: {A: x, TZ: UTC}}")
	if got, want := New(grant, ceiling).Environ([]string{"LANG=C", "TZ=UTC"}), []string{"A=x", "B=y", "HOME=/home/guest", "LANG=C", "TMPDIR=/tmp"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	other := mustParse(t, head+"env: {set: {A: z}}")
	if d := New(grant, other).Decide(capability(t, "env A")); d.Allowed || d.Layer != LayerCeiling {
		t.Errorf("another literal: %s", d)
	}
}

func TestLimitsAreTheSmallestAndNeverOff(t *testing.T) {
	if l := New(nil).Limits(); l != DefaultLimits() {
		t.Errorf("the defaults are %+v", l)
	}
	grant := mustParse(t, head+"limits: {time: 10m, memory: 1GiB, open-files: 10}")
	ceiling := mustParse(t, head+"limits: {time: 2m, output: 2MiB, open-files: 20}")
	l := New(grant, ceiling).Limits()
	if l.Time != 2*time.Minute || l.Memory != 1<<30 || l.Output != 1<<20 || l.OpenFiles != 10 || l.Calls != 50 {
		t.Errorf("got %+v", l)
	}
	for _, v := range l.list() {
		if v.n <= 0 {
			t.Errorf("%s is off", v.key)
		}
	}
}

func TestSharedIsTheGrantsLessTheCeilings(t *testing.T) {
	on, off := mustParse(t, head+"shared: true"), mustParse(t, head+"shared: false")
	if !New(on).Shared() || !New(on, mustParse(t, head), on).Shared() || New(on, off).Shared() || New(off, on).Shared() || New(nil, on).Shared() {
		t.Error("shared is not the conjunction")
	}
}

func TestFieldsThatAreNotEnforcedAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"network: [{host: a.test}]":                                      "p.yaml:3:1: not enforced by this version: network, line 3",
		"network: []\nsecrets: {}\ntools: []\nshared: false\nlimits: {}": "",
		"limits: {processes: 16, requests: 100, upload: 1MiB, download: 64MiB, calls: 50, time: 5s, memory: 1MiB, output: 1KiB, disk: 1MiB, open-files: 9}": "",
		"limits:\n  processes: 17":        "p.yaml:4:3: not enforced by this version: limits.processes, line 4",
		"limits:\n  requests: 1":          "p.yaml:4:3: not enforced by this version: limits.requests, line 4",
		"limits:\n  upload: 2MiB":         "p.yaml:4:3: not enforced by this version: limits.upload, line 4",
		"limits:\n  download: 1MiB":       "p.yaml:4:3: not enforced by this version: limits.download, line 4",
		"limits:\n  calls: 1":             "p.yaml:4:3: not enforced by this version: limits.calls, line 4",
		"tools: [{server: s, allow: []}]": "p.yaml:3:1: not enforced by this version: tools, line 3",
		"shared: true":                    "p.yaml:3:1: not enforced by this version: shared, line 3",
		"network: [{host: a.test}]\nsecrets: {A: {from: 'env:A', to: [a.test]}}":                          "p.yaml:3:1: not enforced by this version: network, line 3\np.yaml:4:1: not enforced by this version: secrets, line 4",
		"env: {pass: [LANG]}\nfiles: {/w: {host: /w, access: read}}\nwalls: [userns]\ntests: {allow: []}": "",
	} {
		p := mustParse(t, head+text)
		if got := New(p).Unenforced().Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		if got := New(nil, p).Unenforced(); len(got) > 0 {
			t.Errorf("as a ceiling: %v", got)
		}
	}
}

func TestCapabilitiesHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"read /a/": "read /a", "write /a//b/./c": "write /a/b/c", "read /": "read /", "read /a b": "read /a b",
		"GET https://A.test": "GET https://a.test/", "env LANG": "env LANG", "secret A EXAMPLE.test.": "secret A example.test", "tool s/a/b": "tool s/a/b", "program python3": "program python3",
	} {
		if c, err := ParseCapability(in); err != nil || c.String() != want {
			t.Errorf("%q: %q, %v", in, c, err)
		}
	}
	for _, in := range []string{"", "read", "read ", "read  /a", " read /a", "read /a ", "read a", "read /a/../b", "exec /bin/sh", "Read /a", "env A=B", "env 1", "secret A", "secret A B C", "tool s", "tool /x", "program ", "program ../x", "GET", "GET  https://a.test/", "read /a\x00", "read /a\nb", "read /\xff", "read /a\u202eb"} {
		if c, err := ParseCapability(in); err == nil {
			t.Errorf("%q is read as %q", in, c)
		}
	}
}

func TestUnits(t *testing.T) {
	for in, want := range map[string]int64{"1KiB": 1024, "256MiB": 256 << 20, "4GiB": 4 << 30, "1024KiB": 1 << 20, "": 0, "0KiB": 0, "1": 0, "1B": 0, "1kb": 0, "1 MiB": 0, "-1KiB": 0, "01KiB": 0, "1e3KiB": 0, "1_0KiB": 0, "99999999999GiB": 0, "1.5GiB": 0, "KiB": 0} {
		if got, err := ParseSize(in); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for in, want := range map[string]time.Duration{"1ms": time.Millisecond, "90s": 90 * time.Second, "2m": 2 * time.Minute, "24h": 24 * time.Hour, "60": 0, "0s": 0, "1m30s": 0, "-1s": 0, "1.5s": 0, "1d": 0, "999999999999h": 0, "ms": 0, "1us": 0} {
		if got, err := ParseTime(in); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for n, want := range map[int64]string{1 << 20: "1MiB", 1536: "1KiB", 1: "1KiB", 3 << 30: "3GiB", 1025 << 10: "1025KiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{time.Minute: "1m", 90 * time.Second: "90s", time.Nanosecond: "1ms", 2 * time.Hour: "2h", 1500 * time.Millisecond: "1500ms"} {
		if got := FormatTime(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

func TestLintWarns(t *testing.T) {
	d := "digest: sha256:" + strings.Repeat("0", 64) + "\ntests: {allow: [\"read /skill/x\"]}\n"
	for text, want := range map[string]string{
		"":                                                            "",
		"env: {pass: [GITHUB_TOKEN]}":                                 "looks like a credential and the guest will read its value",
		"env: {pass: ['A*']}":                                         "passes many variables",
		"env: {set: {API_KEY: abc}}":                                  "written in the policy",
		"network: [{host: '*'}]":                                      "every public site",
		"network: [{host: '*.com'}]":                                  "top-level domain",
		"network: [{host: a.test, scheme: http}]":                     "read and changed on the way",
		"network: [{host: a.test, methods: []}]":                      "allows nothing",
		"network: [{host: a.test, addresses: [10.0.0.0/8]}]":          "inner addresses",
		"files: {/w: {host: '${workspace}', access: write}}":          "overlay keeps the writes aside",
		"files: {/w: {host: '${workspace}/out', access: write}}":      "",
		"files: {/w: {host: /, access: read}}":                        "whole machine",
		"files: {/w: {host: ~/, access: read}}":                       "whole home folder",
		"files: {/w: {host: '${workspace}', access: read, hide: []}}": "shows .env",
		"files: {/w: {host: '${workspace}/a', access: write, protected: [AGENTS.md]}}":         "steers an agent",
		"files: {/w: {host: '${workspace}/a', access: read, hide: ['[a]']}}":                   "stand for themselves",
		"network: [{host: a.test, scheme: http}]\nsecrets: {A: {from: 'env:A', to: [a.test]}}": "without encryption",
		"network: [{host: a.test}]\nsecrets: {A: {from: 'env:A', to: [a.test], in: [body]}}":   "the receiver may keep it",
		"tools: [{server: s, allow: ['*']}]":                                                   "will have tomorrow",
	} {
		got := Lint(mustParse(t, head+d+text))
		if want == "" && len(got) > 0 || want != "" && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, got, want)
		}
		for _, w := range got {
			if w.Code != CodeWarning || w.Line == 0 {
				t.Errorf("%+v", w)
			}
		}
	}
	if got := Lint(mustParse(t, head)).Error(); !strings.Contains(got, "no digest") || !strings.Contains(got, "no tests") {
		t.Errorf("got %s", got)
	}
}

func TestAProjectsFileNamesOnlyTheProject(t *testing.T) {
	p := mustParse(t, head+"files: {/a: {host: '${workspace}/x', access: read}, /b: {host: ~/x, access: read}, /c: {host: /x, access: read}}")
	if got := p.OutsideProject(); len(got) != 2 || got[0].Line != 3 {
		t.Errorf("got %v", got)
	}
}

func TestExplainSaysTheWholeGrant(t *testing.T) {
	for name, data := range validFiles(t) {
		p, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(New(p, mustParse(t, head+"files: {/workspace/sub: {host: '${workspace}/sub', access: read}}\nnetwork: []\nenv: {}")).Explain(), "\n")
		for _, f := range p.Files {
			if !strings.Contains(text, "  "+f.Guest+": ") {
				t.Errorf("%s: %s is not told:\n%s", name, f.Guest, text)
			}
		}
		for _, l := range p.Network {
			if !strings.Contains(text, l.Host) {
				t.Errorf("%s: %s is not told:\n%s", name, l.Host, text)
			}
		}
		for _, want := range []string{"ceiling p.yaml", "limits", "walls", "always denied", "only what one of 0 lines of a ceiling allows too (p.yaml:4:1)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not told:\n%s", name, want, text)
			}
		}
	}
	if text := strings.Join(New(nil).Explain(), "\n"); !strings.Contains(text, "the base alone") || !strings.Contains(text, "/skill: read") {
		t.Errorf("the base: %s", text)
	}
}

func TestRunTestsTellsWhatFailed(t *testing.T) {
	p := mustParse(t, head+"tests:\n  allow: [read /skill/x, read /nowhere]\n  deny:\n    - write /tmp/x\n    - read /nowhere\n")
	var got []string
	for _, r := range RunTests(p) {
		got = append(got, r.String())
	}
	want := []string{"ok allow read /skill/x", "p.yaml:4:26: read /nowhere: expected allowed, got denied: denied: no files line in p.yaml covers it", "p.yaml:6:7: write /tmp/x: expected denied, got allowed: allowed by base: /tmp is a private folder, wiped after the run", "ok deny read /nowhere"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		var text strings.Builder
		text.WriteString(head + "files:\n")
		for i := range n / 2 {
			fmt.Fprintf(&text, "  /w/d%d: {host: \"${workspace}/d%d\", access: write}\n", i, i)
		}
		text.WriteString("network:\n")
		for i := range n - n/2 {
			fmt.Fprintf(&text, "  - {host: h%d.example.test, paths: [\"/a/**\"]}\n", i)
		}
		p := mustParse(b, text.String())
		e := New(p)
		for name, c := range map[string]Capability{
			"file":   {Kind: Read, Path: fmt.Sprintf("/w/d%d/a/b/c.txt", n/2-1)},
			"write":  {Kind: Write, Path: fmt.Sprintf("/w/d%d/a/b/c.txt", n/2-1)},
			"http":   {Kind: HTTP, Method: "GET", URL: fmt.Sprintf("https://h%d.example.test/a/b", n-n/2-1)},
			"denied": {Kind: HTTP, Method: "GET", URL: "https://other.test/a/b"},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if e.Decide(c).Allowed == (name == "denied") {
						b.Fatal("wrong answer")
					}
				}
			})
		}
	}
}
