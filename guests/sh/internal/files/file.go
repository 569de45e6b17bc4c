package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

const fileOpts = "b,brief i,mime ,mime-type ,mime-encoding L,dereference h,no-dereference f,files-from= F,separator= 0,print0 N,no-pad E " +
	"k,keep-going z,uncompress s,special-files p,preserve-date r,raw e,exclude= m,magic-file= ,extension n,no-buffer S,no-sandbox v,version ,help"

// sniffed is how much of a file is looked at.
const sniffed = 1 << 20

// file tells what files are by their content.
func file(ctx context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Options(fileOpts).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	var brief, follow, fails, noPad bool
	show, separator, null := "", ":", 0
	for _, g := range given {
		switch g.Key {
		case "b":
			brief = true
		case "i":
			show = "i"
		case "mime-type", "mime-encoding":
			if show != "" && show != g.Key {
				show = "i"
				break
			}
			show = g.Key
		case "L":
			follow = true
		case "h":
			follow = false
		case "f":
			text, err := readAll(ctx, c, g.Value)
			if err != nil {
				c.Errorf("cannot open `%s' (%s)", g.Value, cmd.Reason(err))
				return 1
			}
			operands = append(operands, strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })...)
		case "F":
			separator = g.Value
		case "0":
			null++
		case "N":
			noPad = true
		case "E":
			fails = true
		case "help":
			fmt.Fprintln(c.Stdout, "Usage: file [OPTION...] [FILE...]")
			return 0
		case "v":
			fmt.Fprintln(c.Stdout, "file (exthost, after file 5.44)")
			return 0
		case "s", "p", "r", "n", "S": // there are no devices, access times are the host's, names are never changed
		default:
			c.Errorf("option '%s' is not supported", g.Key)
			return 1
		}
	}
	if len(operands) == 0 {
		fmt.Fprintf(c.Stderr, "Usage: file [-bhiLN0] [--mime-type] [--mime-encoding] FILE...\n")
		return 1
	}
	out := c.Buffered()
	defer out.Flush()
	wide := 0
	for _, name := range operands {
		if name == "-" {
			name = "/dev/stdin"
		}
		wide = max(wide, width(name))
	}
	code := 0
	for _, name := range operands {
		cmd.Check(ctx)
		t, err := identify(ctx, c, name, follow)
		if !brief {
			shown := name
			if name == "-" {
				shown = "/dev/stdin"
			}
			out.WriteString(shown)
			if null > 0 {
				out.WriteByte(0)
			}
			if null < 2 {
				out.WriteString(separator)
				if !noPad {
					out.WriteString(strings.Repeat(" ", wide-width(shown)))
				}
				out.WriteByte(' ')
			}
		}
		switch {
		case err != nil:
			fmt.Fprintf(out, "cannot open `%s' (%s)", name, cmd.Reason(err))
			if fails {
				code = 1
			}
		case show == "i":
			out.WriteString(t.mime)
			if t.charset != "" {
				out.WriteString("; charset=" + t.charset)
			}
		case show == "mime-type":
			out.WriteString(t.mime)
		case show == "mime-encoding":
			if t.charset == "" {
				t.charset = "binary"
			}
			out.WriteString(t.charset)
		default:
			out.WriteString(t.text)
		}
		out.WriteByte('\n')
		if null > 1 && brief {
			out.WriteByte(0)
		}
	}
	return code
}

// content is what a file is.
type content struct{ text, mime, charset string }

func binary(text, mime string) content { return content{text, mime, "binary"} }

func identify(ctx context.Context, c *cmd.Call, name string, follow bool) (content, error) {
	if name == "-" {
		head, err := io.ReadAll(io.LimitReader(c.Stdin, sniffed))
		return sniff(head), err
	}
	in, err := linkStatus(c, name)
	if err != nil {
		return content{}, err
	}
	if in.link() {
		to, _ := os.Readlink(c.Path(name))
		behind, err := status(c, name)
		switch {
		case err != nil:
			return content{"broken symbolic link to " + to, "inode/symlink", ""}, nil
		case !follow:
			return binary("symbolic link to "+to, "inode/symlink"), nil
		}
		in = behind
	}
	switch kind(in.Mode()) {
	case 'd':
		return binary("directory", "inode/directory"), nil
	case 'p':
		if !strings.HasPrefix(c.Path(name), "/dev/") {
			return binary("fifo (named pipe)", "inode/fifo"), nil
		}
	case 's':
		return binary("socket", "inode/socket"), nil
	case 'c':
		if !strings.HasPrefix(c.Path(name), "/dev/fd/") && c.Path(name) != "/dev/stdin" {
			return binary("character special", "inode/chardevice"), nil
		}
	case 'b':
		return binary("block special", "inode/blockdevice"), nil
	}
	f, err := c.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(cmd.Reader(ctx, f), sniffed))
	return sniff(head), err
}

// sniff names content by its first bytes.
func sniff(b []byte) content {
	if len(b) == 0 {
		return binary("empty", "inode/x-empty")
	}
	for _, try := range []func([]byte) (content, bool){sniffImage, sniffArchive, sniffMedia, sniffProgram, sniffSimple} {
		if t, ok := try(b); ok {
			// The encoding is told of all that reads as text, pictures of text too.
			if _, t.charset, _ = encodingOf(b); t.charset == "" {
				t.charset = "binary"
			}
			return t
		}
	}
	return sniffText(b)
}

func has(b []byte, at int, sig string) bool {
	return len(b) >= at+len(sig) && string(b[at:at+len(sig)]) == sig
}

// le and be read n bytes at at, 0 behind the end.
func le(b []byte, at, n int) (v uint64) {
	if at < 0 || at+n > len(b) {
		return 0
	}
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[at+i])
	}
	return v
}

func be(b []byte, at, n int) (v uint64) {
	if at < 0 || at+n > len(b) {
		return 0
	}
	for i := range n {
		v = v<<8 | uint64(b[at+i])
	}
	return v
}

func sniffImage(b []byte) (content, bool) {
	switch {
	case has(b, 0, "\x89PNG\r\n\x1a\n"):
		if !has(b, 12, "IHDR") {
			return binary("PNG image data", "image/png"), true
		}
		color := map[byte]string{0: " grayscale", 2: "/color RGB", 3: " colormap", 4: " gray+alpha", 6: "/color RGBA"}[byte(be(b, 25, 1))]
		lace := "non-interlaced"
		if be(b, 28, 1) == 1 {
			lace = "interlaced"
		}
		return binary(fmt.Sprintf("PNG image data, %d x %d, %d-bit%s, %s", be(b, 16, 4), be(b, 20, 4), be(b, 24, 1), color, lace), "image/png"), true
	case has(b, 0, "\xff\xd8\xff"):
		return binary(jpeg(b), "image/jpeg"), true
	case has(b, 0, "GIF87a"), has(b, 0, "GIF89a"):
		return binary(fmt.Sprintf("GIF image data, version %s, %d x %d", b[3:6], le(b, 6, 2), le(b, 8, 2)), "image/gif"), true
	case has(b, 0, "RIFF") && has(b, 8, "WEBP"):
		text := "RIFF (little-endian) data, Web/P image"
		if has(b, 12, "VP8 ") && len(b) >= 30 {
			scale := []string{"none", "5/4", "5/3", "2"}
			w, h := le(b, 26, 2), le(b, 28, 2)
			text += fmt.Sprintf(", VP8 encoding, %dx%d, Scaling: [%s]x[%s], YUV color, decoders should clamp", w&0x3fff, h&0x3fff, scale[w>>14], scale[h>>14])
		}
		return binary(text, "image/webp"), true
	case has(b, 0, "BM") && le(b, 14, 4) == 40:
		text := fmt.Sprintf("PC bitmap, Windows 3.x format, %d x %d x %d", le(b, 18, 4), int32(le(b, 22, 4)), le(b, 28, 2))
		if n := le(b, 34, 4); n > 0 {
			text += fmt.Sprintf(", image size %d", n)
		}
		if n := le(b, 38, 4); n > 0 {
			text += fmt.Sprintf(", resolution %d x %d px/m", n, le(b, 42, 4))
		}
		if n := le(b, 2, 4); n > 0 {
			text += fmt.Sprintf(", cbSize %d", n)
		}
		return binary(text+fmt.Sprintf(", bits offset %d", le(b, 10, 4)), "image/bmp"), true
	case has(b, 0, "BM") && (le(b, 14, 4) == 108 || le(b, 14, 4) == 124):
		return binary("PC bitmap", "image/bmp"), true
	case has(b, 0, "II*\x00"), has(b, 0, "MM\x00*"):
		order, count := "little-endian", le(b, int(le(b, 4, 4)), 2)
		if b[0] == 'M' {
			order, count = "big-endian", be(b, int(be(b, 4, 4)), 2)
		}
		return binary(fmt.Sprintf("TIFF image data, %s, direntries=%d", order, count), "image/tiff"), true
	case has(b, 0, "\x00\x00\x01\x00") && le(b, 4, 2) > 0 && le(b, 4, 2) < 64 && len(b) >= 22 && b[9] == 0 && (le(b, 18, 4) >= 22):
		n := le(b, 4, 2)
		size := func(x byte) int {
			if x == 0 {
				return 256
			}
			return int(x)
		}
		text := fmt.Sprintf("MS Windows icon resource - %d icon", n)
		if n > 1 {
			text += "s"
		}
		return binary(text+fmt.Sprintf(", %dx%d", size(b[6]), size(b[7])), "image/vnd.microsoft.icon"), true
	case has(b, 0, "8BPS"):
		mode := map[uint64]string{0: "bitmap", 1: "grayscale", 2: "indexed", 3: "RGB", 4: "CMYK", 7: "multichannel", 8: "duotone", 9: "lab"}[be(b, 24, 2)]
		return binary(fmt.Sprintf("Adobe Photoshop Image, %d x %d, %s, %dx %d-bit channels", be(b, 18, 4), be(b, 14, 4), mode, be(b, 12, 2), be(b, 22, 2)), "image/vnd.adobe.photoshop"), true
	}
	return content{}, false
}

func jpeg(b []byte) string {
	text := "JPEG image data"
	if has(b, 6, "JFIF\x00") && len(b) >= 18 {
		unit := map[byte]string{0: "aspect ratio", 1: "resolution (DPI)", 2: "resolution (DPCM)"}[b[13]]
		text += fmt.Sprintf(", JFIF standard %d.%02d, %s, density %dx%d, segment length %d", b[11], b[12], unit, be(b, 14, 2), be(b, 16, 2), be(b, 4, 2))
	} else if has(b, 6, "Exif\x00\x00") {
		order, n := "little-endian", le(b, 12+int(le(b, 16, 4)), 2)
		if has(b, 12, "MM") {
			order, n = "big-endian", be(b, 12+int(be(b, 16, 4)), 2)
		}
		text += fmt.Sprintf(", Exif standard: [TIFF image data, %s, direntries=%d]", order, n)
	}
	for at := 2; at+9 < len(b) && b[at] == 0xff; {
		m := b[at+1]
		if m == 0xff {
			at++
			continue
		}
		if m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc {
			how := map[byte]string{0xc0: "baseline", 0xc1: "extended sequential", 0xc2: "progressive"}[m]
			if how != "" {
				text += fmt.Sprintf(", %s, precision %d, %dx%d, components %d", how, b[at+4], be(b, at+7, 2), be(b, at+5, 2), b[at+9])
			}
			break
		}
		if m == 0xd9 || m == 0xda {
			break
		}
		at += 2 + int(be(b, at+2, 2))
	}
	return text
}

func sniffArchive(b []byte) (content, bool) {
	switch {
	case has(b, 0, "PK\x03\x04"):
		return zipContent(b), true
	case has(b, 0, "PK\x05\x06"):
		return binary("Zip archive data (empty)", "application/zip"), true
	case has(b, 0, "\x1f\x8b"):
		return binary(gzipText(b), "application/gzip"), true
	case has(b, 257, "ustar\x00"):
		return binary("POSIX tar archive", "application/x-tar"), true
	case has(b, 257, "ustar  \x00"):
		return binary("POSIX tar archive (GNU)", "application/x-tar"), true
	case has(b, 0, "BZh") && len(b) > 3 && digit(b[3]):
		return binary(fmt.Sprintf("bzip2 compressed data, block size = %c00k", b[3]), "application/x-bzip2"), true
	case has(b, 0, "\xfd7zXZ\x00"):
		check := map[uint64]string{0: "NONE", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}[be(b, 7, 1)]
		return binary("XZ compressed data, checksum "+check, "application/x-xz"), true
	case has(b, 0, "7z\xbc\xaf\x27\x1c") && len(b) > 7:
		return binary(fmt.Sprintf("7-zip archive data, version %d.%d", b[6], b[7]), "application/x-7z-compressed"), true
	case has(b, 0, "Rar!\x1a\x07\x01\x00"):
		return binary("RAR archive data, v5", "application/x-rar"), true
	case has(b, 0, "Rar!\x1a\x07\x00"):
		return binary("RAR archive data, v4", "application/x-rar"), true
	case has(b, 0, "\x28\xb5\x2f\xfd"):
		id := "None"
		if len(b) > 4 && b[4]&3 != 0 {
			n := 1 << (b[4]&3 - 1)
			at := 6
			if b[4]&0x20 != 0 {
				at = 5
			}
			id = fmt.Sprint(le(b, at, n))
		}
		return binary("Zstandard compressed data (v0.8+), Dictionary ID: "+id, "application/zstd"), true
	case has(b, 0, "\x04\x22\x4d\x18"):
		return binary("LZ4 compressed data (v1.4+)", "application/x-lz4"), true
	case has(b, 0, "\x1f\x9d") && len(b) > 2:
		text := "compress'd data"
		if b[2]&0x80 == 0 {
			text += " no block compression"
		}
		return binary(fmt.Sprintf("%s %d bits", text, b[2]&0x1f), "application/x-compress"), true
	case has(b, 0, "!<arch>\ndebian"):
		return binary("Debian binary package", "application/vnd.debian.binary-package"), true
	case has(b, 0, "!<arch>\n"):
		return binary("current ar archive", "application/x-archive"), true
	}
	return content{}, false
}

func zipContent(b []byte) content {
	const office = "application/vnd.openxmlformats-officedocument."
	first, rest := zipName(b, 0)
	if first == "mimetype" && le(b, 8, 2) == 0 {
		mime := string(b[min(len(b), rest):min(len(b), rest+int(min(le(b, 18, 4), 100)))])
		text := map[string]string{
			"application/epub+zip":                                    "EPUB document",
			"application/vnd.oasis.opendocument.text":                 "OpenDocument Text",
			"application/vnd.oasis.opendocument.spreadsheet":          "OpenDocument Spreadsheet",
			"application/vnd.oasis.opendocument.presentation":         "OpenDocument Presentation",
			"application/vnd.oasis.opendocument.graphics":             "OpenDocument Drawing",
			"application/vnd.oasis.opendocument.text-template":        "OpenDocument Text Template",
			"application/vnd.oasis.opendocument.spreadsheet-template": "OpenDocument Spreadsheet Template",
		}[mime]
		if text != "" {
			return binary(text, mime)
		}
	}
	if first == "[Content_Types].xml" || first == "_rels/.rels" || first == "docProps/app.xml" || first == "docProps/core.xml" {
		// The name of a later file tells which.
		for at, n := 0, 0; at >= 0 && at < len(b) && n < 64; n++ {
			name, _ := zipName(b, at)
			switch {
			case strings.HasPrefix(name, "word/"):
				return binary("Microsoft Word 2007+", office+"wordprocessingml.document")
			case strings.HasPrefix(name, "ppt/"):
				return binary("Microsoft PowerPoint 2007+", office+"presentationml.presentation")
			case strings.HasPrefix(name, "xl/"):
				return binary("Microsoft Excel 2007+", office+"spreadsheetml.sheet")
			}
			next := bytes.Index(b[at+4:], []byte("PK\x03\x04"))
			if next < 0 {
				break
			}
			at += 4 + next
		}
		return binary("Microsoft OOXML", "application/octet-stream")
	}
	if first == "META-INF/" || first == "META-INF/MANIFEST.MF" && le(b, 28, 2) >= 4 && le(b, 30+len(first), 2) == 0xcafe {
		return binary("Java archive data (JAR)", "application/java-archive")
	}
	method := map[uint64]string{0: "store", 8: "deflate", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}[le(b, 8, 2)]
	if method == "" {
		method = fmt.Sprintf("[%#x]", le(b, 8, 2))
	}
	v := le(b, 4, 2)
	return binary(fmt.Sprintf("Zip archive data, at least v%d.%d to extract, compression method=%s", v/10, v%10, method), "application/zip")
}

// zipName is the name in the local header at at, and where its data begin.
func zipName(b []byte, at int) (name string, data int) {
	n, extra := int(le(b, at+26, 2)), int(le(b, at+28, 2))
	if at+30+n > len(b) {
		return "", len(b)
	}
	return string(b[at+30 : at+30+n]), at + 30 + n + extra
}

func gzipText(b []byte) string {
	text := "gzip compressed data"
	if len(b) < 10 {
		return text
	}
	at := 10
	if b[3]&4 != 0 {
		at += 2 + int(le(b, at, 2))
	}
	if b[3]&8 != 0 {
		if end := bytes.IndexByte(b[min(at, len(b)):], 0); end >= 0 {
			text += fmt.Sprintf(", was %q", b[at:at+end])
		}
	}
	if t := le(b, 4, 4); t != 0 {
		text += ", last modified: " + stampText(int64(t))
	}
	switch b[8] {
	case 2:
		text += ", max compression"
	case 4:
		text += ", max speed"
	}
	if name := map[byte]string{0: "FAT filesystem (MS-DOS, OS/2, NT)", 3: "Unix", 10: "NTFS filesystem (NT)", 11: "NTFS filesystem (NT)"}[b[9]]; name != "" {
		text += ", from " + name
	}
	return text + fmt.Sprintf(", original size modulo 2^32 %d", le(b, len(b)-4, 4))
}

func sniffMedia(b []byte) (content, bool) {
	switch {
	case has(b, 0, "%PDF-"):
		line := b[5:min(len(b), 16)]
		end := 0
		for end < len(line) && (digit(line[end]) || line[end] == '.') {
			end++
		}
		text := "PDF document, version " + string(line[:end])
		if n := pdfPages(b); n > 0 {
			text += fmt.Sprintf(", %d pages", n)
		}
		return binary(text, "application/pdf"), true
	case has(b, 0, "ID3") && len(b) > 4:
		text := fmt.Sprintf("Audio file with ID3 version 2.%d.%d", b[3], b[4])
		if at := 10 + int(be(b, 6, 1)<<21|be(b, 7, 1)<<14|be(b, 8, 1)<<7|be(b, 9, 1)); at < len(b) && b[at] == 0xff {
			if inner, ok := sniffMedia(b[at:]); ok && inner.mime == "audio/mpeg" {
				return binary(text+", contains: "+inner.text, inner.mime), true
			}
		}
		return binary(text, "application/octet-stream"), true
	case len(b) > 4 && b[0] == 0xff && b[1]&0xfe == 0xfa && b[2]>>4 != 15 && b[2]>>4 != 0:
		rates := []int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
		hz := []string{"44.1", "48", "32", ""}[b[2]>>2&3]
		mode := []string{"Stereo", "JntStereo", "2x Monaural", "Monaural"}[b[3]>>6]
		return binary(fmt.Sprintf("MPEG ADTS, layer III, v1, %3d kbps, %s kHz, %s", rates[b[2]>>4], hz, mode), "audio/mpeg"), true
	case has(b, 4, "ftyp") && len(b) >= 12:
		known := map[string][2]string{
			"isom": {"MP4 Base Media v1 [ISO 14496-12:2003]", "video/mp4"}, "iso2": {"MP4 Base Media v2 [ISO 14496-12:2005]", "video/mp4"},
			"mp41": {"MP4 v1 [ISO 14496-1:ch13]", "video/mp4"}, "mp42": {"MP4 v2 [ISO 14496-14]", "video/mp4"}, "avc1": {"MP4 Base Media with AVC extension", "video/mp4"},
			"iso5": {"MP4 Base Media v5", "video/mp4"}, "iso6": {"MP4 Base Media v6", "video/mp4"}, "dash": {"MPEG v4 system, Dynamic Adaptive Streaming over HTTP", "video/mp4"},
			"qt  ": {"Apple QuickTime movie, Apple QuickTime (.MOV/QT)", "video/quicktime"}, "M4A ": {"Apple iTunes ALAC/AAC-LC (.M4A) Audio", "audio/x-m4a"},
			"M4V ": {"Apple iTunes Video (.M4V) Video", "video/x-m4v"}, "heic": {"HEIF Image HEVC Main or Main Still Picture Profile", "image/heic"},
			"heix": {"HEIF Image HEVC Main 10 Profile", "image/heic"}, "mif1": {"HEIF Image", "image/heif"}, "avif": {"AVIF Image", "image/avif"},
			"3gp4": {"MPEG v4 system, 3GPP", "video/3gpp"}, "3gp5": {"MPEG v4 system, 3GPP", "video/3gpp"},
		}
		if k, ok := known[string(b[8:12])]; ok {
			return binary("ISO Media, "+k[0], k[1]), true
		}
		return binary("ISO Media", "application/octet-stream"), true
	case has(b, 0, "RIFF") && has(b, 8, "WAVE"):
		text := "RIFF (little-endian) data, WAVE audio"
		if has(b, 12, "fmt ") && le(b, 20, 2) == 1 {
			ch := le(b, 22, 2)
			name := fmt.Sprintf("%d channels", ch)
			if ch == 1 {
				name = "mono"
			} else if ch == 2 {
				name = "stereo"
			}
			text += fmt.Sprintf(", Microsoft PCM, %d bit, %s %d Hz", le(b, 34, 2), name, le(b, 24, 4))
		}
		return binary(text, "audio/x-wav"), true
	case has(b, 0, "RIFF") && has(b, 8, "AVI "):
		return binary("RIFF (little-endian) data, AVI", "video/x-msvideo"), true
	case has(b, 0, "OggS"):
		switch {
		case has(b, 28, "\x01vorbis"):
			return binary(fmt.Sprintf("Ogg data, Vorbis audio, %s, ~%d bps", oggRate(b), le(b, 48, 4)), "audio/ogg"), true
		case has(b, 28, "OpusHead"):
			return binary("Ogg data, Opus audio", "audio/ogg"), true
		}
		return binary("Ogg data", "application/ogg"), true
	case has(b, 0, "fLaC") && len(b) >= 26:
		rate := be(b, 18, 3) >> 4
		ch := b[20]>>1&7 + 1
		bits := be(b, 20, 2)>>4&31 + 1
		name := fmt.Sprintf("%d channels", ch)
		if ch == 1 {
			name = "mono"
		} else if ch == 2 {
			name = "stereo"
		}
		length := "length unknown"
		if n := be(b, 21, 5) & (1<<36 - 1); n > 0 {
			length = fmt.Sprintf("%d samples", n)
		}
		khz := strings.TrimSuffix(fmt.Sprintf("%.1f", float64(rate)/1000), ".0")
		return binary(fmt.Sprintf("FLAC audio bitstream data, %d bit, %s, %s kHz, %s", bits, name, khz, length), "audio/flac"), true
	case has(b, 0, "\x1a\x45\xdf\xa3"):
		if bytes.Contains(b[:min(len(b), 64)], []byte("webm")) {
			return binary("WebM", "video/webm"), true
		}
		return binary("Matroska data", "video/x-matroska"), true
	}
	return content{}, false
}

func oggRate(b []byte) string {
	ch := le(b, 39, 1)
	rate := fmt.Sprintf("%d Hz", le(b, 40, 4))
	switch ch {
	case 1:
		return "mono, " + rate
	case 2:
		return "stereo, " + rate
	}
	return rate
}

// pdfPages is the count of the first page tree in sight.
func pdfPages(b []byte) int {
	at := bytes.Index(b, []byte("/Type/Pages"))
	if at < 0 {
		if at = bytes.Index(b, []byte("/Type /Pages")); at < 0 {
			return 0
		}
	}
	end := min(len(b), at+256)
	i := bytes.Index(b[at:end], []byte("/Count "))
	if i < 0 {
		return 0
	}
	n := 0
	_, _ = fmt.Sscanf(string(b[at+i+7:end]), "%d", &n)
	return n
}

func sniffProgram(b []byte) (content, bool) {
	switch {
	case has(b, 0, "\x7fELF") && len(b) >= 20:
		return elf(b), true
	case has(b, 0, "\x00asm\x01\x00\x00\x00"):
		return binary("WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"), true
	case has(b, 0, "\x00asm"):
		return binary(fmt.Sprintf("WebAssembly (wasm) binary module version %#x", le(b, 4, 4)), "application/wasm"), true
	case has(b, 0, "\xca\xfe\xba\xbe") && be(b, 6, 2) >= 45 && be(b, 6, 2) < 100:
		v := be(b, 6, 2)
		text := fmt.Sprintf("compiled Java class data, version %d.%d", v, be(b, 4, 2))
		if v >= 49 {
			text += fmt.Sprintf(" (Java %s)", map[bool]string{true: "1.", false: ""}[v < 53]+fmt.Sprint(v-44))
		} else {
			text += fmt.Sprintf(" (Java 1.%d)", v-44)
		}
		return binary(text, "application/x-java-applet"), true
	case has(b, 0, "\xca\xfe\xba\xbe") && be(b, 4, 4) > 0 && be(b, 4, 4) < 20:
		return binary(fmt.Sprintf("Mach-O universal binary with %d architectures", be(b, 4, 4)), "application/x-mach-binary"), true
	case has(b, 0, "\xcf\xfa\xed\xfe"):
		cpu := map[uint64]string{0x01000007: "x86_64", 0x0100000c: "arm64"}[le(b, 4, 4)]
		what := map[uint64]string{1: "object", 2: "executable", 6: "dynamically linked shared library", 8: "bundle"}[le(b, 12, 4)]
		return binary(strings.TrimSpace(fmt.Sprintf("Mach-O 64-bit %s %s", cpu, what)), "application/x-mach-binary"), true
	case has(b, 0, "MZ"):
		at := int(le(b, 60, 4))
		if !has(b, at, "PE\x00\x00") {
			return binary("MS-DOS executable", "application/x-dosexec"), true
		}
		kind := "PE32"
		if le(b, at+24, 2) == 0x20b {
			kind = "PE32+"
		}
		what := "executable"
		sub := map[uint64]string{1: " (native)", 2: " (GUI)", 3: " (console)"}[le(b, at+24+68, 2)]
		if le(b, at+22, 2)&0x2000 != 0 {
			what += " (DLL)"
		}
		cpu := map[uint64]string{0x8664: " x86-64", 0x14c: " Intel 80386", 0xaa64: " Aarch64"}[le(b, at+4, 2)]
		return binary(kind+" "+what+sub+cpu+", for MS Windows", "application/vnd.microsoft.portable-executable"), true
	}
	return content{}, false
}

func elf(b []byte) content {
	get := le
	order := "LSB"
	if b[5] == 2 {
		get, order = be, "MSB"
	}
	bits := map[byte]string{1: "32-bit", 2: "64-bit"}[b[4]]
	wide := b[4] == 2
	mime, what := "application/x-executable", "executable"
	machine := map[uint64]string{3: "Intel 80386", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V", 8: "MIPS", 21: "64-bit PowerPC or cisco 7500", 22: "IBM S/390"}[get(b, 18, 2)]
	var interp, dynamic bool
	interpreter := ""
	phoff, size, count := int(get(b, 28, 4)), 32, int(get(b, 44, 2))
	if wide {
		phoff, size, count = int(get(b, 32, 8)), 56, int(get(b, 56, 2))
	}
	for i := range min(count, 64) {
		at := phoff + i*size
		kind := get(b, at, 4)
		off, n := int(get(b, at+4, 4)), int(get(b, at+16, 4))
		if wide {
			off, n = int(get(b, at+8, 8)), int(get(b, at+32, 8))
		}
		switch kind {
		case 2:
			dynamic = true
		case 3:
			interp = true
			if off >= 0 && n > 0 && n < 4096 && off+n <= len(b) {
				interpreter = strings.TrimRight(string(b[off:off+n]), "\x00")
			}
		}
	}
	switch get(b, 16, 2) {
	case 1:
		what, mime = "relocatable", "application/x-object"
	case 3:
		what, mime = "shared object", "application/x-sharedlib"
		if interp {
			what, mime = "pie executable", "application/x-pie-executable"
		}
	case 4:
		what, mime = "core file", "application/x-coredump"
	}
	text := fmt.Sprintf("ELF %s %s %s, %s, version %d (%s)", bits, order, what, machine, get(b, 20, 4), map[byte]string{0: "SYSV", 3: "GNU/Linux"}[b[7]])
	switch {
	case dynamic || interp:
		text += ", dynamically linked"
	case get(b, 16, 2) != 1:
		text += ", statically linked"
	}
	if interpreter != "" {
		text += ", interpreter " + interpreter
	}
	return binary(text, mime)
}

func sniffSimple(b []byte) (content, bool) {
	if has(b, 0, "SQLite format 3\x00") {
		return binary("SQLite 3.x database"+sqlite(b), "application/vnd.sqlite3"), true
	}
	if has(b, 0, "{\\rtf") {
		text := "Rich Text Format data"
		if len(b) > 5 && digit(b[5]) {
			text += fmt.Sprintf(", version %c", b[5])
		}
		for _, set := range []string{"ansi", "mac", "pc"} {
			if bytes.Contains(b[:min(len(b), 32)], []byte("\\"+set)) {
				text += ", " + map[string]string{"ansi": "ANSI", "mac": "Apple Macintosh", "pc": "IBM PC"}[set]
				break
			}
		}
		return content{text, "text/rtf", "us-ascii"}, true
	}
	for _, m := range []struct {
		at              int
		sig, text, mime string
	}{
		{0, "OTTO\x00", "OpenType font data", "application/vnd.ms-opentype"},
		{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE 2 Compound Document", "application/octet-stream"},
		{0, "PAR1", "Apache Parquet", "application/octet-stream"},
	} {
		if has(b, m.at, m.sig) {
			return binary(m.text, m.mime), true
		}
	}
	switch {
	case has(b, 0, "wOFF"), has(b, 0, "wOF2"):
		text, mime := "Web Open Font Format", "font/woff"
		if b[3] == '2' {
			text, mime = "Web Open Font Format (Version 2)", "font/woff2"
		}
		if be(b, 4, 4) == 0x10000 {
			text += ", TrueType"
		} else if has(b, 4, "OTTO") {
			text += ", CFF"
		}
		return binary(fmt.Sprintf("%s, length %d", text, be(b, 8, 4)), mime), true
	case has(b, 0, "PACK") && be(b, 4, 4) == 2:
		return binary(fmt.Sprintf("Git pack, version 2, %d objects", be(b, 8, 4)), "application/x-git"), true
	case has(b, 0, "\x93NUMPY") && len(b) > 9:
		return content{fmt.Sprintf("NumPy array, version %d.%d, header length %d", b[6], b[7], le(b, 8, 2)), "application/octet-stream", "binary"}, true
	case has(b, 0, "%!PS-Adobe-") && len(b) > 14:
		return content{"PostScript document text conforming DSC level " + string(b[11:14]), "application/postscript", "us-ascii"}, true
	}
	return content{}, false
}

func sqlite(b []byte) string {
	enc := map[uint64]string{1: "UTF-8", 2: "UTF-16 little endian", 3: "UTF-16 big endian"}[be(b, 56, 4)]
	text := fmt.Sprintf(", last written using SQLite version %d, file counter %d, database pages %d, cookie %#x, schema %d", be(b, 96, 4), be(b, 24, 4), be(b, 28, 4), be(b, 40, 4), be(b, 44, 4))
	if be(b, 40, 4) == 0 {
		text = strings.Replace(text, "cookie 0x0", "cookie 0", 1)
	}
	if n := be(b, 48, 4); n > 0 {
		text += fmt.Sprintf(", cache page size %d", n)
	}
	if n := be(b, 52, 4); n > 0 {
		text += fmt.Sprintf(", largest root page %d", n)
	}
	if enc != "" {
		text += ", " + enc
	}
	return text + fmt.Sprintf(", version-valid-for %d", be(b, 92, 4))
}
