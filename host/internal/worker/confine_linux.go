package worker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/exthost/exthost/wasiabi"
)

// minABI is the first Landlock ABI that governs truncation; without that a read root could be emptied.
const minABI = 3

// confineCPU and confineTime bound the confinement. What is known to hang (libpsx under a foreign /proc) spins.
const (
	confineCPU  = time.Second
	confineTime = 8 * time.Second
)

// allThreads makes a system call on every thread of the process, the ones of C included. New threads inherit.
func allThreads(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := psx.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

// ownProc says whether /proc shows this process under the number that it knows itself by. In a PID namespace with the
// /proc of another, libpsx walks the threads of a stranger and never ends, and /proc/self/fd may be anything.
func ownProc() error {
	name, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if name != strconv.Itoa(os.Getpid()) {
		return errors.New("/proc is of another PID namespace")
	}
	return nil
}

type capHeader struct {
	version uint32
	pid     int32
}

type capData struct {
	effective, permitted uint32
	_                    uint32 // inheritable
}

// noCaps are the arguments of capset. They are global because their addresses go through calls that the compiler does not
// know to hold pointers: a stack may move.
var noCaps struct {
	header capHeader
	data   [2]capData
}

// dropPrivileges takes all capabilities from every thread, for good: bounding and ambient set, securebits, then the
// sets themselves. Normally there is nothing left to do, for the broker executed this program with an empty bounding
// set; doing it here costs 10 ms and more.
//
// Preconditions: ownProc.
func dropPrivileges() error {
	header := capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]capData
	if _, _, e := unix.Syscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0); e != 0 {
		return os.NewSyscallError("capget", e)
	}
	if data[0].permitted|data[1].permitted == 0 {
		return nil // and no_new_privs, set by both walls, keeps it so
	}
	if data[0].effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c < 64; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
				break // past the last one
			}
			if err := allThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c); err != nil {
				return fmt.Errorf("bounding set: %w", err)
			}
		}
		if err := allThreads(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits); err != nil {
			return fmt.Errorf("securebits: %w", err)
		}
	}
	if err := allThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("ambient set: %w", err)
	}
	noCaps.header.version = unix.LINUX_CAPABILITY_VERSION_3
	if err := allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&noCaps.header)), uintptr(unsafe.Pointer(&noCaps.data))); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// confine builds the walls and proves them. missing are those that are not there; err is a failure after which nothing
// can be said.
func (w *inside) confine(m *msgBind) (walls []string, missing []*WallError, err error) {
	if err := w.watchdog.set(confineCPU); err != nil {
		return nil, nil, err
	}
	if err := w.deadline.set(confineTime); err != nil {
		return nil, nil, err
	}
	test := newSelfTest(w, m)
	defer test.end()

	abi, lockErr := w.landlock()
	filterErr := installFilter(os.Getpid(), []int32{w.deadline.id, w.watchdog.id})
	if err := w.watchdog.set(0); err != nil {
		return nil, nil, err
	}
	if err := w.deadline.set(0); err != nil {
		return nil, nil, err
	}
	proof := test.run(lockErr == nil, filterErr == nil)
	if lockErr == nil {
		lockErr = proof.landlock
	}
	if filterErr == nil {
		filterErr = proof.seccomp
	}
	if lockErr == nil {
		walls = append(walls, fmt.Sprintf("%s(abi=%d)", wallLandlock, abi))
	} else {
		missing = append(missing, &WallError{Wall: wallLandlock, Reason: lockErr.Error()})
	}
	if filterErr == nil {
		walls = append(walls, wallSeccomp)
	} else {
		missing = append(missing, &WallError{Wall: wallSeccomp, Reason: filterErr.Error()})
	}
	return walls, missing, nil
}

// Rights of Landlock by what they are given for. Never given: Execute, Make{Char,Block,Fifo,Sock}, IoctlDev, ResolveUnix.
const (
	readFile  landlock.AccessFSSet = ll.AccessFSReadFile
	readDir   landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	writeFile landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
	// Refer belongs to a writable root, or a rename between two of its folders fails.
	writeDir landlock.AccessFSSet = readDir | writeFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSRefer
)

// landlock restricts every thread to the roots of the bind and returns the ABI.
func (w *inside) landlock() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("not available: %w", err)
	}
	if abi < minABI {
		return 0, fmt.Errorf("the kernel has ABI %d, at least %d is needed", abi, minABI)
	}
	configs := []landlock.Config{
		3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6, 7: landlock.V7,
		8: landlock.V8, 9: landlock.V9, 10: landlock.V10, 11: landlock.V11,
	}
	// A newer kernel is held to the newest ABI that is known here, and that is what is reported.
	abi = min(abi, len(configs)-1)
	rules := []landlock.Rule{landlock.PathAccess(writeDir, pathOf(w.scratch))}
	for _, b := range w.mounts {
		if b.Sub != "" {
			continue
		}
		access := readDir
		switch {
		case b.M.File && b.M.Access == wasiabi.ReadWrite:
			access = writeFile
		case b.M.File:
			access = readFile
		case b.M.Access == wasiabi.ReadWrite:
			access = writeDir
		}
		rules = append(rules, landlock.PathAccess(access, pathOf(w.fds[b.FD])))
	}
	for _, fd := range w.readable {
		rules = append(rules, landlock.PathAccess(readFile, pathOf(fd)))
	}
	// No rule for any port: bind and connect are refused. The scopes have no exceptions at all.
	if err := configs[abi].Restrict(rules...); err != nil {
		return 0, err
	}
	return abi, nil
}
