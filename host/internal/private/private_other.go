//go:build !unix

package private

import "io/fs"

// ours trusts the access lists of the user's profile, which this package does not read.
func ours(string, fs.FileInfo, bool) error { return nil }
