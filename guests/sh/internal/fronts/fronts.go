// Package fronts holds programs that scripts expect and that cannot work in the sandbox: those that reach the network,
// other programs, or other users. Each attempt asks the host once, which is how it comes into the report with its target;
// then the program says in its own manner that it was denied, with the exit code that it has for a target that cannot
// be reached.
//
// # What is a front, and what is not there
//
// A front is found by `command -v`, so that scripts take the path of a machine that has the program. That is right where a
// script that does not find it can only end (curl, git, ssh, docker), and where the denial then names a target that is
// worth granting. It is wrong where a script has a second way for a machine without the program (rsync or cp, ffmpeg or
// none, gh or curl, open or a printed link). All other foreign programs are therefore not found, exit code 127, as on a
// small Linux machine; [Missing] tells the host of them as well, so that the report names what the script wanted.
//
// Interpreters (python3, node) and npm's and pip's programs are fronts: their exit code is 126, that of a command that is
// there and cannot be run, where the program itself would need to run to have one of its own (npm and pip have 1).
// Only curl and wget answer --version, for they alone do their part: read their arguments and form a request.
//
// # Secrets
//
// What is asked and printed is a method, a URL without user, query and fragment, a program, and of its arguments the words
// that name the target. Headers, bodies and options never get there.
package fronts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/ask"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Commands are the fronts by their names.
var Commands = map[string]cmd.Func{
	"curl": curl, "wget": wget,
	"git": git, "ssh": ssh, "scp": scp, "sftp": scp, "nc": nc, "ncat": nc, "netcat": nc, "ping": ping,
	"sudo": sudo, "su": sudo, "docker": docker,
	"npm": npm, "npx": npm, "pip": pip, "pip3": pip,
	"python": interpreter, "python3": interpreter, "node": interpreter,
	"openssl": openssl,
}

// Foreign tells whether a name that is no command of the guest is one that a program outside could have. Paths are not,
// nor is what is longer than any program's name and may be a value that slipped into the place of a command.
func Foreign(name string) bool {
	if name == "" || len(name) > 40 {
		return false
	}
	for i := range len(name) {
		b := name[i]
		letter := 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-_.+", rune(b))) {
			return false
		}
	}
	return strings.Trim(name, "0123456789.-+") != ""
}

// Missing tells the host of a foreign program that the guest does not have, and returns the exit code. It writes nothing:
// the shell says that the command was not found.
func Missing(_ context.Context, c *cmd.Call) int {
	if Foreign(c.Name) {
		askProgram(c.Name, nil)
	}
	return 127
}

// The host's answer is what these say; tests put their own in place.
var (
	askHTTP    = ask.HTTP
	askProgram = ask.Program
)

// program asks for a program once and returns why it may not run. args are the words that name its target.
func program(name string, args ...string) string {
	var kept []string
	for _, a := range args {
		if a != "" {
			kept = append(kept, a)
		}
	}
	return reason(askProgram(name, kept))
}

func reason(err error) string {
	var denied *ask.Denied
	switch {
	case err == nil:
		return "granted, but this version of the guest cannot use it"
	case errors.As(err, &denied):
		return "denied by exthost: " + denied.Reason
	}
	return "denied by exthost: " + err.Error()
}

// say writes one line to standard error.
func say(c *cmd.Call, format string, args ...any) { fmt.Fprintf(c.Stderr, format+"\n", args...) }

// target is a URL in its parts.
type target struct {
	scheme, user, host, port, path string // port: "" for the scheme's own; path: without query and fragment
}

// parseURL cuts a URL as curl and git do. It takes what is no URL for a host.
func parseURL(s string) target {
	var t target
	if scheme, rest, ok := strings.Cut(s, "://"); ok && scheme != "" && !strings.ContainsAny(scheme, "/?#@:") {
		t.scheme, s = strings.ToLower(scheme), rest
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s, t.path = s[:i], s[i:]
	}
	if i := strings.IndexAny(t.path, "?#"); i >= 0 {
		t.path = t.path[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		t.user, s = s[:i], s[i+1:]
	}
	if strings.HasPrefix(s, "[") {
		if i := strings.IndexByte(s, ']'); i > 0 {
			t.host, s = s[:i+1], s[i+1:]
			t.port = strings.TrimPrefix(s, ":")
			return t
		}
	}
	t.host, t.port, _ = strings.Cut(s, ":")
	return t
}

// String is the URL without user, query and fragment.
func (t target) String() string {
	s := t.scheme + "://" + t.host
	if t.port != "" {
		s += ":" + t.port
	}
	if t.path == "" {
		return s + "/"
	}
	return s + t.path
}

// portOr is the port, or that of the scheme.
func (t target) portOr() string {
	switch {
	case t.port != "":
		return t.port
	case t.scheme == "https":
		return "443"
	case t.scheme == "ssh":
		return "22"
	case t.scheme == "git":
		return "9418"
	}
	return "80"
}
