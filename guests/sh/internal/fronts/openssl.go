package fronts

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// openssl has what needs neither keys nor the network: random numbers, digests and base64. The rest is denied.
func openssl(ctx context.Context, c *cmd.Call) int {
	verb, args := "", c.Args
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "":
		say(c, "help:\n\nStandard commands\nbase64            dgst              enc               rand")
		return 0
	case "version":
		io.WriteString(c.Stdout, "OpenSSL compatible (exthost): rand, dgst and base64\n")
		return 0
	case "rand":
		return opensslRand(c, args)
	case "dgst":
		return opensslDigest(ctx, c, "", args)
	case "md5", "sha1", "sha224", "sha256", "sha384", "sha512":
		return opensslDigest(ctx, c, verb, args)
	case "base64":
		return opensslBase64(ctx, c, args)
	case "enc":
		for _, a := range args {
			if a == "-base64" || a == "-a" {
				// Only coding, and no cipher: all other options must be those of base64.
				if !strings.Contains(" "+strings.Join(args, " "), " -aes") && !strings.Contains(strings.Join(args, " "), "-pass") {
					return opensslBase64(ctx, c, args)
				}
			}
		}
	}
	where := ""
	for i, a := range args {
		if a == "-connect" && i+1 < len(args) {
			where = endpoint(parseURL(args[i+1]))
		}
	}
	if !word(verb) {
		verb = ""
	}
	say(c, "openssl:Error: %s: %s", verb, program("openssl", verb, where))
	return 1
}

func opensslRand(c *cmd.Call, args []string) int {
	form, out, count := "", "", -1
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-hex" || a == "-base64":
			form = a
		case a == "-out" && i+1 < len(args):
			i++
			out = args[i]
		default:
			n, err := strconv.Atoi(a)
			if err != nil || n < 0 || count >= 0 {
				say(c, "rand: Use -help for summary.")
				return 1
			}
			count = n
		}
	}
	count = max(count, 0)
	return output(c, out, func(w io.Writer) error {
		buf := make([]byte, min(count, 48<<10))
		for done := 0; done < count; {
			part := buf[:min(count-done, len(buf))]
			rand.Read(part)
			done += len(part)
			var err error
			switch form {
			case "-hex":
				_, err = io.WriteString(w, hex.EncodeToString(part))
			case "-base64":
				err = base64Lines(w, part, 64)
			default:
				_, err = w.Write(part)
			}
			if err != nil {
				return err
			}
		}
		if form == "-hex" {
			io.WriteString(w, "\n")
		}
		return nil
	})
}

// output calls write with standard output, or with the file that -out names.
func output(c *cmd.Call, name string, write func(io.Writer) error) int {
	if name == "" {
		w := c.Buffered()
		if write(w) != nil || w.Flush() != nil {
			return 1
		}
		return 0
	}
	f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		say(c, "Can't open \"%s\" for writing, %s", name, cmd.Reason(err))
		return 1
	}
	defer f.Close()
	if err := write(f); err != nil {
		return 1
	}
	return 0
}

func base64Lines(w io.Writer, b []byte, width int) error {
	text := base64.StdEncoding.EncodeToString(b)
	if width == 0 {
		_, err := io.WriteString(w, text)
		return err
	}
	for len(text) > 0 {
		n := min(width, len(text))
		if _, err := io.WriteString(w, text[:n]+"\n"); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func digest(name string) (func() hash.Hash, string) {
	switch strings.ToLower(strings.ReplaceAll(name, "-", "")) {
	case "md5":
		return md5.New, "MD5"
	case "sha1":
		return sha1.New, "SHA1"
	case "sha224":
		return sha256.New224, "SHA2-224"
	case "sha256":
		return sha256.New, "SHA2-256"
	case "sha384":
		return sha512.New384, "SHA2-384"
	case "sha512":
		return sha512.New, "SHA2-512"
	}
	return nil, ""
}

func opensslDigest(ctx context.Context, c *cmd.Call, name string, args []string) int {
	named := name != ""
	if !named {
		name = "sha256"
	}
	var (
		files          []string
		key            []byte
		keyed          bool
		out            string
		binary         bool
		coreutils, sep bool
	)
	for i := 0; i < len(args); i++ {
		a := args[i]
		value := func() (string, bool) {
			if i+1 == len(args) {
				return "", false
			}
			i++
			return args[i], true
		}
		switch {
		case !strings.HasPrefix(a, "-") || a == "-":
			files = append(files, a)
		case a == "-hex":
			binary = false
		case a == "-binary":
			binary = true
		case a == "-r":
			coreutils = true
		case a == "-c":
			sep = true
		case a == "-out" || a == "-hmac" || a == "-mac" || a == "-macopt":
			v, ok := value()
			if !ok {
				say(c, "dgst: Option %s needs a value", a)
				return 1
			}
			switch a {
			case "-out":
				out = v
			case "-hmac":
				key, keyed = []byte(v), true
			case "-mac":
				if !strings.EqualFold(v, "hmac") {
					say(c, "dgst: only -mac HMAC is here")
					return 1
				}
			case "-macopt":
				k, v, _ := strings.Cut(v, ":")
				switch k {
				case "key":
					key, keyed = []byte(v), true
				case "hexkey":
					b, err := hex.DecodeString(v)
					if err != nil {
						say(c, "dgst: bad hexkey")
						return 1
					}
					key, keyed = b, true
				}
			}
		default:
			if f, _ := digest(strings.TrimLeft(a, "-")); f != nil {
				name, named = strings.TrimLeft(a, "-"), true
				continue
			}
			say(c, "dgst: %s: %s", a, program("openssl", "dgst"))
			return 1
		}
	}
	newHash, shown := digest(name)
	if !named {
		shown = "SHA256" // OpenSSL has two names for it
	}
	make := newHash
	if keyed {
		make = func() hash.Hash { return hmac.New(newHash, key) }
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	code := 0
	failed := output(c, out, func(w io.Writer) error {
		for _, name := range files {
			f, err := c.Open(name)
			if err != nil {
				say(c, "%s: %s", name, cmd.Reason(err))
				code = 1
				continue
			}
			h := make()
			_, err = io.Copy(h, cmd.Reader(ctx, f))
			f.Close()
			if err != nil {
				say(c, "Read error on %s: %s", name, cmd.Reason(err))
				code = 1
				continue
			}
			sum := h.Sum(nil)
			if binary {
				w.Write(sum)
				continue
			}
			text := hex.EncodeToString(sum)
			if sep && !coreutils {
				var pairs []string
				for i := 0; i < len(text); i += 2 {
					pairs = append(pairs, text[i:i+2])
				}
				text = strings.Join(pairs, ":")
			}
			if name == "-" {
				name = "stdin"
			}
			switch {
			case coreutils:
				fmt.Fprintf(w, "%s *%s\n", text, name)
			default:
				fmt.Fprintf(w, "%s(%s)= %s\n", shown, name, text)
			}
		}
		return nil
	})
	return max(code, failed)
}

func opensslBase64(ctx context.Context, c *cmd.Call, args []string) int {
	decode, one, in, out := false, false, "-", ""
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-d":
			decode = true
		case a == "-e":
			decode = false
		case a == "-A":
			one = true
		case a == "-base64" || a == "-a":
		case (a == "-in" || a == "-out") && i+1 < len(args):
			i++
			if a == "-in" {
				in = args[i]
			} else {
				out = args[i]
			}
		default:
			say(c, "base64: %s: %s", a, program("openssl", "base64"))
			return 1
		}
	}
	f, err := c.Open(in)
	if err != nil {
		say(c, "Can't open \"%s\" for reading, %s", in, cmd.Reason(err))
		return 1
	}
	defer f.Close()
	b, err := io.ReadAll(cmd.Reader(ctx, f))
	if err != nil {
		say(c, "Error reading %s: %s", in, cmd.Reason(err))
		return 1
	}
	return output(c, out, func(w io.Writer) error {
		if !decode {
			width := 64
			if one {
				width = 0
			}
			return base64Lines(w, b, width)
		}
		text := strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
				return -1
			}
			return r
		}, string(b))
		// What is no base64 is no error either.
		plain, _ := base64.StdEncoding.DecodeString(text)
		_, err = w.Write(plain)
		return err
	})
}
