package shell

import (
	"context"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// grace is how long the process stays for what a script has left running. Outside, such jobs live on without it; here they
// end with the process, but those that only have a line to write still do.
const grace = 2 * time.Second

// Main runs the shell as the process: with its arguments, streams, folder and environment. It returns the exit code.
func (w *World) Main(args []string) int {
	dir, err := os.Getwd()
	if err != nil || !path.IsAbs(dir) {
		dir = "/"
	}
	in, out, errs := standardFiles()
	for i, f := range []*os.File{in, out, errs} {
		if info, err := f.Stat(); err == nil {
			w.tty[i] = info.Mode()&os.ModeCharDevice != 0 && isTerminal(f)
		}
	}
	descs := [3]*desc{fileDesc(in, os.O_RDONLY), fileDesc(out, os.O_WRONLY), fileDesc(errs, os.O_WRONLY)}
	for _, d := range descs {
		d.onClose = nil // the process keeps its own
		if d.regular {
			// WASI has no type for a pipe: what cannot be moved in is no regular file, whatever its mode says.
			_, err := d.file.Seek(0, io.SeekCurrent)
			d.regular = err == nil
		}
	}
	ctx := context.Background()
	name := "bash"
	if len(args) > 0 {
		name, args = path.Base(strings.TrimPrefix(args[0], "-")), args[1:]
	}
	code := w.command(ctx, &cmd.Call{
		Name: name, Args: args, Dir: dir, Environ: os.Environ(), Umask: 0o022,
		Stdin: &stream{ctx: ctx, d: descs[0]}, Stdout: &stream{ctx: ctx, d: descs[1]}, Stderr: &stream{ctx: ctx, d: descs[2]},
	})
	ended := make(chan struct{})
	go func() {
		w.orphans.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(grace):
	}
	return code
}
