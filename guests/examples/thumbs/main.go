// Command thumbs writes small PNG copies of pictures. It is an example of an extension that is one WebAssembly module:
// an ordinary Go program, built with
//
//	GOOS=wasip1 GOARCH=wasm go build -o thumbs.wasm ./guests/examples/thumbs
//
// that knows nothing of exthost. Run natively it does the same.
//
// Exit code 0: all were written; 1: at least one was not; 2: bad usage.
package main

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const maxPixels = 50_000_000 // a larger picture is refused from its header

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("thumbs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.Int("size", 128, "longer side in pixels, 1 to 1024")
	out := flags.String("out", "thumbs", "folder for the thumbnails, made if missing")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() == 0 || *size < 1 || *size > 1024 {
		fmt.Fprintln(stderr, "usage: thumbs [-size 128] [-out thumbs] PICTURE...")
		return 2
	}
	code := 0
	for _, file := range flags.Args() {
		target, small, err := thumbnail(file, *out, *size)
		if err != nil {
			fmt.Fprintf(stderr, "thumbs: %v\n", err)
			code = 1
			continue
		}
		fmt.Fprintf(stdout, "%s: %dx%d\n", target, small.Dx(), small.Dy())
	}
	return code
}

// thumbnail writes the copy of file below dir and returns its name and bounds.
func thumbnail(file, dir string, size int) (string, image.Rectangle, error) {
	picture, err := load(file)
	if err != nil {
		return "", image.Rectangle{}, err
	}
	small := shrink(picture, size)
	target := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))+".png")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", image.Rectangle{}, err
	}
	f, err := os.Create(target)
	if err != nil {
		return "", image.Rectangle{}, err
	}
	if err := png.Encode(f, small); err != nil {
		f.Close()
		return "", image.Rectangle{}, err
	}
	return target, small.Bounds(), f.Close()
}

func load(file string) (image.Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if head.Width <= 0 || head.Height <= 0 || head.Width > maxPixels/head.Height {
		return nil, fmt.Errorf("%s: %dx%d is too large", file, head.Width, head.Height)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	picture, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return picture, nil
}

// shrink scales picture so that its longer side is size at most: each pixel is the mean of those that it covers.
func shrink(picture image.Image, size int) *image.NRGBA64 {
	b := picture.Bounds()
	w, h := b.Dx(), b.Dy()
	if longer := max(w, h); longer > size {
		w, h = max(1, w*size/longer), max(1, h*size/longer)
	}
	small := image.NewNRGBA64(image.Rect(0, 0, w, h))
	for y := range h {
		top, bottom := span(y, h, b.Dy())
		for x := range w {
			left, right := span(x, w, b.Dx())
			small.Set(x, y, mean(picture, image.Rect(left, top, right, bottom).Add(b.Min)))
		}
	}
	return small
}

// span is the range of old coordinates that new coordinate i of n covers, of old in all.
func span(i, n, old int) (int, int) { return i * old / n, (i + 1) * old / n }

func mean(picture image.Image, area image.Rectangle) color.Color {
	var r, g, b, a uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			pr, pg, pb, pa := picture.At(x, y).RGBA()
			r, g, b, a = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa)
		}
	}
	n := uint64(area.Dx() * area.Dy())
	return color.RGBA64{R: uint16(r / n), G: uint16(g / n), B: uint16(b / n), A: uint16(a / n)}
}
