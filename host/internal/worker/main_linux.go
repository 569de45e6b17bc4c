package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Exit statuses of a worker. They are for the operator; the broker trusts none of them.
const (
	exitProtocol = 70 // the broker's end broke the protocol, or is not a broker
	exitConfine  = 71
)

const (
	socketFD = 3
	maxProcs = 4
)

// Main runs a worker if this process was started as one, and then does not return; else it returns at once. It must be
// called before anything that matters happens in the process: no flags parsed, no file opened.
func Main(d Deps) {
	if len(os.Args) != 2 || os.Args[0] != workerName || os.Args[1] != workerMode {
		return
	}
	w := &inside{deps: d}
	w.start()
	w.serve()
}

// inside is a worker, seen from within.
type inside struct {
	deps     Deps
	deadline posixTimer // of a run: kills this process
	watchdog posixTimer // of the confinement: CPU time
	frames   chan packet
	busy     atomic.Bool // a frame that comes while it is set is a violation

	engineName string
	engine     engine.Engine
	engineErr  error
	engineDone chan struct{}

	role     Role
	limits   Limits
	names    []string
	mounts   []bindMount
	fds      []int // of the bind
	readable []int // those of them that are regular files to read
	scratch  int
	loaded   *loadedModule

	tag    uint64 // of the exchange under way
	sendMu sync.Mutex
}

type packet struct {
	header
	payload []byte
	fds     []int
}

// die ends the worker with one line on its error pipe.
func die(code int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "exthost-worker: "+format+"\n", args...)
	os.Exit(code)
}

// start is everything before the handshake is answered.
func (w *inside) start() {
	// A worker has no business with any signal but those that the runtime uses itself; a file size limit is an error of
	// the write, not a crash.
	signal.Ignore(unix.SIGXFSZ, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE)
	// Each thread's stack counts against the memory limit, so there are few on a machine of any size. An explicit number
	// also ends the runtime's own reading of cgroup files, whose descriptor is closed below.
	runtime.GOMAXPROCS(min(runtime.NumCPU(), maxProcs))
	typ, err := unix.GetsockoptInt(socketFD, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || typ != unix.SOCK_SEQPACKET {
		die(exitProtocol, "this mode is for exthost's own use")
	}
	unix.CloseOnExec(socketFD)
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		die(exitConfine, "prctl: %v", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		die(exitConfine, "prctl: %v", err)
	}
	if err := closeOthers(); err != nil {
		die(exitConfine, "descriptors: %v", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		die(exitConfine, "setrlimit: %v", err)
	}

	p, err := receivePacket(socketFD)
	if err != nil || p.typ != frameHello || len(p.fds) > 0 {
		die(exitProtocol, "no hello")
	}
	w.tag = p.tag
	var hello msgHello
	if err := decode(p.payload, &hello); err != nil {
		die(exitProtocol, "hello: %v", err)
	}
	if os.Getppid() != hello.Parent {
		// The broker died between the fork and the prctl.
		os.Exit(exitProtocol)
	}
	if hello.Version != protocolVersion {
		// The broker sees that from the answer.
		w.send(frameHelloOK, &msgHelloOK{Version: protocolVersion, Nonce: hello.Nonce})
		os.Exit(exitProtocol)
	}
	if err = ownProc(); err == nil {
		err = dropPrivileges()
	}
	if err != nil {
		w.send(frameRefused, &msgRefused{Detail: clip("confinement: "+err.Error(), 512)})
		os.Exit(exitConfine)
	}
	if w.deadline, err = newTimer(unix.CLOCK_MONOTONIC); err == nil {
		w.watchdog, err = newTimer(unix.CLOCK_PROCESS_CPUTIME_ID)
	}
	if err != nil {
		die(exitConfine, "%v", err)
	}
	w.engineDone = make(chan struct{})
	if w.engineName = hello.Engine; w.engineName != "" {
		go func() {
			w.engine, w.engineErr = w.deps.Engine(w.engineName)
			close(w.engineDone)
		}()
	} else {
		close(w.engineDone)
	}
	w.frames = make(chan packet)
	go w.read()
	if err := w.send(frameHelloOK, &msgHelloOK{Version: protocolVersion, Nonce: hello.Nonce}); err != nil {
		os.Exit(exitProtocol)
	}
}

// closeOthers closes what an embedder's own code, or a library of its, left open over the exec, or opened before main. The
// Go runtime's own poller stays.
func closeOthers() error {
	names, err := readNames("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= socketFD {
			continue
		}
		switch target, err := os.Readlink("/proc/self/fd/" + name); {
		case err != nil, target == "anon_inode:[eventpoll]", target == "anon_inode:[eventfd]":
		default:
			unix.Close(fd)
		}
	}
	return nil
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// posixTimer is a timer of the kernel that sends SIGKILL to this process. It works when the Go scheduler does not, for
// instance while a garbage collection waits for a guest that computes.
type posixTimer struct{ id int32 }

func newTimer(clock int32) (posixTimer, error) {
	event := struct {
		value  uint64
		signo  int32
		notify int32
		_      [48]byte
	}{signo: int32(unix.SIGKILL)}
	var t posixTimer
	if _, _, e := unix.Syscall(unix.SYS_TIMER_CREATE, uintptr(clock), uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&t.id))); e != 0 {
		return t, os.NewSyscallError("timer_create", e)
	}
	return t, nil
}

// set arms the timer; 0 disarms it.
func (t posixTimer) set(d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if _, _, e := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(t.id), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); e != 0 {
		return os.NewSyscallError("timer_settime", e)
	}
	return nil
}

// receivePacket reads one packet. At the end of the stream it is io.EOF.
func receivePacket(fd int) (packet, error) {
	var (
		p     packet
		first = true
		buf   = make([]byte, maxFrame+1)
		oob   = make([]byte, unix.CmsgSpace(4*maxFDs))
	)
	for {
		n, on, flags, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return p, err
		}
		if n == 0 {
			return p, io.EOF
		}
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			return p, fmt.Errorf("%w: truncated", errFrame)
		}
		h, payload, err := parseFrame(buf[:n])
		if err != nil {
			return p, err
		}
		if on > 0 {
			messages, err := unix.ParseSocketControlMessage(oob[:on])
			if err != nil {
				return p, err
			}
			for _, m := range messages {
				fds, err := unix.ParseUnixRights(&m)
				if err != nil {
					return p, err
				}
				p.fds = append(p.fds, fds...)
			}
		}
		switch {
		case first:
			p.header = h
		case h.typ != p.typ || h.tag != p.tag || on > 0:
			return p, fmt.Errorf("%w: fragment", errFrame)
		}
		if len(p.payload)+len(payload) > maxMessage {
			return p, fmt.Errorf("%w: message over 1 MiB", errFrame)
		}
		p.payload = append(p.payload, payload...)
		first = false
		if !h.more {
			return p, nil
		}
	}
}

// read takes frames from the broker and notices its end.
func (w *inside) read() {
	for {
		p, err := receivePacket(socketFD)
		if err == io.EOF {
			os.Exit(0)
		}
		if err != nil {
			die(exitProtocol, "%v", err)
		}
		if !w.busy.CompareAndSwap(false, true) {
			die(exitProtocol, "frame %d out of turn", p.typ)
		}
		w.frames <- p
	}
}

func (w *inside) send(t frameType, m message) error {
	payload, err := encode(m)
	if err != nil {
		return err
	}
	if len(payload) > maxFrame-frameHeader {
		return fmt.Errorf("%w: %d bytes", errFrame, len(payload))
	}
	w.sendMu.Lock()
	defer w.sendMu.Unlock()
	b := appendFrame(nil, header{typ: t, tag: w.tag}, payload)
	for {
		err := unix.Sendmsg(socketFD, b, nil, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// answer sends the last frame of an exchange and opens the door for the next one.
func (w *inside) answer(t frameType, m message) {
	w.busy.Store(false)
	if err := w.send(t, m); err != nil {
		die(exitProtocol, "%v", err)
	}
}

func (w *inside) refuse(format string, args ...any) { w.answer(refusal(format, args...)) }

// serve is the state machine: one bind, then one compilation or any number of runs.
func (w *inside) serve() {
	isBound := false
	for p := range w.frames {
		var err error
		w.tag = p.tag
		switch {
		case p.typ == frameBind && !isBound:
			var m msgBind
			if err = decode(p.payload, &m); err == nil {
				w.bind(&m, p.fds)
				isBound = true
			}
		case p.typ == frameCompile && isBound && w.role == RoleCompile:
			var m msgCompile
			if err = decode(p.payload, &m); err == nil {
				w.compile(&m, p.fds)
				w.role = 0 // one only
			}
		case p.typ == frameRun && isBound && w.role == RoleRun:
			var m msgRun
			if err = decode(p.payload, &m); err == nil {
				w.run(&m, p.fds)
			}
		default:
			err = fmt.Errorf("%w: type %d out of turn", errFrame, p.typ)
		}
		if err != nil {
			die(exitProtocol, "%v", err)
		}
	}
}

func pathOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// floor is what an engine and the Go runtime need beyond the guest's memory, of RLIMIT_DATA. All of it is address space
// that may be written, touched or not: for wasmtime 64 MiB of stack of the guest's thread and 8 MiB of each other
// thread (measured with two processors: 256 MiB do, 192 do not), for wazero the arenas of the Go heap (512 MiB do, 256
// do not).
func floor(engineName string, r Role) int64 {
	switch {
	case r == RoleCompile:
		return 3 << 30
	case engineName == engine.Wasmtime:
		return 384 << 20
	}
	return 640 << 20
}

func (w *inside) setLimits(m *msgBind) error {
	l := m.Limits
	base := floor(m.Engine, m.Role)
	// Both engines hold a guest's memory outside of the Go heap.
	debug.SetMemoryLimit(base * 3 / 4)
	fsize := uint64(maxOutput)
	if m.Role == RoleRun {
		// A file of a write root may be longer than the quota that wasiabi counts; this stands behind it.
		fsize = uint64(l.Disk) + 1<<30
	}
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &current); err != nil {
		return err
	}
	for _, r := range []struct {
		name  string
		which int
		value uint64
	}{
		{"cpu", unix.RLIMIT_CPU, uint64(l.CPU / time.Second)},
		{"data", unix.RLIMIT_DATA, uint64(base + l.Memory)},
		{"nofile", unix.RLIMIT_NOFILE, uint64(l.OpenFiles + len(w.fds) + 96)},
		{"fsize", unix.RLIMIT_FSIZE, fsize},
		{"stack", unix.RLIMIT_STACK, min(current.Max, 8<<20)},
		// wasmtime reserves over 4 GiB of address space for a memory, wazero up to its maximum: a sanity cap.
		{"as", unix.RLIMIT_AS, uint64(64<<30 + l.Memory)},
		{"memlock", unix.RLIMIT_MEMLOCK, 0},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 0},
		{"core", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.which, &now); err != nil {
			return fmt.Errorf("getrlimit %s: %w", r.name, err)
		}
		// Hard limits of the broker's own are kept: only root could raise them, and it should not.
		v := min(r.value, now.Max)
		if err := unix.Setrlimit(r.which, &unix.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("setrlimit %s: %w", r.name, err)
		}
	}
	return nil
}

func (w *inside) bind(m *msgBind, fds []int) {
	if err := checkIndices(m, len(fds)); err != nil {
		die(exitProtocol, "bind: %v", err)
	}
	w.role, w.limits, w.mounts, w.names, w.fds = m.Role, m.Limits, m.Mounts, m.Names, fds
	w.scratch = fds[m.Scratch]
	for _, i := range m.Read {
		w.readable = append(w.readable, fds[i])
	}
	<-w.engineDone
	if w.engineErr != nil || (w.engineName != "" && w.engineName != m.Engine) {
		w.refuse("engine %q: %v", m.Engine, w.engineErr)
		os.Exit(0)
	}
	if err := w.setLimits(m); err != nil {
		w.refuse("limits: %v", err)
		os.Exit(0)
	}
	walls, missing, err := w.confine(m)
	if err != nil {
		w.refuse("%v", err)
		os.Exit(0)
	}
	out := msgBound{Walls: walls}
	for _, e := range missing {
		if !m.WeakWalls {
			w.answer(frameWall, &msgWall{Wall: e.Wall, Reason: clip(e.Reason, 512)})
			os.Exit(0)
		}
		out.Missing = append(out.Missing, clip(e.Wall+": "+e.Reason, 512))
	}
	if w.engine == nil {
		if w.engine, err = w.deps.Engine(m.Engine); err != nil {
			w.refuse("engine %q: %v", m.Engine, err)
			os.Exit(0)
		}
	}
	out.Version = clip(w.engine.Version(), 128)
	w.answer(frameBound, &out)
}

func checkIndices(m *msgBind, n int) error {
	all := []int{m.Scratch}
	for _, b := range m.Mounts {
		if b.Sub == "" {
			all = append(all, b.FD)
		} else if b.FD != -1 {
			return errors.New("mount with two roots")
		}
	}
	all = append(all, m.Read...)
	if len(all) != n {
		return fmt.Errorf("%d descriptors for %d names", n, len(all))
	}
	slices.Sort(all)
	for i, v := range all {
		if i != v {
			return errors.New("descriptor index")
		}
	}
	return nil
}

// pick returns the descriptor of an index; -1 gives -1.
func pick(fds []int, i int) int {
	switch {
	case i < 0:
		return -1
	case i >= len(fds):
		die(exitProtocol, "descriptor index %d", i)
	}
	return fds[i]
}

func (w *inside) root() (*os.Root, error) { return os.OpenRoot(pathOf(w.scratch)) }

func (w *inside) compile(m *msgCompile, fds []int) {
	module, prepared, code := pick(fds, m.Module), pick(fds, m.Prepared), pick(fds, m.Code)
	if module < 0 || prepared < 0 || code < 0 {
		die(exitProtocol, "compile: descriptors")
	}
	if m.Time > 0 {
		if err := w.deadline.set(m.Time + graceTime); err != nil {
			die(exitProtocol, "%v", err)
		}
	}
	wasm, err := io.ReadAll(io.NewSectionReader(os.NewFile(uintptr(module), "module"), 0, maxModule+1))
	if err != nil {
		w.refuse("read module: %v", err)
		return
	}
	if len(wasm) > maxModule {
		w.answer(frameModule, &msgModule{Kind: "too-big", Detail: "module over 64 MiB"})
		return
	}
	refused := func(err error) bool {
		var e *ModuleError
		if !errors.As(err, &e) {
			return false
		}
		w.answer(frameModule, &msgModule{Kind: e.Kind, Detail: clip(e.Detail, 1024)})
		return true
	}
	lowered, err := w.deps.Prepare(wasm, w.engineLimits())
	if err != nil {
		if !refused(err) {
			w.refuse("prepare module: %v", err)
		}
		return
	}
	root, err := w.root()
	if err == nil {
		err = root.Mkdir("engine", 0o700)
	}
	if err != nil {
		w.refuse("scratch: %v", err)
		return
	}
	native, name, err := w.engine.Compile(context.Background(), lowered, pathOf(w.scratch)+"/engine")
	if err != nil {
		if !refused(err) {
			kind := "engine"
			if errors.Is(err, engine.ErrInvalid) {
				kind = "invalid"
			}
			w.answer(frameModule, &msgModule{Kind: kind, Detail: clip(err.Error(), 1024)})
		}
		return
	}
	for _, out := range []struct {
		fd int
		b  []byte
	}{{prepared, lowered}, {code, native}} {
		f := os.NewFile(uintptr(out.fd), "out")
		if _, err := f.Write(out.b); err != nil {
			w.refuse("write result: %v", err)
			return
		}
	}
	w.answer(frameCompiled, &msgCompiled{CodeName: name})
}

// maxModule is the cap of package module on a module's size.
const maxModule = 64 << 20

func (w *inside) engineLimits() engine.Limits {
	return engine.Limits{MemoryBytes: w.limits.Memory, TableElements: w.limits.TableElements}
}

// loadedModule is the module of the last run, kept for the next: wazero takes 0.4 s to load a large one.
type loadedModule struct {
	key    [2]fileID
	name   string
	module engine.Module
	fds    []int // held, so that the identities stay true
}

type fileID struct{ dev, ino uint64 }

func identify(fd int) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileID{}, err
	}
	return fileID{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// load returns the module of a job. dir is a private folder for a link, made when it is needed.
func (w *inside) load(ctx context.Context, m *msgRun, module, code int, root *os.Root) (engine.Module, error) {
	a, err1 := identify(module)
	b, err2 := identify(code)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if l := w.loaded; l != nil && l.key == [2]fileID{a, b} && l.name == m.CodeName {
		unix.Close(module)
		unix.Close(code)
		return l.module, nil
	}
	if l := w.loaded; l != nil {
		w.loaded = nil
		l.module.Close()
		for _, fd := range l.fds {
			unix.Close(fd)
		}
	}
	dir := m.Folder + "/engine"
	if err := root.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	mod, err := w.engine.Load(ctx, engine.Artefact{
		ModulePath: pathOf(module), CodePath: pathOf(code), CodeName: m.CodeName, Dir: filepath.Join(pathOf(w.scratch), dir),
	}, w.engineLimits())
	if err != nil {
		unix.Close(module)
		unix.Close(code)
		return nil, err
	}
	w.loaded = &loadedModule{key: [2]fileID{a, b}, name: m.CodeName, module: mod, fds: []int{module, code}}
	return mod, nil
}

// run answers a job when everything of it is closed and the timer is off.
func (w *inside) run(m *msgRun, fds []int) { w.answer(w.job(m, fds)) }

func refusal(format string, args ...any) (frameType, message) {
	return frameRefused, &msgRefused{Detail: clip(fmt.Sprintf(format, args...), 1024)}
}

func (w *inside) job(m *msgRun, fds []int) (frameType, message) {
	module, code := pick(fds, m.Module), pick(fds, m.Code)
	if module < 0 || code < 0 || !folderName(m.Folder) || (m.CodeName != "" && !codeName(m.CodeName)) {
		die(exitProtocol, "run: bad job")
	}
	std := func(i int, name string) *os.File {
		fd := pick(fds, i)
		if fd < 0 {
			return nil
		}
		return os.NewFile(uintptr(fd), name)
	}
	cfg := wasiabi.Config{
		Args: m.Args, Env: m.Env, Dir: m.Dir,
		Stdin: std(m.Stdin, "stdin"), Stdout: std(m.Stdout, "stdout"), Stderr: std(m.Stderr, "stderr"),
		ExactPaths: m.Exact, NonblockStdin: m.Nonblock, ProtectedNames: w.names,
		OpenFiles: w.limits.OpenFiles, Disk: w.limits.Disk, Entries: w.limits.Entries, MinFree: w.limits.MinFree,
	}
	defer func() {
		for _, f := range []*os.File{cfg.Stdin, cfg.Stdout, cfg.Stderr} {
			if f != nil {
				f.Close()
			}
		}
	}()
	if m.Time > 0 {
		if err := w.deadline.set(m.Time); err != nil {
			die(exitProtocol, "%v", err)
		}
		defer w.deadline.set(0)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	root, err := w.root()
	if err != nil {
		return refusal("scratch: %v", err)
	}
	defer root.Close()
	if err := root.Mkdir(m.Folder, 0o700); err != nil {
		return refusal("scratch: %v", err)
	}
	base := filepath.Join(pathOf(w.scratch), m.Folder)
	for i, b := range w.mounts {
		mount := b.M
		switch {
		case b.Sub != "":
			if err := root.Mkdir(m.Folder+"/"+b.Sub, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
				return refusal("mount %q: %v", mount.Guest, err)
			}
			mount.Dir = base + "/" + b.Sub
		default:
			mount.Dir = pathOf(w.fds[b.FD])
		}
		if mount.Access == wasiabi.Overlay {
			upper := fmt.Sprintf("upper-%d", i)
			if err := root.Mkdir(m.Folder+"/"+upper, 0o700); err != nil {
				return refusal("mount %q: %v", mount.Guest, err)
			}
			mount.Upper = base + "/" + upper
		}
		cfg.Mounts = append(cfg.Mounts, mount)
	}
	mod, err := w.load(ctx, m, module, code, root)
	if errors.Is(err, engine.ErrCode) {
		return frameRefused, &msgRefused{Kind: kindCode, Detail: clip(err.Error(), 1024)}
	}
	if err != nil {
		return refusal("load module: %v", err)
	}
	report := &reporter{send: func(e []wasiabi.Event) {
		if err := w.send(frameEvents, &msgEvents{Events: e}); err != nil {
			die(exitProtocol, "%v", err)
		}
	}}
	cfg.Events = report.add
	result, removed := w.guest(ctx, mod, cfg)
	for i, p := range removed {
		removed[i] = p[:min(len(p), maxShort)]
	}
	result.EventsDropped = report.close()
	for len(removed) > 0 {
		n, size := 0, 0
		for n < len(removed) && n < 4096 && size < maxFrame/2 {
			size += len(removed[n]) + 4
			n++
		}
		if err := w.send(frameRemoved, &msgRemoved{Paths: removed[:n]}); err != nil {
			die(exitProtocol, "%v", err)
		}
		removed = removed[n:]
	}
	return frameResult, &result
}

// reporter batches events: a refusal goes at once, others within a tenth of a second. It passes a bounded number of each.
type reporter struct {
	send func([]wasiabi.Event)

	mu      sync.Mutex
	batch   []wasiabi.Event
	size    int
	timer   *time.Timer
	closed  bool
	dropped int
	effects int
	denials int
}

const (
	// Together below the broker's maxEvents.
	maxEffects = 12_000
	maxDenials = 12_000
	batchTime  = 100 * time.Millisecond
)

func (r *reporter) add(e wasiabi.Event) {
	e.Op, e.Errno = clip(e.Op, 32), clip(e.Errno, 32)
	e.Detail = clip(e.Detail, 1024)
	e.Count = max(e.Count, 0)
	if len(e.Capability) > maxCapability {
		e.Capability = e.Capability[:maxCapability]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	count, limit := &r.effects, maxEffects
	if e.Denied {
		count, limit = &r.denials, maxDenials
	}
	if *count++; *count > limit || r.closed {
		r.dropped++
		return
	}
	size := len(e.Op) + len(e.Errno) + len(e.Detail) + len(e.Capability) + 25
	if r.size+size > maxFrame/2 {
		r.flush()
	}
	r.batch = append(r.batch, e)
	r.size += size
	if e.Denied && r.denials <= 100 || len(r.batch) >= 1000 {
		r.flush()
	} else if r.timer == nil {
		r.timer = time.AfterFunc(batchTime, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.timer = nil
			r.flush()
		})
	}
}

// flush sends the batch. Preconditions: mu is held.
func (r *reporter) flush() {
	if len(r.batch) > 0 {
		r.send(r.batch)
	}
	r.batch, r.size = r.batch[:0], 0
}

func (r *reporter) close() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	r.closed = true
	return r.dropped
}
