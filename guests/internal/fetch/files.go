package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/exthost/exthost/guests/internal/npm"
)

const maxMembers = 512 << 20 // bytes that one package may unpack to

// members are the regular files of a package by name.
type members map[string][]byte

// take returns the member name, which must have the digest sha256.
func (m members) take(name, sha256 string) ([]byte, error) {
	b, ok := m[name]
	if !ok {
		return nil, fmt.Errorf("the package holds no %s", name)
	}
	if sum(b) != sha256 {
		return nil, fmt.Errorf("%s: sha256 %s, pinned is %s", name, sum(b), sha256)
	}
	return b, nil
}

// untar reads a gzipped tar archive into memory.
func untar(tgz []byte) (members, error) {
	plain, err := gzip.NewReader(bytes.NewReader(tgz))
	if err != nil {
		return nil, err
	}
	m, left := members{}, int64(maxMembers)
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if left -= h.Size; left < 0 {
			return nil, fmt.Errorf("the package unpacks to more than %d bytes", int64(maxMembers))
		}
		if m[h.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

// write puts b into file in one step; a file that holds b already is left alone.
func write(file string, b []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, b) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".fetch-")
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

// wabt is the assembler for the text modules of the test suite. It is not part of exthost.
var wabt = npm.Package{
	Name:      "wabt",
	Version:   "1.0.39",
	Integrity: "sha512-ba+dRL/75VQQY7RkU/CgriGbkoWAfS8TDyUlJfJhJ8KhtXgMl5dhNvoPNUcQ9IWRhW8u41glMSuZeTvsYq2rRg==",
}

// unpackWabt returns a folder that holds index.js of the assembler.
func unpackWabt(ctx context.Context, cache string) (string, error) {
	pkg, err := npm.Fetch(ctx, filepath.Join(cache, "npm"), wabt)
	if err != nil {
		return "", err
	}
	m, err := untar(pkg)
	if err != nil {
		return "", err
	}
	script, err := m.take("package/index.js", wabtScript)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "wabt-"+wabt.Version+"-"+wabtScript[:16])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, write(filepath.Join(dir, "index.js"), script)
}

// wabtScript is the sha256 of the assembler's one file.
const wabtScript = "cecf06ab5c65c3b7c05bafe601bbba61a45e4939889c5c51351e8817ac06f48d"
