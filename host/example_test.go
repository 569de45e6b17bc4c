package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

// helloModule is a WebAssembly module that writes text to its standard output and, if path is not "", then tries to open
// the file path. A real extension is built by a compiler; this one is short enough to be seen whole.
func helloModule(text, path string) []byte {
	section := func(id byte, body ...[]byte) []byte {
		all := bytes.Join(body, nil)
		return append([]byte{id, byte(len(all)&0x7f) | 0x80, byte(len(all) >> 7)}, all...)
	}
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	i32 := func(n int) []byte { return []byte{0x41, byte(n)} } // i32.const, 0 to 63
	wasi := name("wasi_snapshot_preview1")
	body := bytes.Join([][]byte{
		{0},                                             // no locals
		i32(1), i32(0), i32(1), i32(8), {0x10, 0, 0x1a}, // fd_write(1, iovecs at 0, one of them, count at 8); drop
		i32(3), i32(0), i32(48), i32(len(path)), i32(0), // path_open(3, 0, path at 48, its length, no flags,
		{0x42, 2, 0x42, 2}, i32(0), i32(8), {0x10, 1, 0x1a}, // right to read, the same, no flags, descriptor at 8); drop
		{0x0b},
	}, nil)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{3, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 9, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0}),
		section(2, []byte{2}, wasi, name("fd_write"), []byte{0, 0}, wasi, name("path_open"), []byte{0, 1}),
		section(3, []byte{1, 2}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 2}),
		section(10, []byte{1, byte(len(body))}, body),
		section(11, []byte{3},
			[]byte{0}, i32(0), []byte{0x0b, 8, 16, 0, 0, 0, byte(len(text)), 0, 0, 0}, // iovec: at 16, its length
			[]byte{0}, i32(16), []byte{0x0b}, name(text),
			[]byte{0}, i32(48), []byte{0x0b}, name(path)),
	}, nil)
}

// A program that embeds exthost calls WorkerMain first thing in main; here TestMain does.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	h, err := host.New(host.Config{Cache: filepath.Join(dir, "cache")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	// The extension wants a file of the workspace that nobody granted.
	tool := fstest.MapFS{"hello.wasm": {Data: helloModule("hello\n", "workspace/q3.csv")}}
	grant, err := policy.Parse("hello.yaml", []byte("version: 1\nextension: hello\nlimits: {time: 10s}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := h.OpenFS(ctx, tool, grant, host.Bindings{Name: "hello", Workspace: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	report, err := e.Run(ctx, host.Job{Script: "hello.wasm", Stdout: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Outcome, report.ExitCode)
	for _, d := range report.Denials {
		fmt.Printf("denied: %s: %s\n", d.Capability, d.Reason)
	}
	// Output:
	// hello
	// exit 0
	// denied: read /workspace/q3.csv: no files line in hello.yaml covers it
}

func ExampleTreeDigest() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("# hello\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	digest, err := host.TreeDigest(context.Background(), dir)
	fmt.Println(digest, err)
	// Output: sha256:348b7f63c5b73c8ed414c46b3f60252af26e6391da6fc52440b1a26c04ab31fb <nil>
}

func ExampleExitCode() {
	fmt.Println(host.ExitCode(&host.Report{Outcome: host.Exit, ExitCode: 3}, nil, false))
	fmt.Println(host.ExitCode(nil, fmt.Errorf("scripts/x.py: %w", host.ErrNotFound), false))
	// Output:
	// 3
	// 127
}
