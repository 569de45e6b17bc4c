package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func benchTree(b *testing.B, m Mount) (*tree, string) {
	base := files(b, map[string]string{"a/b/c/f": "text"})
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(base, fmt.Sprintf("a/b/n%04d", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "big"), make([]byte, 1<<20), 0o644); err != nil {
		b.Fatal(err)
	}
	m.Guest, m.Dir = "/w", base
	return newTree(b, Config{Mounts: []Mount{m}, Events: func(Event) {}}), base
}

var benchMounts = []struct {
	name  string
	mount Mount
}{
	{"immutable", Mount{Access: ReadOnly, Immutable: true}},
	{"read", Mount{Access: ReadOnly}},
	{"write", Mount{Access: ReadWrite}},
}

func BenchmarkOpen(b *testing.B) {
	for _, m := range benchMounts {
		b.Run(m.name, func(b *testing.B) {
			tr, _ := benchTree(b, m.mount)
			b.ReportAllocs()
			for b.Loop() {
				o, e := tr.root.Open("w/a/b/c/f", OpenOptions{Read: true, Follow: true})
				if e != Success {
					b.Fatal(e)
				}
				o.File.Close()
			}
		})
	}
	b.Run("native", func(b *testing.B) {
		_, base := benchTree(b, benchMounts[0].mount)
		for b.Loop() {
			f, err := os.Open(filepath.Join(base, "a/b/c/f"))
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("os.Root", func(b *testing.B) {
		_, base := benchTree(b, benchMounts[0].mount)
		root, err := os.OpenRoot(base)
		if err != nil {
			b.Fatal(err)
		}
		defer root.Close()
		for b.Loop() {
			f, err := root.Open("a/b/c/f")
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
}

func BenchmarkStatMissing(b *testing.B) {
	for _, m := range benchMounts {
		b.Run(m.name, func(b *testing.B) {
			tr, _ := benchTree(b, m.mount)
			for b.Loop() {
				if _, e := tr.root.StatAt("w/a/b/c/none", true); e != ENOENT {
					b.Fatal(e)
				}
			}
		})
	}
}

func BenchmarkReaddir1000(b *testing.B) {
	for _, m := range benchMounts {
		b.Run(m.name, func(b *testing.B) {
			tr, _ := benchTree(b, m.mount)
			o, e := tr.root.Open("w/a/b", OpenOptions{Read: true, Directory: true})
			if e != Success {
				b.Fatal(e)
			}
			defer o.Dir.Close()
			for b.Loop() {
				if list, _ := o.Dir.Entries(true); len(list) != 1003 {
					b.Fatal(len(list))
				}
			}
		})
	}
	b.Run("native", func(b *testing.B) {
		_, base := benchTree(b, benchMounts[0].mount)
		for b.Loop() {
			if list, _ := os.ReadDir(filepath.Join(base, "a/b")); len(list) != 1001 {
				b.Fatal(len(list))
			}
		}
	})
}

func BenchmarkRead64KiB(b *testing.B) {
	buf := make([]byte, 64<<10)
	tr, base := benchTree(b, benchMounts[1].mount)
	b.Run("mount", func(b *testing.B) {
		o, e := tr.root.Open("w/big", OpenOptions{Read: true})
		if e != Success {
			b.Fatal(e)
		}
		defer o.File.Close()
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			if n, e := o.File.ReadAt(buf, 0); n != len(buf) {
				b.Fatal(n, e)
			}
		}
	})
	b.Run("native", func(b *testing.B) {
		f, err := os.Open(filepath.Join(base, "big"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			if n, err := f.ReadAt(buf, 0); n != len(buf) {
				b.Fatal(n, err)
			}
		}
	})
}
