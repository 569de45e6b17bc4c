//go:build unix

package snapshot

import (
	"errors"
	"syscall"
)

func isNotEmpty(err error) bool { return errors.Is(err, syscall.ENOTEMPTY) }
