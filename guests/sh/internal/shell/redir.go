package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/ask"
	"mvdan.cc/sh/v3/syntax"
)

// maxFd is the number of descriptors of a shell.
const maxFd = 1024

// saved is a descriptor as it was before a redirection; d nil: it was closed.
type saved struct {
	fd int
	d  *desc
}

// restore undoes redirections, the last first.
func (s *Shell) restore(list []saved) {
	for i := len(list) - 1; i >= 0; i-- {
		if d := s.setFd(list[i].fd, list[i].d); d != nil {
			d.close()
		}
	}
}

// forget makes redirections last: exec.
func (s *Shell) forget(list []saved) {
	for _, old := range list {
		if old.d != nil {
			old.d.close()
		}
	}
}

// redirect carries out redirections. It reports what fails and returns false; what was done until then is to be undone too.
func (s *Shell) redirect(ctx context.Context, list []*syntax.Redirect) ([]saved, bool) {
	var done []saved
	for _, r := range list {
		if err := s.redirectOne(ctx, r, &done); err != nil {
			s.redirectError(err)
			return done, false
		}
	}
	return done, true
}

func (s *Shell) redirectError(err error) {
	var re *redirError
	if errors.As(err, &re) {
		s.errorf("%s", re.text)
		return
	}
	s.fail(err)
}

// redirError is a redirection that failed; any other error is one of expansion.
type redirError struct{ text string }

func (e *redirError) Error() string { return e.text }

func redirErrorf(format string, args ...any) error {
	return &redirError{fmt.Sprintf(format, args...)}
}

func (s *Shell) redirectOne(ctx context.Context, r *syntax.Redirect, done *[]saved) error {
	fd := 1
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		fd = 0
	}
	variable := ""
	if r.N != nil {
		n, err := strconv.Atoi(r.N.Value)
		switch {
		case err == nil && n >= maxFd:
			return redirErrorf("%d: Bad file descriptor", n)
		case err == nil:
			fd = n
		default:
			variable = strings.Trim(r.N.Value, "{}")
		}
	}
	// put makes d the descriptor that the redirection is for.
	put := func(d *desc) error {
		if variable != "" {
			fd := 10
			for s.fd(fd) != nil {
				fd++
			}
			if fd >= maxFd {
				d.close()
				return redirErrorf("redirection error: cannot duplicate fd: Too many open files")
			}
			s.setFd(fd, d)
			// It stays open after the command: that is what the variable is for.
			if err := s.vars.Set(variable, strconv.Itoa(fd)); err != nil {
				s.setFd(fd, nil).close()
				return err
			}
			return nil
		}
		*done = append(*done, saved{fd, s.setFd(fd, d)})
		return nil
	}

	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text, err := s.hereDoc(ctx, r)
		if err != nil {
			return err
		}
		return put(textDesc(text))
	case syntax.WordHdoc:
		text, err := s.exp.Literal(ctx, r.Word)
		if err != nil {
			return err
		}
		return put(textDesc(text + "\n"))
	case syntax.DplIn, syntax.DplOut:
		text, err := s.exp.Literal(ctx, r.Word)
		if err != nil {
			return err
		}
		move := false
		if text == "-" {
			if variable != "" {
				n, err := strconv.Atoi(s.vars.Str(variable))
				if err != nil {
					return redirErrorf("%s: ambiguous redirect", variable)
				}
				if d := s.setFd(n, nil); d != nil {
					d.close()
				}
				return nil
			}
			*done = append(*done, saved{fd, s.setFd(fd, nil)})
			return nil
		}
		number := text
		if len(text) > 1 && strings.HasSuffix(text, "-") {
			number, move = text[:len(text)-1], true
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			if r.Op == syntax.DplOut && (r.N == nil || r.N.Value == "1") && text != "" {
				return s.redirectBoth(ctx, r, done, os.O_TRUNC)
			}
			return redirErrorf("%s: ambiguous redirect", s.nodeText(r.Word))
		}
		d := s.fd(n)
		if d == nil {
			return redirErrorf("%s: Bad file descriptor", number)
		}
		if err := put(d.dup()); err != nil {
			return err
		}
		if move && n != fd {
			*done = append(*done, saved{n, s.setFd(n, nil)})
		}
		return nil
	case syntax.RdrAll:
		return s.redirectBoth(ctx, r, done, os.O_TRUNC)
	case syntax.AppAll:
		return s.redirectBoth(ctx, r, done, os.O_APPEND)
	}

	var flag int
	switch r.Op {
	case syntax.RdrIn:
		flag = os.O_RDONLY
	case syntax.RdrInOut:
		flag = os.O_RDWR | os.O_CREATE
	case syntax.RdrOut, syntax.RdrClob:
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	case syntax.AppOut:
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	default:
		return redirErrorf("syntax error near unexpected token `%v'", r.Op)
	}
	name, err := s.target(ctx, r.Word)
	if err != nil {
		return err
	}
	if r.Op == syntax.RdrOut && s.opts.has(optNoclobber) {
		if info, err := os.Stat(s.abs(name)); err == nil && info.Mode().IsRegular() {
			return redirErrorf("%s: cannot overwrite existing file", name)
		}
	}
	d, err := s.open(name, flag)
	if err != nil {
		return redirErrorf("%s: %s", name, reason(err))
	}
	return put(d)
}

// redirectBoth is &>FILE: standard output and standard error.
func (s *Shell) redirectBoth(ctx context.Context, r *syntax.Redirect, done *[]saved, mode int) error {
	name, err := s.target(ctx, r.Word)
	if err != nil {
		return err
	}
	d, err := s.open(name, os.O_WRONLY|os.O_CREATE|mode)
	if err != nil {
		return redirErrorf("%s: %s", name, reason(err))
	}
	*done = append(*done, saved{1, s.setFd(1, d)}, saved{2, s.setFd(2, d.dup())})
	return nil
}

// target expands the file name of a redirection: it must be one word.
func (s *Shell) target(ctx context.Context, w *syntax.Word) (string, error) {
	fields, err := s.exp.Fields(ctx, w)
	if err != nil {
		return "", err
	}
	if len(fields) != 1 {
		return "", redirErrorf("%s: ambiguous redirect", s.nodeText(w))
	}
	return fields[0], nil
}

// open opens a file for a redirection.
func (s *Shell) open(name string, flag int) (*desc, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	full := s.abs(name)
	if strings.HasPrefix(full, "/dev/") {
		if d, err := s.device(full, s.fd); d != nil || err != nil {
			return d, err
		}
	}
	f, err := os.OpenFile(full, flag, 0o666&^s.umask)
	if err != nil {
		return nil, err
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		// A folder can be opened, and fails when it is read: that is bash's way too.
		return fileDesc(f, flag), nil
	}
	return fileDesc(f, flag), nil
}

// device opens the files in /dev that are the shell's own. Neither description nor error: it is none of those.
func (s *Shell) device(name string, fd func(int) *desc) (*desc, error) {
	n := -1
	switch name {
	case "/dev/null":
		return nullDesc(), nil
	case "/dev/stdin":
		n = 0
	case "/dev/stdout":
		n = 1
	case "/dev/stderr":
		n = 2
	case "/dev/tty":
		return nil, syscall.ENXIO
	default:
		if text, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
			k, err := strconv.Atoi(text)
			if err != nil || k < 0 || k >= maxFd {
				return nil, syscall.ENOENT
			}
			n = k
		}
		for _, proto := range []string{"tcp", "udp"} {
			if to, ok := strings.CutPrefix(name, "/dev/"+proto+"/"); ok {
				host, port := path.Split(to)
				return nil, ask.HTTP("CONNECT", "http://"+strings.TrimSuffix(host, "/")+":"+port+"/")
			}
		}
	}
	if n < 0 {
		return nil, nil
	}
	d := fd(n)
	if d == nil {
		return nil, syscall.ENOENT
	}
	return d.dup(), nil
}

// hereDoc is the text of a here-document.
func (s *Shell) hereDoc(ctx context.Context, r *syntax.Redirect) (string, error) {
	if r.Hdoc == nil {
		return "", nil
	}
	quoted := false
	for _, part := range r.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.ContainsRune(lit.Value, '\\') {
			quoted = true
		}
	}
	doc := r.Hdoc
	if r.Op == syntax.DashHdoc {
		doc = withoutTabs(doc)
	}
	if quoted {
		var b strings.Builder
		for _, part := range doc.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
		return b.String(), nil
	}
	return s.exp.Document(ctx, doc)
}

// withoutTabs drops the tabs at the beginnings of lines, where they are text of the document.
func withoutTabs(doc *syntax.Word) *syntax.Word {
	parts := make([]syntax.WordPart, len(doc.Parts))
	begin := true
	for i, part := range doc.Parts {
		parts[i] = part
		lit, ok := part.(*syntax.Lit)
		if !ok {
			begin = false
			continue
		}
		var b bytes.Buffer
		for _, line := range strings.SplitAfter(lit.Value, "\n") {
			if begin {
				line = strings.TrimLeft(line, "\t")
			}
			b.WriteString(line)
			if line != "" {
				begin = strings.HasSuffix(line, "\n")
			}
		}
		stripped := *lit
		stripped.Value = b.String()
		parts[i] = &stripped
	}
	return &syntax.Word{Parts: parts}
}

// capture collects the output of a command substitution.
type capture struct {
	desc   *desc
	closed chan struct{}
}

func newCapture() *capture {
	c := &capture{closed: make(chan struct{})}
	c.desc = newDesc(&desc{canWrite: true, capture: &bytes.Buffer{}, onClose: func() { close(c.closed) }})
	return c
}

func (c *capture) text() string { return c.desc.capture.String() }
