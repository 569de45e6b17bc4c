package wattest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTextBecomesAModule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.wat")
	text := `(module (memory 1) (func (export "_start") (call 0))) ;; ` + file // never assembled before
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []byte("\x00asm\x01\x00\x00\x00")
	first := Assemble(t, file)
	if !bytes.HasPrefix(first, want) {
		t.Fatalf("module begins %q, want %q", first[:min(8, len(first))], want)
	}
	t.Setenv("PATH", "") // the second time comes from the cache, without node
	if again := Text(t, text); !bytes.Equal(first, again) {
		t.Error("the same text gave two modules")
	}
}

func TestBadTextIsAnErrorThatSaysWhere(t *testing.T) {
	_, err := assemble("(module\n(func (oops)))")
	if err == nil || !strings.Contains(err.Error(), "module.wat:2") {
		t.Errorf("got %v, want an error at module.wat:2", err)
	}
}

func TestWithoutNodeTheErrorNamesIt(t *testing.T) {
	if _, err := assembler(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	_, err := assemble("(module) ;; " + t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "node is not installed") {
		t.Errorf("got %v, want an error that names node", err)
	}
}
