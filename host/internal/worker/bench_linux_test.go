package worker

import (
	"context"
	"testing"
	"time"

	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
)

// tiny is a guest that ends at once.
func tiny() []byte {
	m := wb.New()
	m.Memory(1, 1)
	m.Start(m.Func(wb.Sig(), nil))
	return m.Bytes()
}

// BenchmarkStart is from the call to a worker that shook hands; its engine is made ready meanwhile.
//
// All of these also tell the processor time of the worker, which says more than the clock on a busy machine.
func BenchmarkStart(b *testing.B) {
	for _, name := range engineNames() {
		b.Run(name, func(b *testing.B) {
			var cpu time.Duration
			defer func() { report(b, cpu) }()
			for b.Loop() {
				w, err := Start(context.Background(), Options{Engine: name})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				w.Kill()
				cpu += w.CPU()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkBind is the lock-down of a spare worker, self-test included.
func BenchmarkBind(b *testing.B) {
	for _, name := range engineNames() {
		b.Run(name, func(b *testing.B) {
			dir := folder(b)
			var cpu time.Duration
			defer func() { report(b, cpu) }()
			for b.Loop() {
				b.StopTimer()
				w := start(b, Options{Engine: name})
				time.Sleep(20 * time.Millisecond) // the engine becomes ready
				cpu -= w.CPU()
				b.StartTimer()
				if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: dir}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				cpu += w.CPU()
				w.Kill()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCold starts, binds and runs a tiny guest; BenchmarkWarm runs it again in the same worker.
func BenchmarkCold(b *testing.B) {
	for _, name := range engineNames() {
		b.Run(name, func(b *testing.B) {
			c := compile(b, name, tiny(), Limits{})
			var cpu time.Duration
			defer func() { report(b, cpu) }()
			for b.Loop() {
				w, err := Start(context.Background(), Options{Engine: name})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(b)}); err != nil {
					b.Fatal(err)
				}
				runTiny(b, w, c)
				b.StopTimer()
				w.Kill()
				cpu += w.CPU()
				b.StartTimer()
			}
		})
	}
}

func BenchmarkWarm(b *testing.B) {
	for _, name := range engineNames() {
		b.Run(name, func(b *testing.B) {
			c := compile(b, name, tiny(), Limits{})
			w := start(b, Options{Engine: name})
			if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(b)}); err != nil {
				b.Fatal(err)
			}
			runTiny(b, w, c)
			cpu := -w.CPU()
			for b.Loop() {
				runTiny(b, w, c)
			}
			report(b, cpu+w.CPU())
		})
	}
}

func report(b *testing.B, cpu time.Duration) {
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "worker-cpu-ms/op")
}

func runTiny(b *testing.B, w *Worker, c *Compiled) {
	j := RunJob{Folder: nextFolder(), Module: c.Prepared, Code: c.Code, CodeName: c.CodeName, Args: []string{"tiny"}, Dir: "/"}
	if r, err := w.Run(context.Background(), j); err != nil || r.Fault != "" || r.Ending.Code != 0 {
		b.Fatal(r, err, detail(err))
	}
}
