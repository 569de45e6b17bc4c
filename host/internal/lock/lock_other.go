//go:build !unix

package lock

import "os"

// flock: no worker runs on these platforms yet, so nothing is shared.
func flock(*os.File, bool) error { return nil }
