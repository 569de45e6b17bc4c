//go:build !wasip1

package shell

import (
	"os"

	"golang.org/x/term"
)

func standardFiles() (in, out, errs *os.File) { return os.Stdin, os.Stdout, os.Stderr }

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
