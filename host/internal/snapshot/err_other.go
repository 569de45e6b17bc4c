//go:build !unix

package snapshot

func isNotEmpty(error) bool { return false }
