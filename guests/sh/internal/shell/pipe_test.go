package shell

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// What goes in comes out, whatever the sizes of reads, writes and of what is put back.
func TestPipeKeepsBytesInOrder(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r, w := newPipe()
		want := make([]byte, 300_000)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		go func() {
			rng := rand.New(rand.NewPCG(seed, 2))
			rest := want
			for len(rest) > 0 {
				n := min(len(rest), 1+rng.IntN(10_000))
				if k, err := w.write(context.Background(), rest[:n]); k != n || err != nil {
					t.Errorf("write = %d, %v", k, err)
				}
				rest = rest[n:]
			}
			w.close()
		}()
		var got []byte
		buf := make([]byte, 9000)
		for {
			n, err := r.read(context.Background(), time.Time{}, buf[:1+rng.IntN(len(buf))])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			back := rng.IntN(n + 1)
			if rng.IntN(2) == 0 {
				back = 0
			}
			got = append(got, buf[:n-back]...)
			if back > 0 {
				r.unread(buf[n-back : n])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes came out of %d, or not the same", seed, len(got), len(want))
		}
	}
}

func TestFileKeepsBytesThatAreGivenBack(t *testing.T) {
	name := t.TempDir() + "/f"
	text := strings.Repeat("0123456789", 3000)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR} {
		f, err := os.OpenFile(name, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		d := fileDesc(f, flag)
		rng := rand.New(rand.NewPCG(3, 3))
		var got []byte
		buf := make([]byte, 5000)
		for {
			n, err := d.read(context.Background(), time.Time{}, buf[:1+rng.IntN(len(buf)>>rng.IntN(12))])
			if err == io.EOF {
				break
			}
			back := rng.IntN(n)
			got = append(got, buf[:n-back]...)
			d.unread(buf[n-back : n])
		}
		d.close()
		if string(got) != text {
			t.Errorf("flag %d: %d bytes of %d, or not the same", flag, len(got), len(text))
		}
	}
}

func TestPipeWithoutReaderEndsItsWriter(t *testing.T) {
	r, w := newPipe()
	done := make(chan error)
	go func() {
		_, err := w.write(context.Background(), make([]byte, 3*pipeSize))
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	r.close()
	if err := <-done; !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a writer that waited: %v, want EPIPE", err)
	}
	defer func() {
		if p := recover(); p != cmd.SIGPIPE {
			t.Errorf("a command that writes is ended by %v, want SIGPIPE", p)
		}
	}()
	(&stream{ctx: context.Background(), d: w}).Write([]byte("x"))
}

func TestPipeReadsEndInTime(t *testing.T) {
	r, _ := newPipe()
	if _, err := r.read(context.Background(), time.Now().Add(10*time.Millisecond), make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its time a read returns %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cmd.SIGTERM) })
	defer func() {
		if p := recover(); p != cmd.SIGTERM {
			t.Errorf("a command that waits is ended by %v, want SIGTERM", p)
		}
	}()
	(&stream{ctx: ctx, d: r}).Read(make([]byte, 1))
}

func TestWritesOfAPageAreNotTorn(t *testing.T) {
	r, w := newPipe()
	var wg sync.WaitGroup
	for _, letter := range "abcd" {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				w.write(context.Background(), []byte(strings.Repeat(string(letter), pipeBuf-1)+"\n"))
			}
		}()
	}
	go func() { wg.Wait(); w.close() }()
	text, err := io.ReadAll(&stream{ctx: t.Context(), d: r})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line != strings.Repeat(line[:1], pipeBuf-1)+"\n" {
			t.Fatalf("line %d is torn", n)
		}
	}
	if n != 800 {
		t.Errorf("%d lines, want 800", n)
	}
}
