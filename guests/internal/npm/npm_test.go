package npm

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const content = "a package file"

var pinned = Package{Name: "@a/b", Version: "1.0.0", Integrity: integrity(content)}

func integrity(text string) string {
	sum := sha512.Sum512([]byte(text))
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// client puts an npm into PATH that notes its arguments and folder in log and writes text as the package file.
func client(t *testing.T, text string) (log string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in client is a shell script")
	}
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$@\" > '" + log + "'\nls >> '" + log + "'\nprintf '%s' '" + text + "' > a-b-1.0.0.tgz\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return log
}

func TestFetchAsksTheClientOnceAndThenTheCache(t *testing.T) {
	log, cache := client(t, content), filepath.Join(t.TempDir(), "npm")
	for range 2 {
		b, err := Fetch(t.Context(), cache, pinned)
		if err != nil || string(b) != content {
			t.Fatalf("got %q, %v", b, err)
		}
		t.Setenv("PATH", "")
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "pack @a/b@1.0.0 --ignore-scripts --loglevel=error\n"; string(said) != want {
		t.Errorf("npm was called as %q, want %q in an empty folder", said, want)
	}
	if _, err := os.Stat(filepath.Join(cache, pinned.Digest()+".tgz")); err != nil {
		t.Error(err)
	}
}

func TestFetchRefusesAnotherPackageFile(t *testing.T) {
	client(t, "something else")
	cache := t.TempDir()
	_, err := Fetch(t.Context(), cache, pinned)
	if err == nil || !strings.Contains(err.Error(), integrity("something else")) || !strings.Contains(err.Error(), pinned.Integrity) {
		t.Errorf("got %v, want an error with both digests", err)
	}
	if left, _ := os.ReadDir(cache); len(left) != 0 {
		t.Errorf("the cache holds %v", left)
	}
}

func TestFetchReplacesADamagedCacheFile(t *testing.T) {
	client(t, content)
	cache := t.TempDir()
	file := filepath.Join(cache, pinned.Digest()+".tgz")
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Fetch(t.Context(), cache, pinned); err != nil || string(b) != content {
		t.Fatalf("got %q, %v", b, err)
	}
	if b, _ := os.ReadFile(file); !bytes.Equal(b, []byte(content)) {
		t.Errorf("the cache holds %q", b)
	}
}

func TestFetchErrorsSayWhatToDo(t *testing.T) {
	t.Setenv("PATH", "")
	for name, c := range map[string]struct {
		p    Package
		want string
	}{
		"no client":    {pinned, "npm is not installed"},
		"no sha512":    {Package{"a", "1", "sha1-AAAA"}, "is no sha512"},
		"bad base64":   {Package{"a", "1", "sha512-AAAA"}, "is no sha512"},
		"no integrity": {Package{"a", "1", ""}, "is no sha512"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Fetch(t.Context(), t.TempDir(), c.p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
