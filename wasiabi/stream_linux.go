package wasiabi

import "golang.org/x/sys/unix"

func pipe(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) }

// processorTime is what this process has computed, in nanoseconds. A worker runs one guest at a time.
func processorTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
