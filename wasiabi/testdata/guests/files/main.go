// The guest of TestGoGuestUsesFiles: the operations of Go's os package on a writable folder, /out.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func check(what string, err error) {
	if err != nil {
		fmt.Println("FAIL", what, err)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

func main() {
	wd, err := os.Getwd()
	check("getwd "+wd, err)
	check("write", os.WriteFile("/out/a.txt", []byte("hello"), 0o644))
	b, err := os.ReadFile("/out/a.txt")
	check("read "+string(b), err)
	check("mkdirall", os.MkdirAll("/out/d/e/f", 0o755))
	for i := range 40 {
		if err := os.WriteFile(fmt.Sprintf("/out/d/e/n%02d", i), nil, 0o644); err != nil {
			check("many", err)
		}
	}
	list, err := os.ReadDir("/out/d/e")
	check(fmt.Sprint("readdir ", len(list), " ", list[0].Name(), " ", list[len(list)-1].Name()), err)
	check("rename", os.Rename("/out/a.txt", "/out/d/b.txt"))
	_, err = os.Stat("/out/a.txt")
	fmt.Println("gone", errors.Is(err, fs.ErrNotExist))
	check("symlink", os.Symlink("b.txt", "/out/d/l"))
	to, err := os.Readlink("/out/d/l")
	check("readlink "+to, err)
	when := time.Unix(1_000_000_000, 0)
	check("chtimes", os.Chtimes("/out/d/b.txt", when, when))
	st, err := os.Stat("/out/d/l")
	check(fmt.Sprint("stat ", st.Size(), " ", st.ModTime().Unix()), err)
	f, err := os.OpenFile("/out/d/b.txt", os.O_APPEND|os.O_WRONLY, 0)
	check("append open", err)
	_, err = f.WriteString(" world")
	check("append", err)
	check("truncate", f.Truncate(8))
	check("close", f.Close())
	b, err = os.ReadFile("/out/d/l")
	check("read "+string(b), err)
	var names []string
	check("walk", filepath.WalkDir("/out", func(p string, d fs.DirEntry, err error) error {
		if !strings.Contains(p, "/n") {
			names = append(names, p)
		}
		return err
	}))
	fmt.Println(strings.Join(names, " "))
	check("removeall", os.RemoveAll("/out/d"))
	list, err = os.ReadDir("/out")
	check(fmt.Sprint("empty ", len(list)), err)
	_, err = os.ReadFile("/etc/passwd")
	fmt.Println("denied", errors.Is(err, fs.ErrPermission))
	_, err = os.Stat("/etc/passwd")
	fmt.Println("absent", errors.Is(err, fs.ErrNotExist))
	rel, err := os.ReadFile("in.txt")
	check("relative "+string(rel), err)
	dir, err := os.MkdirTemp("/out", "t")
	check("mkdirtemp", err)
	check("remove", os.Remove(dir))
	root, err := os.ReadDir("/")
	check(fmt.Sprint("root ", root), err)
}
