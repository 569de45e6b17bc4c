package host

import (
	"errors"
	"fmt"

	"github.com/exthost/exthost/policy"
)

var (
	// ErrNoWorkerMain is returned by [New] when no worker could be started: this program did not call [WorkerMain], and
	// Config.Worker names no other.
	ErrNoWorkerMain = errors.New("main must call host.WorkerMain first, or Config.Worker must name a program that does")
	// ErrClosed is returned after [Host.Close] or [Extension.Close].
	ErrClosed = errors.New("host or extension is closed")
	// ErrNotFound matches errors that say that there is no such extension, or no such script in it.
	ErrNotFound = errors.New("not found")
	// ErrDenied matches refusals by policy, such as [RefusedError]. It is [policy.ErrDenied].
	ErrDenied = policy.ErrDenied
	// ErrNoRuntime matches errors that say that nothing in this binary runs the script.
	ErrNoRuntime = errors.New("no runtime for this script")
	// ErrDamaged matches errors about a script that cannot be what its author wrote.
	ErrDamaged = errors.New("the script is damaged")
	// ErrWalls matches errors that say that a required wall is missing on this machine.
	ErrWalls = errors.New("a required wall is missing")
	// ErrNoEngine matches errors that say that this binary does not have the engine that was asked for.
	ErrNoEngine = errors.New("no such engine in this binary")
	// ErrUnsupported matches errors that say that this platform cannot run guests yet.
	ErrUnsupported = errors.New("this platform cannot run extensions yet")
)

// RefusedError is a refusal before anything ran. It matches [ErrDenied].
type RefusedError struct {
	Extension string // name
	Digest    string // of the tree as it is now
	Reason    string // such as "the extension changed since the grant"
	Rule      string // "file:line:column" of what refused it; "" if there is no line
}

func (e *RefusedError) Error() string {
	if e.Rule != "" {
		return fmt.Sprintf("%s: %s (%s)", e.Extension, e.Reason, e.Rule)
	}
	return e.Extension + ": " + e.Reason
}

// Is makes errors.Is(err, ErrDenied) true.
func (e *RefusedError) Is(target error) bool { return target == ErrDenied }

// The process exit codes of the command line that are not a guest's.
const (
	codeLimit     = 124
	codeCannotRun = 125
	codeDenied    = 126
	codeNotFound  = 127
	codeTrap      = 134
)

// ExitCode is the process exit code that goes with what [Extension.Run] returned: the guest's own from 0 to 255 (a
// larger one becomes 1), 124 at a limit, 125 if exthost could not run it, 126 if it was denied before the start or,
// with strict, if anything was denied, 127 if there is no such extension or script, 134 on a trap.
//
// It takes the errors of [Host.Open] too, with a nil report.
func ExitCode(r *Report, err error, strict bool) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return codeNotFound
	case errors.Is(err, ErrDenied):
		return codeDenied
	case err != nil || r == nil:
		return codeCannotRun
	case strict && len(r.Denials) > 0:
		return codeDenied
	}
	return r.ExitCode
}

// exitCode is the code of an outcome; guest is the guest's own.
func exitCode(o Outcome, guest uint32) int {
	switch o {
	case Exit:
		if guest > 255 {
			return 1
		}
		return int(guest)
	case Trap:
		return codeTrap
	case Limit:
		return codeLimit
	case Denied:
		return codeDenied
	}
	return codeCannotRun
}
