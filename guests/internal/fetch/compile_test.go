package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// source makes a module tree of the files that decide what is built, and some that do not.
func source(t *testing.T) builder {
	t.Helper()
	b := builder{ctx: t.Context(), root: t.TempDir(), pkg: "./guests/sh"}
	for _, name := range []string{
		"go.mod", "go.sum", "LICENSE", "guests/internal/fetch/compile.go", "guests/internal/wasmpack/wasmpack.go",
		"guests/sh/main.go", "guests/sh/internal/a/a.go", "guests/sh/internal/a/zones.bin",
		"guests/sh/internal/a/a_test.go", "guests/sh/internal/a/testdata/x.txt", "host/run.go",
	} {
		put(t, b, name, name)
	}
	put(t, b, "go.mod", "module x\n")
	return b
}

func put(t *testing.T, b builder, name, text string) {
	t.Helper()
	file := filepath.Join(b.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheDigestOfInputsFollowsWhatDecides(t *testing.T) {
	b := source(t)
	inputs := func() string {
		t.Helper()
		s, err := b.inputs("guests/sh")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := inputs()
	if len(before) != 64 || inputs() != before {
		t.Fatalf("digest %q is not stable", before)
	}
	for _, name := range []string{"guests/sh/internal/a/a_test.go", "guests/sh/internal/a/testdata/x.txt", "host/run.go"} {
		put(t, b, name, "changed")
		if inputs() != before {
			t.Errorf("%s decides", name)
		}
	}
	for _, name := range []string{
		"go.sum", "LICENSE", "guests/internal/fetch/compile.go", "guests/internal/wasmpack/wasmpack.go",
		"guests/sh/main.go", "guests/sh/internal/a/zones.bin", "guests/sh/new.go",
	} {
		put(t, b, name, "changed")
		now := inputs()
		if now == before {
			t.Errorf("%s does not decide", name)
		}
		before = now
	}
}

func TestWhatWasBuiltIsKeptWhole(t *testing.T) {
	files := map[string][]byte{moduleFile: []byte("\x00asm"), licenceFile: []byte("== x\n")}
	same := func(a, b []byte) bool { return string(a) == string(b) }
	for name, damage := range map[string]func(dir string) error{
		"whole":        func(string) error { return nil },
		"byte changed": func(dir string) error { return os.WriteFile(filepath.Join(dir, moduleFile), []byte("\x00bsm"), 0o644) },
		"file missing": func(dir string) error { return os.Remove(filepath.Join(dir, "LICENSES")) },
		"no digests":   func(dir string) error { return os.Remove(filepath.Join(dir, "sum")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sh")
			if err := keep(dir, files); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			got, err := builder{}.kept(dir)
			if (err == nil) != (name == "whole") {
				t.Fatalf("kept: %v", err)
			}
			if err == nil && !maps.EqualFunc(got, files, same) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestOldBuildsAreRemoved(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for i := range maxKept + 3 {
		dir := filepath.Join(cache, fmt.Sprintf("sh-%016d", i))
		if err := keep(dir, map[string][]byte{moduleFile: nil, licenceFile: nil}); err != nil {
			t.Fatal(err)
		}
		at := now.Add(time.Duration(-i) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, "sum"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"npm", "sh-short", "wabt-0000000000000000"} {
		if err := os.Mkdir(filepath.Join(cache, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(cache, "sh"); err != nil {
		t.Fatal(err)
	}
	var left []string
	list, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		left = append(left, d.Name())
	}
	want := []string{"npm"}
	for i := range maxKept {
		want = append(want, fmt.Sprintf("sh-%016d", i))
	}
	if want = append(want, "sh-short", "wabt-0000000000000000"); !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

func TestLicencesOfAllThatIsLinkedAreCollected(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	// A package with a dependency, that is built for every system.
	text, err := builder{ctx: t.Context(), root: root, pkg: "./guests"}.licences()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"== Go\n\nCopyright 2009", "== github.com/exthost/exthost\n\n", "== github.com/klauspost/compress v"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the licences", want)
		}
	}
}
