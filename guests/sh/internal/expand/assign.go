package expand

import (
	"context"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// Declare says what a declaration does to the variables it names.
type Declare struct {
	Add, Remove   vars.Attr
	Kind          vars.Kind // Indexed for -a, Assoc for -A
	Local, Global bool
	Inherit       bool // local -I: the value and attributes of the variable that is hidden
}

// element is one of name=( ... ).
type element struct {
	key   string // the text of its subscript
	has   bool
	value string
}

// Assign carries out an assignment, with what the declaration around it says (the zero Declare: none).
func (e *Expander) Assign(ctx context.Context, a *syntax.Assign, d Declare) error {
	name := a.Name.Value
	if d == (Declare{}) && a.Index == nil && a.Array == nil && !a.Naked {
		value, err := e.literal(ctx, a.Value, true)
		if err != nil {
			return err
		}
		if a.Append {
			return e.Vars.Append(name, value)
		}
		return e.Vars.Set(name, value)
	}
	// Values are expanded before anything is declared: local x=$x has the outer x.
	var value, sub string
	var elements []element
	var err error
	assoc := false
	if a.Array != nil || a.Index != nil {
		v, _ := e.Vars.Get(name)
		if d.Local && !e.Vars.IsLocal(name) {
			v = vars.Var{}
		}
		assoc = d.Kind == vars.Assoc || v.Kind == vars.Assoc
		if raw, ok := e.Vars.Raw(name); !assoc && ok && raw.Kind == vars.Unset && raw.Attr&vars.NameRef != 0 {
			assoc = false
		}
	}
	switch {
	case a.Array != nil:
		if elements, err = e.elements(ctx, a.Array, assoc); err != nil {
			return err
		}
	case a.Value != nil:
		if value, err = e.literal(ctx, a.Value, true); err != nil {
			return err
		}
	}
	if a.Index != nil {
		x := e.start(ctx)
		if sub, err = x.arithText(a.Index); err != nil {
			return err
		}
		if all, _ := wholeArray(a.Index); all && !assoc {
			return &vars.Error{Text: name + "[" + sub + "]: bad array subscript"}
		}
	}
	return e.Declared(name, d, func() error {
		switch {
		case a.Array != nil:
			return e.compound(name, elements, a.Append, d.Kind)
		case a.Index != nil && a.Naked:
			return e.Vars.Convert(name, vars.Indexed)
		case a.Naked:
			return nil
		case a.Index != nil:
			return e.assignElement(name, sub, value, a.Append)
		case d.Add&vars.NameRef != 0:
			return e.Vars.Point(name, value)
		case a.Append:
			return e.Vars.Append(name, value)
		}
		return e.Vars.Set(name, value)
	})
}

// Declared declares a variable, lets assign set it, and makes it read-only last.
func (e *Expander) Declared(name string, d Declare, assign func() error) error {
	do := func() error {
		if d.Local {
			if err := e.Vars.Local(name, d.Inherit); err != nil {
				return err
			}
		}
		if d.Kind != vars.Unset {
			if err := e.Vars.Convert(name, d.Kind); err != nil {
				return err
			}
		}
		if add := d.Add &^ vars.ReadOnly; add != 0 || d.Remove != 0 {
			if err := e.Vars.SetAttr(name, add, d.Remove); err != nil {
				return err
			}
		}
		if err := assign(); err != nil {
			return err
		}
		if d.Add&vars.ReadOnly != 0 {
			return e.Vars.SetAttr(name, vars.ReadOnly, 0)
		}
		return nil
	}
	if d.Global {
		return e.Vars.AtGlobal(name, do)
	}
	return do()
}

func (e *Expander) assignElement(name, sub, value string, add bool) error {
	base, _, _ := e.Vars.Resolve(name)
	v, _ := e.Vars.Raw(base)
	if v.Kind == vars.Assoc {
		if add {
			return e.Vars.AppendKey(name, sub, value)
		}
		return e.Vars.SetKey(name, sub, value)
	}
	if v.Attr&vars.ReadOnly != 0 {
		return &vars.ReadOnlyError{Name: base}
	}
	if strings.TrimSpace(sub) == "" {
		return &vars.Error{Text: name + "[" + sub + "]: bad array subscript"}
	}
	i, err := e.Eval(sub)
	if err != nil {
		return err
	}
	if add {
		return e.Vars.AppendIndex(name, i, value)
	}
	return e.Vars.SetIndex(name, i, value)
}

func (e *Expander) elements(ctx context.Context, array *syntax.ArrayExpr, assoc bool) ([]element, error) {
	var out []element
	for _, el := range array.Elems {
		if el.Index != nil {
			x := e.start(ctx)
			key, err := x.arithText(el.Index)
			if err != nil {
				return nil, err
			}
			value, err := e.literal(ctx, el.Value, true)
			if err != nil {
				return nil, err
			}
			out = append(out, element{key, true, value})
			continue
		}
		if assoc {
			// Words of an associative array are keys and values in turn, and are not split.
			value, err := e.Literal(ctx, el.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, element{value: value})
			continue
		}
		fields, err := e.Fields(ctx, el.Value)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			out = append(out, element{value: f})
		}
	}
	return out, nil
}

// compound is name=( ... ) and name+=( ... ).
func (e *Expander) compound(name string, elements []element, add bool, kind vars.Kind) error {
	base, sub, _ := e.Vars.Resolve(name)
	if sub != "" {
		return &vars.Error{Text: base + "[" + sub + "]: cannot assign list to array member"}
	}
	v, _ := e.Vars.Raw(base)
	if v.Attr&vars.ReadOnly != 0 {
		return &vars.ReadOnlyError{Name: base}
	}
	if v.Kind == vars.Assoc || kind == vars.Assoc {
		return e.compoundAssoc(base, elements, add)
	}
	plain := v.Attr == 0 || v.Attr == vars.Export
	for _, el := range elements {
		plain = plain && !el.has
	}
	if plain && !add {
		values := make([]string, len(elements))
		for i, el := range elements {
			values[i] = el.value
		}
		return e.Vars.SetList(base, values)
	}
	next := int64(0)
	if add {
		if err := e.Vars.Convert(base, vars.Indexed); err != nil {
			return err
		}
		v, _ = e.Vars.Raw(base)
		next = v.List.Last() + 1
	} else if err := e.Vars.Clear(base, vars.Indexed); err != nil {
		return err
	}
	for _, el := range elements {
		if el.has {
			i, err := e.Eval(el.key)
			if err != nil {
				return err
			}
			next = i
		}
		if err := e.Vars.SetIndex(base, next, el.value); err != nil {
			return err
		}
		if next < 0 {
			v, _ = e.Vars.Raw(base)
			next += v.List.Last() + 1
		}
		next++
	}
	return nil
}

func (e *Expander) compoundAssoc(name string, elements []element, add bool) error {
	if !add {
		if err := e.Vars.Clear(name, vars.Assoc); err != nil {
			return err
		}
	}
	pairs := len(elements) > 0 && !elements[0].has
	for i := 0; i < len(elements); i++ {
		el := elements[i]
		switch {
		case pairs:
			value := ""
			if i+1 < len(elements) {
				value = elements[i+1].value
			}
			i++
			if err := e.Vars.SetKey(name, el.value, value); err != nil {
				return err
			}
		case !el.has:
			// bash says so and goes on with the others.
			e.Host.Warn(name + ": " + el.value + ": must use subscript when assigning associative array")
		default:
			if err := e.Vars.SetKey(name, el.key, el.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// AssignTemp carries out an assignment before a command, in the scope that [vars.Table.PushTemp] began. Arrays cannot
// be exported: as in bash, one assigned here has no effect on the command.
func (e *Expander) AssignTemp(ctx context.Context, a *syntax.Assign) error {
	if a.Array != nil || a.Index != nil {
		return nil
	}
	value, err := e.literal(ctx, a.Value, true)
	if err != nil {
		return err
	}
	return e.Vars.SetTemp(a.Name.Value, value, a.Append)
}
