package scripttest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func linkTimes(t *testing.T, name string, when time.Time) {
	ts := unix.NsecToTimespec(when.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
}
