package sys

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// expr calculates as GNU's: exit code 1 when the result is null or zero, 2 for what is no expression.
func expr(ctx context.Context, c *cmd.Call) int {
	args := c.Args
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		help(c, []cmd.Given{{Key: args[0][2:]}}, "EXPRESSION\nOPTION")
		return 0
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.BadUsage(errors.New("missing operand"), 2)
	}
	e := &exprParser{ctx: ctx, args: args}
	v, err := e.or(true)
	if err == nil && e.at < len(e.args) {
		err = fmt.Errorf("syntax error: unexpected argument %s", cmd.Quote(e.args[e.at]))
	}
	if err != nil {
		c.Errorf("%v", err)
		return 2
	}
	fmt.Fprintln(c.Stdout, v)
	if isNull(v) {
		return 1
	}
	return 0
}

type exprParser struct {
	ctx  context.Context
	args []string
	at   int
}

// next consumes the argument if it is one of words.
func (e *exprParser) next(words ...string) string {
	if e.at < len(e.args) {
		for _, w := range words {
			if e.args[e.at] == w {
				e.at++
				return w
			}
		}
	}
	return ""
}

func (e *exprParser) need() error {
	if e.at < len(e.args) {
		return nil
	}
	if e.at == 0 {
		return errors.New("syntax error: missing argument")
	}
	return fmt.Errorf("syntax error: missing argument after %s", cmd.Quote(e.args[e.at-1]))
}

// The levels of precedence, from the lowest. eval is false in the branch that | and & do not take: it is parsed, and its
// errors of calculation do not count.
func (e *exprParser) or(eval bool) (string, error) {
	l, err := e.and(eval)
	for err == nil && e.next("|") != "" {
		var r string
		if r, err = e.and(eval && isNull(l)); err == nil && isNull(l) {
			if l = r; isNull(l) {
				l = "0"
			}
		}
	}
	return l, err
}

func (e *exprParser) and(eval bool) (string, error) {
	l, err := e.compare(eval)
	for err == nil && e.next("&") != "" {
		var r string
		if r, err = e.compare(eval && !isNull(l)); err == nil && (isNull(l) || isNull(r)) {
			l = "0"
		}
	}
	return l, err
}

func (e *exprParser) compare(eval bool) (string, error) {
	l, err := e.sum(eval)
	for err == nil {
		op := e.next("<", "<=", "=", "==", "!=", ">=", ">")
		if op == "" {
			break
		}
		var r string
		if r, err = e.sum(eval); err != nil {
			break
		}
		order := 0
		if a, b := integer(l), integer(r); a != nil && b != nil {
			order = a.Cmp(b)
		} else {
			order = strings.Compare(l, r)
		}
		result := map[string]bool{"<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0, "!=": order != 0, ">=": order >= 0, ">": order > 0}[op]
		l = "0"
		if result {
			l = "1"
		}
	}
	return l, err
}

func (e *exprParser) sum(eval bool) (string, error) {
	return e.arithmetic(eval, e.product, "+", "-")
}

func (e *exprParser) product(eval bool) (string, error) {
	return e.arithmetic(eval, e.matching, "*", "/", "%")
}

func (e *exprParser) arithmetic(eval bool, inner func(bool) (string, error), ops ...string) (string, error) {
	l, err := inner(eval)
	for err == nil {
		op := e.next(ops...)
		if op == "" {
			break
		}
		var r string
		if r, err = inner(eval); err != nil || !eval {
			continue
		}
		a, b := integer(l), integer(r)
		if a == nil || b == nil {
			return "", errors.New("non-integer argument")
		}
		if op != "+" && op != "-" && op != "*" && b.Sign() == 0 {
			return "", errors.New("division by zero")
		}
		v := new(big.Int)
		switch op {
		case "+":
			v.Add(a, b)
		case "-":
			v.Sub(a, b)
		case "*":
			v.Mul(a, b)
		case "/":
			v.Quo(a, b)
		case "%":
			v.Rem(a, b)
		}
		l = v.String()
	}
	return l, err
}

func (e *exprParser) matching(eval bool) (string, error) {
	l, err := e.word(eval)
	for err == nil && e.next(":") != "" {
		var r string
		if r, err = e.word(eval); err == nil && eval {
			l, err = e.match(l, r)
		}
	}
	return l, err
}

// match is the value of STRING : REGEX: the text of the first group, or the number of characters that matched.
func (e *exprParser) match(s, pattern string) (string, error) {
	re, err := regex.Compile(pattern, regex.BRE, 0)
	if err != nil {
		return "", err
	}
	m := re.FindIndex(e.ctx, []byte(s), 0)
	if m != nil && m[0] != 0 {
		m = nil
	}
	if re.Groups() > 0 {
		if m == nil || m[2] < 0 {
			return "", nil
		}
		return s[m[2]:m[3]], nil
	}
	if m == nil {
		return "0", nil
	}
	return fmt.Sprint(utf8.RuneCountInString(s[:m[1]])), nil
}

func (e *exprParser) word(eval bool) (string, error) {
	if err := e.need(); err != nil {
		return "", err
	}
	switch e.next("+", "length", "match", "index", "substr") {
	case "+":
		if err := e.need(); err != nil {
			return "", err
		}
		e.at++
		return e.args[e.at-1], nil
	case "length":
		v, err := e.word(eval)
		return fmt.Sprint(utf8.RuneCountInString(v)), err
	case "match":
		l, err := e.word(eval)
		if err != nil {
			return "", err
		}
		r, err := e.word(eval)
		if err != nil || !eval {
			return "", err
		}
		return e.match(l, r)
	case "index":
		l, err := e.word(eval)
		if err != nil {
			return "", err
		}
		r, err := e.word(eval)
		at := strings.IndexAny(l, r)
		if at >= 0 {
			at = utf8.RuneCountInString(l[:at])
		}
		return fmt.Sprint(at + 1), err
	case "substr":
		var v [3]string
		for i := range v {
			var err error
			if v[i], err = e.word(eval); err != nil {
				return "", err
			}
		}
		pos, n := integer(v[1]), integer(v[2])
		if pos == nil || n == nil || pos.Sign() <= 0 || n.Sign() <= 0 || !pos.IsInt64() {
			return "", nil
		}
		r := []rune(v[0])
		if pos.Int64() > int64(len(r)) {
			return "", nil
		}
		r = r[pos.Int64()-1:]
		if n.IsInt64() && n.Int64() < int64(len(r)) {
			r = r[:n.Int64()]
		}
		return string(r), nil
	}
	if e.next("(") != "" {
		v, err := e.or(eval)
		if err != nil {
			return "", err
		}
		if e.next(")") == "" {
			if e.at == len(e.args) {
				return "", fmt.Errorf("syntax error: expecting ')' after %s", cmd.Quote(e.args[e.at-1]))
			}
			return "", fmt.Errorf("syntax error: expecting ')' instead of %s", cmd.Quote(e.args[e.at]))
		}
		return v, nil
	}
	if e.next(")") != "" {
		return "", errors.New("syntax error: unexpected ')'")
	}
	e.at++
	return e.args[e.at-1], nil
}

// integer reads what expr takes as a number: digits behind one minus at most.
func integer(s string) *big.Int {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	n, _ := new(big.Int).SetString(s, 10)
	return n
}

func isNull(s string) bool {
	return s == "" || strings.Trim(strings.TrimPrefix(s, "-"), "0") == "" && s != "-"
}
