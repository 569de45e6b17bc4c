package wasiabi

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// FuzzFunctions calls functions with any arguments and any memory: nothing panics, nothing outside the memory is
// written, an errno is one of WASI's, and nothing appears outside the mounts.
func FuzzFunctions(f *testing.F) {
	add := func(calls ...[]uint64) {
		var b bytes.Buffer
		for _, c := range calls {
			b.WriteByte(byte(c[0]))
			for _, v := range c[1:] {
				_ = binary.Write(&b, binary.LittleEndian, v)
			}
		}
		f.Add(b.Bytes(), []byte("w/f\x00w/l../../x"))
	}
	index := map[string]uint64{}
	for i, fn := range Functions() {
		index[fn.Name] = uint64(i)
	}
	add([]uint64{index["path_open"], 3, 1, 0, 3, 1, 1 << 6, 0, 0, 100}, []uint64{index["fd_write"], 4, 8, 1, 200})
	add([]uint64{index["path_symlink"], 7, 7, 3, 4, 3}, []uint64{index["path_open"], 3, 1, 4, 3, 0, 2, 0, 0, 100})
	add([]uint64{index["fd_readdir"], 3, 0, 100, 0, 200}, []uint64{index["poll_oneoff"], 0, 100, 1, 300})
	add([]uint64{index["random_get"], 1<<32 - 1, 1<<32 - 1}, []uint64{index["args_get"], 1<<32 - 4, 0})
	list := Functions()
	f.Fuzz(func(t *testing.T, script, text []byte) {
		base := t.TempDir()
		in := filepath.Join(base, "in")
		if err := os.Mkdir(in, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		p, err := NewProcess(ctx, Config{
			Args: []string{"a"}, OpenFiles: 16, Disk: 1 << 16, Entries: 50, Events: func(Event) {},
			Mounts: []Mount{{Guest: "/w", Dir: in, Access: ReadWrite}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		const guard, size = 64, 4096
		whole := bytes.Repeat([]byte{0xa5}, guard+size+guard)
		mem := whole[guard : guard+size : guard+size]
		clear(mem)
		copy(mem, text)
		for len(script) > 0 && running(ctx) {
			fn := list[int(script[0])%len(list)]
			script = script[1:]
			args := make([]uint64, len(fn.Params))
			for i := range args {
				var b [8]byte
				script = script[copy(b[:], script):]
				args[i] = binary.LittleEndian.Uint64(b[:])
			}
			e, err := fn.Call(p, mem, args)
			if err == nil && e > uint32(rootfs.ENOTCAPABLE) {
				t.Fatalf("%s: errno %d", fn.Name, e)
			}
		}
		edge := bytes.Repeat([]byte{0xa5}, guard)
		if !bytes.Equal(whole[:guard], edge) || !bytes.Equal(whole[guard+size:], edge) {
			t.Fatal("a function wrote outside the memory")
		}
		out, err := os.ReadDir(base)
		if err != nil || len(out) != 1 {
			t.Fatalf("something appeared outside the mount: %v, %v", out, err)
		}
	})
}
