//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// noTerminal starts cmd in a session of its own, which has no controlling terminal even when the tests have one.
func noTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
