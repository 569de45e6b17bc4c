package text

import "github.com/exthost/exthost/guests/sh/internal/regex"

// pattern is a basic regular expression.
type pattern struct {
	t  *call
	re *regex.Regexp
}

func (t *call) pattern(s string) (*pattern, error) {
	var flags regex.Flags
	if !t.utf8() {
		flags |= regex.Bytes
	}
	re, err := regex.Compile(s, regex.BRE, flags|regex.Multiline)
	if err != nil {
		return nil, err
	}
	return &pattern{t, re}, nil
}

func (p *pattern) match(b []byte) bool { return p.re.Match(p.t.ctx, b) }

// all returns where the expression matches, none of them empty.
func (p *pattern) all(b []byte) [][2]int {
	var list [][2]int
	for from := 0; from <= len(b); {
		m := p.re.FindIndex(p.t.ctx, b, from)
		if m == nil {
			break
		}
		if m[0] == m[1] {
			from = m[1] + 1
			continue
		}
		list = append(list, [2]int{m[0], m[1]})
		from = m[1]
	}
	return list
}
