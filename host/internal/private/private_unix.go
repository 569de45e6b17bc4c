//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ours says whether others cannot change what lies in the folder. The folder itself must be the user's.
func ours(path string, fi fs.FileInfo, self bool) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%q: %w: owner unknown", path, ErrUnsafe)
	}
	uid := uint32(os.Geteuid())
	if st.Uid != uid && (self || st.Uid != 0) {
		return fmt.Errorf("%q: %w: it belongs to user %d", path, ErrUnsafe, st.Uid)
	}
	if fi.Mode().Perm()&0o022 != 0 && (self || fi.Mode()&fs.ModeSticky == 0) {
		return fmt.Errorf("%q: %w: others may write it (mode %v)", path, ErrUnsafe, fi.Mode().Perm())
	}
	return nil
}
