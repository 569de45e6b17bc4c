package text

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var trOpts = cmd.Opts{
	{Short: 'c', Long: "complement"}, {Short: 'C'}, {Short: 'd', Long: "delete"}, {Short: 's', Long: "squeeze-repeats"},
	{Short: 't', Long: "truncate-set1"},
}

// trSet is a set of tr as a list of bytes in order. fill is where a [c*] stands that takes what is missing, -1: none.
type trSet struct {
	list    []byte
	fill    int
	filler  byte
	classes bool // there is a class
	other   bool // there is a class that is not upper or lower
	equiv   bool
	cases   []int // where in the list classes of case start
}

// trChar is a character of the text of a set; escaped ones stand for themselves only.
type trChar struct {
	b       byte
	escaped bool
}

func trChars(t *call, s string) []trChar {
	var list []trChar
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' {
			list = append(list, trChar{c, false})
			continue
		}
		i++
		if i == len(s) {
			t.Errorf("warning: an unescaped backslash at end of string is not portable")
			list = append(list, trChar{'\\', false})
			break
		}
		if k := strings.IndexByte("abfnrtv", s[i]); k >= 0 {
			list = append(list, trChar{"\a\b\f\n\r\t\v"[k], true})
			continue
		}
		if s[i] < '0' || s[i] > '7' {
			list = append(list, trChar{s[i], true})
			continue
		}
		n, j := 0, i
		for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' && n*8+int(s[j]-'0') < 256 {
			n = n*8 + int(s[j]-'0')
			j++
		}
		if j < i+3 && j < len(s) && s[j] >= '0' && s[j] <= '7' {
			t.Errorf("warning: the ambiguous octal escape \\%s is being\n\tinterpreted as the 2-byte sequence \\0%s, %c", s[i:j+1], s[i:j], s[j])
		}
		list = append(list, trChar{byte(n), true})
		i = j - 1
	}
	return list
}

var trClasses = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return isDigit(b) || isAlpha(b) },
	"alpha":  isAlpha,
	"blank":  isBlank,
	"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit":  isDigit,
	"graph":  func(b byte) bool { return isPrint(b) && b != ' ' },
	"lower":  func(b byte) bool { return b >= 'a' && b <= 'z' },
	"print":  isPrint,
	"punct":  isPunct,
	"space":  isSpace,
	"upper":  func(b byte) bool { return b >= 'A' && b <= 'Z' },
	"xdigit": func(b byte) bool { return isDigit(b) || toLower(b) >= 'a' && toLower(b) <= 'f' },
}

func isAlpha(b byte) bool { return toUpper(b) >= 'A' && toUpper(b) <= 'Z' }

func isPunct(b byte) bool { return isPrint(b) && b != ' ' && !isDigit(b) && !isAlpha(b) }

// trParse reads a set. What goes wrong is worded as tr's.
func trParse(t *call, text string) (*trSet, error) {
	in := trChars(t, text)
	raw := func(i, j int) string {
		b := make([]byte, 0, j-i)
		for _, c := range in[i:j] {
			b = append(b, c.b)
		}
		return string(b)
	}
	is := func(i int, b byte) bool { return i < len(in) && !in[i].escaped && in[i].b == b }
	set := &trSet{fill: -1}
	for i := 0; i < len(in); {
		if is(i, '[') && (is(i+1, ':') || is(i+1, '=')) {
			mark := in[i+1].b
			j := i + 2
			for j < len(in) && !(is(j, mark) && is(j+1, ']')) {
				j++
			}
			// [: without an end is a [ and a :, and [:*n] repeats a :.
			if j+1 < len(in) {
				name := raw(i+2, j)
				if mark == ':' {
					class, ok := trClasses[name]
					if ok {
						set.classes = true
						if name != "upper" && name != "lower" {
							set.other = true
						} else {
							set.cases = append(set.cases, len(set.list))
						}
						for b := range 256 {
							if class(byte(b)) {
								set.list = append(set.list, byte(b))
							}
						}
						i = j + 2
						continue
					}
					if _, _, ok := trRepeat(in, i); !ok {
						if name == "" {
							return nil, fmt.Errorf("missing character class name '[::]'")
						}
						return nil, fmt.Errorf("invalid character class %s", cmd.Quote(name))
					}
				} else {
					if len(name) == 1 {
						set.equiv = true
						set.list = append(set.list, name[0])
						i = j + 2
						continue
					}
					if _, _, ok := trRepeat(in, i); !ok {
						if name == "" {
							return nil, fmt.Errorf("missing equivalence class character '[==]'")
						}
						return nil, fmt.Errorf("%s: equivalence class operand must be a single character", name)
					}
				}
			}
		}
		if end, count, ok := trRepeat(in, i); ok {
			n := int64(0)
			if count != "" {
				base := 10
				if count[0] == '0' {
					base = 8
				}
				v, err := strconv.ParseInt(count, base, 64)
				if err != nil {
					return nil, fmt.Errorf("invalid repeat count %s in [c*n] construct", cmd.Quote(count))
				}
				n = v
			}
			if n == 0 {
				if set.fill >= 0 {
					return nil, fmt.Errorf("only one [c*] repeat construct may appear in string2")
				}
				set.fill, set.filler = len(set.list), in[i+1].b
			} else {
				// No more than 256 bytes of the other set can be translated.
				set.list = append(set.list, bytes.Repeat([]byte{in[i+1].b}, int(min(n, 1<<16)))...)
			}
			i = end
			continue
		}
		if is(i+1, '-') && i+2 < len(in) {
			lo, hi := in[i].b, in[i+2].b
			if lo > hi {
				return nil, fmt.Errorf("range-endpoints of '%s-%s' are in reverse collating sequence order", trVisible(lo), trVisible(hi))
			}
			for b := int(lo); b <= int(hi); b++ {
				set.list = append(set.list, byte(b))
			}
			i += 3
			continue
		}
		set.list = append(set.list, in[i].b)
		i++
	}
	return set, nil
}

func trVisible(b byte) string {
	if isPrint(b) {
		return string([]byte{b})
	}
	return fmt.Sprintf(`\%03o`, b)
}

// trRepeat looks for [c*n] at i.
func trRepeat(in []trChar, i int) (end int, count string, ok bool) {
	if i+3 >= len(in) || in[i].escaped || in[i].b != '[' || in[i+2].escaped || in[i+2].b != '*' {
		return 0, "", false
	}
	var digits []byte
	for j := i + 3; j < len(in); j++ {
		if !in[j].escaped && in[j].b == ']' {
			return j + 1, string(digits), true
		}
		digits = append(digits, in[j].b)
	}
	return 0, "", false
}

func tr(t *call) int {
	given, sets, code := t.parseLeading(trOpts, "[OPTION]... SET1 [SET2]", 1, t.Args)
	if code >= 0 {
		return code
	}
	var complement, del, squeeze, truncate bool
	for _, g := range given {
		switch g.Key {
		case "c", "C":
			complement = true
		case "d":
			del = true
		case "s":
			squeeze = true
		case "t":
			truncate = true
		}
	}
	translate := !del && (!squeeze || len(sets) == 2)
	least, most := 1, 2
	if del == squeeze {
		least = 2
	}
	if del && !squeeze {
		most = 1
	}
	switch {
	case len(sets) < least:
		if len(sets) == 0 {
			return t.usage(1, "missing operand")
		}
		text := "Two strings must be given when translating."
		if squeeze {
			text = "Two strings must be given when both deleting and squeezing repeats."
		}
		return t.usage(1, "missing operand after %s\n%s", cmd.Quote(sets[len(sets)-1]), text)
	case len(sets) > most:
		text := ""
		if len(sets) == 2 {
			text = "\nOnly one string may be given when deleting without squeezing repeats."
		}
		return t.usage(1, "extra operand %s%s", cmd.Quote(sets[most]), text)
	}
	s1, err := trParse(t, sets[0])
	if err != nil {
		return t.fail(1, "%v", err)
	}
	if s1.fill >= 0 {
		return t.fail(1, "the [c*] repeat construct may not appear in string1")
	}
	var in1 [256]bool
	for _, b := range s1.list {
		in1[b] = true
	}
	list1 := s1.list
	if complement {
		list1 = nil
		for b := range 256 {
			if in1[b] = !in1[b]; in1[b] {
				list1 = append(list1, byte(b))
			}
		}
	}
	var s2 *trSet
	if len(sets) == 2 {
		if s2, err = trParse(t, sets[1]); err != nil {
			return t.fail(1, "%v", err)
		}
		if s2.fill >= 0 {
			if !translate {
				return t.fail(1, "the [c*] construct may appear in string2 only when translating")
			}
			if n := len(list1) - len(s2.list); n > 0 {
				fill := bytes.Repeat([]byte{s2.filler}, n)
				s2.list = append(s2.list[:s2.fill:s2.fill], append(fill, s2.list[s2.fill:]...)...)
			}
		}
	}
	var to [256]byte
	for b := range 256 {
		to[b] = byte(b)
	}
	if translate {
		switch {
		case s2.equiv:
			return t.fail(1, "[=c=] expressions may not appear in string2 when translating")
		case s2.other:
			return t.fail(1, "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'")
		case len(s2.list) == 0 && !truncate && len(list1) > 0:
			return t.fail(1, "when not truncating set1, string2 must be non-empty")
		}
		for _, at := range s2.cases {
			if !complement && !slices.Contains(s1.cases, at) {
				return t.fail(1, "misaligned [:upper:] and/or [:lower:] construct")
			}
		}
		list2 := s2.list
		if !truncate && len(list1) > len(list2) && len(list2) > 0 {
			if s2.classes && strings.HasSuffix(sets[1], ":]") && !(s1.classes && strings.HasSuffix(sets[0], ":]") && !complement) {
				return t.fail(1, "when translating with string1 longer than string2,\nthe latter string must not end with a character class")
			}
			list2 = append(list2[:len(list2):len(list2)], bytes.Repeat(list2[len(list2)-1:], len(list1)-len(list2))...)
		}
		if complement && s1.classes {
			for _, b := range list2[:min(len(list1), len(list2))] {
				if b != list2[0] {
					return t.fail(1, "when translating with complemented character classes,\nstring2 must map all characters in the domain to one")
				}
			}
		}
		for i := range min(len(list1), len(list2)) {
			to[list1[i]] = list2[i]
		}
	}
	var drop, once [256]bool
	if del {
		drop = in1
	}
	if squeeze {
		switch {
		case s2 != nil:
			for _, b := range s2.list {
				once[b] = true
			}
		default:
			once = in1
		}
	}
	last := -1
	buf := make([]byte, 0, 64<<10)
	err = blocks(cmd.Reader(t.ctx, t.Stdin), func(b []byte) error {
		switch {
		case !del && !squeeze:
			for i, c := range b {
				b[i] = to[c]
			}
			_, err := t.Stdout.Write(b)
			return err
		default:
			buf = buf[:0]
			for _, c := range b {
				if drop[c] {
					continue
				}
				c = to[c]
				if once[c] && last == int(c) {
					continue
				}
				last = int(c)
				buf = append(buf, c)
			}
			if len(buf) > 0 {
				t.Stdout.Write(buf)
			}
			return nil
		}
	})
	if err != nil {
		return t.fail(1, "read error: %s", cmd.Reason(err))
	}
	return 0
}
