//go:build wasip1

// Command guest is compiled and run by the tests of package engines: it prints, sorts, grows its memory and ends with
// an exit code.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

func main() {
	fmt.Println("args:", strings.Join(os.Args[1:], " "))
	words := strings.Fields("the quick brown fox jumps over the lazy dog")
	sort.Strings(words)
	fmt.Println(words)

	var blocks [][]byte // 24 MiB: several memory.grow
	for i := range 24 {
		b := make([]byte, 1<<20)
		b[i] = byte(i)
		blocks = append(blocks, b)
	}
	sum := 0
	for i, b := range blocks {
		sum += int(b[i]) * len(b)
	}
	runtime.GC()

	var wg sync.WaitGroup
	c := make(chan int, 4)
	for i := range 4 {
		wg.Go(func() { c <- i * i })
	}
	wg.Wait()
	close(c)
	for v := range c {
		sum += v
	}
	fmt.Println("sum:", sum)
	defer func() {
		fmt.Println("recovered:", recover())
		os.Exit(7)
	}()
	var m map[string]int
	m["x"] = 1
}
