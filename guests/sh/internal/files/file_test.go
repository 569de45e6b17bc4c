package files

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	enc "encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func zipOf(t *testing.T, method uint16, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, n := range names {
		name, text, _ := strings.Cut(n, "=")
		h := &zip.FileHeader{Name: name, Method: method, ReaderVersion: 20}
		body := []byte(text)
		h.UncompressedSize64, h.CompressedSize64 = uint64(len(body)), uint64(len(body))
		f, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipOf(t *testing.T, name string, when int64) string {
	t.Helper()
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Name, w.OS = name, 3
	if when != 0 {
		w.ModTime = time.Unix(when, 0)
	}
	if _, err := w.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func u16(v uint16) string { return string(enc.LittleEndian.AppendUint16(nil, v)) }
func u32(v uint32) string { return string(enc.LittleEndian.AppendUint32(nil, v)) }

// TestFileNamesContent compares file with its expectations, and those with the tool of the machine where it is.
func TestFileNamesContent(t *testing.T) {
	png := func(rest string) string {
		return "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02" + rest + "\x00\x00\x00\x00"
	}
	pad := strings.Repeat("\x00", 512)
	tests := []struct{ content, text, mime string }{
		{"", "empty", "inode/x-empty; charset=binary"},
		{"hello world\n", "ASCII text", "text/plain; charset=us-ascii"},
		{"hello", "ASCII text, with no line terminators", "text/plain; charset=us-ascii"},
		{"h\u00e9llo\n", "Unicode text, UTF-8 text", "text/plain; charset=utf-8"},
		{"\xef\xbb\xbfhello\n", "Unicode text, UTF-8 (with BOM) text", "text/plain; charset=utf-8"},
		{"h\xe9llo\n", "ISO-8859 text", "text/plain; charset=iso-8859-1"},
		{"a\r\nb\r\n", "ASCII text, with CRLF line terminators", "text/plain; charset=us-ascii"},
		{"a\r\nb\n", "ASCII text, with CRLF, LF line terminators", "text/plain; charset=us-ascii"},
		{"a\rb\r", "ASCII text, with CR line terminators", "text/plain; charset=us-ascii"},
		{"\xff\xfeh\x00i\x00\n\x00", "Unicode text, UTF-16, little-endian text", "text/plain; charset=utf-16le"},
		{"\xfe\xff\x00h\x00i\x00\n", "Unicode text, UTF-16, big-endian text", "text/plain; charset=utf-16be"},
		{strings.Repeat("\x00", 100), "data", "application/octet-stream; charset=binary"},
		{strings.Repeat("x", 400) + "\n", "ASCII text, with very long lines (400)", "text/plain; charset=us-ascii"},
		{"\x1b[31mred\x1b[0m\n", "ASCII text, with escape sequences", "text/plain; charset=us-ascii"},
		{"{\"a\": 1, \"b\": [1,2,3]}\n", "JSON text data", "application/json; charset=us-ascii"},
		{"[1,2,3]\n", "JSON text data", "application/json; charset=us-ascii"},
		{"{\"a\":1}\n{\"a\":2}\n", "New Line Delimited JSON text data", "application/x-ndjson; charset=us-ascii"},
		{"{\"a\": 1, \n", "ASCII text", "text/plain; charset=us-ascii"},
		{"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a/>\n", "XML 1.0 document, ASCII text", "text/xml; charset=us-ascii"},
		{"<!DOCTYPE html>\n<html><body>x</body></html>\n", "HTML document, ASCII text", "text/html; charset=us-ascii"},
		{"<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n", "SVG Scalable Vector Graphics image", "image/svg+xml; charset=us-ascii"},
		{"#!/bin/sh\necho\n", "POSIX shell script, ASCII text executable", "text/x-shellscript; charset=us-ascii"},
		{"#!/usr/bin/env bash\necho\n", "Bourne-Again shell script, ASCII text executable", "text/x-shellscript; charset=us-ascii"},
		{"#!/usr/bin/env python3\nprint(1)\n", "Python script, ASCII text executable", "text/x-script.python; charset=us-ascii"},
		{"#!/usr/bin/env node\nconsole.log(1)\n", "Node.js script executable, ASCII text", "application/javascript; charset=us-ascii"},
		{"#!/usr/bin/perl\nprint 1;\n", "Perl script text executable", "text/x-perl; charset=us-ascii"},
		{"#!/usr/bin/env ruby\nputs 1\n", "Ruby script, ASCII text executable", "text/x-ruby; charset=us-ascii"},
		{"#!/usr/bin/foo\nprint\n", "a /usr/bin/foo script, ASCII text executable", "text/plain; charset=us-ascii"},
		{"import os\n\ndef main():\n    print(1)\n", "Python script, ASCII text executable", "text/x-script.python; charset=us-ascii"},
		{"#include <stdio.h>\nint main(void){return 0;}\n", "C source, ASCII text", "text/x-c; charset=us-ascii"},
		{"a,b,c\n1,2,3\n4,5,6\n", "CSV text", "text/csv; charset=us-ascii"},
		{"# Title\n\ntext\n", "ASCII text", "text/plain; charset=us-ascii"},
		{"--- a\t2020-01-01\n+++ b\t2020-01-01\n@@ -1 +1 @@\n-a\n+b\n", "unified diff output, ASCII text", "text/x-diff; charset=us-ascii"},
		{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "PEM certificate", "text/plain; charset=us-ascii"},
		{png("\x08\x06\x00\x00\x00"), "PNG image data, 3 x 2, 8-bit/color RGBA, non-interlaced", "image/png; charset=binary"},
		{png("\x08\x00\x00\x00\x01"), "PNG image data, 3 x 2, 8-bit grayscale, interlaced", "image/png; charset=binary"},
		{png("\x04\x03\x00\x00\x00"), "PNG image data, 3 x 2, 4-bit colormap, non-interlaced", "image/png; charset=binary"},
		{"GIF89a" + u16(10) + u16(20) + "\x80\x00\x00" + pad, "GIF image data, version 89a, 10 x 20", "image/gif; charset=binary"},
		{"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x01\x00\x48\x00\x48\x00\x00\xff\xc0\x00\x11\x08\x00\x14\x00\x0a\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xd9",
			"JPEG image data, JFIF standard 1.01, resolution (DPI), density 72x72, segment length 16, baseline, precision 8, 10x20, components 3", "image/jpeg; charset=binary"},
		{"\xff\xd8\xff\xdb\x00\x04\x00\x00\xff\xd9", "JPEG image data", "image/jpeg; charset=binary"},
		{"RIFF" + u32(30) + "WEBPVP8 " + u32(18) + "\x30\x01\x00\x9d\x01\x2a\x10\x00\x20\x00" + pad[:8],
			"RIFF (little-endian) data, Web/P image, VP8 encoding, 16x32, Scaling: [none]x[none], YUV color, decoders should clamp", "image/webp; charset=binary"},
		{"BM" + u32(122) + u32(0) + u32(54) + u32(40) + u32(4) + u32(5) + u16(1) + u16(24) + u32(0) + u32(68) + pad[:84],
			"PC bitmap, Windows 3.x format, 4 x 5 x 24, image size 68, cbSize 122, bits offset 54", "image/bmp; charset=binary"},
		{"RIFF" + u32(36) + "WAVEfmt " + u32(16) + u16(1) + u16(2) + u32(44100) + u32(176400) + u16(4) + u16(16) + "data" + u32(0),
			"RIFF (little-endian) data, WAVE audio, Microsoft PCM, 16 bit, stereo 44100 Hz", "audio/x-wav; charset=binary"},
		{"%PDF-1.7\n%\xe2\xe3\n", "PDF document, version 1.7", "application/pdf; charset=iso-8859-1"},
		{"%PDF-1.4\n1 0 obj\n<</Type/Pages/Count 3>>\nendobj\n", "PDF document, version 1.4, 3 pages", "application/pdf; charset=us-ascii"},
		{"ID3\x03\x00\x00\x00\x00\x00\x0a" + pad[:20], "Audio file with ID3 version 2.3.0", "application/octet-stream; charset=binary"},
		{"ID3\x03\x00\x00\x00\x00\x00\x0a" + pad[:10] + "\xff\xfb\x90\x64" + pad, "Audio file with ID3 version 2.3.0, contains: MPEG ADTS, layer III, v1, 128 kbps, 44.1 kHz, JntStereo", "audio/mpeg; charset=binary"},
		{"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41", "ISO Media, MP4 Base Media v1 [ISO 14496-12:2003]", "video/mp4; charset=binary"},
		{"\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00qt  ", "ISO Media, Apple QuickTime movie, Apple QuickTime (.MOV/QT)", "video/quicktime; charset=binary"},
		{"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm\x42\x87\x81\x04", "WebM", "video/webm; charset=binary"},
		{"\x00asm\x01\x00\x00\x00", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm; charset=binary"},
		{"\xca\xfe\xba\xbe\x00\x00\x00\x34", "compiled Java class data, version 52.0 (Java 1.8)", "application/x-java-applet; charset=binary"},
		{"7z\xbc\xaf\x27\x1c\x00\x04", "7-zip archive data, version 0.4", "application/x-7z-compressed; charset=binary"},
		{"\xfd7zXZ\x00\x00\x04", "XZ compressed data, checksum CRC64", "application/x-xz; charset=binary"},
		{"BZh91AY&SY", "bzip2 compressed data, block size = 900k", "application/x-bzip2; charset=us-ascii"},
		{gzipOf(t, "", 0), "gzip compressed data, max compression, from Unix, original size modulo 2^32 5", "application/gzip; charset=binary"},
		{gzipOf(t, "a", 1700000000), `gzip compressed data, was "a", last modified: Tue Nov 14 22:13:20 2023, max compression, from Unix, original size modulo 2^32 5`, "application/gzip; charset=binary"},
		{zipOf(t, 0, "a.txt=hi"), "Zip archive data, at least v2.0 to extract, compression method=store", "application/zip; charset=binary"},
		{zipOf(t, 0), "Zip archive data (empty)", "application/zip; charset=binary"},
		{zipOf(t, 0, "[Content_Types].xml=x", "_rels/.rels=x", "word/document.xml=x"), "Microsoft Word 2007+", "application/vnd.openxmlformats-officedocument.wordprocessingml.document; charset=binary"},
		{zipOf(t, 0, "[Content_Types].xml=x", "_rels/.rels=x", "xl/workbook.xml=x"), "Microsoft Excel 2007+", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet; charset=binary"},
		{zipOf(t, 0, "mimetype=application/epub+zip"), "EPUB document", "application/epub+zip; charset=binary"},
		{"SQLite format 3\x00" + "\x10\x00\x01\x01\x00\x40\x20\x20\x00\x00\x00\x01\x00\x00\x00\x01" + pad[:16] + "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01" + pad[:40],
			"SQLite 3.x database, last written using SQLite version 0, file counter 1, database pages 1, cookie 0, schema 0, cache page size 1, largest root page 1, UTF-8, version-valid-for 0", "application/vnd.sqlite3; charset=binary"},
	}
	// What file says changes from release to release.
	tool := "file"
	if out, err := exec.Command(tool, "--version").Output(); err != nil || !strings.HasPrefix(string(out), "file-5.44\n") {
		tool = ""
		if os.Getenv("REQUIRE_SHELLS") != "" {
			t.Errorf("file 5.44 is not there: %v", err)
		}
	}
	dir := t.TempDir()
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, form := range []struct{ flag, want string }{{"-b", tt.text}, {"-bi", tt.mime}} {
				r := cmdtest.Run(t, Commands, dir, "", "file", form.flag, "f")
				if r.Stdout != form.want+"\n" || r.Code != 0 {
					t.Errorf("file %s: got %q (%d)\nwant %q", form.flag, r.Stdout, r.Code, form.want)
				}
				if tool == "" {
					continue
				}
				c := exec.Command(tool, form.flag, "f")
				c.Dir, c.Env = dir, []string{"LC_ALL=C.UTF-8", "TZ=UTC"}
				if out, err := c.Output(); err != nil || strings.TrimSpace(string(out)) != form.want {
					t.Errorf("the tool says of file %s: %s (%v)\nexpected %s", form.flag, out, err, form.want)
				}
			}
		})
	}
}

// FuzzSniff: whatever a file holds, it is something, and printable.
func FuzzSniff(f *testing.F) {
	for _, seed := range []string{"", "PK\x03\x04", "\x7fELF\x02\x01\x01", "\xff\xd8\xff\xe0", "#!", "{", "RIFF\x00\x00\x00\x00WEBPVP8 ", "MZ", "\x1f\x8b", "%PDF-", "II*\x00\xff\xff\xff\xff", "OggS", "fLaC", "\x28\xb5\x2f\xfd"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if c := sniff(b); c.text == "" || c.mime == "" {
			t.Fatalf("%q is nothing: %+v", b, c)
		}
	})
}

// FuzzFind: no expression makes find panic, and what it complains of ends it with 1.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"-name x", "( -type f -o -type d ) -print", "! ! -true", "-exec echo {} +", "-printf %p%T@%q\\0", "-regex [", "-size +1k", "-newermt now", "-perm /u+x", ", ,", "-not", "-prune -o -quit"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o755), os.WriteFile(filepath.Join(dir, "d", "f"), nil, 0o644)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		for _, a := range args {
			// What changes files is not for a fuzzer.
			if a == "-delete" || strings.HasPrefix(a, "-fprint") || a == "-fls" || !strings.HasPrefix(a, "-") && strings.Contains(a, "/") {
				t.Skip()
			}
		}
		r := cmdtest.Run(t, map[string]cmd.Func{"find": find}, dir, "", append([]string{"find", "d"}, args...)...)
		if r.Code != 0 && r.Stderr == "" && !strings.Contains(line, "-exec") {
			t.Fatalf("find d %q fails with %d and without a word", args, r.Code)
		}
	})
}
