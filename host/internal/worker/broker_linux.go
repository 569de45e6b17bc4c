package worker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/wasiabi"
)

const (
	// workerName is argv[0] of a worker: it marks the process for a reader of ps, and it is the recursion marker.
	workerName = "exthost-worker"
	// workerMode is argv[1]; another word is refused, so that a program that happens to have the name does not turn into
	// a worker.
	workerMode = "--exthost-worker-fd=3"

	handshakeTime = 5 * time.Second
	bindTime      = 10 * time.Second
	// graceTime is what a run may overrun its own limit before the worker's kernel timer kills it, broker or not.
	graceTime = time.Second

	stderrCap = 64 << 10 // read from a worker at most; then its stderr is closed
	keepCap   = 4 << 10  // kept: the beginning, for that is where a runtime says what is wrong

	maxEvents  = 25_000 // taken from one run
	maxRemoved = 50_000
	maxRuns    = 10_000 // of one worker, then it is retired
	// maxOutput bounds each file that a compile worker gives back; RLIMIT_FSIZE of the worker is the same.
	maxOutput = 256 << 20

	maxMounts = 128
	maxRead   = 64
)

// The memory that one worker can make its broker hold, whatever it sends, is bounded: one packet of 64 KiB, the kernel's
// socket buffer (about 208 KiB), 4 KiB of its error output, and the removed paths of a run, which are capped at
// maxRemovedBytes. Events are not kept here. Compiled code is in unnamed files that are charged to nobody's heap, at most
// maxOutput each, for a compile worker only.
const maxRemovedBytes = 4 << 20

type state uint8

const (
	spare state = iota
	binding
	bound
	busy
	ended
)

// Worker is a worker process, seen from the broker. Bind comes first, once; then one Compile, or Runs one after
// another. Bind, Run and Compile exclude each other; a call while another is under way is an error. Kill, Done and the
// readings may be used at any time from any goroutine.
type Worker struct {
	pid  int
	conn *net.UnixConn
	done chan struct{} // closed after wait4 and after stderr was read

	kill func() // sends SIGKILL, never to a pid that was waited for

	mu    sync.Mutex
	state state
	role  Role
	cpu   time.Duration // limit
	cause string        // why we killed it, "" when we did not
	end   *os.ProcessState
	used  map[string]bool // folders of earlier runs
	said  []byte          // on its stderr

	tag    uint64 // of the exchange under way; like packet
	packet []byte // read buffer, belongs to the call that set state busy or binding
}

// self is this process's executable, opened once: a path could name another file by the time it is used.
var self = sync.OnceValues(func() (*os.File, error) {
	return os.OpenFile("/proc/self/exe", os.O_RDONLY|unix.O_CLOEXEC, 0)
})

// above moves a descriptor to a number of at least floor. The fork moves descriptors about in the low numbers, and above
// the highest one that is handed over; none of ours may be in its way.
func above(fd, floor int) (int, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, floor)
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return n, nil
}

// Start starts a worker process and shakes hands with it. It is a spare: not bound, not yet confined.
//
// The process is killed when this one dies, when ctx ends before Start returned, and by [Worker.Kill]. An executable that
// does not answer within 5 s is killed and [ErrNoWorkerMain] is returned. In a worker Start is [ErrRecursion].
func Start(ctx context.Context, o Options) (*Worker, error) {
	if os.Args[0] == workerName {
		return nil, ErrRecursion
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &Worker{done: make(chan struct{}), used: map[string]bool{}, packet: make([]byte, maxFrame+1)}
	if err := w.fork(o.Exe); err != nil {
		return nil, err
	}
	if err := w.handshake(ctx, o); err != nil {
		w.Kill()
		return nil, err
	}
	return w, nil
}

// fork makes the process. The goroutine that forks stays on its thread until the process has been waited for:
// PR_SET_PDEATHSIG means the parent *thread*, and Go ends threads.
func (w *Worker) fork(path string) error {
	var exe *os.File
	var err error
	if path == "" {
		exe, err = self()
	} else {
		exe, err = os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return fmt.Errorf("worker executable: %w", err)
	}
	if path != "" {
		defer exe.Close()
	}
	image, err := above(int(exe.Fd()), 10)
	if err != nil {
		return err
	}
	defer unix.Close(image)

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "worker")
	defer ours.Close()
	theirs, err := above(pair[1], image+1)
	unix.Close(pair[1])
	if err != nil {
		return err
	}
	defer unix.Close(theirs)
	conn, err := net.FileConn(ours)
	if err != nil {
		return fmt.Errorf("worker socket: %w", err)
	}
	w.conn = conn.(*net.UnixConn)

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.conn.Close()
		return err
	}
	defer null.Close()
	stderr, theirErr, err := os.Pipe()
	if err != nil {
		w.conn.Close()
		return err
	}
	nullFD, err1 := above(int(null.Fd()), image+1)
	errFD, err2 := above(int(theirErr.Fd()), image+1)
	theirErr.Close()
	files := []uintptr{uintptr(nullFD), uintptr(nullFD), uintptr(errFD), uintptr(theirs)}
	defer func() {
		unix.Close(nullFD)
		unix.Close(errFD)
	}()
	if err := errors.Join(err1, err2); err != nil {
		stderr.Close()
		w.conn.Close()
		return err
	}

	started := make(chan error)
	go onThread(func() {
		if err := shedBounding(); err != nil {
			started <- err
			return
		}
		pid, _, err := syscall.StartProcess("/proc/self/fd/"+strconv.Itoa(image), []string{workerName, workerMode}, &syscall.ProcAttr{
			Dir:   "/",
			Env:   []string{},
			Files: files,
			Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		})
		if err != nil {
			started <- err
			return
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			// Cannot happen on Linux; the child is killed by pid, for nobody waited for it yet.
			unix.Kill(pid, unix.SIGKILL)
			started <- err
			return
		}
		w.pid = pid
		w.kill = func() { process.Kill() }
		silent := make(chan struct{})
		go func() {
			w.readStderr(stderr)
			close(silent)
		}()
		started <- nil
		end, _ := process.Wait()
		w.mu.Lock()
		w.end = end
		w.mu.Unlock()
		<-silent
		w.conn.Close()
		close(w.done)
	})
	if err := <-started; err != nil {
		stderr.Close()
		w.conn.Close()
		return fmt.Errorf("start worker: %w", err)
	}
	return nil
}

// onThread runs f on a thread of its own, never the process's first, and ends the thread with it: f changes the thread.
// Go makes no thread after the model of one that a goroutine has locked.
func onThread(f func()) {
	runtime.LockOSThread() // and never unlocked: Go ends the thread with the goroutine
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		f()
		close(done)
	}()
	<-done
}

// shedBounding empties the capability bounding set of the calling thread and makes uid 0 a number like others, so that the
// program it executes has no capability, root's or its file's. The thread keeps its own, and needs none. Without
// CAP_SETPCAP there is nothing to do here; the worker looks again.
func shedBounding() error {
	for c := uintptr(0); c < 64; c++ {
		set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break // past the last one
		}
		if set == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EPERM {
			return nil
		} else if err != nil {
			return fmt.Errorf("bounding set: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil && err != unix.EPERM {
		return fmt.Errorf("securebits: %w", err)
	}
	return nil
}

// secureBits are SECBIT_NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, their locks and that of KEEP_CAPS.
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// readStderr keeps the first bytes of a worker's error output, and stops listening when it says too much. What it says is
// only ever shown to the operator.
func (w *Worker) readStderr(r *os.File) {
	defer r.Close()
	buf := make([]byte, keepCap)
	for total := 0; total < stderrCap; {
		n, err := r.Read(buf)
		total += n
		w.mu.Lock()
		w.said = append(w.said, buf[:min(n, keepCap-len(w.said))]...)
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *Worker) handshake(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTime, ErrNoWorkerMain)
	defer cancel()
	nonce := make([]byte, 32)
	rand.Read(nonce)
	stop := w.killAfter(ctx)
	defer stop()
	if err := w.send(frameHello, &msgHello{Version: protocolVersion, Nonce: nonce, Parent: os.Getpid(), Engine: o.Engine}); err != nil {
		return w.why(ctx, ErrNoWorkerMain)
	}
	t, payload, err := w.receive()
	if err != nil {
		if errors.Is(err, errFrame) {
			return fmt.Errorf("%w: %w", ErrNoWorkerMain, err)
		}
		return w.why(ctx, ErrNoWorkerMain)
	}
	var m msgHelloOK
	switch t {
	case frameHelloOK:
	case frameRefused:
		var r msgRefused
		if err := decode(payload, &r); err != nil {
			return w.violation(err)
		}
		return r.err()
	default:
		return fmt.Errorf("%w: frame %d", ErrNoWorkerMain, t)
	}
	if err := decode(payload, &m); err != nil || subtle.ConstantTimeCompare(m.Nonce, nonce) != 1 {
		return fmt.Errorf("%w: wrong answer", ErrNoWorkerMain)
	}
	if m.Version != protocolVersion {
		return fmt.Errorf("%w: it speaks version %d of the protocol, not %d", ErrNoWorkerMain, m.Version, protocolVersion)
	}
	return nil
}

// killAfter kills the worker when ctx ends; the function it returns stops that.
func (w *Worker) killAfter(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { w.killFor("cancelled") })
}

// why turns an I/O error on the socket into what happened: the caller's context ended, or the worker died.
// otherwise, if not nil, is said of a worker that ended without a signal.
func (w *Worker) why(ctx context.Context, otherwise error) error {
	// The socket closes a moment before the process can be waited for. What only hung up is killed.
	select {
	case <-w.done:
	case <-time.After(time.Second):
		w.killFor("protocol")
		<-w.done
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if otherwise != nil && w.end != nil && w.end.Exited() {
		return otherwise
	}
	return w.crash()
}

// crash says how the process died. Preconditions: done is closed.
func (w *Worker) crash() *CrashError {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &CrashError{Kind: "exit", Detail: digest(w.said)}
	if w.end == nil {
		return e
	}
	status, _ := w.end.Sys().(syscall.WaitStatus)
	text := string(w.said)
	e.Code = status.ExitStatus()
	if status.Signaled() {
		e.Code = 0
		e.Signal = status.Signal()
		e.Kind = "signal"
	}
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		switch used := w.end.UserTime() + w.end.SystemTime(); {
		case w.cause != "":
			e.Kind = w.cause
		// The kernel enforces the limit by another clock than it accounts by; on a busy machine they differ by several
		// per cent.
		case w.cpu > 0 && used >= w.cpu*3/4:
			e.Kind = "cpu"
		default:
			e.Kind = "killed" // by the worker's own timer, the kernel's memory killer, or somebody else
		}
	case outOfMemory(text):
		e.Kind = "memory"
	case status.Exited() && status.ExitStatus() == exitProtocol:
		e.Kind = "protocol"
	case status.Exited() && strings.Contains(text, "fatal error: ") || strings.Contains(text, "panic: "):
		e.Kind = "fatal"
	}
	return e
}

// outOfMemory recognises what the runtimes of Go, C and Rust say when memory is refused.
func outOfMemory(text string) bool {
	for _, s := range []string{
		"out of memory", "cannot allocate memory", "memory allocation of ", "pthread_create failed: Resource temporarily unavailable", "arena metadata",
	} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// digest keeps what a reader needs of a crash: the lines before the first stack. Stacks hold words of memory.
func digest(said []byte) string {
	text, _, _ := strings.Cut(string(said), "\ngoroutine ")
	return clip(strings.TrimSpace(text), 512)
}

// violation kills a worker that broke the protocol.
func (w *Worker) violation(err error) error {
	w.killFor("protocol")
	<-w.done
	c := w.crash()
	c.Kind = "protocol"
	c.Detail = clip(err.Error(), 512)
	return c
}

func (w *Worker) killFor(cause string) {
	w.mu.Lock()
	if w.cause == "" {
		w.cause = cause
	}
	w.mu.Unlock()
	w.kill()
}

// Kill ends the worker at once and waits for its end. It may be called more than once and from any goroutine.
func (w *Worker) Kill() {
	w.killFor("killed")
	<-w.done
}

// Done is closed when the process has ended and was waited for.
func (w *Worker) Done() <-chan struct{} { return w.done }

// PID is the process id.
func (w *Worker) PID() int { return w.pid }

// RSS is the resident memory now, in bytes; 0 once the process has ended.
func (w *Worker) RSS() int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.pid) + "/statm")
	if err != nil {
		return 0
	}
	select {
	case <-w.done: // the pid may be another process's by now
		return 0
	default:
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// CPU is the processor time that the process used up to now, all its threads together.
func (w *Worker) CPU() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil {
		return w.end.UserTime() + w.end.SystemTime()
	}
	// The clock of a process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel.
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^w.pid<<3|2), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func (w *Worker) maxRSS() int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if !ok {
		return 0
	}
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(f[0], 10, 64)
	return kb << 10
}

// send begins an exchange with one message, in fragments if need be; descriptors go with the first.
func (w *Worker) send(t frameType, m message, fds ...int) error {
	payload, err := encode(m)
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	var tag [8]byte
	rand.Read(tag[:])
	w.tag = binary.LittleEndian.Uint64(tag[:])
	const each = maxFrame - frameHeader
	for first := true; first || len(payload) > 0; first = false {
		part := payload[:min(len(payload), each)]
		payload = payload[len(part):]
		frame := appendFrame(nil, header{typ: t, more: len(payload) > 0, tag: w.tag}, part)
		if _, _, err := w.conn.WriteMsgUnix(frame, oob, nil); err != nil {
			return err
		}
		oob = nil
	}
	return nil
}

func (m *msgRefused) err() *JobError {
	e := &JobError{Detail: clip(m.Detail, 1024)}
	if m.Kind == kindCode {
		e.Kind = kindCode
	}
	return e
}

// receive reads one frame. The payload is valid until the next call. Descriptors that a worker sends are dropped by the
// kernel, because no room is given for them, and are a violation.
func (w *Worker) receive() (frameType, []byte, error) {
	n, _, flags, _, err := w.conn.ReadMsgUnix(w.packet, nil)
	if err != nil {
		return 0, nil, err
	}
	if n == 0 {
		return 0, nil, io.EOF
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return 0, nil, fmt.Errorf("%w: oversize or with descriptors", errFrame)
	}
	h, payload, err := parseFrame(w.packet[:n])
	switch {
	case err != nil:
	case h.more:
		err = fmt.Errorf("%w: flags", errFrame)
	case h.tag != w.tag:
		err = fmt.Errorf("%w: tag", errFrame)
	}
	return h.typ, payload, err
}

// enter moves the state machine, leave moves it on.
func (w *Worker) enter(from, to state, role Role) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == ended:
		return &CrashError{Kind: "killed", Detail: "the worker has ended"}
	case w.state != from:
		return &JobError{Detail: "the worker is not free for this"}
	case role != 0 && w.role != role:
		return &JobError{Detail: "the worker has another role"}
	}
	w.state = to
	return nil
}

func (w *Worker) leave(to state) {
	w.mu.Lock()
	w.state = to
	w.mu.Unlock()
}

// withDefaults fills in the zero fields.
func (l Limits) withDefaults() Limits {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Memory, 256<<20)
	if l.TableElements == 0 {
		l.TableElements = 100_000
	}
	if l.OpenFiles <= 0 {
		l.OpenFiles = 256
	}
	def(&l.Disk, 256<<20)
	def(&l.Entries, 10_000)
	l.MinFree = max(l.MinFree, 0)
	def((*int64)(&l.CPU), int64(10*time.Minute))
	// RLIMIT_CPU counts whole seconds.
	l.CPU = (l.CPU + time.Second - 1).Truncate(time.Second)
	return l
}

// files collects descriptors for one message.
type files struct {
	fds []int
	err error
}

// add notes a file and returns its index; nil is -1. The number is read by SyscallConn, for Fd would make the file
// blocking, behind the back of whoever reads it.
func (f *files) add(file *os.File) int {
	if file == nil {
		return -1
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f.fds = append(f.fds, int(fd)) })
	}
	if err != nil {
		f.err = errors.Join(f.err, &JobError{Detail: err.Error()})
		return -1
	}
	return len(f.fds) - 1
}

// Bind binds the worker, once: it gets its limits and roots, confines itself and proves it. A spare that fails to bind is
// killed.
//
// A required wall that is not proved is a [*WallError]. Errors of the worker's own match [ErrWorker].
func (w *Worker) Bind(ctx context.Context, b Bind) (*Bound, error) {
	if err := checkBind(&b); err != nil {
		return nil, err
	}
	if err := w.enter(spare, binding, 0); err != nil {
		return nil, err
	}
	bnd, err := w.bind(ctx, b)
	if err != nil {
		w.leave(ended)
		w.Kill()
		return nil, err
	}
	w.leave(bound)
	return bnd, nil
}

func checkBind(b *Bind) error {
	switch {
	case b.Role != RoleCompile && b.Role != RoleRun:
		return &JobError{Detail: "no role"}
	case b.Engine == "":
		return &JobError{Detail: "no engine"}
	case b.Scratch == nil:
		return &JobError{Detail: "no scratch folder"}
	case b.Role == RoleCompile && (len(b.Mounts) > 0 || len(b.Read) > 0):
		return &JobError{Detail: "a compile worker has no roots"}
	case len(b.Mounts) > maxMounts || len(b.Read) > maxRead:
		return &JobError{Detail: "too many mounts"}
	}
	for _, m := range b.Mounts {
		switch {
		case m.Root == nil && !folderName(m.Sub):
			return &JobError{Detail: fmt.Sprintf("mount %q has no root", m.Guest)}
		case m.Root != nil && m.Sub != "":
			return &JobError{Detail: fmt.Sprintf("mount %q has two roots", m.Guest)}
		case m.Access < wasiabi.ReadOnly || m.Access > wasiabi.Overlay:
			return &JobError{Detail: fmt.Sprintf("mount %q has no access mode", m.Guest)}
		}
	}
	for _, wall := range b.Require {
		if wall != wallLandlock && wall != wallSeccomp {
			return &WallError{Wall: wall, Reason: "not known to this version"}
		}
	}
	return nil
}

func (w *Worker) bind(ctx context.Context, b Bind) (*Bound, error) {
	b.Limits = b.Limits.withDefaults()
	w.mu.Lock()
	w.role, w.cpu = b.Role, b.Limits.CPU
	w.mu.Unlock()
	m := msgBind{Role: b.Role, Engine: b.Engine, Limits: b.Limits, Names: b.Protected, WeakWalls: b.WeakWalls}
	var f files
	m.Scratch = f.add(b.Scratch)
	for _, mount := range b.Mounts {
		m.Mounts = append(m.Mounts, bindMount{M: mount.Mount, Sub: mount.Sub, FD: f.add(mount.Root)})
	}
	for _, r := range b.Read {
		m.Read = append(m.Read, f.add(r))
	}
	if f.err != nil {
		return nil, f.err
	}
	m.Exe, _ = os.Executable()

	ctx, cancel := context.WithTimeoutCause(ctx, bindTime, fmt.Errorf("%w: no answer to bind in %v", ErrWorker, bindTime))
	defer cancel()
	stop := w.killAfter(ctx)
	defer stop()
	if err := w.send(frameBind, &m, f.fds...); err != nil {
		return nil, w.why(ctx, nil)
	}
	t, payload, err := w.receive()
	if err != nil {
		if errors.Is(err, errFrame) {
			return nil, w.violation(err)
		}
		return nil, w.why(ctx, nil)
	}
	switch t {
	case frameBound:
		var r msgBound
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		if err := checkWalls(b, &r); err != nil {
			return nil, err
		}
		out := &Bound{Walls: r.Walls, Version: clip(r.Version, 128)}
		for _, s := range r.Missing {
			out.Missing = append(out.Missing, clip(s, 512))
		}
		return out, nil
	case frameWall:
		var r msgWall
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		return nil, &WallError{Wall: clip(r.Wall, 64), Reason: clip(r.Reason, 512)}
	case frameRefused:
		var r msgRefused
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		return nil, r.err()
	}
	return nil, w.violation(fmt.Errorf("frame %d in answer to bind", t))
}

const (
	wallLandlock = "landlock"
	wallSeccomp  = "seccomp"
)

// wallName says whether s is "seccomp" or "landlock(abi=N)".
func wallName(s string) bool {
	n, isLandlock := strings.CutPrefix(s, wallLandlock+"(abi=")
	abi, err := strconv.Atoi(strings.TrimSuffix(n, ")"))
	return s == wallSeccomp || isLandlock && err == nil && s == fmt.Sprintf("%s(abi=%d)", wallLandlock, abi)
}

// checkWalls holds the answer against what was asked for. The worker is still honest here, for it has not read anything
// of an extension; the check is against mistakes.
func checkWalls(b Bind, r *msgBound) error {
	have := map[string]bool{}
	for _, wall := range r.Walls {
		if !wallName(wall) {
			return &WallError{Wall: clip(wall, 64), Reason: "not a wall"}
		}
		name, _, _ := strings.Cut(wall, "(")
		have[name] = true
	}
	if b.WeakWalls {
		return nil
	}
	for _, wall := range []string{wallLandlock, wallSeccomp} {
		if !have[wall] {
			return &WallError{Wall: wall, Reason: "not proved"}
		}
	}
	return nil
}

// unnamed makes a memfd that a compile worker writes its result to. The worker cannot make one itself: memfd_create is
// not on its list.
func unnamed(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// seal makes f immutable. It fails while anybody has it mapped for writing.
func seal(f *os.File) error {
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return os.NewSyscallError("seal", err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxOutput {
		return fmt.Errorf("%w: output of %d bytes", errFrame, info.Size())
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// Compile compiles one module in a worker bound as [RoleCompile]. The worker has done its work then and is killed,
// whatever the result.
//
// A module that cannot be used is a [*ModuleError]; ErrTime, the cause of ctx, and errors that match [ErrWorker] are the
// others.
func (w *Worker) Compile(ctx context.Context, j CompileJob) (_ *Compiled, err error) {
	if j.Module == nil {
		return nil, &JobError{Detail: "no module"}
	}
	if err := w.enter(bound, busy, RoleCompile); err != nil {
		return nil, err
	}
	defer func() {
		w.leave(ended)
		w.Kill()
	}()
	out := &Compiled{}
	if out.Prepared, err = unnamed("module"); err != nil {
		return nil, err
	}
	if out.Code, err = unnamed("code"); err != nil {
		out.Prepared.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	ctx, cancel := withTime(ctx, j.Time)
	defer cancel()
	stop := w.killAfter(ctx)
	defer stop()
	var f files
	m := msgCompile{Module: f.add(j.Module), Prepared: f.add(out.Prepared), Code: f.add(out.Code), Time: j.Time}
	if f.err != nil {
		return nil, f.err
	}
	if err := w.send(frameCompile, &m, f.fds...); err != nil {
		return nil, w.why(ctx, nil)
	}
	t, payload, err := w.receive()
	if err != nil {
		if errors.Is(err, errFrame) {
			return nil, w.violation(err)
		}
		return nil, w.why(ctx, nil)
	}
	switch t {
	case frameCompiled:
		var r msgCompiled
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		if r.CodeName != "" && !codeName(r.CodeName) {
			return nil, w.violation(fmt.Errorf("code name %q", r.CodeName))
		}
		out.CodeName = r.CodeName
		// Dead first: then nobody else holds the files.
		w.killFor("done")
		<-w.done
		for _, file := range []*os.File{out.Prepared, out.Code} {
			if err := seal(file); err != nil {
				return nil, w.violation(err)
			}
		}
		return out, nil
	case frameModule:
		var r msgModule
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		switch r.Kind {
		case "invalid", "too-big", "imports", "memory", "engine":
		default:
			return nil, w.violation(fmt.Errorf("module error %q", r.Kind))
		}
		return nil, &ModuleError{Kind: r.Kind, Detail: clip(r.Detail, 1024)}
	case frameRefused:
		var r msgRefused
		if err := decode(payload, &r); err != nil {
			return nil, w.violation(err)
		}
		return nil, r.err()
	}
	return nil, w.violation(fmt.Errorf("frame %d in answer to compile", t))
}

func withTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, ErrTime)
}

// Run runs one guest in a worker bound as [RoleRun] and returns how it ended.
//
// When ctx ends or the job's time is over the worker is killed and the context's cause or [ErrTime] is returned. A worker
// that died or broke the protocol is an error that matches [ErrWorker]. After any error but a [*JobError] the worker has
// ended. [ErrRetired] says that the processor time left to this worker may not do for the job: it was killed before the
// job began, and a new worker is wanted.
func (w *Worker) Run(ctx context.Context, j RunJob) (*Result, error) {
	if j.Module == nil || j.Code == nil {
		return nil, &JobError{Detail: "no module"}
	}
	if !folderName(j.Folder) {
		return nil, &JobError{Detail: "no folder name"}
	}
	if err := w.enter(bound, busy, RoleRun); err != nil {
		return nil, err
	}
	if w.used[j.Folder] {
		w.leave(bound)
		return nil, &JobError{Detail: fmt.Sprintf("folder %q was used before", j.Folder)}
	}
	w.used[j.Folder] = true
	if len(w.used) > maxRuns || (len(w.used) > 1 && w.CPU()+j.Time+graceTime > w.cpu) {
		w.leave(ended)
		w.Kill()
		return nil, ErrRetired
	}
	r, err := w.run(ctx, j)
	var refused *JobError
	if err != nil && !errors.As(err, &refused) {
		w.leave(ended)
		w.Kill()
		return nil, err
	}
	w.leave(bound)
	return r, err
}

// ErrRetired is told in [Worker.Run].
var ErrRetired = errors.New("worker is retired: its processor time is nearly used up")

func (w *Worker) run(ctx context.Context, j RunJob) (*Result, error) {
	var f files
	m := msgRun{
		Folder: j.Folder, Module: f.add(j.Module), Code: f.add(j.Code), CodeName: j.CodeName,
		Args: j.Args, Env: j.Env, Dir: j.Dir,
		Stdin: f.add(j.Stdin), Stdout: f.add(j.Stdout), Stderr: f.add(j.Stderr),
		Exact: j.ExactPaths, Nonblock: j.NonblockStdin,
	}
	if j.Time > 0 {
		m.Time = j.Time + graceTime
	}
	if f.err != nil {
		return nil, f.err
	}
	if _, err := encode(&m); err != nil {
		return nil, &JobError{Detail: "arguments and environment are too long"}
	}
	ctx, cancel := withTime(ctx, j.Time)
	defer cancel()
	stop := w.killAfter(ctx)
	defer stop()
	if err := w.send(frameRun, &m, f.fds...); err != nil {
		return nil, w.why(ctx, nil)
	}
	out := &Result{}
	events, removed := 0, 0
	for {
		t, payload, err := w.receive()
		if err != nil {
			if errors.Is(err, errFrame) {
				return nil, w.violation(err)
			}
			return nil, w.why(ctx, nil)
		}
		switch t {
		case frameEvents:
			var r msgEvents
			if err := decode(payload, &r); err != nil {
				return nil, w.violation(err)
			}
			events += len(r.Events)
			if len(r.Events) == 0 || events > maxEvents || len(out.Removed) > 0 {
				return nil, w.violation(errors.New("events out of turn or too many"))
			}
			if j.Events != nil {
				for _, e := range r.Events {
					j.Events(e)
				}
			}
		case frameRemoved:
			var r msgRemoved
			if err := decode(payload, &r); err != nil {
				return nil, w.violation(err)
			}
			for _, p := range r.Paths {
				removed += len(p) + 16
			}
			if len(r.Paths) == 0 || removed > maxRemovedBytes || len(out.Removed)+len(r.Paths) > maxRemoved {
				return nil, w.violation(errors.New("too many removed paths"))
			}
			out.Removed = append(out.Removed, r.Paths...)
		case frameResult:
			var r msgResult
			if err := decode(payload, &r); err != nil {
				return nil, w.violation(err)
			}
			if k := r.Ending.Kind; r.Fault == "" && k != 1 && k != 2 {
				return nil, w.violation(fmt.Errorf("ending %d", k))
			}
			if stop(); ctx.Err() != nil {
				// The deadline was first, though the worker got its word in.
				return nil, context.Cause(ctx)
			}
			out.Ending, out.Fault = r.Ending, clip(r.Fault, 1024)
			out.Ending.Trap, out.Ending.Detail = clip(r.Ending.Trap, 64), clipLines(r.Ending.Detail, 4096)
			out.Usage, out.EventsDropped = r.Usage, r.EventsDropped
			out.CPU, out.MaxRSS = w.CPU(), w.maxRSS()
			return out, nil
		case frameRefused:
			var r msgRefused
			if err := decode(payload, &r); err != nil {
				return nil, w.violation(err)
			}
			if events > 0 || len(out.Removed) > 0 {
				return nil, w.violation(errors.New("refused after it began"))
			}
			return nil, r.err()
		default:
			return nil, w.violation(fmt.Errorf("frame %d while a guest runs", t))
		}
	}
}
