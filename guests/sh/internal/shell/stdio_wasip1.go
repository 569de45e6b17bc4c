package shell

import (
	"os"
	"syscall"
)

// standardFiles returns the three first descriptors. Their reads and writes must not stop the other goroutines: without
// the flag each of them would be one blocking call of the host.
func standardFiles() (in, out, errs *os.File) {
	syscall.SetNonblock(0, true)
	return os.NewFile(0, "/dev/stdin"), os.Stdout, os.Stderr
}

// isTerminal: WASI tells a terminal by its type alone.
func isTerminal(*os.File) bool { return true }
