package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chess writes a picture whose 2x2 blocks are one white, one black pixel in each row.
func chess(t *testing.T, w, h int) string {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetGray(x, y, color.Gray{Y: uint8(255 * ((x + y) % 2))})
		}
	}
	file := filepath.Join(t.TempDir(), "chess.png")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, m); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestThumbnailKeepsTheShapeAndAverages(t *testing.T) {
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-size", "32", "-out", out, chess(t, 128, 64)}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	f, err := os.Open(filepath.Join(out, "chess.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bounds(); b.Dx() != 32 || b.Dy() != 16 {
		t.Errorf("thumbnail is %v, want 32x16", b)
	}
	if r, _, _, a := m.At(5, 5).RGBA(); r>>8 != 127 || a != 0xffff {
		t.Errorf("a mixed area became %d with alpha %d, want 127, opaque", r>>8, a)
	}
}

func TestSmallPicturesAreNotEnlarged(t *testing.T) {
	if b := shrink(image.NewGray(image.Rect(0, 0, 3, 1)), 128).Bounds(); b.Dx() != 3 || b.Dy() != 1 {
		t.Errorf("got %v, want 3x1", b)
	}
	if b := shrink(image.NewGray(image.Rect(0, 0, 1000, 1)), 10).Bounds(); b.Dx() != 10 || b.Dy() != 1 {
		t.Errorf("got %v, want 10x1", b)
	}
}

func TestExitCodes(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.png")
	if err := os.WriteFile(bad, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"no picture named":   {nil, 2, "usage"},
		"size out of range":  {[]string{"-size", "0", bad}, 2, "usage"},
		"unknown flag":       {[]string{"-x"}, 2, "not defined"},
		"not a picture":      {[]string{bad}, 1, "unknown format"},
		"file that is not":   {[]string{bad + "x"}, 1, "no such file"},
		"header over bounds": {[]string{huge(t)}, 1, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.text) {
				t.Errorf("exit code %d, %q; want %d, %q", code, stderr.String(), c.code, c.text)
			}
		})
	}
}

// huge is a GIF of a few bytes that claims to be 65535 x 65535.
func huge(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "huge.gif")
	if err := os.WriteFile(file, []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
