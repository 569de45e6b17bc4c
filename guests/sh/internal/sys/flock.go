package sys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// held are the locks of flock. The system has none for the guest, and needs none: all who can ask are jobs of one process.
var held struct {
	sync.Mutex
	locks []fileLock
}

type fileLock struct {
	file   fs.FileInfo
	owner  any // what is open: locks go with it, not with a command
	shared bool
}

// lock takes or changes the owner's lock of a file, and returns false when others hold it.
func lock(file fs.FileInfo, owner any, shared bool) bool {
	held.Lock()
	defer held.Unlock()
	own := -1
	for i, l := range held.locks {
		switch {
		case !os.SameFile(l.file, file):
		case l.owner == owner:
			own = i
		case !l.shared || !shared:
			return false
		}
	}
	if own >= 0 {
		held.locks[own].shared = shared
		return true
	}
	held.locks = append(held.locks, fileLock{file, owner, shared})
	return true
}

func unlock(owner any) {
	held.Lock()
	defer held.Unlock()
	held.locks = slices.DeleteFunc(held.locks, func(l fileLock) bool { return l.owner == owner })
}

// description is an open file that several descriptors may share: its locks end with the last of them.
type description interface {
	Description() any
	AtEnd(func())
}

// Exit codes of flock, of sysexits.h.
const (
	flockUsage       = 64
	flockData        = 65
	flockNoInput     = 66
	flockUnavailable = 69
)

var flockOpts = cmd.Opts{
	{Short: 's', Long: "shared"}, {Short: 'x', Long: "exclusive"}, {Short: 'e'}, {Short: 'u', Long: "unlock"},
	{Short: 'n', Long: "nonblock"}, {Long: "nb"}, {Short: 'w', Long: "timeout", Arg: cmd.Value}, {Long: "wait", Arg: cmd.Value},
	{Short: 'E', Long: "conflict-exit-code", Arg: cmd.Value}, {Short: 'o', Long: "close"}, {Short: 'F', Long: "no-fork"},
	{Long: "verbose"},
}

func flock(ctx context.Context, c *cmd.Call) int {
	given, operands, err := flockOpts.ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, flockUsage)
	}
	var shared, release, once, verbose bool
	wait := time.Duration(-1)
	conflict := 1
	for _, g := range given {
		switch g.Key {
		case "s":
			shared = true
		case "x", "e":
			shared = false
		case "u":
			release = true
		case "n", "nb":
			once = true
		case "w", "wait":
			seconds, err := strconv.ParseFloat(g.Value, 64)
			if err != nil || !(seconds >= 0) || seconds > 1e9 {
				c.Errorf("invalid timeout value: '%s'", g.Value)
				return flockUsage
			}
			wait = time.Duration(seconds * float64(time.Second))
		case "E":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 || n > 255 {
				c.Errorf("invalid exit code: '%s'", g.Value)
				return flockUsage
			}
			conflict = n
		case "verbose":
			verbose = true
			// -o and -F are about processes: no command here inherits the lock, so that it ends with the command anyway.
		}
	}
	if len(operands) == 0 {
		return c.BadUsage(errors.New("not enough arguments"), flockUsage)
	}
	name, argv := operands[0], operands[1:]
	var file fs.FileInfo
	var owner any
	if len(argv) == 0 {
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 {
			c.Errorf("bad file descriptor: '%s'", name)
			return flockUsage
		}
		f, err := c.OpenFile(fmt.Sprintf("/dev/fd/%d", n), os.O_RDONLY, 0)
		if err != nil {
			c.Errorf("%d: Bad file descriptor", n)
			return flockData
		}
		defer f.Close()
		d, ok := f.(description)
		if file, err = f.Stat(); err != nil || !ok {
			c.Errorf("%d: Bad file descriptor", n)
			return flockData
		}
		owner = d.Description()
		if release {
			unlock(owner)
			return 0
		}
		d.AtEnd(func() { unlock(owner) })
	} else {
		if argv[0] == "-c" || argv[0] == "--command" {
			if len(argv) != 2 {
				c.Errorf("%s requires exactly one command argument", argv[0])
				return flockUsage
			}
			argv = []string{"sh", "-c", argv[1]}
		}
		f, err := c.OpenFile(name, os.O_RDONLY|os.O_CREATE, 0o666)
		if err != nil { // also folders can be locked, which cannot be made
			f, err = c.OpenFile(name, os.O_RDONLY, 0)
		}
		if err != nil {
			c.Errorf("cannot open lock file %s: %s", name, cmd.Reason(err))
			return flockNoInput
		}
		file, err = f.Stat()
		f.Close()
		if err != nil {
			c.Errorf("cannot open lock file %s: %s", name, cmd.Reason(err))
			return flockNoInput
		}
		owner = new(byte)
		defer unlock(owner)
	}
	begin := time.Now()
	for !release && !lock(file, owner, shared) {
		if once || wait >= 0 && time.Since(begin) >= wait {
			if verbose {
				c.Errorf("failed to get lock")
			}
			return conflict
		}
		time.Sleep(2 * time.Millisecond)
		cmd.Check(ctx)
	}
	if verbose {
		fmt.Fprintf(c.Stdout, "flock: getting lock took %.6f seconds\n", time.Since(begin).Seconds())
	}
	if len(argv) == 0 {
		return 0
	}
	if _, ok := c.Shell.Find(c, argv[0]); !ok {
		c.Errorf("failed to execute %s: No such file or directory", argv[0])
		return flockUnavailable
	}
	return c.Shell.Run(ctx, c, cmd.Child{Argv: argv})
}
