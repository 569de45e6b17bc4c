//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/exthost/exthost/host"
)

// checkPrivate checks that a folder is the user's own and closed to others.
func checkPrivate(name, dir string) host.Check {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return host.Check{Name: name, State: "ok", Detail: dir + " (not made yet)"}
	}
	if err != nil {
		return host.Check{Name: name, State: "fail", Detail: err.Error()}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return host.Check{Name: name, State: "fail", Detail: fmt.Sprintf("%s belongs to user %d", dir, st.Uid)}
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return host.Check{Name: name, State: "fail", Detail: fmt.Sprintf("%s can be written by others (%o)", dir, mode),
			Hint: shellCommand("chmod", "700", dir)}
	} else if mode&0o077 != 0 {
		return host.Check{Name: name, State: "warn", Detail: fmt.Sprintf("%s can be read by others (%o)", dir, mode),
			Hint: shellCommand("chmod", "700", dir)}
	}
	return host.Check{Name: name, State: "ok", Detail: dir}
}
