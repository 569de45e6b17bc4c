// The guest of TestGoGuestSleepsWhileStdinIsSilent.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	ticks := make(chan int)
	go func() {
		for i := range 3 {
			time.Sleep(10 * time.Millisecond)
			ticks <- i
		}
		close(ticks)
	}()
	lines := make(chan string)
	go func() {
		s := bufio.NewScanner(os.Stdin)
		for s.Scan() {
			lines <- s.Text()
		}
		close(lines)
	}()
	for range ticks {
		fmt.Println("tick")
	}
	for l := range lines {
		fmt.Println("line", l)
	}
	fmt.Println("eof")
}
