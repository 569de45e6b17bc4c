// Command gostd runs Go's own standard library tests, built for wasip1, through `exthost wasi`, and compares what
// failed with the list in expected.txt: a failure that is not listed fails, and so does a listed one that passes.
//
// It is its own -exec program of `go test`, which gives it the package's folder as working directory.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed expected.txt
var expectedText string

var packages = []string{
	"os", "io/fs", "path/filepath", "io", "bufio", "time", "archive/zip", "archive/tar", "compress/gzip", "encoding/json",
	"text/template", "sort", "sync", "context",
}

// Settings that the outer program hands to itself as the -exec program.
const (
	envExthost = "GOSTD_EXTHOST"
	envEngine  = "GOSTD_ENGINE"
	envRoot    = "GOSTD_GOROOT"
)

func main() {
	if os.Getenv(envExthost) != "" {
		os.Exit(inner(os.Args[1:]))
	}
	exthost := flag.String("exthost", "", "the exthost `program`")
	engines := flag.String("engine", "wasmtime,wazero", "engines, by comma")
	run := flag.String("run", "", "only tests that match this `regexp`; nothing is compared with the list then")
	verbose := flag.Bool("v", false, "print the output of every test that failed, expected or not")
	flag.Parse()
	if flag.NArg() > 0 {
		packages = flag.Args()
	}
	failed := false
	for _, engine := range strings.Split(*engines, ",") {
		ok, err := outer(*exthost, engine, *run, *verbose)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gostd: %s: %v\n", engine, err)
		}
		failed = failed || !ok || err != nil
	}
	if failed {
		os.Exit(1)
	}
}

// inner runs one test binary in the sandbox. The tests read files of their own package and of the tree above it, and
// write to temporary folders only. Go's tree is where the linker told the tests that it is: no guest gets GOROOT.
func inner(args []string) int {
	root := os.Getenv(envRoot)
	wd, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gostd:", err)
		return 125
	}
	argv := []string{
		"wasi", "--engine", os.Getenv(envEngine), "--dir", root + ":" + root + ":ro", "--env", "PWD=" + wd,
		"--time", "20m", "--memory", "2GiB", "--disk", "4GiB", "--output", "256MiB",
	}
	cmd := exec.Command(os.Getenv(envExthost), append(argv, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "gostd:", err)
		return 125
	}
	return 0
}

// result is one test as `go test -json` told it.
type result struct {
	action string
	output bytes.Buffer
}

func outer(exthost, engine, run string, verbose bool) (bool, error) {
	exthost, err := filepath.Abs(exthost)
	if err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return false, fmt.Errorf("go env GOROOT: %w", err)
	}
	args := []string{"test", "-json", "-count=1", "-short", "-vet=off", "-p=1", "-timeout=15m", "-exec=" + self}
	if run != "" {
		args = append(args, "-run="+run)
	}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0",
		envExthost+"="+exthost, envEngine+"="+engine, envRoot+"="+strings.TrimSpace(string(root)))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return false, err
	}
	results, err := collect(pipe)
	if waitErr := cmd.Wait(); err == nil {
		var exit *exec.ExitError
		if waitErr != nil && !errors.As(waitErr, &exit) {
			err = waitErr // an exit code only says that a test failed, which the results tell better
		}
	}
	if err != nil {
		return false, err
	}
	return judge(os.Stdout, engine, results, run == "", verbose, time.Since(began)), nil
}

func collect(r io.Reader) (map[string]*result, error) {
	results := map[string]*result{}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var event struct{ Action, Package, ImportPath, Test, Output string }
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			continue // `go test` prints a few lines of plain text when a build fails; the exit event follows
		}
		if event.Package == "" {
			event.Package = strings.Fields(event.ImportPath + " ")[0]
		}
		key := event.Package
		if event.Test != "" {
			key += " " + event.Test
		}
		r := results[key]
		if r == nil {
			r = &result{}
			results[key] = r
		}
		switch event.Action {
		case "output", "build-output":
			if r.output.Len() < 1<<16 {
				r.output.WriteString(event.Output)
			}
		case "pass", "fail", "skip", "build-fail":
			r.action = event.Action
		}
	}
	return results, scanner.Err()
}

// judge compares and prints; it is true if everything is as expected.
func judge(w io.Writer, engine string, results map[string]*result, whole, verbose bool, took time.Duration) bool {
	expected := expectations(engine)
	// A parent fails with its subtest and a package with its test: only the innermost failure says something.
	failed := map[string]bool{}
	passes, skips := 0, 0
	for key, r := range results {
		switch {
		case r.action == "pass" && strings.Contains(key, " "):
			passes++
		case r.action == "skip":
			skips++
		case r.action == "" && strings.Contains(key, " "), r.action == "fail", r.action == "build-fail":
			failed[key] = true // without an action it was running when the program ended
		}
	}
	for key := range maps.Clone(failed) {
		for other := range failed {
			if other != key && (strings.HasPrefix(other, key+"/") || !strings.Contains(key, " ") && strings.HasPrefix(other, key+" ")) {
				delete(failed, key)
				break
			}
		}
	}
	ok := true
	if whole {
		for _, p := range packages {
			if results[p] == nil || results[p].action == "" {
				fmt.Fprintf(w, "%s: %s: no result\n", engine, p)
				ok = false
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(failed)) {
		reason, listed := expected[key]
		if !listed {
			ok = false
			fmt.Fprintf(w, "%s: FAILED, not listed: %s\n%s\n", engine, key, results[key].output.String())
			continue
		}
		fmt.Fprintf(w, "%s: failed as listed: %s (%s)\n", engine, key, reason)
		if verbose {
			fmt.Fprintln(w, results[key].output.String())
		}
	}
	if whole {
		for _, key := range slices.Sorted(maps.Keys(expected)) {
			name, _, _ := strings.Cut(key, " ")
			if slices.Contains(packages, name) && !failed[key] {
				ok = false
				fmt.Fprintf(w, "%s: listed as failing, but it passed or did not run: %s\n", engine, key)
			}
		}
	}
	if passes == 0 {
		ok = false // a run of nothing proves nothing
	}
	fmt.Fprintf(w, "%s: %d packages: %d tests passed, %d skipped themselves, %d failed (%d listed) in %s\n",
		engine, len(packages), passes, skips, len(failed), len(expected), took.Round(time.Second))
	return ok
}

// expectations reads the lines "ENGINE PACKAGE TEST REASON" of the list; ENGINE "*" is every engine.
func expectations(engine string) map[string]string {
	list := map[string]string{}
	for line := range strings.Lines(expectedText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		if len(fields) < 4 {
			panic(fmt.Sprintf("expected.txt: %q has no reason", line))
		}
		if fields[0] == engine || fields[0] == "*" {
			list[fields[1]+" "+fields[2]] = fields[3]
		}
	}
	return list
}
