//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	ts.Fatalf("there is no pseudo-terminal for tests here; begin the script with [!linux] skip")
}
