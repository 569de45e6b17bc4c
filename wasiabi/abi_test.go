package wasiabi

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// guest is a fake guest: a memory, and calls by name.
type guest struct {
	testing.TB
	p      *Process
	mem    []byte
	events []Event
	errs   error
}

var functions = func() map[string]Function {
	out := map[string]Function{}
	for _, f := range Functions() {
		out[f.Name] = f
	}
	return out
}()

const (
	atPath  = 1 << 10 // paths of the calls
	atPath2 = 8 << 10
	atOut   = 16 << 10 // results
	atIov   = 20 << 10
	atBuf   = 32 << 10
	memSize = 128 << 10
)

func newGuest(t testing.TB, cfg Config) *guest {
	t.Helper()
	g := &guest{TB: t, mem: make([]byte, memSize)}
	cfg.Events = func(e Event) { g.events = append(g.events, e) }
	p, err := NewProcess(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	g.p = p
	return g
}

// call calls a function and gives its errno's name, "" on success.
func (g *guest) call(name string, args ...uint64) string {
	g.Helper()
	e, err := functions[name].Call(g.p, g.mem, args)
	g.errs = err
	if err != nil {
		return err.Error()
	}
	return rootfs.Errno(e).Name()
}

func (g *guest) want(want, name string, args ...uint64) {
	g.Helper()
	if got := g.call(name, args...); got != want {
		g.Errorf("%s%d: %q, want %q", name, args, got, want)
	}
}

func (g *guest) path(at int, s string) (uint64, uint64) {
	copy(g.mem[at:], s)
	return uint64(at), uint64(len(s))
}

func (g *guest) u32(at int) uint32 { return binary.LittleEndian.Uint32(g.mem[at:]) }
func (g *guest) u64(at int) uint64 { return binary.LittleEndian.Uint64(g.mem[at:]) }

// open opens a path from a folder's descriptor.
func (g *guest) open(dir uint64, p string, oflags, rights, fdflags uint64) (uint64, string) {
	g.Helper()
	ptr, n := g.path(atPath, p)
	e := g.call("path_open", dir, lookupFollow, ptr, n, oflags, rights, allRights, fdflags, atOut)
	return uint64(g.u32(atOut)), e
}

func (g *guest) mustOpen(p string, oflags, rights, fdflags uint64) uint64 {
	g.Helper()
	fd, e := g.open(3, p, oflags, rights, fdflags)
	if e != "" {
		g.Fatalf("open %s: %s", p, e)
	}
	return fd
}

// iov writes one iovec for n bytes at atBuf.
func (g *guest) iov(n int) (uint64, uint64) {
	binary.LittleEndian.PutUint32(g.mem[atIov:], atBuf)
	binary.LittleEndian.PutUint32(g.mem[atIov+4:], uint32(n))
	return atIov, 1
}

func (g *guest) write(fd uint64, s string) string {
	g.Helper()
	copy(g.mem[atBuf:], s)
	ptr, n := g.iov(len(s))
	return g.call("fd_write", fd, ptr, n, atOut)
}

func (g *guest) read(fd uint64, n int) (string, string) {
	g.Helper()
	ptr, cnt := g.iov(n)
	if e := g.call("fd_read", fd, ptr, cnt, atOut); e != "" {
		return "", e
	}
	return string(g.mem[atBuf : atBuf+g.u32(atOut)]), ""
}

const readWrite = rightFdRead | rightFdWrite | rightFdSeek | rightFdTell | rightFdFilestatGet | rightFdFilestatSetSize |
	rightFdFilestatSetTimes | rightFdAllocate | rightFdSync | rightFdDatasync | rightFdAdvise | rightFdFdstatSetFlags | rightPollFdReadwrite

func scratch(t testing.TB) (string, Config) {
	dir := t.TempDir()
	return dir, Config{Dir: "/w", Mounts: []Mount{{Guest: "/w", Dir: dir, Access: ReadWrite}}}
}

func TestTableHasEveryFunctionOnce(t *testing.T) {
	list := Functions()
	if len(list) != 46 || len(functions) != 46 {
		t.Errorf("%d functions, %d names", len(list), len(functions))
	}
	names := slices.Collect(func(yield func(string) bool) {
		for _, f := range list {
			if !yield(f.Name) {
				return
			}
		}
	})
	if !slices.IsSorted(names) {
		t.Error("not in the order of their names")
	}
	abi, err := os.ReadFile("ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.Contains(string(abi), "`"+n+"`") {
			t.Errorf("ABI.md does not name %s", n)
		}
	}
	if _, err := list[0].Call(nil, nil, []uint64{1, 2, 3}); err == nil {
		t.Error("a call with too many arguments is not a host fault")
	}
}

func TestArgumentsAndEnvironmentAreLaidOut(t *testing.T) {
	g := newGuest(t, Config{Args: []string{"prog", "a b"}, Env: []string{"A=1", "PWD=/x"}, Dir: "/w"})
	g.want("", "args_sizes_get", atOut, atOut+4)
	if g.u32(atOut) != 2 || g.u32(atOut+4) != 9 {
		t.Errorf("sizes %d, %d", g.u32(atOut), g.u32(atOut+4))
	}
	g.want("", "args_get", atOut, atBuf)
	if got := string(g.mem[atBuf : atBuf+9]); got != "prog\x00a b\x00" || g.u32(atOut+4) != atBuf+5 {
		t.Errorf("args %q at %d", got, g.u32(atOut+4))
	}
	g.want("", "environ_sizes_get", atOut, atOut+4)
	g.want("", "environ_get", atOut, atBuf)
	if got := string(g.mem[atBuf : atBuf+12]); got != "A=1\x00PWD=/w\x00\x00" {
		t.Errorf("environment %q", got)
	}
	for _, f := range []string{"args_get", "args_sizes_get", "environ_get", "environ_sizes_get"} {
		g.want("EFAULT", f, memSize-2, atBuf)
		g.want("EFAULT", f, atOut, memSize-2)
		g.want("EFAULT", f, 1<<32-1, 1<<32-1)
	}
}

func TestMisshapenConfigIsAnError(t *testing.T) {
	for what, cfg := range map[string]Config{
		"NUL in an argument": {Args: []string{"a\x00b"}}, "no name": {Env: []string{"=x"}}, "no =": {Env: []string{"x"}},
		"too long": {Args: []string{strings.Repeat("x", maxArgs)}}, "negative": {Disk: -1}, "relative folder": {Dir: "w"},
		"no such folder": {Mounts: []Mount{{Guest: "/w", Dir: filepath.Join(t.TempDir(), "none"), Access: ReadOnly}}},
		"no access":      {Mounts: []Mount{{Guest: "/w", Dir: t.TempDir()}}},
		"unclean":        {Mounts: []Mount{{Guest: "/w/", Dir: t.TempDir(), Access: ReadOnly}}},
		"no upper":       {Mounts: []Mount{{Guest: "/w", Dir: t.TempDir(), Access: Overlay}}},
		"twice":          {Mounts: []Mount{{Guest: "/w", Dir: t.TempDir(), Access: ReadOnly}, {Guest: "/w", Dir: t.TempDir(), Access: ReadOnly}}},
	} {
		if p, err := NewProcess(context.Background(), cfg); err == nil {
			p.Close()
			t.Errorf("%s: no error", what)
		}
	}
}

func TestClocksAdvance(t *testing.T) {
	g := newGuest(t, Config{})
	for id := range uint64(4) {
		g.want("", "clock_res_get", id, atOut)
		if g.u64(atOut) == 0 {
			t.Errorf("clock %d: resolution 0", id)
		}
		g.want("", "clock_time_get", id, 1, atOut)
	}
	g.want("", "clock_time_get", clockMonotonic, 1, atOut)
	before := g.u64(atOut)
	time.Sleep(2 * time.Millisecond)
	g.want("", "clock_time_get", clockMonotonic, 1, atOut)
	if after := g.u64(atOut); before == 0 || after < before+2e6 {
		t.Errorf("monotonic: %d, then %d", before, after)
	}
	g.want("", "clock_time_get", clockRealtime, 1, atOut)
	if d := time.Since(time.Unix(0, int64(g.u64(atOut)))); d < 0 || d > time.Minute {
		t.Errorf("realtime is off by %v", d)
	}
	g.want("EINVAL", "clock_res_get", 4, atOut)
	g.want("EINVAL", "clock_time_get", 1<<32-1, 0, atOut)
	g.want("EFAULT", "clock_time_get", 0, 0, memSize-7)
	g.want("EFAULT", "clock_res_get", 0, memSize)
}

func TestFileDescriptorsReadWriteAndSeek(t *testing.T) {
	dir, cfg := scratch(t)
	g := newGuest(t, cfg)
	fd := g.mustOpen("w/f", openCreat, readWrite, 0)
	if fd != 4 {
		t.Errorf("the first descriptor is %d", fd)
	}
	if e := g.write(fd, "hello world"); e != "" || g.u32(atOut) != 11 {
		t.Errorf("write: %q, %d bytes", e, g.u32(atOut))
	}
	g.want("", "fd_tell", fd, atOut)
	if g.u64(atOut) != 11 {
		t.Errorf("tell %d", g.u64(atOut))
	}
	neg := int64(-5)
	g.want("", "fd_seek", fd, uint64(neg), 2, atOut)
	if got, e := g.read(fd, 100); got != "world" || e != "" {
		t.Errorf("read %q %q", got, e)
	}
	if got, e := g.read(fd, 100); got != "" || e != "" {
		t.Errorf("at the end %q %q", got, e)
	}
	ptr, n := g.iov(5)
	g.want("", "fd_pread", fd, ptr, n, 0, atOut)
	if got := string(g.mem[atBuf : atBuf+5]); got != "hello" {
		t.Errorf("pread %q", got)
	}
	copy(g.mem[atBuf:], "HELLO")
	g.want("", "fd_pwrite", fd, ptr, n, 0, atOut)
	if b, _ := os.ReadFile(filepath.Join(dir, "f")); string(b) != "HELLO world" {
		t.Errorf("the file holds %q", b)
	}
	g.want("", "fd_seek", fd, 3, 0, atOut)
	g.want("", "fd_seek", fd, 2, 1, atOut)
	if g.u64(atOut) != 5 {
		t.Errorf("seek to %d", g.u64(atOut))
	}
	minus := int64(-1)
	g.want("EINVAL", "fd_seek", fd, uint64(minus), 0, atOut)
	g.want("EINVAL", "fd_seek", fd, 0, 3, atOut)
	g.want("EOVERFLOW", "fd_seek", fd, 1<<63-1, 1, atOut)
	g.want("EINVAL", "fd_pread", fd, ptr, n, 1<<63, atOut)
	g.want("EINVAL", "fd_pwrite", fd, ptr, n, 1<<63, atOut)
	g.want("EFAULT", "fd_tell", fd, memSize-4)
	g.want("EFAULT", "fd_read", fd, ptr, n, memSize)
	g.want("EFAULT", "fd_write", fd, memSize-4, 1, atOut)
	g.want("EINVAL", "fd_write", fd, atIov, 1_000_000, atOut)
	binary.LittleEndian.PutUint32(g.mem[atIov:], memSize-4)
	g.want("EFAULT", "fd_write", fd, ptr, n, atOut)
	g.want("EFAULT", "fd_read", fd, ptr, n, atOut)
	g.want("", "fd_filestat_set_size", fd, 4)
	g.want("", "fd_allocate", fd, 0, 10)
	g.want("EINVAL", "fd_allocate", fd, 0, 0)
	g.want("EFBIG", "fd_allocate", fd, 1<<62, 1<<62)
	g.want("EINVAL", "fd_filestat_set_size", fd, 1<<63)
	g.want("", "fd_advise", fd, 0, 0, 5)
	g.want("EINVAL", "fd_advise", fd, 0, 0, 6)
	g.want("", "fd_sync", fd)
	g.want("", "fd_datasync", fd)
	g.want("", "fd_filestat_set_times", fd, 5e9, 6e9, setAtim|setMtim)
	g.want("EINVAL", "fd_filestat_set_times", fd, 0, 0, setAtim|setAtimNow)
	g.want("", "fd_filestat_get", fd, atOut)
	if g.mem[atOut+16] != typeRegular || g.u64(atOut+32) != 10 || g.u64(atOut+48) != 6e9 {
		t.Errorf("stat: type %d, size %d, mtim %d", g.mem[atOut+16], g.u64(atOut+32), g.u64(atOut+48))
	}
	g.want("", "fd_close", fd)
	for _, f := range []struct {
		name string
		args []uint64
	}{
		{"fd_close", []uint64{fd}}, {"fd_read", []uint64{fd, ptr, n, atOut}}, {"fd_write", []uint64{fd, ptr, n, atOut}},
		{"fd_pread", []uint64{fd, ptr, n, 0, atOut}}, {"fd_pwrite", []uint64{fd, ptr, n, 0, atOut}}, {"fd_seek", []uint64{fd, 0, 0, atOut}},
		{"fd_tell", []uint64{fd, atOut}}, {"fd_sync", []uint64{fd}}, {"fd_datasync", []uint64{fd}}, {"fd_advise", []uint64{fd, 0, 0, 0}},
		{"fd_allocate", []uint64{fd, 0, 1}}, {"fd_fdstat_get", []uint64{fd, atOut}}, {"fd_fdstat_set_flags", []uint64{fd, 0}},
		{"fd_fdstat_set_rights", []uint64{fd, 0, 0}}, {"fd_filestat_get", []uint64{fd, atOut}}, {"fd_filestat_set_size", []uint64{fd, 0}},
		{"fd_filestat_set_times", []uint64{fd, 0, 0, 0}}, {"fd_prestat_get", []uint64{fd, atOut}}, {"fd_prestat_dir_name", []uint64{fd, atOut, 1}},
		{"fd_readdir", []uint64{fd, atBuf, 100, 0, atOut}}, {"fd_renumber", []uint64{fd, 1}}, {"fd_renumber", []uint64{1, fd}},
		{"sock_accept", []uint64{fd, 0, atOut}}, {"sock_recv", []uint64{fd, 0, 0, 0, atOut, atOut}}, {"sock_send", []uint64{fd, 0, 0, 0, atOut}},
		{"sock_shutdown", []uint64{fd, 0}}, {"path_create_directory", []uint64{fd, atPath, 1}}, {"path_filestat_get", []uint64{fd, 0, atPath, 1, atOut}},
		{"path_filestat_set_times", []uint64{fd, 0, atPath, 1, 0, 0, 0}}, {"path_link", []uint64{fd, 0, atPath, 1, fd, atPath, 1}},
		{"path_open", []uint64{fd, 0, atPath, 1, 0, 0, 0, 0, atOut}}, {"path_readlink", []uint64{fd, atPath, 1, atBuf, 10, atOut}},
		{"path_remove_directory", []uint64{fd, atPath, 1}}, {"path_rename", []uint64{fd, atPath, 1, fd, atPath, 1}},
		{"path_symlink", []uint64{atPath, 1, fd, atPath, 1}}, {"path_unlink_file", []uint64{fd, atPath, 1}},
	} {
		g.want("EBADF", f.name, f.args...)
		f.args[slices.Index(f.args, fd)] = 1<<32 - 1
		g.want("EBADF", f.name, f.args...)
	}
}

func TestAppendWritesAtTheEnd(t *testing.T) {
	dir, cfg := scratch(t)
	g := newGuest(t, cfg)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd := g.mustOpen("w/f", 0, readWrite, flagAppend)
	g.write(fd, "+1")
	g.want("", "fd_seek", fd, 0, 0, atOut)
	g.write(fd, "+2")
	g.want("", "fd_tell", fd, atOut)
	if g.u64(atOut) != 7 {
		t.Errorf("offset %d, want 7", g.u64(atOut))
	}
	g.want("", "fd_fdstat_set_flags", fd, 0)
	g.want("", "fd_seek", fd, 0, 0, atOut)
	g.write(fd, "new")
	g.want("EINVAL", "fd_fdstat_set_flags", fd, 32)
	if b, _ := os.ReadFile(filepath.Join(dir, "f")); string(b) != "new+1+2" {
		t.Errorf("the file holds %q", b)
	}
}

func TestRightsAreThoseOfTheOpen(t *testing.T) {
	_, cfg := scratch(t)
	g := newGuest(t, cfg)
	w := g.mustOpen("w/f", openCreat, rightFdWrite|rightFdSeek, 0)
	g.write(w, "x")
	r := g.mustOpen("w/f", 0, readWrite&^rightFdWrite, 0)
	if e := g.write(r, "y"); e != "EBADF" {
		t.Errorf("write to what is open for reading: %s", e)
	}
	if _, e := g.read(w, 1); e != "EBADF" {
		t.Errorf("read of what is open for writing: %s", e)
	}
	g.want("ENOTCAPABLE", "fd_filestat_set_size", r, 0)
	g.want("ENOTCAPABLE", "fd_allocate", r, 0, 10)
	g.want("ENOTCAPABLE", "fd_sync", w)
	g.want("", "fd_fdstat_get", r, atOut)
	if rights := g.u64(atOut + 8); rights&fileWriteRights != 0 {
		t.Errorf("rights %#x allow writing", rights)
	}
	g.want("ENOTCAPABLE", "fd_fdstat_set_rights", r, allRights, 0)
	g.want("", "fd_fdstat_set_rights", r, rightFdSeek, 0)
	if _, e := g.read(r, 1); e != "EBADF" {
		t.Errorf("read after the right was dropped: %s", e)
	}
	g.want("", "fd_fdstat_set_rights", 3, dirRights&^rightPathCreateFile, allRights)
	if _, e := g.open(3, "w/new", openCreat, readWrite, 0); e != "ENOTCAPABLE" {
		t.Errorf("create after the right was dropped: %s", e)
	}
	sub := g.mustOpen("w", openDirectory, 0, 0)
	if _, e := g.open(sub, "new", openCreat, readWrite, 0); e != "ENOTCAPABLE" {
		t.Errorf("create through a folder opened after that: %s", e)
	}
}

func TestReadRootIsNotTruncatedThroughAnOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, Config{Mounts: []Mount{{Guest: "/ro", Dir: dir, Access: ReadOnly}}})
	for _, o := range []uint64{openTrunc, openTrunc | openCreat} {
		if _, e := g.open(3, "ro/f", o, rightFdRead, 0); e != "EROFS" {
			t.Errorf("oflags %d: %s", o, e)
		}
	}
	if _, e := g.open(3, "ro/n", openCreat|openExcl, rightFdRead, 0); e != "EROFS" {
		t.Errorf("create: %s", e)
	}
	fd := g.mustOpen("ro/f", 0, readWrite&^rightFdWrite, 0)
	g.want("EROFS", "fd_filestat_set_size", fd, 0)
	g.want("EROFS", "fd_allocate", fd, 0, 100)
	g.want("EROFS", "fd_filestat_set_times", fd, 0, 0, setMtim)
	if b, _ := os.ReadFile(filepath.Join(dir, "f")); string(b) != "bytes" {
		t.Errorf("the file holds %q", b)
	}
}

func TestDescriptorsAreCapped(t *testing.T) {
	_, cfg := scratch(t)
	cfg.OpenFiles = 8
	g := newGuest(t, cfg)
	fds := []uint64{}
	for {
		fd, e := g.open(3, "w/f", openCreat, readWrite, 0)
		if e != "" {
			if e != "EMFILE" {
				t.Errorf("the cap answers %s", e)
			}
			break
		}
		fds = append(fds, fd)
		if len(fds) > 100 {
			t.Fatal("no cap")
		}
	}
	if len(fds) != 4 {
		t.Errorf("%d files beside the first four", len(fds))
	}
	g.want("", "fd_close", fds[1])
	if fd := g.mustOpen("w/f", 0, readWrite, 0); fd != fds[1] {
		t.Errorf("got %d, want the lowest free number %d", fd, fds[1])
	}
	g.want("", "fd_renumber", fds[0], fds[2])
	g.want("EBADF", "fd_tell", fds[0], atOut)
	if !slices.ContainsFunc(g.events, func(e Event) bool { return e.Capability == "limit open-files" && e.Denied }) {
		t.Error("no event of the limit")
	}
}

func TestPreopenIsTheOneRoot(t *testing.T) {
	g := newGuest(t, Config{})
	g.want("", "fd_prestat_get", 3, atOut)
	if g.mem[atOut] != 0 || g.u32(atOut+4) != 1 {
		t.Errorf("prestat %d, %d", g.mem[atOut], g.u32(atOut+4))
	}
	g.want("", "fd_prestat_dir_name", 3, atOut, 1)
	if g.mem[atOut] != '/' {
		t.Errorf("name %q", g.mem[atOut])
	}
	g.want("ENAMETOOLONG", "fd_prestat_dir_name", 3, atOut, 0)
	g.want("EBADF", "fd_prestat_get", 4, atOut)
	g.want("EBADF", "fd_prestat_get", 1, atOut)
	g.want("EFAULT", "fd_prestat_get", 3, memSize-7)
	g.want("", "fd_fdstat_get", 3, atOut)
	if g.mem[atOut] != typeDirectory {
		t.Errorf("type %d", g.mem[atOut])
	}
	g.want("EISDIR", "fd_read", 3, atIov, 0, atOut)
	g.want("EISDIR", "fd_write", 3, atIov, 0, atOut)
}

func TestReaddirPagesWithStableCookies(t *testing.T) {
	dir, cfg := scratch(t)
	g := newGuest(t, cfg)
	for _, n := range []string{"one", "two", "three"} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fd := g.mustOpen("w", openDirectory, rightFdReaddir, 0)
	var names []string
	for cookie := uint64(0); ; {
		// Room for one entry, and a part of the next.
		g.want("", "fd_readdir", fd, atBuf, 34, cookie, atOut)
		used := g.u32(atOut)
		if used < 24 {
			break
		}
		n := g.u32(atBuf + 16)
		names = append(names, string(g.mem[atBuf+24:atBuf+24+int(n)]))
		cookie = g.u64(atBuf)
		if g.u64(atBuf+8) == 0 {
			t.Error("an entry without an inode")
		}
	}
	if got := strings.Join(names, " "); got != ". .. one three two" {
		t.Errorf("names %q", got)
	}
	g.want("", "fd_readdir", fd, atBuf, 1000, 99, atOut)
	if g.u32(atOut) != 0 {
		t.Error("entries after the end")
	}
	g.want("EFAULT", "fd_readdir", fd, memSize-10, 100, 0, atOut)
	g.want("EFAULT", "fd_readdir", fd, atBuf, 100, 0, memSize)
	g.want("ENOTDIR", "fd_readdir", 0, atBuf, 100, 0, atOut)
}

func TestPathFunctionsCheckTheirMemory(t *testing.T) {
	_, cfg := scratch(t)
	g := newGuest(t, cfg)
	const bad, far = memSize - 1, 1<<32 - 1
	for _, c := range [][]any{
		{"path_create_directory", 3, bad, 2}, {"path_remove_directory", 3, far, far}, {"path_unlink_file", 3, bad, 2},
		{"path_filestat_get", 3, 0, bad, 2, atOut}, {"path_filestat_set_times", 3, 0, bad, 2, 0, 0, 0}, {"path_link", 3, 0, bad, 2, 3, atPath, 1},
		{"path_link", 3, 0, atPath, 1, 3, bad, 2}, {"path_rename", 3, bad, 2, 3, atPath, 1}, {"path_rename", 3, atPath, 1, 3, far, 9},
		{"path_symlink", bad, 2, 3, atPath, 1}, {"path_symlink", atPath, 1, 3, bad, 2}, {"path_readlink", 3, bad, 2, atBuf, 1, atOut},
		{"path_readlink", 3, atPath, 1, bad, 2, atOut}, {"path_readlink", 3, atPath, 1, atBuf, 2, bad}, {"path_open", 3, 0, bad, 2, 0, 0, 0, 0, atOut},
		{"path_open", 3, 0, atPath, 1, 0, 0, 0, 0, bad}, {"path_create_directory", 3, 0, 1 << 31},
	} {
		args := make([]uint64, len(c)-1)
		for i, v := range c[1:] {
			args[i] = uint64(v.(int))
		}
		g.want("EFAULT", c[0].(string), args...)
	}
	g.want("ENAMETOOLONG", "path_create_directory", 3, 0, 5000)
	g.want("EINVAL", "path_open", 3, 2, atPath, 1, 0, 0, 0, 0, atOut)
	g.want("EINVAL", "path_open", 3, 0, atPath, 1, 16, 0, 0, 0, atOut)
	g.want("EINVAL", "path_open", 3, 0, atPath, 1, 0, 0, 0, 32, atOut)
	g.want("ENOTDIR", "path_open", 0, 0, atPath, 1, 0, 0, 0, 0, atOut)
	g.want("EINVAL", "path_filestat_get", 3, 2, atPath, 1, atOut)
	g.want("EINVAL", "path_link", 3, 4, atPath, 1, 3, atPath, 1)
}

func TestPathFunctionsDoWhatTheySay(t *testing.T) {
	dir, cfg := scratch(t)
	g := newGuest(t, cfg)
	p := func(name string, before []uint64, a string, rest ...uint64) string {
		ptr, n := g.path(atPath, a)
		return g.call(name, append(append(before, ptr, n), rest...)...)
	}
	two := func(name string, before []uint64, a string, mid []uint64, b string) string {
		p1, n1 := g.path(atPath, a)
		p2, n2 := g.path(atPath2, b)
		return g.call(name, append(append(append(before, p1, n1), mid...), p2, n2)...)
	}
	fd := g.mustOpen("w/f", openCreat, readWrite, 0)
	g.write(fd, "12345")
	for what, e := range []string{
		0: p("path_create_directory", []uint64{3}, "w/d"),
		1: two("path_rename", []uint64{3}, "w/f", []uint64{3}, "w/d/g"),
		2: two("path_link", []uint64{3, 0}, "w/d/g", []uint64{3}, "w/h"),
		3: two("path_symlink", nil, "d/g", []uint64{3}, "w/l"),
		4: p("path_filestat_set_times", []uint64{3, lookupFollow}, "w/l", 1e9, 2e9, setAtim|setMtim),
		5: p("path_filestat_get", []uint64{3, lookupFollow}, "w/l", atOut),
	} {
		if e != "" {
			t.Errorf("step %d: %s", what, e)
		}
	}
	if g.mem[atOut+16] != typeRegular || g.u64(atOut+24) != 2 || g.u64(atOut+32) != 5 || g.u64(atOut+48) != 2e9 {
		t.Errorf("stat: type %d, links %d, size %d, mtim %d", g.mem[atOut+16], g.u64(atOut+24), g.u64(atOut+32), g.u64(atOut+48))
	}
	if e := p("path_filestat_get", []uint64{3, 0}, "w/l", atOut); e != "" || g.mem[atOut+16] != typeLink {
		t.Errorf("stat of the link: %q, type %d", e, g.mem[atOut+16])
	}
	if e := p("path_readlink", []uint64{3}, "w/l", atBuf, 2, atOut); e != "" || string(g.mem[atBuf:atBuf+g.u32(atOut)]) != "d/" {
		t.Errorf("a short readlink: %q %q", e, g.mem[atBuf:atBuf+2])
	}
	for name, want := range map[string]string{"w/d": "EISDIR", "w/none": "ENOENT", "w/l": ""} {
		if e := p("path_unlink_file", []uint64{3}, name); e != want {
			t.Errorf("unlink %s: %q", name, e)
		}
	}
	for name, want := range map[string]string{"w/h": "ENOTDIR", "w/d": "ENOTEMPTY", "w/none": "ENOENT"} {
		if e := p("path_remove_directory", []uint64{3}, name); e != want {
			t.Errorf("rmdir %s: %q", name, e)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "d/g")); string(b) != "12345" {
		t.Errorf("the file: %q %v", b, err)
	}
}

func TestDevicesGiveWhatTheirNamesSay(t *testing.T) {
	g := newGuest(t, Config{})
	null, zero, random := g.mustOpen("dev/null", 0, readWrite, 0), g.mustOpen("dev/zero", 0, readWrite, 0), g.mustOpen("dev/urandom", 0, readWrite, 0)
	if got, e := g.read(null, 10); got != "" || e != "" {
		t.Errorf("null: %q %q", got, e)
	}
	if e := g.write(null, "x"); e != "" || g.u32(atOut) != 1 {
		t.Errorf("write to null: %q", e)
	}
	g.mem[atBuf] = 1
	if got, _ := g.read(zero, 4); got != "\x00\x00\x00\x00" {
		t.Errorf("zero: %q", got)
	}
	if got, _ := g.read(random, 32); got == strings.Repeat("\x00", 32) || len(got) != 32 {
		t.Errorf("urandom: %q", got)
	}
	g.want("", "fd_fdstat_get", null, atOut)
	if g.mem[atOut] != typeCharacter || g.u64(atOut+8)&rightFdSeek == 0 {
		t.Error("a device looks like a terminal to a libc")
	}
	if _, e := g.open(3, "dev/null/x", 0, readWrite, 0); e != "ENOTDIR" {
		t.Errorf("below a device: %s", e)
	}
}

func TestRandomIsCappedAndFillsItsBuffer(t *testing.T) {
	g := newGuest(t, Config{})
	g.want("", "random_get", atBuf, 64)
	if string(g.mem[atBuf:atBuf+64]) == strings.Repeat("\x00", 64) {
		t.Error("nothing was written")
	}
	g.want("EFAULT", "random_get", atBuf, 1<<30)
	g.want("EFAULT", "random_get", 1<<32-1, 1)
	g.mem = make([]byte, maxRandom+100)
	g.want("EINVAL", "random_get", 0, maxRandom+1)
}

func TestExitAndSignalsUnwind(t *testing.T) {
	g := newGuest(t, Config{})
	for sig, code := range map[uint64]uint32{6: 134, 9: 137, 15: 143} {
		g.call("proc_raise", sig)
		var exit *Exit
		if !errors.As(g.errs, &exit) || exit.Code != code {
			t.Errorf("signal %d: %v", sig, g.errs)
		}
	}
	g.call("proc_exit", 256)
	var exit *Exit
	if !errors.As(g.errs, &exit) || exit.Code != 256 {
		t.Errorf("exit: %v", g.errs)
	}
	g.want("", "proc_raise", 0)
	g.want("", "proc_raise", 16)
	g.want("ENOTSUP", "proc_raise", 18)
	g.want("EINVAL", "proc_raise", 31)
	g.want("", "sched_yield")
}

func TestSocketsCannotBeHad(t *testing.T) {
	g := newGuest(t, Config{})
	g.want("ENOTSUP", "sock_accept", 0, 0, atOut)
	g.want("ENOTSUP", "sock_recv", 0, atIov, 1, 0, atOut, atOut)
	g.want("ENOTSUP", "sock_send", 1, atIov, 1, 0, atOut)
	g.want("ENOTSUP", "sock_shutdown", 1, 3)
}

// subscribe writes a subscription at atPath.
func (g *guest) subscribe(i int, userdata uint64, tag byte, rest func(b []byte)) {
	b := g.mem[atPath+48*i:][:48]
	clear(b)
	binary.LittleEndian.PutUint64(b, userdata)
	b[8] = tag
	rest(b[16:])
}

func clockSub(id uint32, timeout uint64, flags uint16) func(b []byte) {
	return func(b []byte) {
		binary.LittleEndian.PutUint32(b, id)
		binary.LittleEndian.PutUint64(b[8:], timeout)
		binary.LittleEndian.PutUint16(b[24:], flags)
	}
}

func fdSub(fd uint32) func(b []byte) {
	return func(b []byte) { binary.LittleEndian.PutUint32(b, fd) }
}

func TestPollWaitsForTimersAndStreams(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	_, cfg := scratch(t)
	cfg.Stdin, cfg.Stdout = r, w
	g := newGuest(t, cfg)
	g.subscribe(0, 7, eventClock, clockSub(clockMonotonic, 20e6, 0))
	g.subscribe(1, 8, eventRead, fdSub(0))
	begin := time.Now()
	g.want("", "poll_oneoff", atPath, atBuf, 2, atOut)
	if d := time.Since(begin); d < 20*time.Millisecond || g.u32(atOut) != 1 || g.u64(atBuf) != 7 || g.mem[atBuf+10] != eventClock {
		t.Errorf("after %v: %d events, userdata %d", d, g.u32(atOut), g.u64(atBuf))
	}
	if _, err := w.WriteString("in"); err != nil {
		t.Fatal(err)
	}
	g.subscribe(0, 7, eventClock, clockSub(clockMonotonic, 60e9, 0))
	g.want("", "poll_oneoff", atPath, atBuf, 2, atOut)
	if g.u32(atOut) != 1 || g.u64(atBuf) != 8 || g.mem[atBuf+10] != eventRead || g.u64(atBuf+16) == 0 {
		t.Errorf("a readable stdin: %d events, userdata %d", g.u32(atOut), g.u64(atBuf))
	}
	g.subscribe(0, 1, eventRead, fdSub(77))
	g.subscribe(1, 2, eventWrite, fdSub(1))
	g.want("", "poll_oneoff", atPath, atBuf, 2, atOut)
	if g.u32(atOut) != 2 || g.mem[atBuf+8] != byte(rootfs.EBADF) || g.u64(atBuf+32) != 2 {
		t.Errorf("a bad descriptor and a writable one: %d events", g.u32(atOut))
	}
	g.subscribe(0, 1, eventClock, clockSub(clockRealtime, 1, 1)) // long ago
	g.want("", "poll_oneoff", atPath, atBuf, 1, atOut)
	g.subscribe(0, 1, eventClock, clockSub(99, 1, 0))
	g.want("", "poll_oneoff", atPath, atBuf, 1, atOut)
	if g.mem[atBuf+8] != byte(rootfs.EINVAL) {
		t.Errorf("an unknown clock: errno %d", g.mem[atBuf+8])
	}
	g.want("EINVAL", "poll_oneoff", atPath, atBuf, 0, atOut)
	g.want("EINVAL", "poll_oneoff", atPath, atBuf, maxSubscriptions+1, atOut)
	g.want("EFAULT", "poll_oneoff", memSize-40, atBuf, 1, atOut)
	g.want("EFAULT", "poll_oneoff", atPath, memSize-20, 1, atOut)
	g.want("EFAULT", "poll_oneoff", atPath, atBuf, 1, memSize)
	g.mem[atPath+8] = 3
	g.want("EINVAL", "poll_oneoff", atPath, atBuf, 1, atOut)
}

func TestStdinIsEndOfFileByDefault(t *testing.T) {
	g := newGuest(t, Config{})
	if got, e := g.read(0, 10); got != "" || e != "" {
		t.Errorf("stdin: %q %q", got, e)
	}
	if e := g.write(1, "dropped"); e != "" || g.u32(atOut) != 7 {
		t.Errorf("stdout: %q", e)
	}
	g.want("ESPIPE", "fd_seek", 0, 0, 0, atOut)
	g.want("", "fd_fdstat_get", 0, atOut)
	if g.mem[atOut] == typeCharacter {
		t.Error("no stdin looks like a terminal")
	}
}

func TestNonblockingStdinAnswersEagain(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := newGuest(t, Config{Stdin: r})
	g.want("", "fd_fdstat_set_flags", 0, flagNonblock)
	if _, e := g.read(0, 10); e != "EAGAIN" {
		t.Errorf("a silent stdin: %s", e)
	}
	if _, err := w.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, e := g.read(0, 2); got != "ab" || e != "" {
		t.Errorf("first %q %q", got, e)
	}
	if got, e := g.read(0, 10); got != "c" || e != "" {
		t.Errorf("then %q %q", got, e)
	}
	if got, e := g.read(0, 10); got != "" || e != "" {
		t.Errorf("the end %q %q", got, e)
	}
}

func TestFullPipeAnswersEagainOrWaits(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	p, err := NewProcess(ctx, Config{Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g := &guest{TB: t, p: p, mem: make([]byte, memSize)}
	g.want("", "fd_fdstat_set_flags", 1, flagNonblock)
	for range 100 {
		if e := g.write(1, strings.Repeat("x", 8000)); e == "EAGAIN" {
			break
		} else if e != "" {
			t.Fatal(e)
		}
	}
	g.want("", "fd_fdstat_set_flags", 1, 0)
	begin := time.Now()
	if e := g.write(1, "y"); g.errs == nil {
		t.Errorf("a write to a full pipe: %q", e)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("it ended after %v", d)
	}
	if !errors.Is(g.errs, context.DeadlineExceeded) {
		t.Errorf("cause %v", g.errs)
	}
}

func TestWaitsEndWithTheRun(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for what, f := range map[string]func(g *guest){
		"sleep for an hour": func(g *guest) {
			g.subscribe(0, 0, eventClock, clockSub(clockMonotonic, 3600e9, 0))
			g.call("poll_oneoff", atPath, atBuf, 1, atOut)
		},
		"sleep beside stdin": func(g *guest) {
			g.subscribe(0, 0, eventClock, clockSub(clockMonotonic, 3600e9, 0))
			g.subscribe(1, 0, eventRead, fdSub(0))
			g.call("poll_oneoff", atPath, atBuf, 2, atOut)
		},
		"read of a silent stdin": func(g *guest) { g.read(0, 10) },
	} {
		for _, end := range []string{"cancel", "close"} {
			t.Run(what+"/"+end, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				p, err := NewProcess(ctx, Config{Stdin: r})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				g := &guest{TB: t, p: p, mem: make([]byte, memSize)}
				time.AfterFunc(20*time.Millisecond, func() {
					if end == "cancel" {
						cancel()
					} else {
						p.Close()
					}
				})
				begin := time.Now()
				f(g)
				if d := time.Since(begin); d > 5*time.Second || d < 15*time.Millisecond {
					t.Errorf("it ended after %v", d)
				}
				if g.errs == nil {
					t.Error("the guest was not unwound")
				}
				if end == "close" && !errors.Is(g.errs, ErrClosed) {
					t.Errorf("cause %v", g.errs)
				}
				if g.call("sched_yield"); g.errs == nil {
					t.Error("a call after the end went through")
				}
			})
		}
	}
}

func TestOutputIsPassedAsItIs(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := newGuest(t, Config{Stdout: w})
	w.Close() // the process has its own duplicate
	const raw = "\x1b[31m\xff\x00 no newline"
	if e := g.write(1, raw); e != "" {
		t.Fatal(e)
	}
	buf := make([]byte, 100)
	n, _ := r.Read(buf)
	if string(buf[:n]) != raw {
		t.Errorf("got %q", buf[:n])
	}
	r.Close()
	if e := g.write(1, "x"); e != "EPIPE" {
		t.Errorf("write without a reader: %s", e)
	}
}

func TestRepeatedEventsAreCounted(t *testing.T) {
	g := newGuest(t, Config{})
	for range 1000 {
		if _, e := g.open(3, "etc/passwd", 0, rightFdRead, 0); e != "EACCES" {
			t.Fatal(e)
		}
	}
	if len(g.events) != 1 || g.events[0].Capability != "read /etc/passwd" || g.events[0].Count != 1 {
		t.Errorf("events %+v", g.events)
	}
	g.p.Close()
	if len(g.events) != 2 || g.events[1].Count != 999 {
		t.Errorf("at the end %+v", g.events)
	}
}

func TestManyDifferentRefusalsAreSummedUp(t *testing.T) {
	g := newGuest(t, Config{})
	for i := range 3 * maxRefusals {
		g.open(3, "no/"+strings.Repeat("x", i%200)+string(rune('a'+i%26))+"/"+strings.Repeat("y", i/200), 0, rightFdRead, 0)
	}
	g.p.Close()
	last := g.events[len(g.events)-1]
	if len(g.events) > 2*maxRefusals+1 || last.Capability != "limit events" || !last.Denied || last.Count == 0 {
		t.Errorf("%d events, the last %+v", len(g.events), last)
	}
}

func TestUsageAndRemovedOutliveTheProcess(t *testing.T) {
	low := t.TempDir()
	if err := os.WriteFile(filepath.Join(low, "gone"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, Config{Mounts: []Mount{{Guest: "/w", Dir: low, Upper: t.TempDir(), Access: Overlay}}})
	fd := g.mustOpen("w/f", openCreat, readWrite, 0)
	g.write(fd, "12345")
	ptr, n := g.path(atPath, "w/gone")
	g.want("", "path_unlink_file", 3, ptr, n)
	for _, when := range []string{"open", "closed"} {
		if u := g.p.Usage(); u != (Usage{5, 5, 1}) {
			t.Errorf("%s: usage %+v", when, u)
		}
		if r := g.p.Removed(); !slices.Equal(r, []string{"/w/gone"}) {
			t.Errorf("%s: removed %q", when, r)
		}
		g.p.Close()
	}
}
