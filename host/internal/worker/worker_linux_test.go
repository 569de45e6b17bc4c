package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// folder opens a new directory; the file is closed with the test.
func folder(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// memfile makes a memfd with some content.
func memfile(t testing.TB, content string) *os.File {
	t.Helper()
	f, err := unnamed("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

func start(t testing.TB, o Options) *Worker {
	t.Helper()
	w, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	return w
}

func bindRaw(t testing.TB, w *Worker, change func(*Bind)) *Bound {
	t.Helper()
	b := Bind{Role: RoleRun, Engine: "raw", Scratch: folder(t)}
	if change != nil {
		change(&b)
	}
	out, err := w.Bind(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var folders atomic.Int64

func nextFolder() string { return fmt.Sprintf("r%d", folders.Add(1)) }

func job(t testing.TB, script string) RunJob {
	return RunJob{
		Folder: nextFolder(),
		Module: memfile(t, script), Code: memfile(t, "code of "+script), Time: 20 * time.Second,
	}
}

func run(t testing.TB, w *Worker, script string) *Result {
	t.Helper()
	r, err := w.Run(context.Background(), job(t, script))
	if err != nil {
		t.Fatalf("run %q: %v\n%s", script, err, detail(err))
	}
	return r
}

// detail is what a crash says beside its error text.
func detail(err error) string {
	var crash *CrashError
	if errors.As(err, &crash) {
		return fmt.Sprintf("%+v", *crash)
	}
	return ""
}

func TestAWorkerStartsBindsAndRuns(t *testing.T) {
	w := start(t, Options{Engine: "raw"})
	b := bindRaw(t, w, nil)
	t.Logf("walls %q, engine %q", b.Walls, b.Version)
	for _, word := range []string{"one", "two", "two"} {
		r := run(t, w, "echo "+word)
		if r.Ending.Detail != word || r.Ending.Code != 7 || r.Fault != "" {
			t.Errorf("result %+v", r)
		}
	}
}
