package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/exthost/exthost/host"
)

func testApp(t *testing.T) *app {
	t.Helper()
	a := &app{ctx: t.Context(), env: parseEnviron(nil)}
	a.out = newTerminal(os.Stderr, a.env)
	a.cfg.home = filepath.Join(t.TempDir(), "home")
	return a
}

func TestDenialLogKeepsTheLast(t *testing.T) {
	a := testApp(t)
	for i := range maxDenials + 50 {
		err := a.logDenials([]denial{{Version: 1, Name: "x", Path: "/x", Capability: fmt.Sprintf("read /%d", i)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.readDenials()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != maxDenials || all[len(all)-1].Capability != fmt.Sprintf("read /%d", maxDenials+49) {
		t.Errorf("%d denials, the last %q", len(all), all[len(all)-1].Capability)
	}
}

func TestDenialsOfOneExtensionDoNotPushOutThoseOfAnother(t *testing.T) {
	a := testApp(t)
	if err := a.logDenials([]denial{{Version: 1, Name: "quiet", Path: "/q", Capability: "read /a"}}); err != nil {
		t.Fatal(err)
	}
	var flood []denial
	for i := range 3 * maxDenials {
		flood = append(flood, denial{Version: 1, Name: "loud", Path: "/l", Capability: fmt.Sprintf("read /%d", i)})
	}
	if err := a.logDenials(flood); err != nil {
		t.Fatal(err)
	}
	all, err := a.readDenials()
	if err != nil || len(all) != maxDenials || all[0].Name != "quiet" || all[len(all)-1].Capability != flood[len(flood)-1].Capability {
		t.Errorf("%d denials, the first of %q, %v", len(all), all[0].Name, err)
	}
}

func TestDenialLogKeepsACapabilityOnce(t *testing.T) {
	a := testApp(t)
	for range 3 {
		if err := a.logDenials([]denial{{Version: 1, Name: "x", Path: "/x", Capability: "read /a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := a.readDenials(); err != nil || len(all) != 1 {
		t.Errorf("%d denials, %v", len(all), err)
	}
}

func TestDenialLogOfManyRunsAtOnceLosesNothing(t *testing.T) {
	a := testApp(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := a.logDenials([]denial{{Version: 1, Name: "x", Path: "/x", Capability: fmt.Sprint("read /", i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := a.readDenials(); err != nil || len(all) != 20 {
		t.Errorf("%d denials, %v", len(all), err)
	}
}

func TestStateFilesAreTheUsersOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not kept there")
	}
	a := testApp(t)
	if err := a.logDenials([]denial{{Version: 1, Name: "x", Capability: "read /a"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.locked(func() error { return a.writeGrants(grantsFile{}) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "denials.jsonl": 0o600, "grants.json": 0o600} {
		info, err := os.Stat(filepath.Join(a.cfg.home, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%q has mode %o, want %o", name, info.Mode().Perm(), want)
		}
	}
	left, err := filepath.Glob(filepath.Join(a.cfg.home, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestNewerStateIsRefused(t *testing.T) {
	a := testApp(t)
	for name, text := range map[string]string{
		"grants.json":   `{"version": 2, "by": "9.0.0", "once": [], "never": [], "new": 1}`,
		"denials.jsonl": `{"version": 2, "name": "x"}` + "\n",
		"config.yaml":   "version: 2\n",
	} {
		if err := writeFile(filepath.Join(a.cfg.home, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.readGrants(); err == nil || !strings.Contains(err.Error(), "9.0.0") {
		t.Errorf("grants.json: %v", err)
	}
	if _, err := a.readDenials(); err == nil {
		t.Error("denials.jsonl was accepted")
	}
	if _, err := loadConfig(a.env, globals{home: a.cfg.home}, nil); err == nil {
		t.Error("config.yaml was accepted")
	}
}

func TestConfigurationLayers(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(env ...string) (config, error) {
		return loadConfig(parseEnviron(append(env, "EXTHOST_HOME="+home)), globals{}, nil)
	}
	write("engine: wazero\nworkers: 3\ncache: /c\n")
	c, err := load()
	if err != nil || c.engine != "wazero" || c.workers != 3 || c.cache != "/c" || c.home != home {
		t.Errorf("the file: %+v, %v", c, err)
	}
	if c, err = load("EXTHOST_ENGINE=wasmtime", "EXTHOST_WORKERS=5"); err != nil || c.engine != "wasmtime" || c.workers != 5 {
		t.Errorf("the environment over the file: %+v, %v", c, err)
	}
	fs := newFlagSet()
	fs.String("engine", "", "")
	if err := fs.Parse([]string{"--engine", "wazero"}); err != nil {
		t.Fatal(err)
	}
	c, err = loadConfig(parseEnviron([]string{"EXTHOST_ENGINE=wasmtime", "EXTHOST_HOME=" + home}), globals{}, fs)
	if err != nil || c.engine != "wazero" {
		t.Errorf("the flag over the environment: %+v, %v", c, err)
	}
	for _, text := range []string{"engine: v8\n", "workers: 0\n", "workers: [1]\n", "enigne: wazero\n", "policy: x\n", "engine: null\n", "engine: wazero\nengine: wazero\n", "version: 0\n", "- a\n"} {
		write(text)
		if c, err := load(); err == nil {
			t.Errorf("%q was accepted as %+v", text, c)
		}
	}
	write("")
	if _, err := load("EXTHOST_ENGINE=v8"); err == nil || !strings.Contains(err.Error(), "EXTHOST_ENGINE") {
		t.Errorf("a wrong variable: %v", err)
	}
}

func TestNoHomeFolderIsNotAnError(t *testing.T) {
	c, err := loadConfig(parseEnviron(nil), globals{}, nil)
	if err != nil || c.home != "" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhatIsGrantedOnceIsBoundToTheTreeThatAsked(t *testing.T) {
	a := testApp(t)
	x := extension{name: "x.py", path: filepath.Join(t.TempDir(), "x.py"), file: true}
	if err := os.WriteFile(x.path, []byte("print(1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := host.TreeDigest(t.Context(), x.path)
	if err != nil {
		t.Fatal(err)
	}
	give := func() {
		all := grantsFile{Once: []once{{x.name, digest, "read /workspace"}}}
		if err := a.locked(func() error { return a.writeGrants(all) }); err != nil {
			t.Fatal(err)
		}
	}
	give()
	g := &grant{name: x.name}
	if taken, err := a.takeOnce(t.Context(), x, g); err != nil || len(taken) != 1 || g.policy.Digest != digest {
		t.Errorf("took %v, %v; the grant is for %q, want %q", taken, err, g.policy.Digest, digest)
	}
	give()
	if err := os.WriteFile(x.path, []byte("print(2)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g = &grant{name: x.name}
	if taken, err := a.takeOnce(t.Context(), x, g); err != nil || len(taken) != 0 || g.policy != nil {
		t.Errorf("another tree took %v, %v", taken, err)
	}
}
