package shell

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"mvdan.cc/sh/v3/syntax"
)

// host is what the expander sees of a shell: kept apart from the executor's own methods.
type host struct{ s *Shell }

func (h *host) Params() []string        { return h.s.params }
func (h *host) Option(name string) bool { return h.s.Option(name) }
func (h *host) Dir() string             { return h.s.dir }
func (h *host) Warn(text string)        { h.s.errorf("%s", text) }

func (h *host) Executable(name string) bool {
	_, ok := h.s.w.bundled(name)
	return ok
}

func (h *host) Terminal(fd int) bool {
	d := h.s.fd(fd)
	return d != nil && d.file != nil && fd < 3 && h.s.w.tty[fd]
}

// StatFd tells what a descriptor is.
func (h *host) StatFd(fd int) (fs.FileInfo, error) {
	d := h.s.fd(fd)
	if d == nil {
		return nil, syscall.EBADF
	}
	return d.stat()
}

// Special returns special parameters and computed variables.
func (h *host) Special(name string) (string, bool) {
	s := h.s
	switch name {
	case "?":
		return strconv.Itoa(s.status), true
	case "$":
		return strconv.Itoa(s.pid), true
	case "!":
		if s.lastBg == 0 {
			return "", false
		}
		return strconv.Itoa(s.lastBg), true
	case "#":
		return strconv.Itoa(len(s.params)), true
	case "-":
		letters := s.opts.letters()
		if s.command != "" {
			return letters + "c", true
		}
		if s.script == "" {
			return letters + "s", true
		}
		return letters, true
	case "0":
		return s.arg0, true
	case "_":
		return s.lastArg, true
	case "RANDOM":
		return strconv.Itoa(s.nextRandom()), true
	case "SRANDOM":
		var b [4]byte
		rand.Read(b[:])
		return strconv.FormatUint(uint64(binary.LittleEndian.Uint32(b[:])), 10), true
	case "SECONDS":
		return strconv.FormatInt(int64(time.Since(s.seconds)/time.Second), 10), true
	case "EPOCHSECONDS":
		return strconv.FormatInt(time.Now().Unix(), 10), true
	case "EPOCHREALTIME":
		return fmt.Sprintf("%d.%06d", time.Now().Unix(), time.Now().Nanosecond()/1000), true
	case "BASHPID":
		return strconv.Itoa(s.proc.id()), true
	case "PPID":
		return strconv.Itoa(s.ppid), true
	case "LINENO":
		return strconv.Itoa(s.lineno()), true
	case "BASH_SUBSHELL":
		return strconv.Itoa(s.subshell), true
	case "BASH_COMMAND":
		return s.commandText(), true
	case "SHELLOPTS":
		return s.opts.list(false), true
	case "BASHOPTS":
		return s.opts.list(true), true
	case "FUNCNAME", "BASH_SOURCE", "BASH_LINENO", "PIPESTATUS", "DIRSTACK", "GROUPS":
		if list, ok := h.SpecialList(name); ok && len(list) > 0 {
			return list[0], true
		}
	}
	return "", false
}

func (s *Shell) nextRandom() int {
	s.random = s.random*1103515245 + 12345
	return int(s.random>>16) & 0x7fff
}

func (s *Shell) lineno() int {
	if s.fixed > 0 {
		return s.fixed
	}
	return s.line
}

// SpecialList returns the computed arrays.
func (h *host) SpecialList(name string) ([]string, bool) {
	s := h.s
	var list []string
	switch name {
	case "PIPESTATUS":
		for _, code := range s.pipestatus {
			list = append(list, strconv.Itoa(code))
		}
	case "DIRSTACK":
		list = append([]string{s.tilde(s.dir)}, s.oldDirs...)
	case "GROUPS":
		return []string{"1000"}, true
	case "FUNCNAME":
		inFunc := false
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, s.frames[i].name)
			inFunc = inFunc || s.frames[i].isFunc
		}
		if !inFunc {
			return nil, false
		}
		if s.script != "" || s.command == "" {
			list = append(list, "main")
		}
	case "BASH_SOURCE":
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, s.frames[i].source)
		}
		if s.script != "" {
			list = append(list, s.script)
		}
	case "BASH_LINENO":
		for i := len(s.frames) - 1; i >= 0; i-- {
			list = append(list, strconv.Itoa(s.frames[i].line))
		}
		if s.script != "" {
			list = append(list, "0")
		}
	default:
		return nil, false
	}
	return list, true
}

// SetSpecial is told of assignments to computed variables.
func (h *host) SetSpecial(name, value string) {
	n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch name {
	case "RANDOM":
		h.s.random = uint32(n)
	case "SECONDS":
		h.s.seconds = time.Now().Add(-time.Duration(n) * time.Second)
	}
}

// source is the file whose commands run: for messages, and for functions that are defined.
func (s *Shell) source() string {
	if n := len(s.frames); n > 0 {
		return s.frames[n-1].source
	}
	if s.script != "" {
		return s.script
	}
	return s.arg0
}

// Prefix is what messages begin with.
func (s *Shell) Prefix() string {
	name := s.source()
	if name == "environment" {
		name = s.arg0
	}
	return fmt.Sprintf("%s: line %d: ", name, max(s.lineno(), 1))
}

func (s *Shell) errorf(format string, args ...any) {
	fmt.Fprintf(s.stderr(), "%s%s\n", s.Prefix(), fmt.Sprintf(format, args...))
}

// CommandSubst runs a command substitution.
func (h *host) CommandSubst(ctx context.Context, c *syntax.CmdSubst) (string, error) {
	return h.s.commandSubst(ctx, c)
}

// ProcessSubst starts a process substitution.
func (h *host) ProcessSubst(ctx context.Context, p *syntax.ProcSubst) (string, error) {
	return h.s.processSubst(ctx, p)
}

// firstVariables sets what bash sets when it starts.
func (s *Shell) firstVariables() {
	v := s.vars
	def := func(name, value string) {
		if _, ok := v.Get(name); !ok {
			v.Set(name, value)
		}
	}
	v.Set("BASH", "/bin/bash")
	v.Set("BASH_VERSION", version)
	v.SetList("BASH_VERSINFO", []string{"5", "2", "15", "1", "release", machine() + "-pc-linux-gnu"})
	v.Set("OSTYPE", "linux-gnu")
	v.Set("HOSTTYPE", machine())
	v.Set("MACHTYPE", machine()+"-pc-linux-gnu")
	def("HOSTNAME", "exthost")
	v.Set("UID", "1000")
	v.Set("EUID", "1000")
	v.Set("IFS", " \t\n")
	def("PS4", "+ ")
	v.Set("OPTIND", "1")
	v.Set("OPTERR", "1")
	def("PATH", defaultPath)
	def("TERM", "dumb")
	if s.command != "" {
		v.Set("BASH_EXECUTION_STRING", s.command)
	}
	level := 0
	if n, err := strconv.Atoi(v.Str("SHLVL")); err == nil && n > 0 {
		level = n
	}
	v.SetAttr("SHLVL", attrExport, 0)
	v.Set("SHLVL", strconv.Itoa(level+1))
	// PWD is believed when it names the folder we are in.
	if pwd := v.Str("PWD"); pwd != s.dir && (!path.IsAbs(pwd) || !sameFile(pwd, s.dir)) {
		v.Set("PWD", s.dir)
	} else {
		s.dir = pwd
	}
	v.SetAttr("PWD", attrExport, 0)
	if _, ok := v.Get("OLDPWD"); !ok {
		v.SetAttr("OLDPWD", attrExport, 0)
	}
}

const (
	version     = "5.2.15(1)-release"
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// machine is what uname -m says: the guest has no processor of its own, scripts want to know x86_64 or aarch64.
func machine() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// importFunctions takes exported functions out of an environment.
func (s *Shell) importFunctions(environ []string) []string {
	var rest []string
	for i, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		fn, ok := strings.CutPrefix(name, "BASH_FUNC_")
		if fn, ok2 := strings.CutSuffix(fn, "%%"); ok && ok2 && strings.HasPrefix(value, "() {") {
			if rest == nil {
				rest = append(make([]string, 0, len(environ)), environ[:i]...)
			}
			text := fn + " " + value
			if f, err := newParser().Parse(strings.NewReader(text), ""); err == nil && len(f.Stmts) == 1 {
				if d, ok := f.Stmts[0].Cmd.(*syntax.FuncDecl); ok {
					s.funcs[fn] = &function{name: fn, body: d.Body, source: "environment", src: text, export: true}
				}
			}
			continue
		}
		if rest != nil {
			rest = append(rest, e)
		}
	}
	if rest == nil {
		return environ
	}
	return rest
}

// environ is the environment of commands.
func (s *Shell) environ() []string {
	env := s.vars.Environ()
	for _, name := range sortedKeys(s.funcs) {
		if f := s.funcs[name]; f.export {
			if text, ok := s.functionText(name); ok {
				_, body, _ := strings.Cut(text, "{")
				env = append(env, "BASH_FUNC_"+name+"%%=() {"+body)
			}
		}
	}
	return append(env, "_="+s.lastArg)
}

// tilde shortens a folder as dirs prints it.
func (s *Shell) tilde(dir string) string {
	home := s.vars.Str("HOME")
	if home != "" && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		return "~" + dir[len(home):]
	}
	return dir
}

// abs makes a path absolute, in the shell's folder.
func (s *Shell) abs(name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(s.dir, "/") + "/" + name
}

func isDir(err error, info fs.FileInfo) bool { return err == nil && info.IsDir() }

func reason(err error) string { return cmd.Reason(err) }
