package host_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

// needShell skips a test in a binary without the shell, which is an error where the runtimes are required.
func needShell(t *testing.T) {
	t.Helper()
	if r, _ := guests.Lookup("sh"); !r.Present() {
		if os.Getenv("EXTHOST_REQUIRE_GUESTS") != "" {
			t.Fatal(r.Err())
		}
		t.Skip(r.Err())
	}
	if runtime.GOOS != "linux" {
		t.Skip("no worker processes on this system yet")
	}
}

// shellSkill is a skill of testdata/skills.
func shellSkill(name string) string { return filepath.Join("..", "testdata", "skills", name) }

const noNetworkLine = "no network line in policy.yaml covers it; this version has no network"

// TestSkillsThatMisbehaveAreRefusedAndReported runs shell scripts that try what they must not. Each attempt is refused or
// met by a view that is the run's own, stands once in the report with what it was after, and changes nothing outside; what
// the script printed and its exit code reach the caller all the same.
func TestSkillsThatMisbehaveAreRefusedAndReported(t *testing.T) {
	needShell(t)
	readOnly := "/skill is the extension itself and can only be read"
	protected := func(name string) string {
		return `"` + name + `" is protected: it makes something else run code or steers an agent`
	}
	uncovered := "no files line in policy.yaml covers it"
	for _, tt := range []struct {
		skill, script string
		code          int
		stdout        []string
		denials       []string // "CAPABILITY: REASON", in the order of their names
	}{
		{"city-weather", "scripts/setup.sh", 7, []string{
			"piped: refused", "decoded: refused", "substituted: refused", "downloaded: refused", "again: refused", "packaged: refused",
			"elevated: refused", "connected: refused", "the set-up is over",
		}, []string{
			"CONNECT http://198.51.100.7:9000/: not a method that can be granted; this version has no network",
			"GET http://198.51.100.7/driver: " + noNetworkLine,
			"GET http://198.51.100.7/next: " + noNetworkLine,
			"GET https://drivers.example.invalid/driver: " + noNetworkLine,
			"GET https://drivers.example.invalid/get: " + noNetworkLine,
			"program pip: no such program in the sandbox",
			"program sudo: no such program in the sandbox",
		}},
		{"morning-plan", "scripts/plan.sh", 0, []string{
			"table: refused", "service: refused", "unit: done", "agent: done", "profile: done", "keys: done", "hook: refused", "settings: refused",
			"planned",
		}, []string{
			"program crontab: no such program in the sandbox",
			"program systemctl: no such program in the sandbox",
			"write /workspace/.git/hooks/pre-commit: " + protected(".git"),
			"write /workspace/.vscode: " + protected(".vscode"),
		}},
		{"habit-coach", "scripts/coach.sh", 0, []string{
			"/workspace/CLAUDE.md: refused", "/workspace/AGENTS.md: refused", "/workspace/GEMINI.md: refused", "/workspace/.cursorrules: refused",
			"/workspace/.mcp.json: refused", "/workspace/sub/agents.md: refused", "/skill/SKILL.md: refused",
			"/skill/../mail-sorter/SKILL.md: refused", "/home/guest/.mcp.json: done", "/workspace/habits.md: done", "copied: refused", "moved: refused",
		}, []string{
			"write /mail-sorter/SKILL.md: " + uncovered,
			"write /skill/SKILL.md: " + readOnly,
			"write /workspace/.cursorrules: " + protected(".cursorrules"),
			"write /workspace/.github/copilot-instructions.md: " + protected("copilot-instructions.md"),
			"write /workspace/.mcp.json: " + protected(".mcp.json"),
			"write /workspace/AGENTS.md: " + protected("agents.md"),
			"write /workspace/CLAUDE.md: " + protected("claude.md"),
			"write /workspace/GEMINI.md: " + protected("gemini.md"),
			"write /workspace/sub/agents.md: " + protected("agents.md"),
		}},
		{"folder-mirror", "scripts/mirror.sh", 0, []string{
			"above the root: refused", "a link to above: refused", "a link far away: refused", "an absolute link: refused", "a link that was there: refused",
			"the same with a slash: refused", "writing through it: refused", "a file behind a link: refused", "moving from a read-only root: refused",
			"a second name for a read-only file: refused", "emptying a read-only file: refused", "the time of a read-only file: refused",
			"the process table: refused", "a device: refused", "the password file: refused", "deleting all: refused",
		}, []string{
			"read /dev/sda: " + uncovered,
			"read /etc/passwd: " + uncovered,
			"read /proc/self/root/etc/hostname: " + uncovered,
			"read /workspace/out: a link leaves its mount: OUTSIDE",
			"read /workspace/secret: a link leaves its mount: OUTSIDE/canary",
			"write /mirror: " + uncovered,
			"write /skill/SKILL.md: " + readOnly,
			"write /skill/scripts/mirror.sh: " + readOnly,
			"write /skill/scripts: " + readOnly,
			"write /workspace/hard: another mount",
			"write /workspace/name: the link would leave its mount: ../../../../../../etc/hostname",
			"write /workspace/out: a link leaves its mount: OUTSIDE",
			"write /workspace/root: the link would leave its mount: /proc/self/root",
			"write /workspace/up: the link would leave its mount: ..",
		}},
	} {
		t.Run(tt.skill, func(t *testing.T) {
			onEngines(t, func(t *testing.T, h *host.Host) {
				outside := hosttest.Folder(t, map[string]string{"canary": "sings"})
				ws := hosttest.Folder(t, map[string]string{
					"orders.csv": "region,amount\n", ".git/hooks/": "", ".github/": "", "sub/": "",
					"out@": outside, "secret@": filepath.Join(outside, "canary"),
				})
				text := grant(`files: {/workspace: {host: "${workspace}", access: write}}`)
				e := hosttest.Open(t, h, shellSkill(tt.skill), hosttest.Policy(t, text), host.Bindings{Workspace: ws, Name: tt.skill})
				hosttest.Run(t, e, host.Job{Script: tt.script}) // compiled: that takes its own time
				start := time.Now()
				r := hosttest.Run(t, e, host.Job{Script: tt.script})
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("it took %v: a job outlived its script", took)
				}
				if got := strings.Split(strings.TrimSpace(r.Stdout), "\n"); r.Outcome != host.Exit || r.ExitCode != tt.code || !slices.Equal(got, tt.stdout) {
					t.Errorf("got %s\nwant exit code %d and\n%s", r, tt.code, strings.Join(tt.stdout, "\n"))
				}
				var got []string
				for _, d := range r.Denials {
					got = append(got, d.Capability+": "+strings.ReplaceAll(d.Reason, outside, "OUTSIDE"))
					if d.Count < 1 || d.Source != "reported" {
						t.Errorf("denial %+v", d)
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, tt.denials) {
					t.Errorf("denials\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.denials, "\n"))
				}
				if r.Extension != tt.skill || r.Script != tt.script {
					t.Errorf("the report is of %s %s", r.Extension, r.Script)
				}
				if list, err := os.ReadDir(filepath.Dir(outside)); err != nil || len(list) != 1 {
					t.Errorf("beside the canary: %v, %v", list, err)
				}
				if b, err := os.ReadFile(filepath.Join(outside, "canary")); err != nil || string(b) != "sings" {
					t.Errorf("the canary: %q, %v", b, err)
				}
				for _, name := range []string{"CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".mcp.json", ".vscode", ".git/hooks/pre-commit", "hard", "up", "name", "root"} {
					if _, err := os.Lstat(filepath.Join(ws, filepath.FromSlash(name))); err == nil {
						t.Errorf("%s was made in the workspace", name)
					}
				}
			})
		})
	}
}

// TestShellScriptsOfASkill runs scripts that do what those of real skills do, and compares what they print with what bash
// and the tools of Debian print.
func TestShellScriptsOfASkill(t *testing.T) {
	needShell(t)
	tour := shellSkill("shell-tour")
	for _, tt := range []struct {
		script  string
		stdin   string
		code    int
		stdout  string // "": as in expected/
		stderr  string // a part of it
		denials []string
	}{
		{script: "language.sh", code: 3, denials: []string{"program missing_command_of_the_tour"}},
		{script: "spellings.sh"},
		{script: "places.sh"},
		{script: "query.sh"},
		{script: "ask.sh", denials: []string{"program sudo"}},
		{script: "count.sh", stdin: "one\ntwo\nthree\n", code: 4, stdout: "first: one\nmore lines: 2\n"},
		{script: "windows.sh", code: 2, stdout: "-", stderr: "end in CR LF, as on Windows"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			want := tt.stdout
			if want == "" {
				b, err := os.ReadFile(filepath.Join(tour, "expected", strings.TrimSuffix(tt.script, ".sh")+".txt"))
				if err != nil {
					t.Fatal(err)
				}
				want = string(b)
			}
			want = strings.TrimPrefix(want, "-")
			onEngines(t, func(t *testing.T, h *host.Host) {
				ws := hosttest.Folder(t, map[string]string{"orders.csv": "region,amount\nnorth,12\n"})
				text := grant("limits: {time: 30s}", `files: {/workspace: {host: "${workspace}", access: read}}`)
				e := hosttest.Open(t, h, tour, hosttest.Policy(t, text), host.Bindings{Workspace: ws, Name: "tour"})
				j := host.Job{Script: "scripts/" + tt.script}
				if tt.stdin != "" {
					j.Stdin = strings.NewReader(tt.stdin)
				}
				r := hosttest.Run(t, e, j)
				if r.Outcome != host.Exit || r.ExitCode != tt.code || r.Stdout != want {
					t.Errorf("got %s\nwant exit code %d and\n%s", r, tt.code, want)
				}
				var denied []string
				for _, d := range r.Denials {
					denied = append(denied, d.Capability)
				}
				if !slices.Equal(denied, tt.denials) {
					t.Errorf("denials %q, want %q", denied, tt.denials)
				}
				if !strings.Contains(r.Stderr, tt.stderr) {
					t.Errorf("stderr %q, want %q", r.Stderr, tt.stderr)
				}
			})
		})
	}
}
