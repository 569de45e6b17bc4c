package builtin

import (
	"context"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/expand"
)

func test(ctx context.Context, c *Context, args []string) (int, error) {
	return c.test("test", args), nil
}

func bracket(ctx context.Context, c *Context, args []string) (int, error) {
	if len(args) == 0 || args[len(args)-1] != "]" {
		c.errorf("[", "missing `]'")
		return 2, nil
	}
	return c.test("[", args[:len(args)-1]), nil
}

// testError is why a test has no answer.
type testError string

// tester evaluates the arguments of test by the rules of POSIX, which depend on how many there are, and of bash where
// there are more than four.
type tester struct {
	c    *Context
	args []string
}

func (c *Context) test(name string, args []string) (code int) {
	defer func() {
		switch err := recover().(type) {
		case nil:
		case testError:
			c.errorf(name, "%s", string(err))
			code = 2
		default:
			panic(err)
		}
	}()
	t := &tester{c, args}
	if t.count(args) {
		return 0
	}
	return 1
}

func (t *tester) count(args []string) bool {
	switch len(args) {
	case 0:
		return false
	case 1:
		return args[0] != ""
	case 2:
		return t.two(args)
	case 3:
		return t.three(args)
	case 4:
		if args[0] == "!" {
			return !t.three(args[1:])
		}
		if args[0] == "(" && args[3] == ")" {
			return t.two(args[1:3])
		}
	}
	t.args = args
	ok := t.or()
	if len(t.args) > 0 {
		panic(testError("too many arguments"))
	}
	return ok
}

func (t *tester) two(args []string) bool {
	switch {
	case args[0] == "!":
		return args[1] == ""
	case isUnary(args[0]):
		return t.unary(args[0], args[1])
	}
	panic(testError(args[0] + ": unary operator expected"))
}

func (t *tester) three(args []string) bool {
	switch {
	case isBinary(args[1]):
		return t.binary(args[0], args[1], args[2])
	case args[1] == "-a":
		return args[0] != "" && args[2] != ""
	case args[1] == "-o":
		return args[0] != "" || args[2] != ""
	case args[0] == "!":
		return !t.two(args[1:])
	case args[0] == "(" && args[2] == ")":
		return args[1] != ""
	}
	panic(testError(args[1] + ": binary operator expected"))
}

func (t *tester) or() bool {
	ok := t.and()
	for len(t.args) > 0 && t.args[0] == "-o" {
		t.args = t.args[1:]
		right := t.and()
		ok = ok || right
	}
	return ok
}

func (t *tester) and() bool {
	ok := t.term()
	for len(t.args) > 0 && t.args[0] == "-a" {
		t.args = t.args[1:]
		right := t.term()
		ok = ok && right
	}
	return ok
}

func (t *tester) term() bool {
	if len(t.args) == 0 {
		panic(testError("argument expected"))
	}
	a := t.args[0]
	switch {
	case a == "!":
		t.args = t.args[1:]
		return !t.term()
	case len(t.args) > 2 && isBinary(t.args[1]):
		x, op, y := t.args[0], t.args[1], t.args[2]
		t.args = t.args[3:]
		return t.binary(x, op, y)
	case a == "(":
		t.args = t.args[1:]
		ok := t.or()
		if len(t.args) == 0 || t.args[0] != ")" {
			panic(testError("`)' expected"))
		}
		t.args = t.args[1:]
		return ok
	case len(t.args) > 1 && isUnary(a):
		arg := t.args[1]
		t.args = t.args[2:]
		return t.unary(a, arg)
	}
	t.args = t.args[1:]
	return a != ""
}

func isUnary(s string) bool {
	return len(s) == 2 && s[0] == '-' && strings.IndexByte("abcdefghknoprstuvwxzGLNORS", s[1]) >= 0
}

func isBinary(s string) bool {
	switch s {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *tester) unary(op, arg string) bool {
	if op == "-t" {
		t.integer(arg)
	}
	ok, err := t.c.Unary(op, arg)
	if err != nil {
		panic(testError(err.Error()))
	}
	return ok
}

func (t *tester) binary(x, op, y string) bool {
	switch op {
	case "=", "==":
		return x == y
	case "!=":
		return x != y
	case "<":
		return x < y
	case ">":
		return x > y
	case "-nt", "-ot", "-ef":
		return t.c.Files(op, x, y)
	}
	return expand.Compare(op, t.integer(x), t.integer(y))
}

func (t *tester) integer(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.Trim(s, " \t\n"), "+"), 10, 64)
	if err != nil {
		panic(testError(s + ": integer expression expected"))
	}
	return n
}
