package text

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"io"
	"strconv"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var baseOpts = cmd.Opts{
	{Short: 'd', Long: "decode"}, {Short: 'D'}, {Short: 'i', Long: "ignore-garbage"}, {Short: 'w', Long: "wrap", Arg: cmd.Value},
	{Short: 'b', Long: "break", Arg: cmd.Value}, {Short: 'o', Long: "output", Arg: cmd.Value}, {Long: "input", Arg: cmd.Value},
}

// baseCode is an encoding that turns groups of bytes into groups of letters.
type baseCode struct {
	plain, coded int
	letters      string
	encode       func(dst, src []byte)
	decode       func(dst, src []byte) (int, error)
}

func base64Cmd(t *call) int {
	return baseCmd(t, baseCode{
		3, 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		base64.StdEncoding.Encode, base64.StdEncoding.Decode,
	}, t.Name == "base64")
}

func base32Cmd(t *call) int {
	return baseCmd(t, baseCode{
		5, 8, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", base32.StdEncoding.Encode, base32.StdEncoding.Decode,
	}, false)
}

// baseCmd also takes what base64 of BSD takes (bsd): -D decodes, -b is -w, -i FILE and -o FILE name files. GNU's -i is a
// flag, and its file an operand: both readings of "base64 -i FILE" come to the same.
func baseCmd(t *call, code baseCode, bsd bool) int {
	opts := baseOpts
	if !bsd {
		opts = cmd.Opts{baseOpts[0], baseOpts[2], baseOpts[3]}
	}
	given, names, exit := t.parse(opts, "[OPTION]... [FILE]", 1, t.Args)
	if exit >= 0 {
		return exit
	}
	wrap, decode, ignore := 76, false, false
	output := ""
	for _, g := range given {
		switch g.Key {
		case "d", "D":
			decode = true
		case "i":
			ignore = true
		case "w", "b":
			n, err := strconv.ParseUint(g.Value, 10, 63)
			if err != nil {
				return t.fail(1, "invalid wrap size: %s", cmd.Quote(g.Value))
			}
			wrap = int(n)
		case "o":
			output = g.Value
		case "input":
			names = append(names, g.Value)
		}
	}
	if len(names) > 1 {
		return t.usage(1, "extra operand %s", cmd.Quote(names[1]))
	}
	in := "-"
	if len(names) > 0 {
		in = names[0]
	}
	r, err := t.open(in)
	if err != nil {
		return t.Fail(in, err)
	}
	defer r.Close()
	if output != "" && output != "-" {
		if err := t.into(output); err != nil {
			return t.Fail(output, err)
		}
	}
	if decode {
		return code.decodeAll(t, r, ignore)
	}
	return code.encodeAll(t, r, wrap)
}

func (c *baseCode) encodeAll(t *call, r io.Reader, wrap int) int {
	in := make([]byte, c.plain<<12)
	out := make([]byte, c.coded<<12)
	column := 0
	for {
		n, err := io.ReadFull(r, in)
		b := out[:(n+c.plain-1)/c.plain*c.coded]
		c.encode(b, in[:n])
		for len(b) > 0 {
			if wrap > 0 && column == wrap {
				t.out.WriteByte('\n')
				column = 0
			}
			k := len(b)
			if wrap > 0 {
				k = min(k, wrap-column)
			}
			t.out.Write(b[:k])
			column += k
			b = b[k:]
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return t.fail(1, "read error: %s", cmd.Reason(err))
		}
	}
	if wrap > 0 && column > 0 {
		t.out.WriteByte('\n')
	}
	return 0
}

func (c *baseCode) decodeAll(t *call, r io.Reader, ignore bool) int {
	var known [256]bool
	for i := range len(c.letters) {
		known[c.letters[i]] = true
	}
	known['='] = true
	bad := false
	group := make([]byte, 0, c.coded)
	plain := make([]byte, c.plain)
	// what can be decoded of a group that is not whole is written: its letters are worth some bytes
	partial := func() {
		n := len(group)
		letters := bytes.IndexByte(group, '=')
		if letters < 0 {
			letters = n
		}
		full := append(make([]byte, 0, c.coded), group[:letters]...)
		for len(full) < c.coded {
			full = append(full, c.letters[0])
		}
		if k, err := c.decode(plain, full); err == nil {
			t.out.Write(plain[:min(k, letters*c.plain/c.coded)])
		}
		bad = true
	}
	err := blocks(r, func(b []byte) error {
		for _, x := range b {
			if x == '\n' {
				continue
			}
			if !known[x] {
				if ignore {
					continue
				}
				partial()
				return errStop
			}
			group = append(group, x)
			if len(group) < c.coded {
				continue
			}
			k, err := c.decode(plain, group)
			if err != nil {
				partial()
				return errStop
			}
			t.out.Write(plain[:k])
			group = group[:0]
		}
		return nil
	})
	if ignoreStop(err) != nil {
		return t.fail(1, "read error: %s", cmd.Reason(err))
	}
	if !bad && len(group) > 0 {
		partial()
	}
	if bad {
		t.flush()
		return t.fail(1, "invalid input")
	}
	return 0
}
