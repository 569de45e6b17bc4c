//go:build wasip1

// Command guest is what the scripts of the command line's tests run in the sandbox. Its first argument says what to do.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Println("hello from the guest")
		return
	}
	var err error
	switch arg := args[1:]; args[0] {
	case "echo":
		fmt.Println(strings.Join(arg, " "))
	case "args":
		for _, a := range arg {
			fmt.Printf("%q\n", a)
		}
	case "env":
		for _, name := range arg {
			v, ok := os.LookupEnv(name)
			fmt.Printf("%s=%q %v\n", name, v, ok)
		}
	case "pwd":
		var dir string
		if dir, err = os.Getwd(); err == nil {
			fmt.Println(dir)
		}
	case "cat":
		for _, name := range arg {
			var data []byte
			if data, err = os.ReadFile(name); err != nil {
				break
			}
			os.Stdout.Write(data)
		}
	case "try": // like cat, but goes on
		for _, name := range arg {
			if _, err := os.ReadFile(name); err != nil {
				fmt.Println("no")
			} else {
				fmt.Println("yes")
			}
		}
	case "prompt": // leaves the line open
		_, err := os.ReadFile(arg[0])
		fmt.Print("no newline: ", err != nil)
	case "write":
		err = os.WriteFile(arg[0], []byte(arg[1]), 0o644)
	case "copy":
		var n int64
		n, err = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintf(os.Stderr, "%d bytes\n", n)
	case "raw": // bytes of a Go string literal
		var s string
		if s, err = strconv.Unquote(`"` + arg[0] + `"`); err == nil {
			os.Stdout.WriteString(s)
		}
	case "exit":
		code, _ := strconv.Atoi(arg[0])
		os.Exit(code)
	case "spin":
		for {
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "eat":
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
	case "fill": // FILE MIB
		n, _ := strconv.Atoi(arg[1])
		err = os.WriteFile(arg[0], make([]byte, n<<20), 0o644)
	case "hold": // FILE N
		n, _ := strconv.Atoi(arg[1])
		var open []*os.File
		for range n {
			var f *os.File
			if f, err = os.Create(arg[0]); err != nil {
				break
			}
			open = append(open, f)
		}
		fmt.Println(len(open), "open")
	case "flood":
		line := strings.Repeat("x", 1023) + "\n"
		for {
			os.Stdout.WriteString(line)
		}
	default:
		err = fmt.Errorf("unknown task %q", args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
