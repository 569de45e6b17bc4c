//go:build wasip1

// Command guest is what the tests of package host run: its first argument says what it does.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(args []string) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch args[0] {
	case "exit":
		n, err := strconv.Atoi(arg(1))
		if err != nil {
			return err
		}
		os.Exit(n)
	case "args":
		fmt.Println(strings.Join(os.Args, " "))
	case "env":
		env := os.Environ()
		sort.Strings(env)
		fmt.Println(strings.Join(env, "\n"))
	case "pwd":
		dir, err := os.Getwd()
		fmt.Println(dir)
		return err
	case "cat":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	case "lines": // answers each line before it reads the next
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			fmt.Println("got", in.Text())
		}
		return in.Err()
	case "read":
		b, err := os.ReadFile(arg(1))
		os.Stdout.Write(b)
		return err
	case "write":
		return os.WriteFile(arg(1), []byte(arg(2)), 0o644)
	case "ask": // DEVICE LINE...: asks by each line and shows the answers
		for _, line := range args[2:] {
			f, err := os.OpenFile("/dev/exthost/"+arg(1), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, line+"\n"); err != nil {
				return err
			}
			if _, err := io.Copy(os.Stdout, f); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
	case "remove":
		return os.Remove(arg(1))
	case "ls":
		list, err := os.ReadDir(arg(1))
		for _, d := range list {
			fmt.Println(d.Name())
		}
		return err
	case "try": // reads each and says how it went, and ends well
		for _, p := range args[1:] {
			_, err := os.ReadFile(p)
			fmt.Println(p, err == nil)
		}
	case "sleep":
		d, err := time.ParseDuration(arg(1))
		fmt.Println("sleeping")
		time.Sleep(d)
		return err
	case "spin":
		fmt.Println("spinning")
		for i := 0; ; i++ {
			if i == -1 {
				fmt.Println(i)
			}
		}
	case "stdin": // waits for input that never comes
		fmt.Println("waiting")
		_, err := os.Stdin.Read(make([]byte, 1))
		return err
	case "alloc":
		var keep [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			keep = append(keep, b)
			if len(keep) < 0 {
				break
			}
		}
	case "flood", "flood-stderr":
		w := os.Stdout
		if args[0] == "flood-stderr" {
			w = os.Stderr
		}
		line := []byte(strings.Repeat("0123456789abcde\n", 256))
		for {
			w.Write(line)
		}
	case "fill":
		f, err := os.Create(arg(1))
		if err != nil {
			return err
		}
		b := make([]byte, 1<<20)
		for {
			if _, err := f.Write(b); err != nil {
				return err
			}
		}
	case "files":
		for i := 0; ; i++ {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", arg(1), i), nil, 0o600); err != nil {
				return err
			}
		}
	case "open":
		for {
			f, err := os.Open(arg(1))
			if err != nil {
				return err
			}
			defer f.Close()
		}
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
	return nil
}
