package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// readFull fills p as far as r has something.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

func truncate(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "c,no-create o,io-blocks r,reference= s,size=", "OPTION... FILE...", 1)
	if !ok {
		return code
	}
	var noCreate, blocks, has, relative bool
	var size int64
	var ref *info
	how := byte(0)
	for _, g := range given {
		switch g.Key {
		case "c":
			noCreate = true
		case "o":
			blocks = true
		case "r":
			in, err := status(c, g.Value)
			if err != nil {
				c.Errorf("cannot stat %s: %s", quote(g.Value), cmd.Reason(err))
				return 1
			}
			ref = in
		case "s":
			text := strings.TrimLeft(g.Value, " ")
			if text != "" && strings.IndexByte("<>/%", text[0]) >= 0 {
				how, text = text[0], strings.TrimLeft(text[1:], " ")
			}
			sign := int64(1)
			if text != "" && (text[0] == '+' || text[0] == '-') {
				if how != 0 {
					return usage(c, "multiple relative modifiers specified")
				}
				if how = '+'; text[0] == '-' {
					sign = -1
				}
				text = text[1:]
			}
			var n int64
			ok := false
			if digits := len(text) - len(strings.TrimLeft(text, "0123456789")); digits > 0 {
				var factor int64
				factor, ok = unitOf(text[digits:])
				var err error
				if n, err = strconv.ParseInt(text[:digits], 10, 64); err != nil || ok && n > (1<<63-1)/factor {
					ok = false
				}
				n *= factor
			}
			if !ok {
				c.Errorf("Invalid number: %s", cmd.Quote(g.Value))
				return 1
			}
			if (how == '/' || how == '%') && n == 0 {
				c.Errorf("division by zero")
				return 1
			}
			size, has, relative = n*sign, true, how != 0
		}
	}
	switch {
	case !has && ref == nil:
		return usage(c, "you must specify either ‘--size’ or ‘--reference’")
	case has && ref != nil && !relative:
		return usage(c, "you must specify a relative ‘--size’ with ‘--reference’")
	case blocks && !has:
		return usage(c, "'--io-blocks' was specified but ‘--size’ was not")
	case len(operands) == 0:
		return usage(c, "missing file operand")
	}
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		flag := os.O_WRONLY | os.O_CREATE
		if noCreate {
			flag = os.O_WRONLY
		}
		f, err := c.OpenFile(name, flag, 0o666&^c.Umask)
		if err != nil {
			if noCreate && errors.Is(err, os.ErrNotExist) {
				continue
			}
			c.Errorf("cannot open %s for writing: %s", quote(name), cmd.Reason(err))
			code = 1
			continue
		}
		err = resize(f, size, how, ref, blocks)
		if failed := f.Close(); err == nil {
			err = failed
		}
		if err != nil {
			c.Errorf("failed to truncate %s: %s", quote(name), cmd.Reason(err))
			code = 1
		}
	}
	return code
}

func resize(f cmd.File, size int64, how byte, ref *info, blocks bool) error {
	in, err := f.Stat()
	if err != nil {
		return err
	}
	have := in.Size()
	if ref != nil {
		have = ref.Size()
	}
	if blocks {
		size *= 4096
	}
	to := size
	switch {
	case ref != nil && how == 0:
		to = have
	case how == '+':
		to = max(0, have+size)
	case how == '<':
		to = min(have, size)
	case how == '>':
		to = max(have, size)
	case how == '/':
		to = have / size * size
	case how == '%':
		to = (have + size - 1) / size * size
	}
	t, ok := f.(interface{ Truncate(int64) error })
	if !ok {
		return syscall.EINVAL
	}
	return t.Truncate(to)
}

// dump is one run of dd.
type dump struct {
	ctx context.Context
	c   *cmd.Call

	ibs, obs                         int64
	count, skip, seek                int64
	countBytes, skipBytes, seekBytes bool
	full, notrunc, upper, lower      bool
	swab, sync, noerror              bool
	excl, nocreat, appends           bool
	status                           string

	in           io.Reader
	out          io.Writer
	inName, name string

	inWhole, inPart, outWhole, outPart, bytes int64
}

// maxBlock bounds the buffers: the guest has little memory.
const maxBlock = 256 << 20

func dd(ctx context.Context, c *cmd.Call) int {
	d := &dump{ctx: ctx, c: c, ibs: 512, obs: 512, count: -1}
	from, to := "", ""
	bs := int64(0)
	for _, a := range c.Args {
		key, value, ok := strings.Cut(a, "=")
		switch {
		case a == "--help":
			fmt.Fprintln(c.Stdout, "Usage: dd [OPERAND]...")
			return 0
		case a == "--version":
			fmt.Fprintln(c.Stdout, "dd (exthost, after GNU coreutils 9.1)")
			return 0
		case a == "--":
			continue
		case !ok:
			return usage(c, "unrecognized operand %s", cmd.Quote(a))
		}
		var n int64
		bytes := false
		switch key {
		case "bs", "ibs", "obs", "cbs", "count", "skip", "iseek", "seek", "oseek":
			if n, bytes, ok = ddNumber(value); !ok {
				c.Errorf("invalid number: %s", cmd.Quote(value))
				return 1
			}
			if strings.HasSuffix(key, "bs") && (n == 0 || n > maxBlock) {
				if n == 0 {
					c.Errorf("invalid number: %s", cmd.Quote(value))
				} else {
					c.Errorf("memory exhausted by input buffer of size %d bytes", n)
				}
				return 1
			}
		}
		switch key {
		case "if":
			from = value
		case "of":
			to = value
		case "bs":
			bs = n
		case "ibs":
			d.ibs = n
		case "obs":
			d.obs = n
		case "cbs":
			c.Errorf("conversion of records is not supported: %s", quote(a))
			return 1
		case "count":
			d.count, d.countBytes = n, d.countBytes || bytes
		case "skip", "iseek":
			d.skip, d.skipBytes = n, d.skipBytes || bytes
		case "seek", "oseek":
			d.seek, d.seekBytes = n, d.seekBytes || bytes
		case "status":
			if value != "none" && value != "noxfer" && value != "progress" {
				return usage(c, "invalid status level: %s", cmd.Quote(value))
			}
			d.status = value
		case "conv", "iflag", "oflag":
			for _, word := range strings.Split(value, ",") {
				if !d.flag(key, word) {
					return usage(c, "invalid %s: %s", map[string]string{"conv": "conversion", "iflag": "input flag", "oflag": "output flag"}[key], cmd.Quote(word))
				}
			}
		default:
			return usage(c, "unrecognized operand %s", cmd.Quote(a))
		}
	}
	if bs != 0 {
		d.ibs, d.obs = bs, bs
	}
	if d.upper && d.lower {
		c.Errorf("cannot combine lcase and ucase")
		return 1
	}
	return d.run(from, to, bs != 0)
}

func (d *dump) flag(key, word string) bool {
	switch key + " " + word {
	case "conv notrunc":
		d.notrunc = true
	case "conv ucase":
		d.upper = true
	case "conv lcase":
		d.lower = true
	case "conv swab":
		d.swab = true
	case "conv sync":
		d.sync = true
	case "conv noerror":
		d.noerror = true
	case "conv excl":
		d.excl = true
	case "conv nocreat":
		d.nocreat = true
	case "iflag fullblock":
		d.full = true
	case "iflag count_bytes":
		d.countBytes = true
	case "iflag skip_bytes":
		d.skipBytes = true
	case "oflag seek_bytes":
		d.seekBytes = true
	case "oflag append":
		d.appends = true
	case "conv fsync", "conv fdatasync", "conv sparse", "oflag sync", "oflag dsync", "oflag direct", "iflag direct", "iflag nocache", "oflag nocache", "iflag binary", "oflag binary":
		// How data reach the disk is the host's.
	default:
		return false
	}
	return true
}

// ddNumber reads a number with its unit and products: 1K, 2x512, 10B.
func ddNumber(text string) (n int64, bytes, ok bool) {
	n = 1
	for _, factor := range strings.Split(text, "x") {
		digits := len(factor) - len(strings.TrimLeft(factor, "0123456789"))
		m, err := strconv.ParseInt(factor[:digits], 10, 64)
		if err != nil {
			return 0, false, false
		}
		unit := factor[digits:]
		size, ok := int64(1), true
		switch unit {
		case "c":
		case "w":
			size = 2
		case "b":
			size = 512
		case "B":
			bytes = true
		default:
			size, ok = unitOf(unit)
		}
		if !ok || m != 0 && size > (1<<62)/m || n != 0 && m*size > (1<<62)/n {
			return 0, false, false
		}
		n *= m * size
	}
	return n, bytes, true
}

func (d *dump) run(from, to string, same bool) int {
	c := d.c
	d.in, d.inName = c.Stdin, "standard input"
	if from != "" {
		f, err := c.OpenFile(from, os.O_RDONLY, 0)
		if err != nil {
			c.Errorf("failed to open %s: %s", quote(from), cmd.Reason(err))
			return 1
		}
		defer f.Close()
		d.in, d.inName = f, from
	}
	d.out, d.name = c.Stdout, "standard output"
	seek := d.seek
	if !d.seekBytes {
		seek *= d.obs
	}
	var file cmd.File
	if to != "" {
		flag := os.O_WRONLY | os.O_CREATE
		if d.nocreat {
			flag = os.O_WRONLY
		}
		if d.excl {
			flag |= os.O_EXCL
		}
		if d.appends {
			flag |= os.O_APPEND
		}
		if !d.notrunc && seek == 0 {
			flag |= os.O_TRUNC
		}
		f, err := c.OpenFile(to, flag, 0o666&^c.Umask)
		if err != nil {
			c.Errorf("failed to open %s: %s", quote(to), cmd.Reason(err))
			return 1
		}
		file, d.out, d.name = f, f, to
		if in, err := f.Stat(); err == nil && in.Mode().IsRegular() && !d.notrunc && seek > 0 {
			if t, ok := f.(interface{ Truncate(int64) error }); ok {
				if err := t.Truncate(seek); err != nil {
					f.Close()
					c.Errorf("failed to truncate to %d bytes in output file %s: %s", seek, quote(to), cmd.Reason(err))
					return 1
				}
			}
		}
	}
	begin := time.Now()
	code := d.move(seek, same)
	if file != nil {
		if err := file.Close(); err != nil {
			c.Errorf("closing output file %s: %s", quote(to), cmd.Reason(err))
			code = 1
		}
	}
	if d.status != "none" {
		fmt.Fprintf(c.Stderr, "%d+%d records in\n%d+%d records out\n", d.inWhole, d.inPart, d.outWhole, d.outPart)
		if d.status != "noxfer" {
			fmt.Fprintln(c.Stderr, transfer(d.bytes, time.Since(begin)))
		}
	}
	return code
}

// transfer is the last line that dd writes.
func transfer(n int64, took time.Duration) string {
	size := fmt.Sprintf("%d bytes", n)
	if n == 1 {
		size = "1 byte"
	}
	scaled := func(x float64, base float64, units []string) string {
		at := 0
		for x >= base && at+1 < len(units) {
			x /= base
			at++
		}
		if x < 10 && at > 0 {
			return fmt.Sprintf("%.1f %s", x, units[at])
		}
		return fmt.Sprintf("%.0f %s", x, units[at])
	}
	si := []string{"B", "kB", "MB", "GB", "TB"}
	if n >= 1000 {
		size += " (" + scaled(float64(n), 1000, si)
		if n >= 1024 {
			size += ", " + scaled(float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
		}
		size += ")"
	}
	seconds := max(took.Seconds(), 1e-9)
	return fmt.Sprintf("%s copied, %s s, %s/s", size, strconv.FormatFloat(seconds, 'g', 6, 64), scaled(float64(n)/seconds, 1000, si))
}

// move copies the data.
func (d *dump) move(seek int64, same bool) int {
	c := d.c
	skip := d.skip
	if !d.skipBytes {
		skip *= d.ibs
	}
	if skip > 0 {
		moved := false
		if s, ok := d.in.(io.Seeker); ok {
			_, err := s.Seek(skip, io.SeekCurrent)
			moved = err == nil
		}
		if !moved {
			// Read over it.
			if n, err := copyData(d.ctx, io.Discard, io.LimitReader(d.in, skip)); err != nil || n < skip {
				if err != nil {
					c.Errorf("error reading %s: %s", quote(d.inName), cmd.Reason(err))
					return 1
				}
				c.Errorf("%s: cannot skip to specified offset", quote(d.inName))
			}
		}
	}
	if seek > 0 {
		s, ok := d.out.(io.Seeker)
		if ok {
			_, err := s.Seek(seek, io.SeekCurrent)
			ok = err == nil
		}
		if !ok {
			c.Errorf("%s: cannot seek: Illegal seek", quote(d.name))
			return 1
		}
	}
	left := int64(-1)
	if d.count >= 0 {
		if left = d.count; !d.countBytes {
			left = -1
		}
	}
	block := make([]byte, d.ibs)
	var pending bytes.Buffer // when blocks are of different sizes
	for {
		cmd.Check(d.ctx)
		if d.count >= 0 && !d.countBytes && d.inWhole+d.inPart >= d.count || left == 0 {
			break
		}
		want := block
		if left >= 0 && left < int64(len(want)) {
			want = want[:left]
		}
		var n int
		var err error
		if d.full {
			n, err = readFull(d.in, want)
		} else {
			n, err = d.in.Read(want)
			for n == 0 && err == nil {
				n, err = d.in.Read(want)
			}
		}
		if n > 0 {
			if left >= 0 {
				left -= int64(n)
			}
			data := block[:n]
			if int64(n) == d.ibs {
				d.inWhole++
			} else {
				d.inPart++
				if d.sync {
					data = block
					clear(data[n:])
				}
			}
			d.convert(data)
			if same || d.ibs == d.obs {
				if !d.write(data) {
					return 1
				}
			} else {
				pending.Write(data)
				for int64(pending.Len()) >= d.obs {
					if !d.write(pending.Next(int(d.obs))) {
						return 1
					}
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			c.Errorf("error reading %s: %s", quote(d.inName), cmd.Reason(err))
			if !d.noerror || n == 0 {
				return 1
			}
		}
	}
	if pending.Len() > 0 && !d.write(pending.Bytes()) {
		return 1
	}
	return 0
}

func (d *dump) convert(data []byte) {
	switch {
	case d.upper:
		for i, b := range data {
			if b >= 'a' && b <= 'z' {
				data[i] = b &^ 0x20
			}
		}
	case d.lower:
		for i, b := range data {
			if b >= 'A' && b <= 'Z' {
				data[i] = b | 0x20
			}
		}
	}
	if d.swab {
		for i := 0; i+1 < len(data); i += 2 {
			data[i], data[i+1] = data[i+1], data[i]
		}
	}
}

func (d *dump) write(data []byte) bool {
	n, err := d.out.Write(data)
	d.bytes += int64(n)
	if err != nil {
		d.c.Errorf("error writing %s: %s", quote(d.name), cmd.Reason(err))
		return false
	}
	if int64(len(data)) == d.obs {
		d.outWhole++
	} else {
		d.outPart++
	}
	return true
}
