//go:build wasip1

// Command guest is every attack of the hostile corpus that is written in Go; the first argument picks one.
package main

import (
	"github.com/exthost/exthost/testdata/hostile/attack"
	_ "github.com/exthost/exthost/testdata/hostile/escape"
	_ "github.com/exthost/exthost/testdata/hostile/exfil"
	_ "github.com/exthost/exthost/testdata/hostile/hostdos"
	_ "github.com/exthost/exthost/testdata/hostile/hostleak"
	_ "github.com/exthost/exthost/testdata/hostile/lateral"
	_ "github.com/exthost/exthost/testdata/hostile/peerdos"
	_ "github.com/exthost/exthost/testdata/hostile/selfdos"
)

func main() { attack.Main() }
