// Package wattest assembles WebAssembly text for tests, so that no binary modules lie in the tree.
//
// The assembler is the wabt package for Node.js, pinned by version and digest; Node.js and npm must be installed. What
// was assembled is kept in the build cache ($EXTHOST_BUILD_CACHE, by default exthost-build in the user's cache
// folder) under a digest of text and assembler, so each text is assembled once on a machine. A missing tool fails the
// test: a skip here would silence most of the suite.
package wattest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

//go:embed assemble.js
var script string

// Assemble returns the binary module of the text file at path.
//
// The module is not validated: a text that is well formed but breaks WebAssembly's typing rules is assembled too, so
// that a test can feed it to an engine. All proposals that the assembler knows are switched on.
func Assemble(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Text(t, string(text))
}

// Text is [Assemble] for a text in memory.
func Text(t testing.TB, text string) []byte {
	t.Helper()
	wasm, err := assemble(text)
	if err != nil {
		t.Fatalf("assemble: %v", err)
	}
	return wasm
}

func assemble(text string) ([]byte, error) {
	key := sha256.Sum256([]byte(script + "\x00" + text))
	file := filepath.Join(cacheDir(), "wat", hex.EncodeToString(key[:])+".wasm")
	if b, err := os.ReadFile(file); err == nil {
		return b, nil
	}
	dir, err := assembler()
	if err != nil {
		return nil, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not installed; install Node.js (Debian: apt-get install nodejs npm)")
	}
	var out, problem bytes.Buffer
	cmd := exec.Command(node, "-e", script, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, problem.Bytes())
	}
	return out.Bytes(), keep(file, out.Bytes())
}

// assembler returns the folder of the unpacked wabt package, which the build's own tool gets and checks.
var assembler = sync.OnceValues(func() (string, error) {
	var problem bytes.Buffer
	cmd := exec.Command("go", "run", "github.com/exthost/exthost/guests/internal/fetch", "wabt")
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, problem.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
})

func cacheDir() string {
	if dir := os.Getenv("EXTHOST_BUILD_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "exthost-build")
	}
	return filepath.Join(os.TempDir(), "exthost-build-"+strconv.Itoa(os.Getuid()))
}

// keep writes b to file in one step; tests of several packages may assemble the same text at once.
func keep(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".wat-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
