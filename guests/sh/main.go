// Command sh is the shell of the sandbox: bash and the usual commands around it in one program, made for WASI.
//
//	bash [options] [-c COMMAND | FILE] [ARGUMENTS]
//
// It starts no other process: what is no command of its own is refused. It also builds natively, where its commands work
// on the files of the machine; its tests do that.
package main

import (
	"maps"
	"os"

	"github.com/exthost/exthost/guests/sh/internal/archive"
	"github.com/exthost/exthost/guests/sh/internal/builtin"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files"
	"github.com/exthost/exthost/guests/sh/internal/fronts"
	"github.com/exthost/exthost/guests/sh/internal/lang"
	"github.com/exthost/exthost/guests/sh/internal/search"
	"github.com/exthost/exthost/guests/sh/internal/shell"
	"github.com/exthost/exthost/guests/sh/internal/sys"
	"github.com/exthost/exthost/guests/sh/internal/text"
)

func main() {
	commands := map[string]cmd.Func{}
	// The later ones win: a front only stands in for what is nowhere else.
	for _, table := range []map[string]cmd.Func{
		fronts.Commands, text.Commands, files.Commands, search.Commands, archive.Commands, lang.Commands(),
		sys.Commands, builtin.Commands,
	} {
		maps.Copy(commands, table)
	}
	os.Exit(shell.New(commands).Main(os.Args))
}
