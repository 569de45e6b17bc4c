package exthost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/policy"
)

var demo = regexp.MustCompile("(?s)\n## A minute\n.*?\n```\n(.*?)```\n")

// The README shows a session. It is run again here, command by command, and must print what stands there.
func TestReadmeDemoIsWhatHappens(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the session is one on Linux: elsewhere a run needs --weak-walls")
	}
	if python, _ := guests.Lookup("python"); !python.Present() {
		if os.Getenv("EXTHOST_REQUIRE_GUESTS") != "" {
			t.Fatal(python.Err())
		}
		t.Skip(python.Err())
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := demo.FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md has no session under \"A minute\"")
	}

	dir := t.TempDir()
	bin, project, home := filepath.Join(dir, "bin"), filepath.Join(dir, "project"), filepath.Join(dir, "home")
	goTool(t, "build", "-o", filepath.Join(bin, "exthost"), "./cmd/exthost")
	for _, name := range []string{"sales-report", "thumbs"} {
		if err := os.CopyFS(filepath.Join(home, "Downloads", name), os.DirFS(filepath.Join("testdata/skills", name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(project, os.DirFS("testdata/demo")); err != nil {
		t.Fatal(err)
	}

	// A command begins with "$ " and goes on while lines end in a backslash; what follows up to the next is its output.
	commands := 0
	for _, part := range strings.Split("\n"+string(block[1]), "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = project
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + dir}
		out, _ := cmd.CombinedOutput() // some are meant to fail; what they print says so
		if got, want := strings.TrimSpace(string(out)), strings.TrimSpace(want); got != want {
			t.Errorf("$ %s\nprinted:\n%s\nREADME.md has:\n%s", command, got, want)
		}
		commands++
	}
	if commands < 4 {
		t.Errorf("README.md shows %d commands only", commands)
	}
}

var (
	example = regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n")
	listed  = regexp.MustCompile(`(?m)^  ([a-z]+)( [a-z]+)?  `)
)

func TestReadmePolicyParsesAndPassesItsTests(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := example.FindSubmatch(readme)
	if text == nil {
		t.Fatal("README.md has no policy")
	}
	// The digest is shortened there.
	p, err := policy.Parse("README.md", []byte(strings.Replace(string(text[1]), "sha256:…", "sha256:"+strings.Repeat("0", 64), 1)))
	if err != nil {
		t.Fatal(err)
	}
	results := policy.RunTests(p)
	if len(results) == 0 {
		t.Error("the policy has no tests")
	}
	for _, r := range results {
		if !r.OK {
			t.Error(r)
		}
	}
}

func TestReadmeNamesEachCommand(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := goTool(t, "run", "./cmd/exthost", "help")
	commands := listed.FindAllStringSubmatch(string(out), -1)
	if len(commands) < 10 {
		t.Fatalf("exthost help lists %d commands only:\n%s", len(commands), out)
	}
	for _, c := range commands {
		verb := strings.TrimSpace(c[2])
		if !strings.Contains(string(readme), "`exthost "+c[1]) || verb != "" && !strings.Contains(string(readme), verb+"`") {
			t.Errorf("README.md does not name exthost %s%s", c[1], c[2])
		}
	}
}
