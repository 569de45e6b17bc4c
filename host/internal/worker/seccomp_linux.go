package worker

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed are the system calls of a bound worker, whatever their arguments. It is an allowlist: what is not here, and not
// in conditional, is EPERM. It was measured with both engines running, trapping and being collected, and with guests that
// read and write files. Landlock decides about the paths.
var allowed = []string{
	// descriptors and files
	"read", "write", "writev", "pread64", "pwrite64", "close", "lseek", "fstat", "statx", "getdents64",
	"readlinkat", "mkdirat", "unlinkat", "renameat", "linkat", "symlinkat", "ftruncate", "fallocate", "fsync", "fdatasync",
	"fstatfs", "pipe2",
	// waiting
	"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "nanosleep", "clock_nanosleep", "restart_syscall",
	// threads and memory
	"futex", "sched_yield", "sched_getaffinity", "getpid", "gettid", "set_robust_list", "rseq", "exit", "exit_group",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "mmap", "munmap", "mprotect", "mremap", "madvise",
	// glibc takes a refused brk for a success (-EPERM is above any address) and then writes where nothing is mapped.
	"brk",
	// the broker's socket; a SOCK_SEQPACKET pair cannot be turned to another address
	"recvmsg", "sendmsg",
	"getrandom",
}

// allowedOn are those of one architecture only.
var allowedOn = map[string][]string{
	"amd64": {"newfstatat", "poll", "ppoll"},    // the runtime polls, package unix ppolls
	"arm64": {"fstatat", "ppoll", "membarrier"}, // newfstatat goes by this name in the table; code is flushed with membarrier
}

// conditional are allowed with certain arguments only.
func conditional(pid int, timers []int32) []seccomp.NameWithConditions {
	is := func(arg uint32, v uint64) seccomp.Condition {
		return seccomp.Condition{Argument: arg, Operation: seccomp.Equal, Value: v}
	}
	one := func(name string, c ...seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: c}
	}
	out := []seccomp.NameWithConditions{
		one("clone", seccomp.Condition{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}),
		// Not what chmod is kept from: a program in a write root that runs as whoever owns it.
		one("openat", seccomp.Condition{Argument: 3, Operation: seccomp.BitsNotSet, Value: unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX}),
		one("tgkill", is(0, uint64(pid))),
		one("prctl", is(0, unix.PR_SET_VMA)),
		// Only the form that acts on an open descriptor: Landlock does not govern times.
		one("utimensat", is(1, 0)),
		// Not the clocks of other processes, which have negative numbers.
		one("clock_gettime", seccomp.Condition{Argument: 0, Operation: seccomp.LessOrEqual, Value: unix.CLOCK_TAI}),
		// Reading one's own limits; glibc does it when it makes a thread.
		one("prlimit64", is(0, 0), is(2, 0)),
	}
	// Not F_SETOWN, F_SETSIG and their like: they send signals. Not F_SETPIPE_SZ, F_NOTIFY, F_SETLEASE.
	for _, cmd := range []uint64{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL} {
		out = append(out, one("fcntl", is(1, cmd)))
	}
	for _, id := range timers {
		out = append(out, one("timer_settime", is(0, uint64(id))))
	}
	return out
}

// absent answer ENOSYS, so that the caller falls back: glibc from clone3 to clone, whose flags a filter can read, and
// os.Root from openat2.
var absent = []string{"clone3", "openat2"}

// filter is the program. Another architecture's calls, and x32 on amd64, kill the process: no honest code makes them.
func filter(pid int, timers []int32) ([]unix.SockFilter, error) {
	const goarch = runtime.GOARCH
	extra, ok := allowedOn[goarch]
	if !ok {
		return nil, fmt.Errorf("no list for %s", goarch)
	}
	info, err := arch.GetInfo(goarch)
	if err != nil {
		return nil, fmt.Errorf("no list for %s: %w", goarch, err)
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: append(append([]string{}, allowed...), extra...)},
			{Action: seccomp.ActionAllow, NamesWithCondtions: conditional(pid, timers)},
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: absent},
		},
	}
	program, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	kill := bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)}
	// offsetof(struct seccomp_data, arch) and nr.
	prefix := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		kill,
	}
	if goarch == "amd64" {
		prefix = append(prefix,
			bpf.LoadAbsolute{Off: 0, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(arch.X32.SeccompMask), SkipTrue: 1},
			kill,
		)
	}
	raw, err := bpf.Assemble(append(prefix, program...))
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}

// installFilter puts the filter on every thread at once.
func installFilter(pid int, timers []int32) error {
	list, err := filter(pid, timers)
	if err != nil {
		return err
	}
	return loadFilter(list)
}

func loadFilter(list []unix.SockFilter) error {
	// no_new_privs belongs to the thread that makes the call; the kernel hands it on to the others with the filter.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	tid, _, e := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(list)
	switch {
	case e != 0:
		return os.NewSyscallError("seccomp", e)
	case tid != 0:
		return fmt.Errorf("thread %d could not take the filter", tid)
	}
	return nil
}
