package text

import (
	"bufio"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// newHash makes a hash by the name that --tag prints, nil when there is none of that name.
func newHash(name string) hash.Hash {
	switch name {
	case "MD5":
		return md5.New()
	case "SHA1":
		return sha1.New()
	case "SHA224":
		return sha256.New224()
	case "SHA256":
		return sha256.New()
	case "SHA384":
		return sha512.New384()
	case "SHA512":
		return sha512.New()
	case "SHA512224":
		return sha512.New512_224()
	case "SHA512256":
		return sha512.New512_256()
	}
	if bits, ok := strings.CutPrefix(name, "BLAKE2b"); ok {
		n := 512
		if bits != "" {
			var err error
			if n, err = strconv.Atoi(strings.TrimPrefix(bits, "-")); err != nil || n%8 != 0 || n < 8 || n > 512 {
				return nil
			}
		}
		h, err := blake2b.New(n/8, nil)
		if err != nil {
			return nil
		}
		return h
	}
	return nil
}

var sumsOpts = cmd.Opts{
	{Short: 'b', Long: "binary"}, {Short: 'c', Long: "check"}, {Long: "tag"}, {Short: 't', Long: "text"},
	{Short: 'z', Long: "zero"}, {Long: "ignore-missing"}, {Long: "quiet"}, {Long: "status"}, {Long: "strict"},
	{Short: 'w', Long: "warn"},
}

// digester is one call of a command that prints or checks digests.
type digester struct {
	t                         *call
	algorithm                 string
	binary, tag, zero, base64 bool
	check, missing, quiet     bool
	status, strict, warn      bool
	shasum                    bool // words and exit codes of Perl's shasum
	detect                    bool // cksum -c without -a: lines say the algorithm
	explicitText              bool
}

func sums(algorithm string) func(*call) int {
	return func(t *call) int {
		opts := sumsOpts
		if algorithm == "BLAKE2b" {
			opts = append(opts[:len(opts):len(opts)], cmd.Opt{Short: 'l', Long: "length", Arg: cmd.Value})
		}
		given, names, code := t.parse(opts, "[OPTION]... [FILE]...", 1, t.Args)
		if code >= 0 {
			return code
		}
		d := &digester{t: t, algorithm: algorithm}
		for _, g := range given {
			if g.Key == "l" {
				n, err := strconv.Atoi(g.Value)
				if err != nil {
					return t.fail(1, "invalid length: %s", cmd.Quote(g.Value))
				}
				if n > 512 {
					t.Errorf("invalid length: %s", cmd.Quote(g.Value))
					return t.fail(1, "maximum digest length for 'BLAKE2b' is 512 bits")
				}
				if n%8 != 0 {
					t.Errorf("invalid length: %s", cmd.Quote(g.Value))
					return t.fail(1, "length is not a multiple of 8")
				}
				if n > 0 && n < 512 {
					d.algorithm = "BLAKE2b-" + strconv.Itoa(n)
				}
				continue
			}
			d.set(g.Key)
		}
		if code := d.verify(); code > 0 {
			return code
		}
		return d.run(names)
	}
}

func (d *digester) set(key string) {
	switch key {
	case "b":
		d.binary, d.explicitText = true, false
	case "t":
		d.binary, d.explicitText = false, true
	case "c":
		d.check = true
	case "tag":
		d.tag = true
	case "z":
		d.zero = true
	case "ignore-missing":
		d.missing = true
	case "quiet":
		d.quiet, d.status, d.warn = true, false, false
	case "status":
		d.status, d.quiet, d.warn = true, false, false
	case "strict":
		d.strict = true
	case "w":
		d.warn, d.status, d.quiet = true, false, false
	}
}

// verify refuses options that make no sense together.
func (d *digester) verify() int {
	t := d.t
	switch {
	case d.tag && d.check:
		return t.usage(1, "the --tag option is meaningless when verifying checksums")
	case d.tag && d.explicitText:
		return t.usage(1, "--tag does not support --text mode")
	case d.zero && d.check:
		return t.usage(1, "the --zero option is not supported when verifying checksums")
	case !d.check && d.missing:
		return t.usage(1, "the --ignore-missing option is meaningful only when verifying checksums")
	case !d.check && d.status:
		return t.usage(1, "the --status option is meaningful only when verifying checksums")
	case !d.check && d.warn:
		return t.usage(1, "the --warn option is meaningful only when verifying checksums")
	case !d.check && d.quiet:
		return t.usage(1, "the --quiet option is meaningful only when verifying checksums")
	case !d.check && d.strict:
		return t.usage(1, "the --strict option is meaningful only when verifying checksums")
	}
	return 0
}

func (d *digester) run(names []string) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		if d.check {
			code = max(code, d.checkFile(name))
			continue
		}
		digest, err := d.digest(d.algorithm, name)
		if err != nil {
			code = d.t.Fail(name, err)
			continue
		}
		d.print(name, digest)
	}
	return code
}

func (d *digester) digest(algorithm, name string) ([]byte, error) {
	r, err := d.t.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := newHash(algorithm)
	err = blocks(r, func(b []byte) error {
		h.Write(b)
		return nil
	})
	return h.Sum(nil), err
}

func (d *digester) print(name string, digest []byte) {
	w := d.t.out
	end := byte('\n')
	escaped := name
	if d.zero {
		end = 0
	} else if escaped = escapeName(name); escaped != name {
		w.WriteByte('\\')
	}
	text := hex.EncodeToString(digest)
	if d.base64 {
		text = base64.StdEncoding.EncodeToString(digest)
	}
	mark := byte(' ')
	if d.binary {
		mark = '*'
	}
	if d.tag {
		fmt.Fprintf(w, "%s (%s) = %s%c", d.algorithm, escaped, text, end)
	} else {
		fmt.Fprintf(w, "%s %c%s%c", text, mark, escaped, end)
	}
}

func escapeName(s string) string {
	if !strings.ContainsAny(s, "\\\n\r") {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(s)
}

func unescapeName(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(s)
}

// sumLine takes a line of a list of digests apart.
func (d *digester) sumLine(line string) (algorithm, name string, want []byte, ok bool) {
	line = strings.TrimRight(line, "\r")
	line = strings.TrimLeft(line, " \t")
	line, escaped := strings.CutPrefix(line, `\`)
	algorithm = d.algorithm
	text := ""
	if i := strings.LastIndex(line, ") = "); i > 0 {
		if j := strings.IndexByte(line, '('); j > 0 && j < i {
			tag := strings.TrimRight(line[:j], " ")
			if d.detect {
				algorithm = tag
			} else if tag != algorithm && !(algorithm == "BLAKE2b" && strings.HasPrefix(tag, algorithm)) {
				return "", "", nil, false
			} else {
				algorithm = tag
			}
			name, text = line[j+1:i], strings.TrimSpace(line[i+4:])
		}
	}
	if text == "" {
		if d.detect {
			return "", "", nil, false
		}
		i := strings.IndexAny(line, " \t")
		if i < 0 || i+2 > len(line) {
			return "", "", nil, false
		}
		text, name = line[:i], line[i+1:]
		if name[0] == ' ' || name[0] == '*' {
			name = name[1:]
		}
		if d.algorithm == "BLAKE2b" && len(text) < 128 {
			algorithm = "BLAKE2b-" + strconv.Itoa(len(text)*4)
		}
	}
	h := newHash(algorithm)
	if h == nil || name == "" {
		return "", "", nil, false
	}
	want, err := hex.DecodeString(text)
	if err != nil || len(want) != h.Size() {
		if want, err = base64.StdEncoding.DecodeString(text); err != nil || len(want) != h.Size() {
			return "", "", nil, false
		}
	}
	if escaped {
		name = unescapeName(name)
	}
	return algorithm, name, want, true
}

// checkFile checks the digests that a file lists.
func (d *digester) checkFile(list string) int {
	t := d.t
	r, err := t.open(list)
	if err != nil {
		return t.Fail(list, err)
	}
	defer r.Close()
	shown := list
	if list == "-" {
		shown = "standard input"
	}
	var lineNumber, good, bad, matched, mismatched, unread int
	l := newLines(r, '\n')
	for {
		b, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.fail(1, "%s: read error", shown)
		}
		lineNumber++
		if len(b) > 0 && b[0] == '#' {
			continue
		}
		line := string(b)
		if strings.TrimRight(line, "\r") == "" {
			if d.shasum {
				continue
			}
		}
		algorithm, name, want, ok := d.sumLine(line)
		if !ok {
			bad++
			if d.warn {
				kind := d.algorithm
				if d.detect {
					kind = "checksum"
				}
				t.flush()
				t.Errorf("%s: %d: improperly formatted %s checksum line", shown, lineNumber, kind)
			}
			continue
		}
		good++
		if name == "-" && list == "-" {
			unread++
			continue
		}
		printed := escapeName(name)
		if printed != name {
			printed = `\` + printed
		}
		got, err := d.digest(algorithm, name)
		switch {
		case err != nil:
			reason := cmd.Reason(err)
			if d.missing && reason == "No such file or directory" {
				continue
			}
			unread++
			t.flush()
			t.Errorf("%s: %s", name, reason)
			if !d.status {
				fmt.Fprintf(t.out, "%s: FAILED open or read\n", printed)
			}
		case !slices.Equal(got, want):
			mismatched++
			if !d.status {
				fmt.Fprintf(t.out, "%s: FAILED\n", printed)
			}
		default:
			matched++
			if !d.status && !d.quiet {
				fmt.Fprintf(t.out, "%s: OK\n", printed)
			}
		}
	}
	t.flush()
	if good == 0 {
		return t.fail(1, "%s: no properly formatted checksum lines found", shown)
	}
	if !d.status {
		warning := func(n int, one, many string) {
			switch {
			case n == 1:
				t.Errorf("WARNING: 1 %s", one)
			case n > 1:
				t.Errorf("WARNING: %d %s", n, many)
			}
		}
		warning(bad, "line is improperly formatted", "lines are improperly formatted")
		warning(unread, "listed file could not be read", "listed files could not be read")
		warning(mismatched, "computed checksum did NOT match", "computed checksums did NOT match")
		if d.missing && matched == 0 {
			t.Errorf("%s: no file was verified", shown)
		}
	}
	if mismatched > 0 || unread > 0 || d.strict && bad > 0 || d.missing && matched == 0 {
		return 1
	}
	return 0
}

var shasumOpts = cmd.Opts{
	{Short: 'a', Long: "algorithm", Arg: cmd.Value}, {Short: 'b', Long: "binary"}, {Short: 'c', Long: "check"},
	{Long: "tag"}, {Short: 't', Long: "text"}, {Short: 'q', Long: "quiet"}, {Short: 's', Long: "status"}, {Long: "strict"},
	{Short: 'w', Long: "warn"}, {Long: "ignore-missing"},
}

func shasum(t *call) int {
	given, names, code := t.parse(shasumOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	d := &digester{t: t, algorithm: "SHA1", shasum: true}
	chosen := false
	for _, g := range given {
		switch g.Key {
		case "a":
			d.algorithm = "SHA" + g.Value
			chosen = true
			if newHash(d.algorithm) == nil || g.Value == "" {
				t.Errorf("Unrecognized algorithm")
				fmt.Fprintf(t.Stderr, "Type shasum -h for help\n")
				return 1
			}
		case "q":
			d.set("quiet")
		case "s":
			d.set("status")
		default:
			d.set(g.Key)
		}
	}
	if d.check && !chosen {
		// The length of the digests says which algorithm it is.
		return shasumDetect(d, names)
	}
	return d.run(names)
}

// shasumDetect checks lists whose lines may be of any algorithm.
func shasumDetect(d *digester, names []string) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		r, err := d.t.open(name)
		if err != nil {
			code = d.t.Fail(name, err)
			continue
		}
		br := bufio.NewReaderSize(r, 64<<10)
		head, _ := br.Peek(4096)
		rest := *d.t.Call
		rest.Stdin = br
		own := *d
		own.t = &call{Call: &rest, ctx: d.t.ctx, out: d.t.out}
		if i := strings.IndexAny(string(head), " \t"); i > 0 {
			for _, a := range []string{"SHA1", "SHA224", "SHA256", "SHA384", "SHA512"} {
				if newHash(a).Size()*2 == i || strings.TrimRight(string(head[:i]), " ") == a {
					own.algorithm = a
				}
			}
		}
		code = max(code, own.checkFile("-"))
		r.Close()
	}
	return code
}

var cksumOpts = cmd.Opts{
	{Short: 'a', Long: "algorithm", Arg: cmd.Value}, {Long: "base64"}, {Short: 'c', Long: "check"},
	{Short: 'l', Long: "length", Arg: cmd.Value}, {Long: "tag"}, {Long: "untagged"}, {Long: "ignore-missing"},
	{Long: "quiet"}, {Long: "status"}, {Long: "strict"}, {Short: 'w', Long: "warn"}, {Short: 'z', Long: "zero"},
}

func cksum(t *call) int {
	given, names, code := t.parse(cksumOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	d := &digester{t: t, tag: true}
	algorithm, chosen, untagged, tagged, length := "crc", false, false, false, 0
	for _, g := range given {
		switch g.Key {
		case "a":
			chosen = true
			switch g.Value {
			case "bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b":
				algorithm = g.Value
			case "sm3":
				return t.fail(1, "the algorithm sm3 is not supported")
			default:
				return t.badWord(g.Value, "--algorithm", "bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3")
			}
		case "base64":
			d.base64 = true
		case "l":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n%8 != 0 || n > 512 {
				return t.fail(1, "invalid length: %s", cmd.Quote(g.Value))
			}
			length = n
		case "tag":
			tagged, untagged = true, false
		case "untagged":
			untagged = true
		default:
			d.set(g.Key)
		}
	}
	d.tag = !untagged
	if length > 0 && algorithm != "blake2b" {
		return t.usage(1, "--length is only supported with --algorithm=blake2b")
	}
	if d.check {
		if chosen && (algorithm == "crc" || algorithm == "bsd" || algorithm == "sysv") {
			return t.fail(1, "--check is not supported with --algorithm={bsd,sysv,crc}")
		}
		d.tag = tagged
		if code := d.verify(); code > 0 {
			return code
		}
		d.detect = !chosen
	}
	switch algorithm {
	case "crc", "bsd", "sysv":
		if !d.check {
			return checksums(t, algorithm, names, d.zero)
		}
	case "blake2b":
		d.algorithm = "BLAKE2b"
		if length > 0 && length < 512 {
			d.algorithm += "-" + strconv.Itoa(length)
		}
	default:
		d.algorithm = strings.ToUpper(algorithm)
	}
	return d.run(names)
}

var sumOpts = cmd.Opts{{Short: 'r'}, {Short: 's', Long: "sysv"}}

func sum(t *call) int {
	given, names, code := t.parse(sumOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	algorithm := "bsd"
	for _, g := range given {
		algorithm = map[string]string{"r": "bsd", "s": "sysv"}[g.Key]
	}
	return checksums(t, algorithm, names, false)
}

// checksums prints the old checksums: a number, a size, the name.
func checksums(t *call, algorithm string, names []string, zero bool) int {
	end := byte('\n')
	if zero {
		end = 0
	}
	named := len(names) > 0
	return t.each(names, func(name string, r *source) error {
		var size int64
		var crc, sysv uint32
		var bsd uint16
		table := crcTable()
		err := blocks(r, func(b []byte) error {
			size += int64(len(b))
			for _, x := range b {
				switch algorithm {
				case "crc":
					crc = crc<<8 ^ table[byte(crc>>24)^x]
				case "bsd":
					bsd = bsd>>1 | bsd<<15
					bsd += uint16(x)
				default:
					sysv += uint32(x)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		switch algorithm {
		case "crc":
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(size))
			for i, left := 0, size; left > 0; i, left = i+1, left>>8 {
				crc = crc<<8 ^ table[byte(crc>>24)^n[i]]
			}
			fmt.Fprintf(t.out, "%d %d", ^crc, size)
		case "bsd":
			fmt.Fprintf(t.out, "%05d %5d", bsd, (size+1023)/1024)
		default:
			s := sysv&0xffff + sysv>>16
			s = s&0xffff + s>>16
			fmt.Fprintf(t.out, "%d %d", s, (size+511)/512)
		}
		if named {
			t.out.WriteString(" " + name)
		}
		t.out.WriteByte(end)
		return nil
	})
}

// crcTable is for the polynomial of POSIX's cksum, high bit first.
func crcTable() *[256]uint32 {
	var table [256]uint32
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		table[i] = c
	}
	return &table
}
