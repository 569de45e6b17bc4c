package shell_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

// pipelines are what scripts do with larger files; each reads lines.txt or lines.jsonl of 200,000 lines.
var pipelines = []struct{ name, script string }{
	{"nothing", ":"},
	{"sort-uniq-rank", "cut -d, -f2 lines.txt | sort | uniq -c | sort -rn | head -3"},
	{"sort-numbers", "cut -d, -f3 lines.txt | sort -n | tail -1"},
	{"awk-sum", "awk -F, '{s[$2]+=$3} END {for (k in s) print k, s[k]}' lines.txt | sort"},
	{"grep-sed-cut", "grep -v ',k7,' lines.txt | sed 's/^row/r/; s/,k/ K/' | cut -d' ' -f2 | wc -l"},
	{"jq-select", "jq -r 'select(.n > 990) | .k' lines.jsonl | sort | uniq -c"},
	{"bash-loop", "n=0; while IFS=, read -r a b c; do (( n += c )); done < <(head -20000 lines.txt); echo $n"},
}

// benchLines writes the input files.
func benchLines(b *testing.B, dir string) {
	b.Helper()
	var text, objects strings.Builder
	seed := uint32(1)
	for i := range 200_000 {
		seed = seed*1664525 + 1013904223
		n := seed >> 16 % 1000
		fmt.Fprintf(&text, "row%d,k%d,%d\n", i, n%97, n%1000)
		fmt.Fprintf(&objects, "{\"id\":%d,\"k\":\"k%d\",\"n\":%d}\n", i, n%97, n%1000)
	}
	for name, content := range map[string]string{"lines.txt": text.String(), "lines.jsonl": objects.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPipeline compares the sandbox with bash and the system's tools on the same machine: "x-native" is how many
// times longer a run takes, start included. Where the tools are missing only the times are reported.
func BenchmarkPipeline(b *testing.B) {
	needShell(b)
	work := b.TempDir()
	benchLines(b, work)
	skill := b.TempDir()
	for _, p := range pipelines {
		if err := os.WriteFile(filepath.Join(skill, p.name+".sh"), []byte(p.script+"\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	native := map[string]time.Duration{}
	answers := map[string]string{}
	if len(lacks()) == 0 {
		for _, p := range pipelines {
			b.Run("native/"+p.name, func(b *testing.B) {
				for b.Loop() {
					cmd := exec.Command("bash", "--noprofile", "--norc", filepath.Join(skill, p.name+".sh"))
					cmd.Dir = work
					cmd.Env = append([]string{"HOME=" + work, "PATH=" + systemPath}, locale...)
					out, err := cmd.Output()
					if err != nil {
						b.Fatal(err)
					}
					answers[p.name] = string(out)
				}
				native[p.name] = b.Elapsed() / time.Duration(b.N)
			})
		}
	}
	for _, e := range host.Versions().Engines {
		h := hosttest.New(b, host.Config{Engine: e.Name, Spares: 1})
		ext := hosttest.Open(b, h, skill, hosttest.Policy(b, shellPolicy), host.Bindings{Name: "shell", Workspace: work})
		// The first run compiles, or loads what was compiled.
		if _, err := ext.Run(b.Context(), host.Job{Script: pipelines[0].name + ".sh", Env: locale}); err != nil {
			b.Fatal(err)
		}
		for _, p := range pipelines {
			b.Run(e.Name+"/"+p.name, func(b *testing.B) {
				for b.Loop() {
					var out, errs bytes.Buffer
					rep, err := ext.Run(b.Context(), host.Job{Script: p.name + ".sh", Env: locale, Stdout: &out, Stderr: &errs})
					if err != nil {
						b.Fatal(err)
					}
					if rep.Outcome != host.Exit || rep.ExitCode != 0 {
						b.Fatalf("%s, exit code %d: %s", rep.Outcome, rep.ExitCode, &errs)
					}
					if want, ok := answers[p.name]; ok && out.String() != want {
						b.Fatalf("another answer than bash's\nwant %q\ngot  %q", want, out.String())
					}
				}
				if n := native[p.name]; n > 0 {
					b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n), "x-native")
				}
			})
		}
	}
}
