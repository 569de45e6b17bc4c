package wasiabi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/exthost/exthost/wasiabi"
)

// The smallest adapter that runs a guest: the real ones live in host and are tested there.
var engine = sync.OnceValues(func() (wazero.Runtime, error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	b := r.NewHostModuleBuilder(wasiabi.ModuleName)
	types := func(vs []wasiabi.ValueType) (out []api.ValueType) {
		for _, v := range vs {
			out = append(out, api.ValueType(v))
		}
		return out
	}
	for _, f := range wasiabi.Functions() {
		b = b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(
			func(ctx context.Context, m api.Module, stack []uint64) {
				p := ctx.Value(processKey{}).(*wasiabi.Process)
				mem, _ := m.Memory().Read(0, m.Memory().Size())
				e, err := f.Call(p, mem, stack[:len(f.Params)])
				var exit *wasiabi.Exit
				switch {
				case errors.As(err, &exit):
					panic(sys.NewExitError(exit.Code))
				case err != nil:
					panic(err)
				case len(f.Results) > 0:
					stack[0] = uint64(e)
				}
			}), types(f.Params), types(f.Results)).Export(f.Name)
	}
	_, err := b.Instantiate(ctx)
	return r, err
})

type processKey struct{}

// guest builds a Go program of testdata/guests once.
func guest(t testing.TB, name string) wazero.CompiledModule {
	t.Helper()
	v, _ := guests.LoadOrStore(name, sync.OnceValues(func() (wazero.CompiledModule, error) {
		out := filepath.Join(os.TempDir(), "wasiabi-guest-"+name+"-"+strings.ReplaceAll(t.Name(), "/", "_")+".wasm")
		defer os.Remove(out)
		cmd := exec.Command("go", "build", "-o", out, ".")
		cmd.Dir = filepath.Join("testdata", "guests", name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, errors.New(string(text))
		}
		wasm, err := os.ReadFile(out)
		if err != nil {
			return nil, err
		}
		r, err := engine()
		if err != nil {
			return nil, err
		}
		return r.CompileModule(context.Background(), wasm)
	}))
	m, err := v.(func() (wazero.CompiledModule, error))()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var guests sync.Map

// run runs a guest to its end and gives its exit code and output.
func run(t testing.TB, ctx context.Context, name string, cfg wasiabi.Config) (uint32, string) {
	t.Helper()
	m := guest(t, name)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Stdout, cfg.Stderr = w, w
	cfg.Args = []string{name}
	p, err := wasiabi.NewProcess(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&out, r)
		r.Close()
	}()
	rt, _ := engine()
	_, err = rt.InstantiateModule(context.WithValue(ctx, processKey{}, p), m, wazero.NewModuleConfig().WithName(""))
	p.Close()
	w.Close()
	<-done
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out.String()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return 0, out.String()
}

func TestGoGuestUsesFiles(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(in, "in.txt"), []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	var denied []string
	code, text := run(t, context.Background(), "files", wasiabi.Config{
		Dir: "/workspace",
		Mounts: []wasiabi.Mount{
			{Guest: "/workspace", Dir: in, Access: wasiabi.ReadOnly},
			{Guest: "/out", Dir: out, Access: wasiabi.ReadWrite},
		},
		Events: func(e wasiabi.Event) {
			if e.Denied {
				denied = append(denied, e.Capability+" "+e.Errno)
			}
		},
	})
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, text)
	}
	for _, want := range []string{
		"ok getwd /workspace", "ok read hello", "ok readdir 41 f n39", "gone true", "ok readlink b.txt",
		"ok stat 5 1000000000", "ok read hello wo", "/out /out/d /out/d/b.txt /out/d/e /out/d/e/f /out/d/l", "ok empty 0",
		"denied true", "absent true", "ok relative data", "ok root [d dev/ d out/ d workspace/]",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if want := []string{"read /etc/passwd EACCES"}; strings.Join(denied, ",") != strings.Join(want, ",") {
		t.Errorf("refusals %q, want %q", denied, want)
	}
}

func TestGoGuestSleepsWhileStdinIsSilent(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		time.Sleep(300 * time.Millisecond)
		_, _ = w.WriteString("one\ntwo\n")
		w.Close()
	}()
	code, text := run(t, context.Background(), "streams", wasiabi.Config{Stdin: r, NonblockStdin: true})
	if want := "tick\ntick\ntick\nline one\nline two\neof\n"; code != 0 || text != want {
		t.Errorf("exit %d, got %q, want %q", code, text, want)
	}
}
