package policy

import (
	"strings"
	"testing"
)

func TestAddGrantKeepsCommentsAndGrants(t *testing.T) {
	start := "# mine\nversion: 1\nextension: x # label\nfiles:\n  # the project\n  /workspace: {host: '${workspace}', access: read} # ro\n"
	for _, tc := range []struct{ cap, host, want string }{
		{"write /workspace/reports", "", "/workspace/reports:"},
		{"write /workspace", "", "access: write"},
		{"read /workspace/.env", "", "/workspace/.env:"},
		{"write /out", "${workspace}/reports", "${workspace}/reports"},
		{"read /data/x", "", "${data}/x"},
		{"env LANG", "", "- LANG"},
		{"GET https://api.ecb.europa.eu/rates", "", "paths: [/rates]"},
		{"POST http://10.0.0.1:8080/a%20b", "", "10.0.0.1/32"},
		{"tool github/search", "", "allow: [search]"},
	} {
		c := capability(t, tc.cap)
		out, err := AddGrant([]byte(start), c, tc.host)
		if err != nil {
			t.Errorf("%s: %v", tc.cap, err)
			continue
		}
		for _, want := range []string{"# mine", "# label", "# the project", "# ro", tc.want} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %q is not in\n%s", tc.cap, want, out)
			}
		}
		if !New(mustParse(t, string(out))).Decide(c).Allowed {
			t.Errorf("%s is not granted by\n%s", tc.cap, out)
		}
		if again, err := AddGrant(out, c, ""); err != nil || string(again) != string(out) {
			t.Errorf("%s: granting twice changed the file: %v", tc.cap, err)
		}
		less, err := RemoveGrant(out, c)
		if tc.cap == "write /workspace" {
			c.Kind = Write
		}
		if tc.cap == "read /workspace/.env" && err == nil {
			if New(mustParse(t, string(less))).Decide(c).Allowed {
				t.Errorf("%s is not revoked", tc.cap)
			}
			continue
		}
		if err != nil || New(mustParse(t, string(less))).Decide(c).Allowed {
			t.Errorf("%s is not revoked: %v\n%s", tc.cap, err, less)
		}
	}
}

func TestGrantRefuses(t *testing.T) {
	start := head + "files: {/workspace: {host: '${workspace}', access: write}}\nnetwork: [{host: api.test}]\n"
	for cap, want := range map[string]string{
		"read /etc/passwd":            "say which path of the host",
		"write /skill/x":              "the extension itself",
		"env LD_PRELOAD":              "never given",
		"secret TOKEN other.test":     "no network line reaches",
		"TRACE https://api.test/":     "TRACE cannot be granted",
		"GET https://api.test/a*":     "",
		"POST https://api.test/a%2Ab": "wildcard",
	} {
		c := capability(t, cap)
		out, err := AddGrant([]byte(start), c, "")
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", cap, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q\n%s", cap, err, want, out)
		}
	}
}

func TestAProtectedFileIsGrantedByItsExemption(t *testing.T) {
	start := head + "files: {/workspace: {host: '${workspace}', access: write}}\n"
	c := capability(t, "write /workspace/AGENTS.md")
	out, err := AddGrant([]byte(start), c, "")
	if err != nil || !strings.Contains(string(out), "AGENTS.md") {
		t.Fatalf("%v\n%s", err, out)
	}
	e := New(mustParse(t, string(out)))
	if !e.Decide(c).Allowed || e.Decide(capability(t, "write /workspace/sub/AGENTS.md")).Allowed {
		t.Errorf("the exemption is not exactly the one file")
	}
	back, err := RemoveGrant(out, c)
	if err != nil || New(mustParse(t, string(back))).Decide(c).Allowed {
		t.Errorf("not revoked: %v\n%s", err, back)
	}
}

func TestSetDigestAndNewFile(t *testing.T) {
	d := "sha256:" + strings.Repeat("ab", 32)
	out, err := SetDigest(NewFile("x", ""), d)
	if err != nil || mustParse(t, string(out)).Digest != d {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err = SetDigest(out, "sha256:short"); err == nil {
		t.Errorf("a bad digest was written:\n%s", out)
	}
}
