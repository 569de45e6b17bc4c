//go:build unix

package snapshot

import "syscall"

// A FIFO that takes a file's place between two calls must not block the host.
const openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
