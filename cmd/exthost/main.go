// Command exthost runs agent extensions that nobody has reason to trust.
//
// The commands are in internal/cli. A worker process is this same executable, started again: [host.WorkerMain] takes
// over in it before anything else runs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/exthost/exthost/cmd/exthost/internal/cli"
	"github.com/exthost/exthost/host"
)

func main() {
	host.WorkerMain()
	os.Exit(run())
}

// run is main without the exit, so that a test can register it as a command.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
}
