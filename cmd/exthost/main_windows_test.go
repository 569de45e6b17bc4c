package main

import (
	"os/exec"
	"syscall"
)

// noTerminal starts cmd without a console.
func noTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: 0x08000000} }
