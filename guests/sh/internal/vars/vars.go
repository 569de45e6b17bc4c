// Package vars holds the variables of a shell: strings, sparse and associative arrays, their attributes, the scopes of
// functions and the name references between them, as bash 5.2 has them.
package vars

// Kind is what a variable holds.
type Kind uint8

const (
	Unset   Kind = iota // declared without a value
	String              // a string
	Indexed             // an array with numbers from 0, possibly with holes
	Assoc               // an array with strings as keys
)

// Attr is a set of attributes.
type Attr uint16

const (
	Export   Attr = 1 << iota // -x
	ReadOnly                  // -r
	Integer                   // -i: what is assigned is evaluated
	Lower                     // -l
	Upper                     // -u
	NameRef                   // -n
	Trace                     // -t: has no effect on variables, but is shown
	Capital                   // -c
)

// Var is a variable as it is now. Its List and Map must not be changed by the caller.
type Var struct {
	Kind Kind
	Attr Attr
	Str  string // Kind String
	List *List  // Kind Indexed
	Map  *Map   // Kind Assoc
}

// Dynamic answers for the variables whose values the shell computes. The names are those that [IsDynamic] tells; a
// variable that was unset is dynamic no more.
type Dynamic interface {
	// Special returns the value of a special parameter (? $ ! - # 0 _ and so on) or of a computed variable.
	Special(name string) (string, bool)
	// SpecialList returns the elements of a computed array: FUNCNAME, BASH_SOURCE, BASH_LINENO, PIPESTATUS, DIRSTACK.
	SpecialList(name string) ([]string, bool)
	// SetSpecial is told of an assignment to a computed variable; the ones without a meaning are ignored, as bash does.
	SetSpecial(name, value string)
}

// ReadOnlyError is an attempt to change a variable that is read-only.
type ReadOnlyError struct{ Name string }

func (e *ReadOnlyError) Error() string { return e.Name + ": readonly variable" }

// Error is any other refusal of an assignment, worded as bash does.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }
