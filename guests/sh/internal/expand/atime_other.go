//go:build !linux && !wasip1

package expand

import (
	"io/fs"
	"time"
)

func accessTime(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }
