package builtin

import (
	"context"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// declaring is a declare, typeset, local, export or readonly under way.
type declaring struct {
	c         *Context
	ctx       context.Context
	name      string
	d         expand.Declare
	print     bool // -p
	functions bool // -f
	names     bool // -F
	ended     bool // the options are over
	operands  bool // there was one
	code      int
}

// Decl runs declare, typeset, local, export and readonly as the parser found them.
func Decl(ctx context.Context, c *Context, clause *syntax.DeclClause) (int, error) {
	d := &declaring{c: c, ctx: ctx, name: clause.Variant.Value}
	if !d.begin() {
		return 1, nil
	}
	for _, a := range clause.Args {
		if a.Name == nil {
			fields, err := c.Fields(ctx, a.Value)
			if err != nil {
				return 1, err
			}
			for _, f := range fields {
				if code, err := d.word(f); code != 0 || err != nil {
					return code, err
				}
			}
			continue
		}
		d.ended, d.operands = true, true
		for _, a := range c.BraceAssign(a) {
			if err := d.assign(a); err != nil {
				return 1, err
			}
		}
	}
	return d.finish()
}

// plainDecl runs a declaration whose words the parser did not see: "builtin export x=1", "$cmd x=1".
func plainDecl(name string) Func {
	return func(ctx context.Context, c *Context, args []string) (int, error) {
		d := &declaring{c: c, ctx: ctx, name: name}
		if !d.begin() {
			return 1, nil
		}
		for _, a := range args {
			if code, err := d.word(a); code != 0 || err != nil {
				return code, err
			}
		}
		return d.finish()
	}
}

func (d *declaring) begin() bool {
	switch d.name {
	case "export":
		d.d.Add = vars.Export
	case "readonly":
		d.d.Add = vars.ReadOnly
	case "local":
		if !d.c.Vars.InFunction() {
			d.c.errorf("local", "can only be used in a function")
			return false
		}
		d.d.Local = true
	default:
		d.d.Local = d.c.Vars.InFunction()
	}
	return true
}

// word takes an option or an operand. A code above 0 ends the command.
func (d *declaring) word(w string) (int, error) {
	if !d.ended && len(w) > 1 && (w[0] == '-' || w[0] == '+') {
		if w == "--" {
			d.ended = true
			return 0, nil
		}
		return d.options(w), nil
	}
	d.ended, d.operands = true, true
	return 0, d.operand(w)
}

var attributes = map[rune]vars.Attr{
	'i': vars.Integer, 'l': vars.Lower, 'n': vars.NameRef, 'r': vars.ReadOnly, 't': vars.Trace, 'u': vars.Upper,
	'x': vars.Export, 'c': vars.Capital,
}

func (d *declaring) options(w string) int {
	allowed := "aAfFgiIlnrtuxcp"
	switch d.name {
	case "export":
		allowed = "fnp"
	case "readonly":
		allowed = "aAfp"
	}
	for _, r := range w[1:] {
		if !strings.ContainsRune(allowed, r) || w[0] == '+' && d.name != "declare" && d.name != "typeset" && d.name != "local" {
			return d.c.usage(d.name, w[:1]+string(r))
		}
		switch {
		case r == 'p':
			d.print = true
		case r == 'f':
			d.functions = true
		case r == 'F':
			d.functions, d.names = true, true
		case r == 'g':
			d.d.Global, d.d.Local = true, false
		case r == 'I':
			d.d.Inherit = true
		case d.name == "export" && r == 'n':
			d.d.Add, d.d.Remove = 0, vars.Export
		case r == 'a' && w[0] == '-':
			d.d.Kind = vars.Indexed
		case r == 'A' && w[0] == '-':
			d.d.Kind = vars.Assoc
		case r == 'a' || r == 'A':
			// +a on an array is an error of its own; on anything else it means nothing.
		case w[0] == '-':
			d.d.Add |= attributes[r]
			d.d.Remove &^= attributes[r]
		default:
			d.d.Remove |= attributes[r]
			d.d.Add &^= attributes[r]
		}
	}
	if both := vars.Lower | vars.Upper; d.d.Add&both == both {
		d.d.Add &^= both // one forbids the other, and neither is left
	}
	return 0
}

// report writes an error that ends only this operand; others are returned.
func (d *declaring) report(err error) error {
	switch {
	case err == nil:
		return nil
	case !recoverable(err):
		return err
	case d.name == "export" || d.name == "readonly":
		if _, readonly := err.(*vars.ReadOnlyError); readonly {
			d.c.errorf("", "%v", err)
			break
		}
		fallthrough
	default:
		d.c.errorf(d.name, "%v", err)
	}
	d.code = 1
	return nil
}

func (d *declaring) assign(a *syntax.Assign) error {
	if d.functions || d.print && a.Naked {
		return d.operand(a.Name.Value)
	}
	return d.report(d.c.Assign(d.ctx, a, d.d))
}

// operand takes "name", "name=value", "name[sub]=value" or "name=(...)" that came out of an expansion.
func (d *declaring) operand(w string) error {
	if d.functions {
		d.function(w)
		return nil
	}
	if d.print && d.name != "export" && d.name != "readonly" {
		v, ok := d.c.Vars.Raw(w)
		if !ok {
			d.c.errorf(d.name, "%s: not found", w)
			d.code = 1
			return nil
		}
		d.code = max(d.code, d.c.write(d.name, expand.Declaration(w, v)+"\n"))
		return nil
	}
	name, value, has := strings.Cut(w, "=")
	add := has && strings.HasSuffix(name, "+")
	if add {
		name = name[:len(name)-1]
	}
	base, sub, indexed := vars.SplitRef(name)
	if !vars.ValidName(base) || indexed && (d.name == "export" || d.name == "readonly") {
		d.c.errorf(d.name, "`%s': not a valid identifier", w)
		d.code = 1
		return nil
	}
	if has && strings.HasPrefix(value, "(") && strings.HasSuffix(value, ")") && (d.d.Kind != vars.Unset || d.isArray(base)) {
		// A list in quotes is a list all the same, for arrays.
		f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(w), "")
		if err == nil && len(f.Stmts) == 1 {
			if call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr); ok && len(call.Assigns) == 1 && len(call.Args) == 0 {
				return d.report(d.c.Assign(d.ctx, call.Assigns[0], d.d))
			}
		}
	}
	return d.report(d.c.Declared(base, d.d, func() error {
		switch {
		case indexed:
			sub, err := d.c.Subscript(base, sub)
			if err != nil || !has {
				return err
			}
			if add {
				return d.c.Vars.Append(base+"["+sub+"]", value)
			}
			return d.c.Vars.Set(base+"["+sub+"]", value)
		case !has:
			return nil
		case d.d.Add&vars.NameRef != 0:
			return d.c.Vars.Point(base, value)
		case add:
			return d.c.Vars.Append(base, value)
		}
		return d.c.Vars.Set(base, value)
	}))
}

func (d *declaring) isArray(name string) bool {
	v, _ := d.c.Vars.Get(name)
	return v.Kind == vars.Indexed || v.Kind == vars.Assoc
}

func (d *declaring) function(name string) {
	text, ok := d.c.Sh.Function(name)
	switch {
	case !ok:
		if d.name == "export" || d.name == "readonly" {
			d.c.errorf(d.name, "%s: not a function", name)
		}
		d.code = 1
	case d.d.Add&(vars.Export|vars.ReadOnly) != 0:
		d.c.Sh.FunctionAttr(name, d.d.Add&vars.Export != 0, d.d.Add&vars.ReadOnly != 0)
	case d.names:
		d.code = max(d.code, d.c.write(d.name, name+"\n"))
	default:
		d.code = max(d.code, d.c.write(d.name, text+"\n"))
	}
}

// finish lists when there was nothing to declare.
func (d *declaring) finish() (int, error) {
	if d.operands {
		return d.code, nil
	}
	var b strings.Builder
	if d.functions {
		for _, name := range d.c.Sh.Functions() {
			if d.names {
				b.WriteString("declare -f " + name + "\n")
			} else if text, ok := d.c.Sh.Function(name); ok {
				b.WriteString(text + "\n")
			}
		}
		return d.c.write(d.name, b.String()), nil
	}
	names := d.c.Vars.All()
	listed := d.d.Add | d.d.Remove
	if d.name == "local" {
		names = d.c.Vars.Locals()
	}
	for _, name := range names {
		v, _ := d.c.Vars.Raw(name)
		switch {
		case d.d.Kind != vars.Unset && v.Kind != d.d.Kind, v.Attr&listed != listed:
		case d.print || listed != 0 || d.d.Kind != vars.Unset || d.name == "local":
			b.WriteString(expand.Declaration(name, v) + "\n")
		case v.Kind != vars.Unset:
			b.WriteString(expand.Line(name, v) + "\n")
		}
	}
	if d.name != "local" && !d.print && listed == 0 && d.d.Kind == vars.Unset {
		for _, name := range d.c.Sh.Functions() {
			if text, ok := d.c.Sh.Function(name); ok {
				b.WriteString(text + "\n")
			}
		}
	}
	return d.c.write(d.name, b.String()), nil
}
