package text

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var headOpts = cmd.Opts{
	{Short: 'c', Long: "bytes", Arg: cmd.Value}, {Short: 'n', Long: "lines", Arg: cmd.Value}, {Short: 'q', Long: "quiet"},
	{Long: "silent"}, {Short: 'v', Long: "verbose"}, {Short: 'z', Long: "zero-terminated"},
}

// portion is how much of a file head or tail prints, and of what.
type portion struct {
	n       int64
	bytes   bool
	butLast bool // head -n -5: all but the last n
	from    bool // tail -n +5: from the nth on
	sep     byte
	headers bool
	quiet   bool
	printed bool // a header was printed
}

// obsolete rewrites the old first argument of head, -20, -5c or -20q: false when a is none of that.
func (p *portion) obsolete(a string) bool {
	if len(a) < 2 || a[0] != '-' || !isDigit(a[1]) {
		return false
	}
	i := 1
	for i < len(a) && isDigit(a[i]) {
		i++
	}
	n, err := strconv.ParseInt(a[1:i], 10, 64)
	if err != nil {
		n = 1<<63 - 1
	}
	unit := int64(1)
	for _, b := range a[i:] {
		switch b {
		case 'b', 'k', 'm':
			p.bytes = true
			unit, _ = unitSize(string(b))
		case 'c':
			p.bytes, unit = true, 1
		case 'l':
			p.bytes = false
		case 'q':
			p.quiet = true
		case 'v':
			p.headers = true
		case 'z':
			p.sep = 0
		default:
			return false
		}
	}
	p.n = n * unit
	return true
}

func head(t *call) int {
	p := portion{n: 10, sep: '\n'}
	args := t.Args
	if len(args) > 0 && p.obsolete(args[0]) {
		args = args[1:]
	}
	given, names, code := t.parse(headOpts, "[OPTION]... [FILE]...", 1, args)
	if code >= 0 {
		return code
	}
	for _, g := range given {
		switch g.Key {
		case "c", "n":
			p.bytes = g.Key == "c"
			value, minus := strings.CutPrefix(g.Value, "-")
			p.butLast = minus
			n, ok := size(strings.TrimPrefix(value, "+"))
			if !ok {
				return t.fail(1, "invalid number of %s: %s", p.unit(), cmd.Quote(g.Value))
			}
			if n == math.MaxInt64 {
				return t.fail(1, "invalid number of %s: %s: Value too large for defined data type", p.unit(), cmd.Quote(g.Value))
			}
			p.n = n
		case "q", "silent":
			p.quiet, p.headers = true, false
		case "v":
			p.headers, p.quiet = true, false
		case "z":
			p.sep = 0
		}
	}
	if len(names) > 1 && !p.quiet {
		p.headers = true
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	failed := 0
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			failed = t.fail(1, "cannot open '%s' for reading: %s", name, cmd.Reason(err))
			continue
		}
		p.header(t, name)
		if p.butLast {
			err = p.allBut(t, r)
		} else {
			err = p.first(t, r)
		}
		r.Close()
		if err != nil {
			failed = t.fail(1, "error reading '%s': %s", name, cmd.Reason(err))
		}
	}
	return failed
}

func (p *portion) unit() string {
	if p.bytes {
		return "bytes"
	}
	return "lines"
}

func (p *portion) header(t *call, name string) {
	if !p.headers {
		return
	}
	if name == "-" {
		name = "standard input"
	}
	if p.printed {
		t.out.WriteByte('\n')
	}
	p.printed = true
	fmt.Fprintf(t.out, "==> %s <==\n", name)
}

func (p *portion) first(t *call, r *source) error {
	left := p.n
	if left == 0 {
		return nil
	}
	if p.bytes {
		return ignoreStop(blocks(io.LimitReader(r, left), func(b []byte) error {
			t.out.Write(b)
			return nil
		}))
	}
	return ignoreStop(blocks(r, func(b []byte) error {
		end := 0
		for left > 0 {
			i := bytes.IndexByte(b[end:], p.sep)
			if i < 0 {
				end = len(b)
				break
			}
			end += i + 1
			left--
		}
		t.out.Write(b[:end])
		if left > 0 {
			return nil
		}
		if end < len(b) {
			// The next reader of the same file goes on behind the last line: { head -1; sort; } < file.
			r.seek(int64(end-len(b)), io.SeekCurrent)
		}
		return errStop
	}))
}

var errStop = fmt.Errorf("enough")

func ignoreStop(err error) error {
	if err == errStop {
		return nil
	}
	return err
}

// allBut prints all but the last p.n, holding those back.
func (p *portion) allBut(t *call, r *source) error {
	h := held{bytes: p.bytes, sep: p.sep}
	print := func(b []byte) { t.out.Write(b) }
	err := blocks(r, func(b []byte) error {
		h.add(b)
		h.take(h.total-p.n, print)
		return nil
	})
	if h.open() {
		h.take(h.total+1-p.n, print)
	}
	return err
}

// held is the end of a stream, counted in bytes or in line ends.
type held struct {
	bytes bool
	sep   byte
	total int64
	list  []chunk
}

type chunk struct {
	data []byte
	n    int64 // bytes or line ends in it
}

func (h *held) count(b []byte) int64 {
	if h.bytes {
		return int64(len(b))
	}
	return int64(bytes.Count(b, []byte{h.sep}))
}

func (h *held) add(b []byte) {
	n := h.count(b)
	h.total += n
	if last := len(h.list) - 1; last >= 0 && cap(h.list[last].data)-len(h.list[last].data) >= len(b) {
		h.list[last].data = append(h.list[last].data, b...)
		h.list[last].n += n
		return
	}
	h.list = append(h.list, chunk{append(make([]byte, 0, max(len(b), 16<<10)), b...), n})
}

// take removes the first n bytes, or all up to the nth line end, and gives them to f.
func (h *held) take(n int64, f func([]byte)) {
	drop := 0
	for n > 0 && drop < len(h.list) {
		c := &h.list[drop]
		if c.n < n {
			f(c.data)
			n -= c.n
			h.total -= c.n
			drop++
			continue
		}
		end := 0
		if h.bytes {
			end = int(n)
		} else {
			for range n {
				end += bytes.IndexByte(c.data[end:], h.sep) + 1
			}
		}
		f(c.data[:end])
		c.data = c.data[end:]
		c.n -= n
		h.total -= n
		n = 0
	}
	h.list = append(h.list[:0], h.list[drop:]...)
}

// open tells that the last line has no end yet; it counts as a line.
func (h *held) open() bool {
	if h.bytes || len(h.list) == 0 {
		return false
	}
	last := h.list[len(h.list)-1].data
	return len(last) > 0 && last[len(last)-1] != h.sep
}

var tailOpts = cmd.Opts{
	{Short: 'c', Long: "bytes", Arg: cmd.Value}, {Short: 'f', Long: "follow", Arg: cmd.Flag}, {Short: 'F'},
	{Short: 'n', Long: "lines", Arg: cmd.Value}, {Long: "max-unchanged-stats", Arg: cmd.Value}, {Short: 'q', Long: "quiet"},
	{Long: "silent"}, {Long: "retry"}, {Short: 's', Long: "sleep-interval", Arg: cmd.Value}, {Short: 'v', Long: "verbose"},
	{Short: 'z', Long: "zero-terminated"}, {Long: "follow-how", Arg: cmd.Value},
}

// follower is what tail -f is to do.
type follower struct {
	on     bool
	byName bool // what has the name now, not what had it at the start
	retry  bool
	every  time.Duration
}

func tail(t *call) int {
	p := portion{n: 10, sep: '\n'}
	f := follower{every: time.Second}
	args := t.Args
	if len(args) > 0 {
		a := args[0]
		old := strings.HasPrefix(a, "+") && len(a) > 1 && isDigit(a[1]) && len(args) <= 2
		if old {
			a = "-" + a[1:]
		}
		follow := strings.HasSuffix(a, "f") && len(a) > 2
		if p.obsolete(strings.TrimSuffix(a, "f")) || follow && p.obsolete(a[:len(a)-1]) {
			p.from, f.on = old, follow
			args = args[1:]
		}
	}
	// --follow may have a value, -f may not: an option of the table cannot say that.
	for i, a := range args {
		if a == "--" {
			break
		}
		if how, ok := strings.CutPrefix(a, "--follow="); ok {
			args = append(append(append([]string{}, args[:i]...), "--follow-how="+how), args[i+1:]...)
		}
	}
	given, names, code := t.parse(tailOpts, "[OPTION]... [FILE]...", 1, args)
	if code >= 0 {
		return code
	}
	for _, g := range given {
		switch g.Key {
		case "c", "n":
			p.bytes = g.Key == "c"
			value := g.Value
			p.from = strings.HasPrefix(value, "+")
			if p.from || strings.HasPrefix(value, "-") {
				value = value[1:]
			}
			n, ok := size(value)
			if !ok {
				return t.fail(1, "invalid number of %s: %s", p.unit(), cmd.Quote(g.Value))
			}
			p.n = n
		case "f":
			f.on = true
		case "follow-how":
			switch f.on = true; {
			case g.Value != "" && strings.HasPrefix("name", g.Value):
				f.byName = true
			case g.Value != "" && strings.HasPrefix("descriptor", g.Value):
				f.byName = false
			default:
				return t.badWord(g.Value, "--follow", "descriptor", "name")
			}
		case "F":
			f.on, f.byName, f.retry = true, true, true
		case "retry":
			f.retry = true
		case "max-unchanged-stats": // every look at a name is a fresh one
			if _, err := strconv.ParseUint(g.Value, 10, 64); err != nil {
				return t.fail(1, "invalid maximum number of unchanged stats between opens: %s", cmd.Quote(g.Value))
			}
		case "q", "silent":
			p.quiet, p.headers = true, false
		case "s":
			s, err := strconv.ParseFloat(g.Value, 64)
			if err != nil || !(s >= 0) {
				return t.fail(1, "invalid number of seconds: %s", cmd.Quote(g.Value))
			}
			// Time shorter than that would keep the one thread of the guest busy.
			f.every = time.Duration(min(max(s, 0.01), 1e6) * float64(time.Second))
		case "v":
			p.headers, p.quiet = true, false
		case "z":
			p.sep = 0
		}
	}
	if len(names) > 1 && !p.quiet {
		p.headers = true
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	failed := 0
	var following []*followed
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			failed = t.fail(1, "cannot open '%s' for reading: %s", name, cmd.Reason(err))
			if f.on && f.retry {
				following = append(following, &followed{name: name})
			}
			continue
		}
		p.header(t, name)
		if p.from {
			err = p.onward(t, r)
		} else {
			err = p.last(t, r)
		}
		if err != nil {
			failed = t.fail(1, "error reading '%s': %s", name, cmd.Reason(err))
		}
		if f.on && err == nil {
			if _, ok := r.seek(0, io.SeekCurrent); ok {
				following = append(following, &followed{name, r})
				continue
			}
		}
		r.Close() // a pipe has come to its end: nothing more can follow
	}
	if f.on && len(following) > 0 {
		f.run(t, &p, following, names)
	}
	return failed
}

// onward prints from the nth on.
func (p *portion) onward(t *call, r *source) error {
	skip := max(p.n-1, 0)
	if p.bytes {
		if _, ok := r.seek(skip, io.SeekCurrent); ok {
			skip = 0
		}
	}
	return blocks(r, func(b []byte) error {
		for skip > 0 && len(b) > 0 {
			if p.bytes {
				k := min(skip, int64(len(b)))
				b, skip = b[k:], skip-k
				continue
			}
			i := bytes.IndexByte(b, p.sep)
			if i < 0 {
				return nil
			}
			b, skip = b[i+1:], skip-1
		}
		t.out.Write(b)
		return nil
	})
}

// last prints the last n.
func (p *portion) last(t *call, r *source) error {
	if at, ok := r.seek(0, io.SeekCurrent); ok {
		if done, err := p.lastOfFile(t, r, at); done {
			return err
		}
	}
	h := held{bytes: p.bytes, sep: p.sep}
	forget := func([]byte) {}
	err := blocks(r, func(b []byte) error {
		if p.n > 0 {
			h.add(b)
			h.take(h.total-p.n, forget)
		}
		return nil
	})
	if h.open() {
		h.take(h.total+1-p.n, forget)
	}
	for _, c := range h.list {
		t.out.Write(c.data)
	}
	return err
}

// lastOfFile finds the start of the last n from the end of a file of which the part before at is not to be seen.
func (p *portion) lastOfFile(t *call, r *source, at int64) (done bool, err error) {
	end, ok := r.seek(0, io.SeekEnd)
	if !ok {
		return false, nil
	}
	start := end
	if p.bytes {
		start = max(at, end-p.n)
	} else if p.n > 0 {
		start = max(at, 0)
		buf := make([]byte, 32<<10)
		left := p.n
		for pos := end; pos > at; {
			from := max(at, pos-int64(len(buf)))
			if _, ok := r.seek(from, io.SeekStart); !ok {
				return true, os.ErrInvalid
			}
			b := buf[:pos-from]
			if _, err := io.ReadFull(r, b); err != nil {
				return true, err
			}
			stop := len(b)
			if pos == end && b[stop-1] == p.sep {
				stop-- // the end of the last line starts no line
			}
			for left > 0 {
				i := bytes.LastIndexByte(b[:stop], p.sep)
				if i < 0 {
					break
				}
				stop = i
				if left--; left == 0 {
					start = from + int64(i) + 1
				}
			}
			if left == 0 {
				break
			}
			pos = from
		}
	}
	if _, ok := r.seek(start, io.SeekStart); !ok {
		return true, os.ErrInvalid
	}
	return true, blocks(r, func(b []byte) error { t.out.Write(b); return nil })
}

type followed struct {
	name string
	r    *source // nil while there is no such file
}

// run prints what is added to files until the command is ended, or until there is nothing left to follow.
func (f follower) run(t *call, p *portion, files []*followed, names []string) {
	shown := names[len(names)-1]
	buf := make([]byte, 64<<10)
	for {
		t.flush()
		idle := true
		for _, file := range files {
			if f.byName {
				f.reopen(t, file)
			}
			if file.r == nil {
				continue
			}
			at, _ := file.r.seek(0, io.SeekCurrent)
			if info, err := file.r.file.Stat(); err == nil && info.Size() < at {
				t.Errorf("%s: file truncated", file.name)
				file.r.seek(0, io.SeekStart)
			}
			n, _ := file.r.Read(buf)
			if n == 0 {
				continue
			}
			idle = false
			if shown != file.name {
				p.header(t, file.name)
				shown = file.name
			}
			t.out.Write(buf[:n])
		}
		if idle {
			t.sleep(f.every)
		}
	}
}

// reopen looks whether another file has the name now.
func (f follower) reopen(t *call, file *followed) {
	r, err := t.open(file.name)
	if err != nil {
		if file.r != nil && f.retry {
			t.Errorf("%s has become inaccessible: %s", cmd.Quote(file.name), cmd.Reason(err))
			file.r.Close()
			file.r = nil
		}
		return
	}
	if file.r != nil {
		is, err1 := r.file.Stat()
		was, err2 := file.r.file.Stat()
		if err1 != nil || err2 != nil || os.SameFile(is, was) {
			r.Close()
			return
		}
		t.Errorf("%s has been replaced;  following new file", cmd.Quote(file.name))
		file.r.Close()
	} else {
		t.Errorf("%s has appeared;  following new file", cmd.Quote(file.name))
	}
	file.r = r
}
