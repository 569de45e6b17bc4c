package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
	"github.com/exthost/exthost/wasiabi"
)

func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

func ptr(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

var kept []*byte // the strings of ptr

// broker is the parent of this process when it is a worker. The call is not on the list later.
var broker = os.Getppid()

// attempts are what a guest that broke out of its engine tries. DIR/r is a read root, DIR/o an overlay's lower, DIR/w a
// write root, DIR/out is no root; each holds a file "f" and a folder "d", DIR/w also "d2".
var attempts = []struct {
	name string
	want string // errno, "ok" if it must work
	try  func(dir string) error
}{
	{"read a file of a read root", "ok", func(d string) error { return open(d+"/r/f", unix.O_RDONLY) }},
	{"read a file of an overlay's lower", "ok", func(d string) error { return open(d+"/o/f", unix.O_RDONLY) }},
	{"write a file of a write root", "ok", func(d string) error { return open(d+"/w/f", unix.O_RDWR|unix.O_TRUNC) }},
	{"create a file in a write root", "ok", func(d string) error { return open(d+"/w/new", unix.O_RDWR|unix.O_CREAT) }},
	{"rename between folders of a write root", "ok", func(d string) error {
		return unix.Renameat(unix.AT_FDCWD, d+"/w/d/g", unix.AT_FDCWD, d+"/w/d2/g")
	}},
	{"link between folders of a write root", "ok", func(d string) error {
		return unix.Linkat(unix.AT_FDCWD, d+"/w/f", unix.AT_FDCWD, d+"/w/d2/f2", 0)
	}},
	{"make and remove a folder in a write root", "ok", func(d string) error {
		return errors.Join(unix.Mkdirat(unix.AT_FDCWD, d+"/w/d3", 0o700), unix.Unlinkat(unix.AT_FDCWD, d+"/w/d3", unix.AT_REMOVEDIR))
	}},

	{"open a file outside", "EACCES", func(d string) error { return open(d+"/out/f", unix.O_RDONLY) }},
	{"open the passwords", "EACCES", func(string) error { return open("/etc/passwd", unix.O_RDONLY) }},
	{"list a folder outside", "EACCES", func(d string) error { return open(d+"/out", unix.O_RDONLY|unix.O_DIRECTORY) }},
	{"climb out of a root", "EACCES", func(d string) error { return open(d+"/w/../out/f", unix.O_RDONLY) }},
	{"follow an own symlink out", "EACCES", func(d string) error {
		if err := unix.Symlinkat(d+"/out/f", unix.AT_FDCWD, d+"/w/link"); err != nil {
			return err
		}
		return open(d+"/w/link", unix.O_RDONLY)
	}},
	{"open its own executable", "EACCES", func(string) error { return open("/proc/self/exe", unix.O_RDONLY) }},
	{"read its own memory", "EACCES", func(string) error { return open("/proc/self/mem", unix.O_RDONLY) }},
	{"read the broker's environment", "EACCES", func(string) error {
		return open("/proc/"+strconv.Itoa(broker)+"/environ", unix.O_RDONLY)
	}},
	{"open the terminal", "EACCES", func(string) error { return open("/dev/tty", unix.O_RDWR) }},
	{"create a file outside", "EACCES", func(d string) error { return open(d+"/out/new", unix.O_RDWR|unix.O_CREAT) }},

	{"write a file of a read root", "EACCES", func(d string) error { return open(d+"/r/f", unix.O_WRONLY) }},
	{"empty a file of a read root while reading", "EACCES", func(d string) error { return open(d+"/r/f", unix.O_RDONLY|unix.O_TRUNC) }},
	{"create in a read root", "EACCES", func(d string) error { return open(d+"/r/new", unix.O_RDWR|unix.O_CREAT) }},
	{"remove from a read root", "EACCES", func(d string) error { return unix.Unlinkat(unix.AT_FDCWD, d+"/r/f", 0) }},
	{"remove a folder of a read root", "EACCES", func(d string) error {
		return unix.Unlinkat(unix.AT_FDCWD, d+"/r/d", unix.AT_REMOVEDIR)
	}},
	{"make a folder in a read root", "EACCES", func(d string) error { return unix.Mkdirat(unix.AT_FDCWD, d+"/r/d3", 0o700) }},
	{"rename in a read root", "EACCES", func(d string) error {
		return unix.Renameat(unix.AT_FDCWD, d+"/r/f", unix.AT_FDCWD, d+"/r/g")
	}},
	{"move from a read root to a write root", "EACCES", func(d string) error {
		return unix.Renameat(unix.AT_FDCWD, d+"/r/f", unix.AT_FDCWD, d+"/w/stolen")
	}},
	{"link from a read root into a write root", "EXDEV", func(d string) error {
		return unix.Linkat(unix.AT_FDCWD, d+"/r/f", unix.AT_FDCWD, d+"/w/linked", 0)
	}},
	{"symlink in a read root", "EACCES", func(d string) error { return unix.Symlinkat("f", unix.AT_FDCWD, d+"/r/s") }},
	{"write an overlay's lower", "EACCES", func(d string) error { return open(d+"/o/f", unix.O_WRONLY) }},
	{"create in an overlay's lower", "EACCES", func(d string) error { return open(d+"/o/new", unix.O_RDWR|unix.O_CREAT) }},
	{"remove from an overlay's lower", "EACCES", func(d string) error { return unix.Unlinkat(unix.AT_FDCWD, d+"/o/f", 0) }},
	{"truncate an overlay's lower by path", "EPERM", func(d string) error { return raw(unix.SYS_TRUNCATE, ptr(d+"/o/f"), 0) }},
	{"write a handed directory by its descriptor", "EACCES", func(d string) error {
		fd, err := unix.Open(d+"/r", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		_, err = unix.Openat(fd, "new", unix.O_RDWR|unix.O_CREAT, 0o600)
		return err
	}},

	{"make a fifo", "EPERM", func(d string) error { return unix.Mkfifo(d+"/w/fifo", 0o600) }},
	{"make a device", "EPERM", func(d string) error { return unix.Mknod(d+"/w/dev", unix.S_IFCHR|0o600, 0x103) }},
	{"change a mode outside", "EPERM", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/out/f", 0o777, 0) }},
	{"change a mode in a write root", "EPERM", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/w/f", 0o4777, 0) }},
	{"make a program that runs as its owner in a write root", "EPERM", func(d string) error {
		fd, err := unix.Open(d+"/w/setuid", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"change an owner", "EPERM", func(d string) error { return unix.Fchownat(unix.AT_FDCWD, d+"/w/f", 0, 0, 0) }},
	{"change times outside", "EPERM", func(d string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, d+"/out/f", make([]unix.Timespec, 2), 0)
	}},
	{"set an attribute outside", "EPERM", func(d string) error { return unix.Setxattr(d+"/out/f", "user.x", []byte("y"), 0) }},
	{"read an attribute outside", "EPERM", func(d string) error { _, err := unix.Getxattr(d+"/out/f", "user.x", nil); return err }},

	{"make a socket", "EPERM", func(string) error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
	{"make a local socket", "EPERM", func(string) error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }},
	{"make a socket pair", "EPERM", func(string) error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err }},
	{"connect", "EPERM", func(string) error { return unix.Connect(socketFD, &unix.SockaddrInet4{Port: 80}) }},
	{"turn the broker's socket", "EPERM", func(string) error { return unix.Connect(socketFD, &unix.SockaddrUnix{Name: "@x"}) }},
	{"execute", "EPERM", func(string) error { return unix.Exec("/bin/sh", []string{"sh"}, nil) }},
	{"execute a descriptor", "EPERM", func(string) error { return raw(unix.SYS_EXECVEAT, socketFD, ptr(""), 0, 0, unix.AT_EMPTY_PATH) }},
	{"fork", "EPERM", func(string) error { return raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) }},
	{"clone3", "ENOSYS", func(string) error { return raw(sysClone3, 0, 0) }},
	{"new user namespace", "EPERM", func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"kill the broker", "EPERM", func(string) error { return unix.Kill(broker, unix.SIGKILL) }},
	{"kill a thread of the broker", "EPERM", func(string) error { return unix.Tgkill(broker, broker, unix.SIGKILL) }},
	{"kill by the owner of a descriptor", "EPERM", func(string) error {
		_, err := unix.FcntlInt(socketFD, unix.F_SETOWN, broker)
		return err
	}},
	{"take a handle of the broker", "EPERM", func(string) error { _, err := unix.PidfdOpen(broker, 0); return err }},
	{"trace the broker", "EPERM", func(string) error { return unix.PtraceAttach(broker) }},
	{"read the broker's memory", "EPERM", func(string) error {
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err := unix.ProcessVMReadv(broker, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	}},
	{"limit the broker", "EPERM", func(string) error {
		return unix.Prlimit(broker, unix.RLIMIT_CPU, &unix.Rlimit{}, nil)
	}},
	{"raise its own limits", "EPERM", func(string) error {
		return unix.Prlimit(0, unix.RLIMIT_DATA, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil)
	}},
	{"outlive the broker", "EPERM", func(string) error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
	{"become readable", "EPERM", func(string) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
	{"push a byte into a terminal", "EPERM", func(string) error { return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, ptr("x")) }},
	{"io_uring", "EPERM", func(string) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0) }},
	{"userfaultfd", "EPERM", func(string) error { return raw(unix.SYS_USERFAULTFD, 1) }},
	{"memfd", "EPERM", func(string) error { _, err := unix.MemfdCreate("x", 0); return err }},
	{"another filter", "EPERM", func(string) error { return raw(unix.SYS_SECCOMP, 0, 0, 0) }},
	{"mount", "EPERM", func(d string) error { return unix.Mount("none", d+"/w", "tmpfs", 0, "") }},
	{"load a program into the kernel", "EPERM", func(string) error { return raw(unix.SYS_BPF, 0, 0, 0) }},
	{"a key of the keyring", "EPERM", func(string) error { _, err := unix.KeyctlGetKeyringID(-3, false); return err }},
	{"open by handle", "EPERM", func(string) error {
		_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, []byte("x")), 0)
		return err
	}},
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func init() {
	rawGuests["attempt"] = func(arg string) string {
		name, dir, _ := strings.Cut(arg, "|")
		for _, a := range attempts {
			if a.name == name {
				return result(a.try(dir))
			}
		}
		return "no attempt " + name
	}
	rawGuests["every-call"] = func(string) string {
		may := map[int]bool{}
		info, _ := arch.GetInfo(runtime.GOARCH)
		for _, name := range append(append([]string{}, allowed...), allowedOn[runtime.GOARCH]...) {
			may[info.SyscallNames[name]] = true
		}
		var bad []string
		tried := 0
		for nr := range 600 {
			if may[nr] {
				continue
			}
			// uretprobe and uprobe: newer kernels let them past every filter, for the kernel itself plants the calls; from any
			// other place they are SIGILL.
			if runtime.GOARCH == "amd64" && (nr == 335 || nr == 336) {
				continue
			}
			tried++
			// Arguments that no call can use: descriptor -1, an address that is not mapped.
			_, _, e := syscall.RawSyscall6(uintptr(nr), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0))
			want := unix.EPERM
			if nr == sysClone3 || nr == info.SyscallNames["openat2"] {
				want = unix.ENOSYS
			}
			// clone's flags hold CLONE_THREAD among all the others here: the kernel finds them senseless.
			if nr == unix.SYS_CLONE && e == unix.EINVAL {
				continue
			}
			if e != want {
				bad = append(bad, fmt.Sprintf("%d %s: %v", nr, info.SyscallNumbers[nr], unix.ErrnoName(e)))
			}
		}
		return fmt.Sprintf("tried %d\n%s", tried, strings.Join(bad, "\n"))
	}
	rawGuests["x32"] = func(string) string {
		_, _, e := syscall.RawSyscall(unix.SYS_GETPID|0x40000000, 0, 0, 0)
		return unix.ErrnoName(e)
	}
	rawGuests["new-threads"] = func(dir string) string {
		var out []string
		for range 4 {
			done := make(chan string)
			go func() {
				runtime.LockOSThread() // and never unlocked: the thread is new, or becomes so for the next
				_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
				done <- result(err) + " " + result(open(dir+"/out/f", unix.O_RDONLY))
			}()
			out = append(out, <-done)
		}
		slices.Sort(out)
		return strings.Join(slices.Compact(out), ",")
	}
	rawGuests["inventory"] = func(string) string {
		var fds []string
		for fd := range 1024 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				var st unix.Stat_t
				unix.Fstat(fd, &st)
				fds = append(fds, fmt.Sprintf("%d:%o", fd, st.Mode&unix.S_IFMT))
			}
		}
		return fmt.Sprintf("env=%q args=%q fds=%s", os.Environ(), os.Args, strings.Join(fds, " "))
	}
	helpers["blind"] = blindHelper
	helpers["broker"] = brokerHelper
}

// playground makes the folders of attempts and the mounts for three of them.
func playground(t *testing.T) (dir string, mounts []Mount) {
	t.Helper()
	dir = t.TempDir()
	for _, sub := range []string{"r", "o", "w", "out"} {
		for _, d := range []string{"/d", "/d2"} {
			if err := os.MkdirAll(dir+"/"+sub+d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{"/f", "/d/g"} {
			if err := os.WriteFile(dir+"/"+sub+f, []byte("content"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for sub, access := range map[string]wasiabi.Access{"r": wasiabi.ReadOnly, "o": wasiabi.Overlay, "w": wasiabi.ReadWrite} {
		f, err := os.Open(dir + "/" + sub)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		mounts = append(mounts, Mount{Mount: wasiabi.Mount{Guest: "/" + sub, Access: access}, Root: f})
	}
	return dir, mounts
}

// snapshot describes every file below dir, times and modes too.
func snapshot(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d", p, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", content)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAGuestThatBrokeOutOfItsEngineReachesNothing(t *testing.T) {
	dir, mounts := playground(t)
	outside := func() string { return snapshot(t, dir+"/r") + snapshot(t, dir+"/o") + snapshot(t, dir+"/out") }
	before := outside()
	w := start(t, Options{})
	b := bindRaw(t, w, func(b *Bind) { b.Mounts = mounts })
	if !slices.Contains(b.Walls, "seccomp") || len(b.Walls) != 2 || len(b.Missing) != 0 {
		t.Fatalf("walls %q, missing %q", b.Walls, b.Missing)
	}
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			if got := run(t, w, "attempt "+a.name+"|"+dir).Ending.Detail; got != a.want {
				t.Errorf("%s, want %s", got, a.want)
			}
		})
	}
	t.Run("new threads are confined", func(t *testing.T) {
		if got := run(t, w, "new-threads "+dir).Ending.Detail; got != "EPERM EACCES" {
			t.Errorf("%q", got)
		}
	})
	if after := outside(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestEverySystemCallOutsideTheListIsRefused(t *testing.T) {
	w := start(t, Options{})
	bindRaw(t, w, nil)
	got := run(t, w, "every-call").Ending.Detail
	tried, bad, _ := strings.Cut(got, "\n")
	var n int
	if _, err := fmt.Sscanf(tried, "tried %d", &n); err != nil || n < 480 || bad != "" {
		t.Errorf("%s", got)
	}
}

func TestTheX32CallsKill(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 only")
	}
	w := start(t, Options{})
	bindRaw(t, w, nil)
	_, err := w.Run(context.Background(), job(t, "x32"))
	var crash *CrashError
	if !errors.As(err, &crash) || crash.Signal != syscall.SIGSYS {
		t.Errorf("error %v", err)
	}
}

// TestTheListFitsBothArchitectures is about the names: a name that an architecture lacks would fail only there.
func TestTheListFitsBothArchitectures(t *testing.T) {
	for goarch, info := range map[string]*arch.Info{"amd64": arch.X86_64, "arm64": arch.AARCH64} {
		names := append(append(append([]string{}, allowed...), allowedOn[goarch]...), absent...)
		for _, c := range conditional(1, []int32{0}) {
			names = append(names, c.Name)
		}
		for _, name := range names {
			if _, ok := info.SyscallNames[name]; !ok {
				t.Errorf("%s has no %s", goarch, name)
			}
		}
	}
}

func TestEveryThreadOfAWorkerIsBare(t *testing.T) {
	dir, mounts := playground(t)
	w := start(t, Options{Engine: "raw"})
	bindRaw(t, w, func(b *Bind) { b.Mounts = mounts })
	run(t, w, "new-threads "+dir)
	proc := fmt.Sprintf("/proc/%d", w.PID())
	threads, err := os.ReadDir(proc + "/task")
	if err != nil || len(threads) < 3 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile(proc + "/task/" + thread.Name() + "/status")
		if errors.Is(err, os.ErrNotExist) {
			continue // ended since
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(string(b), "\n"+line+"\n") {
				t.Errorf("thread %s: no %q in\n%s", thread.Name(), line, b)
			}
		}
		if os.Getuid() == 0 && !strings.Contains(string(b), "\nCapBnd:\t0000000000000000\n") {
			t.Errorf("thread %s: the bounding set is not empty\n%s", thread.Name(), b)
		}
	}
	if os.Getuid() != 0 {
		return // what follows is root's to read; TestAWorkerHoldsNothing looks from inside
	}
	if b, err := os.ReadFile(proc + "/environ"); err != nil || len(b) != 0 {
		t.Errorf("environment %q, %v", b, err)
	}
	if b, err := os.ReadFile(proc + "/cmdline"); err != nil || string(b) != workerName+"\x00"+workerMode+"\x00" {
		t.Errorf("command line %q, %v", b, err)
	}
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, fd := range fds {
		target, err := os.Readlink(proc + "/fd/" + fd.Name())
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(target, ":[")
		switch {
		case strings.HasPrefix(target, "/memfd:test"):
			kind = "module"
		case strings.HasPrefix(target, dir):
			kind = "root"
		case strings.HasPrefix(target, os.TempDir()):
			kind = "scratch"
		case kind == "anon_inode":
			kind = target
		}
		count[kind]++
	}
	// The pipe is its error output; epoll and eventfd are the Go runtime's own.
	delete(count, "anon_inode:[eventpoll]")
	delete(count, "anon_inode:[eventfd]")
	want := map[string]int{"/dev/null": 2, "pipe": 1, "socket": 1, "root": 3, "scratch": 1, "module": 2}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("descriptors %v, want %v", count, want)
	}
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if f[3] != strconv.Itoa(w.PID()) || f[4] != "0" {
		t.Errorf("session %s, terminal %s", f[3], f[4])
	}
}

func TestAWorkerHoldsNothing(t *testing.T) {
	t.Setenv("EXTHOST_TEST_SECRET", "s3cret")
	leak, err := os.Open("/etc/passwd") // left open over an exec, as a C library of an embedder may do
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	w := start(t, Options{})
	bindRaw(t, w, nil)
	got := run(t, w, "inventory").Ending.Detail
	if !strings.HasPrefix(got, `env=[] args=["exthost-worker" "--exthost-worker-fd=3"] fds=0:20000 1:20000 2:10000 3:140000 `) {
		t.Errorf("%s", got)
	}
	// 0-3, scratch, module, code, the run's own handle on scratch, a pipe that ends waiting, the runtime's epoll and eventfd.
	if _, fds, _ := strings.Cut(got, "fds="); len(strings.Fields(fds)) > 12 {
		t.Errorf("%s", got)
	}
}

// errnoFilter answers calls with an errno and lets all others through: what a container's own filter does.
func errnoFilter(errno unix.Errno, calls ...uint32) []unix.SockFilter {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	for _, nr := range calls {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	rawProgram, err := bpf.Assemble(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		panic(err)
	}
	out := make([]unix.SockFilter, len(rawProgram))
	for i, r := range rawProgram {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out
}

// blindHelper is a broker on a kernel that lacks a wall; its workers inherit the filter.
func blindHelper(args []string) {
	switch args[0] {
	case "landlock":
		must(loadFilter(errnoFilter(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF)))
	case "seccomp":
		must(loadFilter(errnoFilter(unix.EINVAL, unix.SYS_SECCOMP)))
	case "landlock-lies": // the calls succeed and do nothing
		must(loadFilter(errnoFilter(0, unix.SYS_LANDLOCK_RESTRICT_SELF)))
	}
	scratch, err := os.MkdirTemp("", "blind")
	must(err)
	defer os.RemoveAll(scratch)
	dir, err := os.Open(scratch)
	must(err)
	w, err := Start(context.Background(), Options{})
	must(err)
	defer w.Kill()
	b, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: "raw", Scratch: dir, WeakWalls: len(args) > 1})
	var wall *WallError
	switch {
	case errors.As(err, &wall):
		fmt.Printf("wall %s: %s\n", wall.Wall, wall.Reason)
	case err != nil:
		fmt.Printf("error %v\n", err)
	default:
		fmt.Printf("walls %q missing %q\n", b.Walls, b.Missing)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("helper:", err)
		os.Exit(1)
	}
}

func TestAMissingWallIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"all there", []string{"none"}, `walls ["landlock(abi=`},
		{"no landlock", []string{"landlock"}, "wall landlock: not available: function not implemented"},
		{"no seccomp", []string{"seccomp"}, "wall seccomp: seccomp: invalid argument"},
		{"landlock that only says so", []string{"landlock-lies"}, "wall landlock: self-test: open "},
		{"no landlock, accepted by a person", []string{"landlock", "weak"}, `walls ["seccomp"] missing ["landlock: not available: function not implemented"]`},
		{"no seccomp, accepted by a person", []string{"seccomp", "weak"}, `missing ["seccomp: seccomp: invalid argument"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := exec.Command("/proc/self/exe", append([]string{"blind"}, tt.args...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %s\nwant %s", err, out, tt.want)
			}
		})
	}
}

func TestAnUnknownWallIsMissing(t *testing.T) {
	w := start(t, Options{})
	_, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: "raw", Scratch: folder(t), Require: []string{"userns"}})
	var wall *WallError
	if !errors.As(err, &wall) || wall.Wall != "userns" {
		t.Errorf("error %v", err)
	}
}

// TestTheWallsStandForAnUnprivilegedUser runs the wall tests again as nobody.
func TestTheWallsStandForAnUnprivilegedUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is unprivileged as it is")
	}
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^(TestAGuestThatBrokeOut|TestEvery|TestAWorkerHolds|TestAMissingWall|TestAWorkerStarts|TestTraps)", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") < len(attempts) {
		t.Errorf("%v\n%s", err, out)
	}
}

// wasmGuests are guests for the engines of this binary: two that never end, and one that takes long to compile.
var wasmGuests = map[string]func() []byte{
	"spin": func() []byte {
		m := wb.New()
		m.Memory(1, 1)
		m.Start(m.Func(wb.Sig(), nil, wb.Loop, wb.Br(0), wb.End))
		return m.Bytes()
	},
	"sleep": func() []byte { // poll_oneoff on a clock in an hour
		m := wb.New()
		poll := m.Import("wasi_snapshot_preview1", "poll_oneoff", wb.Sig(wb.I32, wb.I32, wb.I32, wb.I32).Returns(wb.I32))
		m.Memory(1, 1)
		subscription := make([]byte, 48)
		subscription[16] = 1 // the monotonic clock
		binary.LittleEndian.PutUint64(subscription[24:], uint64(time.Hour))
		m.Data(0, subscription)
		m.Start(m.Func(wb.Sig(), nil, wb.I32Const(0), wb.I32Const(100), wb.I32Const(1), wb.I32Const(200), wb.Call(poll), wb.Drop))
		return m.Bytes()
	},
	"compile": func() []byte {
		m := wb.New()
		m.Memory(1, 1)
		for range 120 {
			m.Func(wb.Sig(), []byte{wb.I32, wb.I32}, wb.Repeat(40_000, wb.LocalGet(0), wb.I32Load(0), wb.LocalGet(1), wb.I32Add, wb.LocalSet(1)))
		}
		m.Start(0)
		return m.Bytes()
	},
}

// brokerHelper is a broker with one worker at work; it says the worker's pid. Its arguments are the engine, the guest, a
// scratch folder and the time limit in seconds.
func brokerHelper(args []string) {
	name, guest := args[0], args[1]
	scratch, err := os.Open(args[2])
	must(err)
	seconds, _ := strconv.Atoi(args[3])
	limit := time.Duration(seconds) * time.Second
	file := func(content string) *os.File {
		f, err := unnamed("file")
		must(err)
		_, err = f.WriteString(content)
		must(err)
		return f
	}
	spare := func(role Role) *Worker {
		w, err := Start(context.Background(), Options{})
		must(err)
		_, err = w.Bind(context.Background(), Bind{Role: role, Engine: name, Scratch: scratch, Limits: Limits{CPU: 30 * time.Second}})
		must(err)
		return w
	}
	j := RunJob{Folder: "a", Time: limit, Dir: "/"}
	switch {
	case name == "raw":
		j.Module, j.Code = file(guest), file("code of "+guest)
	default:
		j.Module = file(string(wasmGuests[guest]()))
	}
	if strings.HasPrefix(guest, "compile") {
		w := spare(RoleCompile)
		fmt.Println(w.PID())
		_, err = w.Compile(context.Background(), CompileJob{Module: j.Module, Time: limit})
	} else {
		if j.Code == nil {
			c, err := spare(RoleCompile).Compile(context.Background(), CompileJob{Module: j.Module})
			must(err)
			j.Module, j.Code, j.CodeName = c.Prepared, c.Code, c.CodeName
		}
		w := spare(RoleRun)
		fmt.Println(w.PID())
		_, err = w.Run(context.Background(), j)
	}
	fmt.Println(err)
}

// gone waits for the end of a process; a zombie, whose parent cannot reap it, has ended.
func gone(pid int, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		if f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])); f[0] == "Z" || f[0] == "X" {
			return true
		}
	}
	return false
}

func TestNothingIsLeftOfAWorkerWhenItsBroker(t *testing.T) {
	type guest struct{ engine, name string }
	var guests []guest
	for _, name := range []string{"spin", "spin-quietly", "sleep", "read-stdin"} {
		guests = append(guests, guest{"raw", name})
	}
	for _, name := range engineNames() {
		for _, g := range []string{"spin", "sleep", "compile"} {
			guests = append(guests, guest{name, g})
		}
	}
	for _, g := range guests {
		for name, tt := range map[string]struct {
			signal syscall.Signal
			limit  string // seconds
			within time.Duration
		}{
			// The limit is far off: only the kernel's signal on the parent's death can end the worker.
			"is killed": {syscall.SIGKILL, "60", 2 * time.Second},
			// The worker's own timer ends it a second after its deadline.
			"is stopped": {syscall.SIGSTOP, "1", 2*time.Second + 2*time.Second},
		} {
			t.Run(name+" while "+g.engine+" is at "+g.name, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command("/proc/self/exe", "broker", g.engine, g.name, t.TempDir(), tt.limit)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer cmd.Wait()
				defer cmd.Process.Kill()
				var pid int
				if _, err := fmt.Fscanln(out, &pid); err != nil {
					rest, _ := io.ReadAll(out)
					t.Fatalf("%v %s", err, rest)
				}
				time.Sleep(300 * time.Millisecond)
				if gone(pid, time.Millisecond) {
					rest, _ := io.ReadAll(out)
					t.Fatalf("the guest has ended: %s", rest)
				}
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Fatal(err)
				}
				if !gone(pid, tt.within) {
					t.Errorf("worker %d is alive", pid)
					unix.Kill(pid, unix.SIGKILL)
				}
			})
		}
	}
}

// TestAForeignProcIsRefused: in a PID namespace with the /proc of another the walls cannot be built (libpsx would spin for
// ever), and so nothing runs.
func TestAForeignProcIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs a PID namespace")
	}
	cmd := exec.Command("/proc/self/exe", "blind", "none")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/proc is of another PID namespace") || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v: %s", err, time.Since(begin), out)
	}
}
