//go:build !unix

package snapshot

const openNonblock = 0
