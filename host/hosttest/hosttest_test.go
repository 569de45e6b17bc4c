package hosttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// divideModule traps: it divides by zero.
const divideModule = "\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" + // type 0: () -> ()
	"\x03\x02\x01\x00" + // function 0
	"\x05\x03\x01\x00\x01" + // one memory of one page
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" +
	"\x0a\x0a\x01\x08\x00\x41\x01\x41\x00\x6d\x1a\x0b" // i32.const 1; i32.const 0; i32.div_s; drop; end

func TestRunReportsWhatBecameOfTheGuest(t *testing.T) {
	h := hosttest.New(t, host.Config{})
	dir := hosttest.Folder(t, map[string]string{"m.wasm": divideModule, "empty/": "", "l@": "m.wasm"})
	for name, kind := range map[string]os.FileMode{"m.wasm": 0, "empty": os.ModeDir, "l": os.ModeSymlink} {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil || fi.Mode().Type() != kind {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
	e := hosttest.Open(t, h, dir, hosttest.Policy(t, "version: 1\nextension: m\n"), host.Bindings{Name: "m"})
	r := hosttest.Run(t, e, host.Job{Script: "m.wasm"})
	if r.Outcome != host.Trap || r.ExitCode != 134 || r.Trap == "" || r.Denied("read /x") {
		t.Errorf("got %s", r)
	}
	// A link in the extension runs what it leads to.
	if r := hosttest.Run(t, e, host.Job{Script: "l"}); r.Outcome != host.Trap || r.Script != "l" {
		t.Errorf("by a link: %s", r)
	}
}
