// Package npm gets one pinned package through the npm client, as npm's own configuration says.
package npm

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const maxPackage = 256 << 20 // bytes of a package file that are read

// Package is a pinned package.
type Package struct {
	Name      string
	Version   string
	Integrity string // "sha512-…", base64
}

// Fetch returns the package file, a gzipped tar archive, from the folder cache or else from the npm client.
//
// The client runs "npm pack" with scripts off in an empty folder, so that only the user's own npm configuration
// counts. Nothing of the package is looked at before its sha512 fits p.Integrity, also when it comes from the cache.
// The cache holds one file for each digest and is made when missing.
func Fetch(ctx context.Context, cache string, p Package) ([]byte, error) {
	want, err := p.sum()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cache, hex.EncodeToString(want)+".tgz")
	if b, err := read(file); err == nil && fits(b, want) {
		return b, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	b, err := pack(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", p.Name, p.Version, err)
	}
	if !fits(b, want) {
		got := sha512.Sum512(b)
		return nil, fmt.Errorf("%s@%s: the package file is sha512-%s, pinned is %s", p.Name, p.Version,
			base64.StdEncoding.EncodeToString(got[:]), p.Integrity)
	}
	return b, keep(file, b)
}

// Digest returns the pinned sha512 of the package file in hexadecimal, or "" when the pin is not one.
func (p Package) Digest() string {
	sum, err := p.sum()
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

func (p Package) sum() ([]byte, error) {
	text, ok := strings.CutPrefix(p.Integrity, "sha512-")
	sum, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(sum) != sha512.Size {
		return nil, fmt.Errorf("%s@%s: integrity %q is no sha512", p.Name, p.Version, p.Integrity)
	}
	return sum, nil
}

func fits(b, want []byte) bool {
	got := sha512.Sum512(b)
	return bytes.Equal(got[:], want)
}

// pack has the client write the package file into a fresh folder and reads it.
func pack(ctx context.Context, p Package) ([]byte, error) {
	client, err := exec.LookPath("npm")
	if err != nil {
		return nil, errors.New("npm is not installed; it comes with Node.js (Debian: apt-get install npm)")
	}
	dir, err := os.MkdirTemp("", "exthost-npm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, client, "pack", p.Name+"@"+p.Version, "--ignore-scripts", "--loglevel=error")
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack: %w\n%s", err, bytes.TrimSpace(out.Bytes()))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("npm pack wrote %d package files, want one", len(files))
	}
	return read(files[0])
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPackage+1))
	if err == nil && len(b) > maxPackage {
		err = fmt.Errorf("package file is over %d bytes", maxPackage)
	}
	return b, err
}

// keep writes b to file in one step.
func keep(file string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".npm-")
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
