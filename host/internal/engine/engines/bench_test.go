package engines_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
)

// callLoop is a module that calls a host function n times.
func callLoop(n int32) []byte {
	m := wb.New()
	nop := m.Import("test", "nop", wb.Sig().Returns(wb.I32))
	m.Memory(1, 2)
	m.Start(m.Func(wb.Sig(), []byte{wb.I32},
		wb.I32Const(n), wb.LocalSet(0),
		wb.Loop, wb.Call(nop), wb.Drop, wb.LocalGet(0), wb.I32Const(1), wb.I32Sub, wb.LocalTee(0), wb.BrIf(0), wb.End))
	return m.Bytes()
}

// exitLoop is a tiny WASI module.
func exitLoop() []byte {
	m := wb.New()
	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Memory(1, 2)
	m.Start(m.Func(wb.Sig(), nil, wb.I32Const(0), wb.Call(exit)))
	return m.Bytes()
}

// bigSource is a program of about 13 MB that prints one line.
const bigSource = `package main

import (
	"archive/zip"
	"compress/gzip"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/parser"
	"go/types"
	"html/template"
	"image/png"
	"net/http"
	"os"
	"regexp"
)

var keep = []any{zip.NewReader, gzip.NewReader, tls.Dial, sql.Open, json.Marshal, xml.Marshal, parser.ParseFile,
	types.NewPackage, template.New, png.Decode, http.Get, regexp.Compile}

func main() {
	if len(os.Args) > 5 {
		fmt.Println(keep...)
	}
	fmt.Println("hi")
}
`

var buildBig = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "big")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"main.go": bigSource, "go.mod": "module big\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("go", "build", "-o", "big.wasm", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return os.ReadFile(filepath.Join(dir, "big.wasm"))
})

func bigGuest(b testing.TB) []byte {
	b.Helper()
	wasm, err := buildBig()
	if err != nil {
		b.Skip("cannot build a Go program for wasip1: ", err)
	}
	return wasm
}
