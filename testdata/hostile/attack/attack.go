//go:build wasip1

// Package attack is what the attacks of the hostile corpus share: a register, a way to say how an attempt ended,
// and WASI preview 1 without the courtesies of Go's syscall package.
//
// An attack prints one line for each attempt, "ATTEMPT DENIED ENOTCAPABLE text" or "ATTEMPT ALLOWED - text". The
// guest cannot be believed, so the host side of the test looks at the files outside as well.
package attack

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Attack is one registered attack.
type Attack func()

var all = map[string]Attack{}

// Register adds an attack under the name of its file.
func Register(name string, run Attack) { all[name] = run }

// Main runs the attack that the first argument names.
func Main() {
	if len(os.Args) < 2 || all[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "no such attack: %q\n", os.Args[1:])
		os.Exit(99)
	}
	all[os.Args[1]]()
}

// Errnof reports an attempt by its errno: 0 means that the host let it happen.
func Errnof(errno uint32, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if errno == 0 {
		fmt.Println("ATTEMPT ALLOWED -", what)
		return
	}
	fmt.Println("ATTEMPT DENIED", Errno(errno), what)
}

// Errorf reports an attempt that was made through Go's own library.
func Errorf(err error, format string, args ...any) {
	var errno syscall.Errno
	switch {
	case err == nil:
		Errnof(0, format, args...)
	case errors.As(err, &errno):
		Errnof(uint32(errno), format, args...)
	default:
		fmt.Println("ATTEMPT DENIED", "E?", fmt.Sprintf(format, args...)+":", err)
	}
}

// Need ends the attack when a step that must work, so that the attempt means something, does not.
func Need(errno uint32, format string, args ...any) {
	if errno != 0 {
		fmt.Fprintf(os.Stderr, "setting up: %s: %s\n", fmt.Sprintf(format, args...), Errno(errno))
		os.Exit(98)
	}
}
