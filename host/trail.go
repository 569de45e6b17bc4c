package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
	"github.com/exthost/exthost/wasiabi"
)

const (
	maxDenials = 256
	maxChanges = 2000
	maxText    = 512
	maxTouched = 4000
	maxTarget  = 200
	maxTargets = 8

	maxScriptNotes = 10
)

// noNetwork says why no grant would help.
const noNetwork = "this version has no network"

const (
	observed = "observed" // the host saw it itself
	reported = "reported" // a worker says so
)

// trail collects what a run did and was refused. What comes from a worker is a claim: it is parsed, bounded, decided
// again from the host's own copy of the policy, and marked as reported. One goroutine at a time uses it.
type trail struct {
	e       *Extension
	run     string
	quiet   []string // folders that the runtime looks into by itself
	order   []string // capabilities, as they were first refused
	denied  map[string]*Denial
	over    int
	met     []string // limits that the guest met
	notes   []string // what the script wrote to /dev/exthost/log
	touched map[string]string
	paths   []string
	bad     int
}

func newTrail(e *Extension, run string) *trail {
	return &trail{e: e, run: run, denied: map[string]*Denial{}, touched: map[string]string{}}
}

// observed passes on an event that the host saw itself.
func (t *trail) observed(ev Event) {
	ev.Source = observed
	t.send(ev)
}

func (t *trail) send(ev Event) {
	if t.e.h.cfg.Events == nil {
		return
	}
	ev.Time, ev.Run, ev.Principal = time.Now(), t.run, t.e.principal()
	t.e.h.cfg.Events(ev)
}

// reported takes an event of the worker.
func (t *trail) reported(ev wasiabi.Event) {
	count := min(max(ev.Count, 1), 1_000_000_000)
	if ev.Op == "limit" {
		name := printable(strings.TrimPrefix(ev.Capability, "limit "))
		if ev.Denied && !slices.Contains(t.met, name) && len(t.met) < 16 {
			t.met = append(t.met, name)
		}
		t.send(Event{Op: "limit", Denied: ev.Denied, Source: reported, Detail: name})
		return
	}
	switch ev.Op {
	case "log":
		t.log(ev.Detail)
		return
	case "http", "run":
		t.asked(ev, count)
		return
	}
	c, err := parseFileCapability(ev.Capability)
	if err != nil || c.Kind != policy.Read && c.Kind != policy.Write || !word(ev.Op) {
		t.bad++
		return
	}
	name := c.String()
	detail := printable(ev.Detail)
	if ev.Denied && c.Kind == policy.Read && slices.ContainsFunc(t.quiet, func(dir string) bool { return strings.HasPrefix(c.Path, dir+"/") }) {
		return // refused all the same, but not of the script's doing
	}
	if ev.Denied {
		t.deny(c, name, ev, detail, count)
	} else {
		t.touch(c, ev.Op)
	}
	t.send(Event{Op: ev.Op, Capability: name, Denied: ev.Denied, Source: reported, Detail: detail})
}

// log takes a note of the script. It is the guest's text, and marked as such wherever it is shown.
func (t *trail) log(text string) {
	text = printable(strings.TrimSpace(text))
	if note := "the script says: " + text; text != "" && len(t.notes) < maxScriptNotes && !slices.Contains(t.notes, note) {
		t.notes = append(t.notes, note)
	}
	t.send(Event{Op: "log", Source: reported, Detail: text})
}

// asked takes an attempt at what is not the file system: a request, or a program. No policy can grant either in this
// version. A target that no policy could name at all is still an attempt and shown as it is.
func (t *trail) asked(ev wasiabi.Event, count int) {
	kind := map[string]policy.Kind{"http": policy.HTTP, "run": policy.Program}[ev.Op]
	c, err := policy.ParseCapability(ev.Capability)
	if !ev.Denied || err == nil && c.Kind != kind || err != nil && !attempt(kind, ev.Capability) {
		t.bad++
		return
	}
	name, odd := c.String(), ""
	if err != nil {
		name, odd = printable(ev.Capability), "it is not a target that a policy can name"
	}
	if d := t.refusal(name, count); d != nil {
		switch {
		case kind == policy.Program:
			d.Reason = "no such program in the sandbox"
		case odd != "":
			d.Reason = odd
		default:
			d.decided(t.e.eff.Decide(c))
			if d.Reason == "" { // allowed, which a bound policy cannot say as long as network lines are refused
				d.Reason = noNetwork
			} else {
				d.Reason += "; " + noNetwork
			}
		}
	}
	detail := ""
	if kind == policy.Program {
		detail = printable(ev.Detail[:min(len(ev.Detail), maxTarget)])
		if d := t.denied[name]; d != nil && detail != "" && len(d.Targets) < maxTargets && !slices.Contains(d.Targets, detail) {
			d.Targets = append(d.Targets, detail)
		}
	}
	t.send(Event{Op: ev.Op, Capability: name, Denied: true, Source: reported, Detail: detail})
}

// attempt says whether s looks like "METHOD URL" or "program NAME", in a spelling that no policy would have.
func attempt(kind policy.Kind, s string) bool {
	verb, rest, ok := strings.Cut(s, " ")
	if !ok || strings.TrimSpace(rest) == "" {
		return false
	}
	if kind == policy.Program {
		return verb == "program"
	}
	return strings.Contains(rest, "://") && len(verb) <= 32 && strings.Trim(verb, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// parseFileCapability reads a capability in a worker's words. A path that a guest asked for may hold "..": it is the
// clean path that was refused.
func parseFileCapability(s string) (policy.Capability, error) {
	c, err := policy.ParseCapability(s)
	if err == nil {
		return c, nil
	}
	verb, p, ok := strings.Cut(s, " ")
	if !ok || !strings.HasPrefix(p, "/") {
		return c, err
	}
	return policy.ParseCapability(verb + " " + path.Clean(p))
}

// deny counts a refusal. The reason is the host's own decision; where the policy allows the name, something about the
// object was refused, and the worker says what.
func (t *trail) deny(c policy.Capability, name string, ev wasiabi.Event, detail string, count int) {
	d := t.refusal(name, count)
	if d == nil {
		return
	}
	switch v := t.e.eff.Decide(c); {
	case !v.Allowed:
		d.decided(v)
	case detail != "":
		d.Reason = detail
	default:
		d.Reason = "refused for what the file is, not for its name"
		if word(ev.Errno) {
			d.Reason += " (" + ev.Errno + ")"
		}
	}
}

// refusal counts a refusal and returns the new entry of the report for it. It is nil when there is one, or no room.
func (t *trail) refusal(name string, count int) *Denial {
	if d := t.denied[name]; d != nil {
		d.Count += count
		return nil
	}
	if len(t.denied) >= maxDenials {
		t.over += count
		return nil
	}
	d := &Denial{Capability: name, Count: count, Source: reported}
	t.denied[name] = d
	t.order = append(t.order, name)
	return d
}

// decided writes a refusal of the policy into d.
func (d *Denial) decided(v policy.Decision) {
	if v.Allowed {
		return
	}
	d.Reason, d.Nearest = v.Reason, v.Nearest
	if !v.Rule.IsZero() {
		d.Rule = v.Rule.String()
	}
}

// touch notes an effect on a file for the report's changes.
func (t *trail) touch(c policy.Capability, op string) {
	if c.Kind != policy.Write {
		return
	}
	kind := "modified"
	switch op {
	case "create", "link", "symlink", "mkdir":
		kind = "created"
	case "remove", "unlink", "rmdir":
		kind = "removed"
	}
	had, ok := t.touched[c.Path]
	switch {
	case !ok && len(t.paths) >= maxTouched:
		t.over++
		return
	case !ok:
		t.paths = append(t.paths, c.Path)
		t.touched[c.Path] = kind
	case had == "created" && kind == "modified": // it stays created
	case had == "created" && kind == "removed":
		t.touched[c.Path] = "" // came and went
	case had == "removed" && kind == "created":
		t.touched[c.Path] = "modified"
	default:
		t.touched[c.Path] = kind
	}
}

func (t *trail) denials() []Denial {
	out := make([]Denial, 0, len(t.order))
	for _, name := range t.order {
		out = append(out, *t.denied[name])
	}
	return out
}

func (t *trail) limits() []string { return t.met }

// word says whether s looks like an operation or an errno.
func word(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for _, c := range s {
		if c != '-' && c != '_' && (c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)) {
			return false
		}
	}
	return true
}

// printable bounds a text of a guest or worker and escapes what a terminal could take for a command.
func printable(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.Map(func(c rune) rune {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}

// changes lists what the run left below granted roots. Overlays are looked at by the host, write roots are as the worker
// reports them. folder is the run's folder in the scratch folder of its worker.
func (r *run) changes(b *binding, folder string, removed []string) []Change {
	var out []Change
	full := false
	add := func(c Change) {
		if len(out) >= maxChanges {
			full = true
			return
		}
		out = append(out, c)
	}
	for i, m := range b.mounts {
		if m.Access != wasiabi.Overlay {
			continue
		}
		if err := overlayChanges(m, filepath.Join(folder, fmt.Sprintf("upper-%d", i)), add); err != nil {
			full = true
		}
	}
	for _, p := range removed {
		c, err := policy.ParseCapability("write " + p)
		if err != nil || mountOf(b, c.Path).Access != wasiabi.Overlay {
			r.trail.bad++
			continue
		}
		add(Change{Path: c.Path, Op: "removed", Layer: "overlay", Source: reported})
	}
	for _, p := range r.trail.paths {
		op := r.trail.touched[p]
		if op != "" && mountOf(b, p).Access == wasiabi.ReadWrite && !mountOf(b, p).Scratch {
			add(Change{Path: p, Op: op, Layer: "write", Source: reported})
		}
	}
	if full {
		r.note("not all changes are listed")
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b Change) bool { return a.Path == b.Path })
}

// overlayChanges looks at the upper folder of an overlay. It was made by a worker, so nothing in it is followed.
func overlayChanges(m worker.Mount, upper string, add func(Change)) error {
	lower, err := os.OpenRoot(fdPath(m.Root))
	if err != nil {
		return err
	}
	defer lower.Close()
	return scratch.Walk(upper, func(name string, fi fs.FileInfo) error {
		guest := path.Join(m.Guest, name)
		if _, err := policy.ParseCapability("write " + guest); err != nil {
			return nil // a name that no guest can use
		}
		was, err := lower.Lstat(filepath.FromSlash(name))
		c := Change{Path: guest, Op: "modified", Layer: "overlay", Source: observed}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Op = "created"
		case err != nil:
			return nil
		case fi.IsDir() && was.IsDir():
			return nil // only the way to something
		}
		if fi.Mode().IsRegular() {
			c.Size = fi.Size()
		}
		add(c)
		return nil
	})
}

// mountOf is the mount that covers a guest path.
func mountOf(b *binding, p string) wasiabi.Mount {
	best := wasiabi.Mount{}
	for _, m := range b.mounts {
		if (m.Guest == p || m.Guest == "/" || strings.HasPrefix(p, m.Guest+"/")) && len(m.Guest) > len(best.Guest) {
			best = m.Mount
		}
	}
	return best
}
