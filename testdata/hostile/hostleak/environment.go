//go:build wasip1

// The environment of whoever started the run: only what the policy sets is there.
//
// expect: exit 0
package hostleak

import (
	"fmt"
	"os"
	"strings"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("environment", func() {
		for _, entry := range os.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			if strings.Contains(entry, "CANARY") {
				fmt.Println("ATTEMPT ALLOWED - environment holds", entry)
			}
			switch name {
			case "HOME":
				if value != "/home/guest" {
					fmt.Println("ATTEMPT ALLOWED - HOME is", value)
				}
			case "PATH":
				// Fixed text of the guest's world, if there is one.
				if strings.Contains(value, "CANARY") {
					fmt.Println("ATTEMPT ALLOWED - PATH is the host's")
				}
			}
		}
		for _, name := range []string{"CANARY_SECRET", "AWS_SECRET_ACCESS_KEY", "HTTP_PROXY", "LD_PRELOAD", "PYTHONPATH", "EXTHOST_HOME"} {
			if value, ok := os.LookupEnv(name); ok {
				fmt.Println("ATTEMPT ALLOWED - environment has", name, value)
			}
		}
	})
}
