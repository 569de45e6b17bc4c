// Command guest is a Go guest for tests of package worker: its first argument says what it does.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

func main() {
	switch os.Args[1] {
	case "echo":
		fmt.Println(strings.Join(os.Args[2:], " "))
	case "env":
		env := os.Environ()
		sort.Strings(env)
		fmt.Println(strings.Join(env, " "))
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		check(err)
	case "ls":
		entries, err := os.ReadDir(os.Args[2])
		check(err)
		for _, e := range entries {
			fmt.Println(e)
		}
	case "cat":
		b, err := os.ReadFile(os.Args[2])
		check(err)
		os.Stdout.Write(b)
	case "rm":
		check(os.Remove(os.Args[2]))
	case "write":
		check(os.WriteFile(os.Args[2], []byte(os.Args[3]), 0o644))
	case "files": // every kind of file operation below a folder
		dir := os.Args[2]
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		check(os.MkdirAll(filepath.Join(dir, "x/y"), 0o755))
		check(os.WriteFile(a, bytes.Repeat([]byte("0123456789abcdef"), 4096), 0o644))
		f, err := os.OpenFile(a, os.O_RDWR, 0)
		check(err)
		_, err = f.Seek(100, io.SeekStart)
		check(err)
		_, err = f.WriteAt([]byte("hello"), 7)
		check(err)
		buf := make([]byte, 5)
		_, err = f.ReadAt(buf, 7)
		check(err)
		check(f.Truncate(50))
		check(f.Sync())
		info, err := f.Stat()
		check(err)
		check(f.Close())
		check(os.Rename(a, filepath.Join(dir, "x/y/c")))
		check(os.Link(filepath.Join(dir, "x/y/c"), b))
		check(os.Symlink("b", filepath.Join(dir, "s")))
		target, err := os.Readlink(filepath.Join(dir, "s"))
		check(err)
		check(os.Chtimes(b, time.Unix(1, 0), time.Unix(2, 0)))
		var names []string
		check(filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(p, dir))
			return err
		}))
		check(os.RemoveAll(filepath.Join(dir, "x")))
		fmt.Println(string(buf), info.Size(), target, strings.Join(names, " "))
	case "collect": // garbage
		var keep [][]byte
		for i := range 2000 {
			keep = append(keep, make([]byte, 64<<10))
			if i%100 == 0 {
				keep = nil
				runtime.GC()
			}
		}
		fmt.Println("collected", len(keep))
	case "hog":
		var keep [][]byte
		for {
			keep = append(keep, bytes.Repeat([]byte{1}, 4<<20))
		}
	case "spin":
		for {
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "nap":
		time.Sleep(10 * time.Millisecond)
		fmt.Println("awake")
	case "goroutines":
		c := make(chan int)
		for i := range 10 {
			go func() { time.Sleep(time.Millisecond); c <- i }()
		}
		sum := 0
		for range 10 {
			sum += <-c
		}
		fmt.Println(sum)
	case "panic":
		panic("boom")
	case "exit":
		os.Exit(len(os.Args) + 1)
	}
}
