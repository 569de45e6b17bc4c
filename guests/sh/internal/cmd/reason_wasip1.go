package cmd

import "syscall"

// What the sandbox answers for a way out of a folder is a refusal as any other.
func init() { reasons[syscall.ENOTCAPABLE] = reasons[syscall.EPERM] }
