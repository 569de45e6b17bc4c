package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrDenied is matched by every refusal of a policy.
var ErrDenied = errors.New("denied by policy")

// DeniedError is a refusal with its facts.
type DeniedError struct {
	Principal  string // "guest:pdf@sha256:9f2c..."
	Capability string // canonical, "write /out/a.txt"
	Decision   Decision
}

// Error is for the operator: it names the rule and never goes to a guest.
func (e *DeniedError) Error() string {
	s := "denied: " + e.Capability
	if e.Principal != "" {
		s = e.Principal + ": " + s
	}
	return s + " (" + e.Decision.Reason + ")"
}

// Is makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// Position is a place in a policy file; lines and columns count from 1. The zero Position is "nowhere".
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// IsZero reports whether p is nowhere.
func (p Position) IsZero() bool { return p == Position{} }

// String returns "file:line:column" with the parts that are known, or "-".
func (p Position) String() string {
	switch {
	case p.Line == 0 && p.File == "":
		return "-"
	case p.Line == 0:
		return p.File
	case p.File == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Codes of errors in a policy. They are stable.
const (
	CodeSyntax       = "policy_syntax"
	CodeSize         = "policy_size"
	CodeDocuments    = "policy_documents"
	CodeYAMLFeature  = "policy_yaml_feature" // anchor, alias, tag, merge
	CodeUnknownKey   = "policy_unknown_key"
	CodeDuplicateKey = "policy_duplicate_key"
	CodeMissingKey   = "policy_missing_key"
	CodeType         = "policy_type"
	CodeNull         = "policy_null"
	CodeValue        = "policy_value"
	CodeConflict     = "policy_conflict"   // two fields that contradict each other
	CodeUnenforced   = "policy_unenforced" // see Effective.Unenforced
	CodeWarning      = "policy_warning"    // see Lint
)

// Error is one thing that is wrong with a policy.
type Error struct {
	Position
	Code string `json:"code"`
	Msg  string `json:"message"`
	Hint string `json:"hint,omitempty"`
}

// Error returns "file:line:column: message".
func (e Error) Error() string {
	s := e.Msg
	if !e.Position.IsZero() {
		s = e.Position.String() + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// maxErrors bounds what one file can make us print.
const maxErrors = 50

// Errors are all faults of a file, sorted by position, at most 50 and a last one that counts the rest.
type Errors []Error

// Error returns one fault a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single [Error].
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if rest := len(e) - maxErrors; rest > 0 {
		e = append(e[:maxErrors:maxErrors], Error{
			Position: Position{File: e[maxErrors].File}, Code: e[maxErrors].Code,
			Msg: fmt.Sprintf("and %d more errors", rest),
		})
	}
	return e
}
