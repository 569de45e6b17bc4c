package vars

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table holds the variables of one shell. It is not safe for concurrent use: a subshell works on a [Table.Clone].
type Table struct {
	// Dynamic computes values; nil: nothing is computed. A clone has none until it is given its own.
	Dynamic Dynamic
	// Eval evaluates an arithmetic expression: for integer attributes and for subscripts in names ("a[i+1]").
	Eval func(expr string) (int64, error)
	// Changed is called after a variable was set or unset, when it is not nil: PATH, OPTIND, IFS and such.
	Changed func(name string)
	// Warn writes a warning about circular name references.
	Warn func(text string)
	// AllExport is set -a: what is assigned is exported.
	AllExport bool
	// OptindWrites counts the changes of OPTIND, by which a script starts getopts anew.
	OptindWrites uint

	vars   map[string]*Var
	frames []frame
	plain  map[string]bool // dynamic names that were unset: plain from then on
	env    []string        // cache of Environ
}

// frame is a scope: what its variables hid, nil where there was nothing.
type frame struct {
	saved    map[string]*Var
	function bool
}

var dynamic = map[string]bool{
	"RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true, "EPOCHSECONDS": true, "EPOCHREALTIME": true,
	"BASHPID": true, "BASH_COMMAND": true, "BASH_SUBSHELL": true, "BASH_ARGV0": true, "BASH_ARGC": true, "BASH_ARGV": true,
	"FUNCNAME": true, "BASH_SOURCE": true, "BASH_LINENO": true, "PIPESTATUS": true, "DIRSTACK": true, "GROUPS": true,
	"HISTCMD": true, "BASHOPTS": true, "SHELLOPTS": true, "COMP_WORDBREAKS": true,
}

// IsDynamic tells whether the shell computes a variable's value.
func IsDynamic(name string) bool { return dynamic[name] }

// New returns a table with the variables of an environment, all exported.
func New(environ []string) *Table {
	t := &Table{vars: make(map[string]*Var, len(environ)+16)}
	for _, e := range environ {
		name, value, ok := strings.Cut(e, "=")
		if ok && ValidName(name) && !dynamic[name] {
			t.vars[name] = &Var{Kind: String, Attr: Export, Str: value}
		}
	}
	return t
}

// ValidName tells whether s can be the name of a variable.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// SplitRef splits "NAME[SUBSCRIPT]"; without a subscript the whole is the name.
func SplitRef(ref string) (name, subscript string, has bool) {
	if !strings.HasSuffix(ref, "]") {
		return ref, "", false
	}
	i := strings.IndexByte(ref, '[')
	if i <= 0 || !ValidName(ref[:i]) || i+2 == len(ref) {
		return ref, "", false
	}
	return ref[:i], ref[i+1 : len(ref)-1], true
}

// Clone returns a copy for a subshell, with the scopes as they are and without hooks.
func (t *Table) Clone() *Table {
	c := &Table{
		vars: make(map[string]*Var, len(t.vars)+8), AllExport: t.AllExport, env: t.env, plain: maps.Clone(t.plain),
	}
	block := make([]Var, 0, len(t.vars)) // one allocation: pointers into it stay valid, as it never grows
	dup := func(v *Var) *Var {
		if v == nil {
			return nil
		}
		if v.List != nil && !v.List.shared {
			v.List.shared = true
		}
		if v.Map != nil && !v.Map.shared {
			v.Map.sorted()
			v.Map.shared = true
		}
		if len(block) == cap(block) {
			copied := *v
			return &copied
		}
		block = append(block, *v)
		return &block[len(block)-1]
	}
	for name, v := range t.vars {
		c.vars[name] = dup(v)
	}
	for _, f := range t.frames {
		saved := make(map[string]*Var, len(f.saved))
		for name, v := range f.saved {
			saved[name] = dup(v)
		}
		c.frames = append(c.frames, frame{saved, f.function})
	}
	return c
}

// Push begins the scope of a function, Pop ends it. PushTemp begins the scope of `NAME=VALUE command`: it is ended by
// Pop too, and local variables of a command in it are local to the function around it.
func (t *Table) Push()     { t.frames = append(t.frames, frame{function: true}) }
func (t *Table) PushTemp() { t.frames = append(t.frames, frame{}) }

// Pop ends the innermost scope and brings back what it hid.
func (t *Table) Pop() {
	f := t.frames[len(t.frames)-1]
	t.frames = t.frames[:len(t.frames)-1]
	for name, v := range f.saved {
		if v == nil {
			delete(t.vars, name)
		} else {
			t.vars[name] = v
		}
		t.changed(name)
	}
	if len(f.saved) > 0 {
		t.env = nil
	}
}

// InFunction tells whether there is a function's scope: `local` works.
func (t *Table) InFunction() bool { return t.function() >= 0 }

func (t *Table) function() int {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if t.frames[i].function {
			return i
		}
	}
	return -1
}

func (t *Table) changed(name string) {
	if name == "OPTIND" {
		t.OptindWrites++
	}
	if t.Changed != nil {
		t.Changed(name)
	}
}

// Resolve follows name references. The subscript is that of a reference to an element; sub is "" when there is none.
// It is false for a reference that points nowhere, or in a circle: then base is the last reference.
func (t *Table) Resolve(name string) (base, sub string, ok bool) {
	for range 8 {
		v := t.vars[name]
		if v == nil || v.Attr&NameRef == 0 {
			return name, "", true
		}
		if v.Kind != String || v.Str == "" {
			return name, "", false
		}
		target, sub, has := SplitRef(v.Str)
		if has {
			return target, sub, true
		}
		if target == name {
			break
		}
		name = target
	}
	if t.Warn != nil {
		t.Warn("warning: " + name + ": circular name reference")
	}
	return name, "", false
}

// Get returns a variable; name references are followed. False: it is not set (Kind Unset: declared but not set).
func (t *Table) Get(name string) (Var, bool) {
	v := t.vars[name]
	if v != nil && v.Attr&NameRef != 0 {
		base, sub, ok := t.Resolve(name)
		if !ok {
			return Var{}, false
		}
		if sub != "" {
			return t.element(base, sub)
		}
		name, v = base, t.vars[base]
	}
	if v == nil {
		return t.computed(name)
	}
	return *v, v.Kind != Unset
}

// Raw returns a variable without following a reference.
func (t *Table) Raw(name string) (Var, bool) {
	if v := t.vars[name]; v != nil {
		return *v, true
	}
	return t.computed(name)
}

func (t *Table) computed(name string) (Var, bool) {
	if t.Dynamic == nil || !dynamic[name] || t.plain[name] {
		return Var{}, false
	}
	if list, ok := t.Dynamic.SpecialList(name); ok {
		return Var{Kind: Indexed, List: NewList(list)}, len(list) > 0
	}
	if s, ok := t.Dynamic.Special(name); ok {
		return Var{Kind: String, Str: s}, true
	}
	return Var{}, false
}

func (t *Table) element(name, sub string) (Var, bool) {
	v, ok := t.Get(name)
	if !ok {
		return Var{}, false
	}
	if sub == "@" || sub == "*" {
		return v, true
	}
	var s string
	switch v.Kind {
	case Assoc:
		s, ok = v.Map.Get(sub)
	default:
		var i int64
		if i, ok = t.index(sub); !ok {
			return Var{}, false
		}
		s, ok = v.At(i)
	}
	return Var{Kind: String, Str: s}, ok
}

func (t *Table) index(sub string) (int64, bool) {
	if i, err := strconv.ParseInt(sub, 10, 64); err == nil && (sub == "0" || sub[0] != '0') {
		return i, true
	}
	if t.Eval == nil {
		return 0, false
	}
	i, err := t.Eval(sub)
	return i, err == nil
}

// At returns an element by its number; a string is an array with element 0. Negative numbers count from the end.
func (v Var) At(i int64) (string, bool) {
	switch v.Kind {
	case String:
		if i == 0 || i == -1 {
			return v.Str, true
		}
	case Indexed:
		if i < 0 {
			i += v.List.Last() + 1
		}
		return v.List.Get(i)
	}
	return "", false
}

// Scalar is the value that $name gives: element 0 of an array.
func (v Var) Scalar() (string, bool) {
	switch v.Kind {
	case String:
		return v.Str, true
	case Indexed:
		return v.List.Get(0)
	case Assoc:
		return v.Map.Get("0")
	}
	return "", false
}

// Values returns all elements in order.
func (v Var) Values() []string {
	switch v.Kind {
	case String:
		return []string{v.Str}
	case Indexed:
		return v.List.Values()
	case Assoc:
		values := make([]string, 0, v.Map.Len())
		for _, s := range v.Map.All {
			values = append(values, s)
		}
		return values
	}
	return nil
}

// Keys returns all subscripts in order.
func (v Var) Keys() []string {
	switch v.Kind {
	case String:
		return []string{"0"}
	case Indexed:
		keys := make([]string, v.List.Len())
		for n := range keys {
			keys[n] = strconv.FormatInt(v.List.Index(n), 10)
		}
		return keys
	case Assoc:
		keys := make([]string, 0, v.Map.Len())
		for k := range v.Map.All {
			keys = append(keys, k)
		}
		return keys
	}
	return nil
}

// Str returns the value of a variable as $name gives it: element 0 of an array; "" when there is none.
func (t *Table) Str(name string) string {
	if v := t.vars[name]; v != nil && v.Kind == String && v.Attr&NameRef == 0 {
		return v.Str
	}
	v, _ := t.Get(name)
	s, _ := v.Scalar()
	return s
}

// Set assigns a string; to element 0 of an array. "NAME[SUBSCRIPT]" assigns an element.
func (t *Table) Set(name, value string) error { return t.assign(name, value, false) }

// Append is `name+=value`.
func (t *Table) Append(name, value string) error { return t.assign(name, value, true) }

func (t *Table) assign(name, value string, add bool) error {
	if base, sub, has := SplitRef(name); has {
		return t.assignRef(base, sub, value, add)
	}
	if v := t.vars[name]; v != nil && v.Attr&NameRef != 0 {
		base, sub, ok := t.Resolve(name)
		if !ok {
			if base == name && v.Kind == Unset || v.Str == "" {
				// The first value of a reference is what it points to.
				return t.setTarget(name, value)
			}
			return &Error{name + ": circular name reference"}
		}
		if sub != "" {
			return t.assignRef(base, sub, value, add)
		}
		name = base
	}
	v, err := t.writable(name)
	if err != nil {
		return err
	}
	if v == nil {
		t.Dynamic.SetSpecial(name, value)
		return nil
	}
	old, _ := v.Scalar()
	if value, err = t.cook(v, old, value, add); err != nil {
		return err
	}
	switch v.Kind {
	case Indexed:
		v.list().set(0, value)
	case Assoc:
		v.table().set("0", value)
	default:
		v.Kind, v.Str = String, value
	}
	t.wrote(name, v)
	return nil
}

// Point makes name a reference to target: declare -n name=target.
func (t *Table) Point(name, target string) error {
	if name == target {
		if !t.InFunction() {
			return &Error{name + ": nameref variable self references not allowed"}
		}
		if t.Warn != nil {
			t.Warn("warning: " + name + ": circular name reference")
		}
	}
	if base, _, _ := SplitRef(target); target != "" && !ValidName(base) {
		return &Error{"`" + target + "': invalid variable name for name reference"}
	}
	if err := t.SetAttr(name, NameRef, 0); err != nil {
		return err
	}
	return t.setTarget(name, target)
}

func (t *Table) setTarget(name, target string) error {
	base, _, _ := SplitRef(target)
	if !ValidName(base) {
		return &Error{"`" + target + "': not a valid identifier"}
	}
	v := t.vars[name]
	if v.Attr&ReadOnly != 0 {
		return &ReadOnlyError{name}
	}
	v.Kind, v.Str = String, target
	t.changed(name)
	return nil
}

func (t *Table) assignRef(base, sub, value string, add bool) error {
	v, _ := t.Get(base)
	if v.Kind == Assoc {
		return t.setKey(base, sub, value, add)
	}
	i, ok := t.index(sub)
	if !ok {
		if t.Eval == nil {
			return &Error{base + "[" + sub + "]: bad array subscript"}
		}
		_, err := t.Eval(sub)
		return err
	}
	return t.setIndex(base, i, value, add)
}

// writable returns the variable to change, made when it is not there; nil for a computed one.
func (t *Table) writable(name string) (*Var, error) {
	v := t.vars[name]
	switch {
	case v == nil && t.Dynamic != nil && dynamic[name] && !t.plain[name]:
		return nil, nil
	case v == nil:
		v = &Var{}
		t.vars[name] = v
	case v.Attr&ReadOnly != 0:
		return nil, &ReadOnlyError{name}
	}
	return v, nil
}

func (t *Table) wrote(name string, v *Var) {
	if t.AllExport {
		v.Attr |= Export
	}
	if v.Attr&Export != 0 {
		t.env = nil
	}
	t.changed(name)
}

// cook applies the attributes to a value, which is added to an old one or replaces it.
func (t *Table) cook(v *Var, old, value string, add bool) (string, error) {
	if v.Attr&Integer != 0 {
		if t.Eval == nil {
			return value, nil
		}
		n, err := t.Eval(value)
		if err != nil {
			return "", err
		}
		if add && old != "" {
			o, err := t.Eval(old)
			if err != nil {
				return "", err
			}
			n += o
		}
		return strconv.FormatInt(n, 10), nil
	}
	if add {
		value = old + value
	}
	switch {
	case v.Attr&Lower != 0:
		value = strings.ToLower(value)
	case v.Attr&Upper != 0:
		value = strings.ToUpper(value)
	case v.Attr&Capital != 0:
		r, n := utf8.DecodeRuneInString(value)
		if n > 0 {
			value = string(unicode.ToUpper(r)) + strings.ToLower(value[n:])
		}
	}
	return value, nil
}

// list returns the list of v for changing, table its map; a string becomes element 0.
func (v *Var) list() *List {
	switch {
	case v.List == nil:
		v.List = &List{}
		if v.Kind == String {
			v.List.vals = append(v.List.vals, v.Str)
			v.Str = ""
		}
	case v.List.shared:
		v.List = v.List.clone()
	}
	v.Kind = Indexed
	return v.List
}

func (v *Var) table() *Map {
	switch {
	case v.Map == nil:
		v.Map = NewMap()
	case v.Map.shared:
		v.Map = v.Map.clone()
	}
	return v.Map
}

// SetIndex assigns an element of an indexed array; a negative index counts from the end.
func (t *Table) SetIndex(name string, i int64, value string) error {
	return t.setIndex(name, i, value, false)
}

// AppendIndex is `name[i]+=value`.
func (t *Table) AppendIndex(name string, i int64, value string) error {
	return t.setIndex(name, i, value, true)
}

func (t *Table) setIndex(name string, i int64, value string, add bool) error {
	base, _, _ := t.Resolve(name)
	v, err := t.writable(base)
	if err != nil || v == nil {
		return err
	}
	if v.Kind == Assoc {
		return t.setKey(base, strconv.FormatInt(i, 10), value, add)
	}
	if i < 0 {
		last := int64(-1)
		if v.Kind == String {
			last = 0
		} else if v.Kind == Indexed {
			last = v.List.Last()
		}
		if i += last + 1; i < 0 {
			return &Error{name + "[" + strconv.FormatInt(i-last-1, 10) + "]: bad array subscript"}
		}
	}
	old, _ := v.At(i)
	if value, err = t.cook(v, old, value, add); err != nil {
		return err
	}
	v.list().set(i, value)
	t.wrote(base, v)
	return nil
}

// SetKey assigns an element of an associative array.
func (t *Table) SetKey(name, key, value string) error { return t.setKey(name, key, value, false) }

// AppendKey is `name[key]+=value`.
func (t *Table) AppendKey(name, key, value string) error { return t.setKey(name, key, value, true) }

func (t *Table) setKey(name, key, value string, add bool) error {
	base, _, _ := t.Resolve(name)
	v, err := t.writable(base)
	if err != nil || v == nil {
		return err
	}
	if key == "" {
		return &Error{name + "[]: bad array subscript"}
	}
	old, _ := v.Map.Get(key)
	if value, err = t.cook(v, old, value, add); err != nil {
		return err
	}
	v.Kind = Assoc
	v.table().set(key, value)
	t.wrote(base, v)
	return nil
}

// SetList makes name an indexed array of the values.
func (t *Table) SetList(name string, values []string) error {
	base, _, _ := t.Resolve(name)
	v, err := t.writable(base)
	if err != nil || v == nil {
		return err
	}
	if v.Attr&(Integer|Lower|Upper|Capital) != 0 {
		values = slices.Clone(values)
		for i, s := range values {
			if values[i], err = t.cook(v, "", s, false); err != nil {
				return err
			}
		}
	}
	v.Kind, v.Str, v.Map, v.List = Indexed, "", nil, NewList(values)
	t.wrote(base, v)
	return nil
}

// Clear makes name an empty array of the kind, keeping its attributes.
func (t *Table) Clear(name string, kind Kind) error {
	base, _, _ := t.Resolve(name)
	v, err := t.writable(base)
	if err != nil || v == nil {
		return err
	}
	v.Kind, v.Str, v.List, v.Map = kind, "", nil, nil
	switch kind {
	case Indexed:
		v.List = &List{}
	case Assoc:
		v.Map = NewMap()
	}
	t.wrote(base, v)
	return nil
}

// Convert makes name an array of the kind without losing a string it holds: element 0. An array of the other kind
// cannot be converted.
func (t *Table) Convert(name string, kind Kind) error {
	base, _, _ := t.Resolve(name)
	v := t.vars[base]
	if v == nil {
		v = &Var{}
		t.vars[base] = v
	}
	switch {
	case v.Kind == kind:
	case v.Kind == Indexed && kind == Assoc:
		return &Error{name + ": cannot convert indexed to associative array"}
	case v.Kind == Assoc && kind == Indexed:
		return &Error{name + ": cannot convert associative to indexed array"}
	case v.Attr&ReadOnly != 0:
		return &ReadOnlyError{base}
	case v.Kind == Unset:
		v.Kind = kind // declared, with no elements to be set
	case kind == Indexed:
		v.list()
	case kind == Assoc:
		s, was := v.Str, v.Kind == String
		v.Kind, v.Str = Assoc, ""
		if m := v.table(); was {
			m.set("0", s)
		}
	}
	return nil
}

// SetTemp assigns in the innermost scope and exports: for NAME=VALUE before a command, after [Table.PushTemp].
func (t *Table) SetTemp(name, value string, add bool) error {
	if base, sub, ok := t.Resolve(name); ok && sub == "" {
		name = base
	}
	old := t.vars[name]
	v := &Var{Attr: Export}
	if old != nil {
		if old.Attr&ReadOnly != 0 {
			return &ReadOnlyError{name}
		}
		v.Attr |= old.Attr & (Integer | Lower | Upper | Capital)
		s, _ := old.Scalar()
		var err error
		if value, err = t.cook(old, s, value, add); err != nil {
			return err
		}
	}
	v.Kind, v.Str = String, value
	t.bind(len(t.frames)-1, name, v)
	return nil
}

func (t *Table) bind(level int, name string, v *Var) {
	f := &t.frames[level]
	if f.saved == nil {
		f.saved = map[string]*Var{}
	}
	if _, ok := f.saved[name]; !ok {
		hidden := t.vars[name]
		// A temporary scope above the function's gives up the variable: it would bring back what is hidden here.
		for i := level + 1; i < len(t.frames); i++ {
			if h, ok := t.frames[i].saved[name]; ok {
				hidden = h
				delete(t.frames[i].saved, name)
				break
			}
		}
		f.saved[name] = hidden
	}
	t.vars[name] = v
	t.env = nil
	t.changed(name)
}

// Local makes name a variable of the function's scope, unset unless it is local already. In a command with NAME=VALUE
// before it, it keeps that value; inherit: the value it has, whatever it comes from.
func (t *Table) Local(name string, inherit bool) error {
	level := t.function()
	if level < 0 {
		return &Error{"can only be used in a function"}
	}
	if _, ok := t.frames[level].saved[name]; ok {
		return nil
	}
	old := t.vars[name]
	if old != nil && old.Attr&ReadOnly != 0 {
		return &ReadOnlyError{name}
	}
	v := &Var{}
	if inherit && old != nil {
		*v = *old
		if v.List != nil {
			v.List.shared = true
		}
		if v.Map != nil {
			v.Map.shared = true
		}
	}
	for i := level - 1; i < len(t.frames); i++ {
		// The scope of NAME=VALUE is above the function's when it stands before the declaration, below it when it stood
		// before the call.
		if i < 0 || i == level || t.frames[i].function {
			continue
		}
		if _, ok := t.frames[i].saved[name]; ok && old != nil {
			*v = *old
		}
	}
	t.bind(level, name, v)
	return nil
}

// IsLocal tells whether name is a variable of the innermost function's scope.
func (t *Table) IsLocal(name string) bool {
	level := t.function()
	if level < 0 {
		return false
	}
	_, ok := t.frames[level].saved[name]
	return ok
}

// Locals returns the names of the variables of the innermost function's scope, sorted.
func (t *Table) Locals() []string {
	level := t.function()
	if level < 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(t.frames[level].saved))
}

// AtGlobal calls f with the global variable name in place of the local ones that hide it: declare -g.
func (t *Table) AtGlobal(name string, f func() error) error {
	for i := range t.frames {
		hidden, ok := t.frames[i].saved[name]
		if !ok || !t.frames[i].function {
			continue
		}
		current := t.vars[name]
		if hidden == nil {
			delete(t.vars, name)
		} else {
			t.vars[name] = hidden
		}
		err := f()
		t.frames[i].saved[name] = t.vars[name]
		if current == nil {
			delete(t.vars, name)
		} else {
			t.vars[name] = current
		}
		t.env = nil
		return err
	}
	return f()
}

// SetAttr adds and removes attributes of a variable, which is declared when it is not there. The reference itself is
// meant when NameRef is among them, else what it points to. ReadOnly cannot be removed.
func (t *Table) SetAttr(name string, add, remove Attr) error {
	if (add|remove)&NameRef == 0 {
		if base, sub, ok := t.Resolve(name); ok && sub == "" {
			name = base
		}
	}
	v := t.vars[name]
	if v == nil {
		v = &Var{}
		if c, ok := t.computed(name); ok {
			*v = c
		}
		t.vars[name] = v
	}
	if v.Attr&ReadOnly != 0 && (remove&ReadOnly != 0 || (add|remove)&NameRef != 0) {
		return &ReadOnlyError{name}
	}
	if add&NameRef != 0 && v.Attr&NameRef == 0 && v.Kind == String && v.Str != "" {
		if base, _, _ := SplitRef(v.Str); !ValidName(base) {
			return &Error{"`" + v.Str + "': invalid variable name for name reference"}
		}
	}
	const fold = Lower | Upper | Capital
	if add&fold != 0 {
		remove |= fold &^ add
	}
	v.Attr = v.Attr&^remove | add
	t.env = nil
	t.changed(name)
	return nil
}

// Unset removes a variable (the one a reference points to).
func (t *Table) Unset(name string) error {
	base, sub, ok := t.Resolve(name)
	if !ok {
		base = name
	}
	if sub != "" {
		return t.UnsetElement(base, sub)
	}
	return t.UnsetRaw(base)
}

// UnsetRaw removes a variable, or the reference itself.
func (t *Table) UnsetRaw(name string) error {
	v := t.vars[name]
	if v != nil && v.Attr&ReadOnly != 0 {
		return &ReadOnlyError{name}
	}
	if v == nil && dynamic[name] {
		if t.plain == nil {
			t.plain = map[string]bool{}
		}
		t.plain[name] = true
	}
	level := t.function()
	for i := len(t.frames) - 1; i >= 0; i-- {
		hidden, ok := t.frames[i].saved[name]
		if !ok {
			continue
		}
		switch {
		case i == level:
			// It stays local: what the function then assigns does not get out of it.
			t.vars[name] = &Var{}
		case hidden == nil:
			delete(t.vars, name)
			delete(t.frames[i].saved, name)
		default:
			t.vars[name] = hidden
			delete(t.frames[i].saved, name)
		}
		t.env = nil
		t.changed(name)
		return nil
	}
	if v != nil {
		delete(t.vars, name)
		t.env = nil
	}
	t.changed(name)
	return nil
}

// UnsetElement removes an element of an array.
func (t *Table) UnsetElement(name, sub string) error {
	base, _, _ := t.Resolve(name)
	v := t.vars[base]
	if v == nil || v.Kind == Unset {
		return nil
	}
	if v.Attr&ReadOnly != 0 {
		return &ReadOnlyError{base}
	}
	switch v.Kind {
	case Assoc:
		v.table().unset(sub)
	default:
		if sub == "@" || sub == "*" {
			if v.Kind == String {
				return t.UnsetRaw(base)
			}
			v.List = &List{}
			break
		}
		i, ok := t.index(sub)
		if !ok {
			if t.Eval != nil {
				_, err := t.Eval(sub)
				return err
			}
			return &Error{sub + ": bad array subscript"}
		}
		if v.Kind == String {
			if i != 0 {
				return &Error{base + ": not an array variable"}
			}
			return t.UnsetRaw(base)
		}
		if i < 0 {
			if i += v.List.Last() + 1; i < 0 {
				return &Error{"[" + sub + "]: bad array subscript"}
			}
		}
		v.list().unset(i)
	}
	t.wrote(base, v)
	return nil
}

// Environ returns the exported variables as NAME=VALUE, sorted; the slice must not be changed.
func (t *Table) Environ() []string {
	if t.env == nil {
		env := make([]string, 0, len(t.vars))
		for name, v := range t.vars {
			if v.Attr&Export != 0 && v.Kind == String {
				env = append(env, name+"="+v.Str)
			}
		}
		slices.Sort(env)
		t.env = env
	}
	return slices.Clip(t.env)
}

// Names returns the names of the set variables that begin with prefix, sorted.
func (t *Table) Names(prefix string) []string { return t.names(prefix, false) }

// All returns the names of all variables, also of those that are declared but not set, sorted.
func (t *Table) All() []string { return t.names("", true) }

func (t *Table) names(prefix string, unset bool) []string {
	var names []string
	for name, v := range t.vars {
		if strings.HasPrefix(name, prefix) && (unset || v.Kind != Unset) {
			names = append(names, name)
		}
	}
	for name := range dynamic {
		if t.vars[name] == nil && strings.HasPrefix(name, prefix) {
			if _, ok := t.computed(name); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
