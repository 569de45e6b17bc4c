package archive

import "io/fs"

// identity tells which file fi is, and whether it has several names: it is not known.
func identity(fs.FileInfo) (id [2]uint64, many bool) { return id, false }
