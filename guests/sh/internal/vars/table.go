package vars

// Table holds the variables of one shell. It is not safe for concurrent use: a subshell works on a [Table.Clone].
type Table struct {
	// Dynamic computes values; nil: nothing is computed. A clone has none until it is given its own.
	Dynamic Dynamic
	// Eval evaluates an arithmetic expression: for integer attributes and for subscripts in names ("a[i+1]").
	Eval func(expr string) (int64, error)
	// Changed is called after a variable was set or unset, when it is not nil: PATH, OPTIND, IFS and such.
	Changed func(name string)
}

// List is an indexed array.
type List struct{}

// Map is an associative array.
type Map struct{}

// New returns a table with the variables of an environment, all exported.
func New(environ []string) *Table { return &Table{} }

// Clone returns a copy for a subshell, with the scopes as they are and without hooks.
func (t *Table) Clone() *Table { return &Table{} }

// Push begins the scope of a function, Pop ends it. PushTemp begins the scope of `NAME=VALUE command`: it is ended by
// Pop too, and local variables of a command in it are local to the function around it.
func (t *Table) Push()     {}
func (t *Table) PushTemp() {}
func (t *Table) Pop()      {}

// InFunction tells whether there is a function's scope: `local` works.
func (t *Table) InFunction() bool { return false }

// Get returns a variable; name references are followed. False: it is not set (Kind Unset: declared but not set).
func (t *Table) Get(name string) (Var, bool) { return Var{}, false }

// Str returns the value of a variable as $name gives it: element 0 of an array; "" when there is none.
func (t *Table) Str(name string) string { return "" }

// Set assigns a string; to element 0 of an array. "NAME[SUBSCRIPT]" assigns an element.
func (t *Table) Set(name, value string) error { return nil }

// Append is `name+=value`.
func (t *Table) Append(name, value string) error { return nil }

// SetIndex assigns an element of an indexed array; a negative index counts from the end.
func (t *Table) SetIndex(name string, i int64, value string) error { return nil }

// SetKey assigns an element of an associative array.
func (t *Table) SetKey(name, key, value string) error { return nil }

// SetList makes name an indexed array of the values.
func (t *Table) SetList(name string, values []string) error { return nil }

// SetTemp assigns in the innermost scope and exports: for NAME=VALUE before a command, after [Table.PushTemp].
func (t *Table) SetTemp(name, value string) error { return nil }

// Local makes name a variable of the function's scope, unset unless it is local already.
func (t *Table) Local(name string) error { return nil }

// SetAttr adds and removes attributes of a variable, which is declared when it is not there.
func (t *Table) SetAttr(name string, add, remove Attr) error { return nil }

// Unset removes a variable (the one a reference points to).
func (t *Table) Unset(name string) error { return nil }

// Environ returns the exported variables as NAME=VALUE, sorted.
func (t *Table) Environ() []string { return nil }

// Names returns the names of the set variables that begin with prefix, sorted.
func (t *Table) Names(prefix string) []string { return nil }
