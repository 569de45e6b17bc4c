// Command fetch gets the pinned npm packages that exthost is built and tested with, and builds the runtimes that are
// Go programs of this tree.
//
//	go run ./guests/internal/fetch guests   fill guests/dist with the bundled runtimes
//	go run ./guests/internal/fetch wabt     unpack the test suite's assembler, print its folder
//
// Packages are kept in $EXTHOST_BUILD_CACHE, by default exthost-build in the user's cache folder, under their digest,
// and what was built under that of its sources; what is there is used again, after its digest was checked again. Exit code 1: something could not be had, or was
// not what is pinned; nothing was written then.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		switch args[0] {
		case "guests":
			return fillDist(ctx, cacheDir(), filepath.Join(root, "guests"))
		case "wabt":
			dir, err := unpackWabt(ctx, cacheDir())
			if err == nil {
				fmt.Println(dir)
			}
			return err
		}
	}
	return errors.New("usage: fetch guests|wabt")
}

// cacheDir is the folder for what builds need and the source tree should not hold.
func cacheDir() string {
	if dir := os.Getenv("EXTHOST_BUILD_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "exthost-build")
	}
	return filepath.Join(os.TempDir(), "exthost-build-"+strconv.Itoa(os.Getuid()))
}

// moduleRoot is the nearest folder at or above the current one that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above: run it inside exthost's source tree")
		}
		dir = up
	}
}
