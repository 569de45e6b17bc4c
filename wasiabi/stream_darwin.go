package wasiabi

import "golang.org/x/sys/unix"

func pipe(fds *[2]int) error {
	if err := unix.Pipe(fds[:]); err != nil {
		return err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return nil
}

// processorTime is what this process has computed, in nanoseconds. A worker runs one guest at a time.
func processorTime() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
