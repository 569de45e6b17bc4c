package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/worker"
	"github.com/exthost/exthost/policy"
	"github.com/exthost/exthost/wasiabi"
)

// Where the base puts things in the guest.
const (
	guestSkill     = "/skill"
	guestHome      = "/home/guest"
	guestTmp       = "/tmp"
	guestWorkspace = "/workspace"
	guestPath      = "/usr/local/bin"
)

const (
	maxEntries = 10_000 // files and folders that a run may make
	// minFree is what stays free on a file system that a guest writes to.
	minFree = 256 << 20
	// tableElementBytes is what an element of a table costs the host.
	tableElementBytes = 16
	// aboveNames is how many folders above a root a protected name of several components can begin.
	aboveNames       = 3
	maxTableElements = 100_000
)

// binding is all that a worker is bound to: the live capabilities that the policy's answers were turned into.
type binding struct {
	key    string // two bindings with the same key give a guest the same
	mounts []worker.Mount
	limits policy.Limits
	names  []string // protected names
	walls  []string
	table  uint32
	lowers map[int]*os.File // open folders under overlays, by index in mounts
}

// Close closes the roots that the binding opened.
func (b *binding) Close() {
	for i := range b.mounts {
		if b.mounts[i].Root != nil {
			b.mounts[i].Root.Close()
		}
	}
}

// mint opens what the policy grants. The runtime's library is at rt, if rt.Root is not "".
func (e *Extension) mint(job Job, r guests.Runtime, rt guests.Unpacked) (b *binding, err error) {
	b = &binding{limits: e.eff.Limits(), names: policy.Protected(), walls: e.eff.Walls(), lowers: map[int]*os.File{}}
	defer func() {
		if err != nil {
			b.Close()
			b = nil
		}
	}()
	if job.Time > 0 {
		b.limits.Time = min(b.limits.Time, job.Time)
	}
	if job.Memory > 0 {
		b.limits.Memory = min(b.limits.Memory, job.Memory)
	}
	b.table = tableElements(b.limits)
	if err := e.base(b, r, rt); err != nil {
		return b, err
	}
	if err := e.roots(b); err != nil {
		return b, err
	}
	return b, e.sign(b)
}

// tableElements is how many elements the tables of a guest may have.
func tableElements(l policy.Limits) uint32 {
	return uint32(min(maxTableElements, l.Memory/tableElementBytes))
}

// base adds what every guest has.
func (e *Extension) base(b *binding, r guests.Runtime, rt guests.Unpacked) error {
	skill, err := os.Open(e.snap.Dir)
	if err != nil {
		return err
	}
	b.mounts = append(b.mounts, worker.Mount{Root: skill, Mount: wasiabi.Mount{Guest: guestSkill, Access: wasiabi.ReadOnly, Immutable: true}},
		worker.Mount{Sub: "home", Mount: wasiabi.Mount{Guest: guestHome, Access: wasiabi.ReadWrite, Scratch: true}},
		worker.Mount{Sub: "tmp", Mount: wasiabi.Mount{Guest: guestTmp, Access: wasiabi.ReadWrite, Scratch: true}})
	if rt.Root == "" || r.Mount == "" {
		return nil
	}
	lib, err := os.Open(rt.Root)
	if err != nil {
		return err
	}
	b.mounts = append(b.mounts, worker.Mount{Root: lib, Mount: wasiabi.Mount{Guest: r.Mount, Access: wasiabi.ReadOnly, Immutable: true}})
	return nil
}

var accesses = map[policy.Access]wasiabi.Access{
	policy.NoAccess: 0, policy.ReadOnly: wasiabi.ReadOnly, policy.Overlay: wasiabi.Overlay, policy.ReadWrite: wasiabi.ReadWrite,
}

// roots adds what the policy grants, with host paths resolved now and used by descriptor from then on.
func (e *Extension) roots(b *binding) error {
	vars := policy.Vars{Workspace: e.bind.Workspace, Skill: e.snap.Dir, Data: e.bind.Data, Home: e.bind.Home, Denied: e.h.denied}
	roots, err := e.eff.Files(vars)
	if err != nil {
		return err
	}
	for _, r := range roots {
		m, err := e.root(r, vars)
		if r.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		// A grant for a folder of the base stands in its place.
		b.mounts = slices.DeleteFunc(b.mounts, func(have worker.Mount) bool {
			if have.Guest != m.Guest {
				return false
			}
			if have.Root != nil {
				have.Root.Close()
			}
			return true
		})
		b.mounts = append(b.mounts, m)
	}
	for i, m := range b.mounts {
		if m.Access == wasiabi.Overlay {
			b.lowers[i] = m.Root
		}
	}
	return nil
}

// root opens one root of the policy.
func (e *Extension) root(r policy.Root, vars policy.Vars) (m worker.Mount, err error) {
	refuse := func(format string, args ...any) error {
		return &RefusedError{Extension: e.name, Digest: e.snap.Digest, Reason: fmt.Sprintf("files %s: ", r.Guest) + fmt.Sprintf(format, args...), Rule: r.Rule.String()}
	}
	real, err := realPath(r.Host)
	if err != nil {
		return m, fmt.Errorf("files %s: %w", r.Guest, err)
	}
	if vars.Denies(real) || e.h.deniesTemp(real) {
		return m, refuse("%q lies in a folder that no policy can open", real)
	}
	if r.Within != "" && !within(r.Within, real) {
		return m, refuse("%q leads out of %q by a link: name the folder itself if that is meant", r.Host, r.Within)
	}
	names := strings.Split(strings.Trim(filepath.ToSlash(real), "/"), "/")
	if r.Access != policy.ReadOnly && !within(e.bind.Data, real) && policy.IsProtected(names...) {
		return m, refuse("%q is protected and can only be read", real)
	}
	if within(e.snap.Dir, real) && r.Access == policy.ReadWrite {
		return m, refuse("an extension's own files cannot be written")
	}
	if r.Create {
		// Missing folders are made where the resolved path says, so nothing is made inside what is denied.
		if _, err := os.Lstat(real); errors.Is(err, fs.ErrNotExist) { // one file may be there instead
			if err := os.MkdirAll(real, 0o755); err != nil {
				return m, fmt.Errorf("files %s: %w", r.Guest, err)
			}
		}
	} else if r.Host == e.bind.Data || within(e.bind.Data, real) && e.h.cfg.Home != "" && within(e.h.cfg.Home, real) {
		// The kept folder of an extension in exthost's home is exthost's to make.
		if err := os.MkdirAll(real, 0o700); err != nil {
			return m, fmt.Errorf("files %s: %w", r.Guest, err)
		}
	}
	f, err := openPath(real)
	if errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if r.Access == policy.ReadWrite && !r.Optional {
			hint = " (\"create: true\" makes it)"
		}
		return m, fmt.Errorf("%s: files %s: %q: %w%s", r.Rule, r.Guest, real, fs.ErrNotExist, hint)
	}
	if err != nil {
		return m, fmt.Errorf("%s: files %s: %w", r.Rule, r.Guest, err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return m, err
	}
	if !fi.IsDir() && !fi.Mode().IsRegular() {
		return m, refuse("%q is neither a folder nor a file", real)
	}
	if proc, err := onProc(f); err != nil {
		return m, err
	} else if proc {
		return m, refuse("%q shows the processes of this machine, and a worker to its own guest", real)
	}
	if !fi.IsDir() && r.Access == policy.Overlay {
		return m, refuse("%q is one file: an overlay needs a folder", real)
	}
	m = worker.Mount{Root: f, Mount: wasiabi.Mount{
		Guest: r.Guest, File: !fi.IsDir(), Access: accesses[r.Access], Hide: slices.Clone(r.Hide), Protected: slices.Clone(r.Protected),
		Above: names[max(0, len(names)-aboveNames):], Immutable: within(e.snap.Dir, real),
	}}
	for _, n := range r.Narrow {
		m.Narrow = append(m.Narrow, wasiabi.Narrow{Guest: n.Guest, Access: accesses[n.Access]})
	}
	hide, inside, err := e.hideDenied(real, fi)
	if err != nil {
		return m, err
	}
	if inside {
		return m, refuse("%q is a folder that no policy can open, by another name", real)
	}
	m.Hide = append(m.Hide, hide...)
	return m, nil
}

// hideDenied compares by file identity, so that a bind mount or another spelling of a denied folder is recognised.
// hide are the patterns for the denied folders below the root; inside says that the root lies in one.
func (e *Extension) hideDenied(root string, fi fs.FileInfo) (hide []string, inside bool, err error) {
	own := []string{e.snap.Dir}
	if e.bind.Data != "" {
		own = append(own, e.bind.Data)
	}
	for _, d := range e.h.denied {
		if rel, ok := below(fi, d); ok && rel != "" {
			hide = append(hide, rel)
		} else if ok {
			return nil, true, nil
		}
		dfi, err := os.Stat(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if rel, ok := below(dfi, root); ok && rel != "" && !slices.ContainsFunc(own, func(o string) bool { return within(o, root) }) {
			return nil, true, nil
		}
	}
	// Scratch folders of other runs, of any host of this user.
	if temp, err := realPath(os.TempDir()); err == nil {
		if rel, ok := below(fi, temp); ok {
			hide = append(hide, path.Join(rel, scratch.Prefix+"*"))
		}
	}
	return hide, false, nil
}

// below walks up from path and says whether dir is on the way; rel is what is below dir then.
func below(dir fs.FileInfo, path string) (rel string, ok bool) {
	for p := path; ; p = filepath.Dir(p) {
		if fi, err := os.Stat(p); err == nil && os.SameFile(fi, dir) {
			return filepath.ToSlash(rel), true
		}
		if filepath.Dir(p) == p {
			return "", false
		}
		rel = filepath.Join(filepath.Base(p), rel)
	}
}

// deniesTemp says whether p lies in a scratch folder of some run.
func (h *Host) deniesTemp(p string) bool {
	temp, err := realPath(os.TempDir())
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(temp, p)
	return err == nil && strings.HasPrefix(rel, scratch.Prefix) && !(h.ownCache != nil && within(h.cacheDir, p))
}

// within says whether the clean, absolute path p is dir or lies below it.
func within(dir, p string) bool {
	if dir == "" {
		return false
	}
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// sign computes the binding's key: a worker of one binding is never used for another.
func (e *Extension) sign(b *binding) error {
	type root struct {
		Mount wasiabi.Mount
		Sub   string
		ID    string // identity of the host folder, not its name
	}
	var roots []root
	for _, m := range b.mounts {
		r := root{Mount: m.Mount, Sub: m.Sub}
		if m.Root != nil {
			id, err := identity(m.Root)
			if err != nil {
				return err
			}
			r.ID = id
		}
		roots = append(roots, r)
	}
	text, err := json.Marshal(struct {
		Digest string
		Engine string
		Roots  []root
		Limits worker.Limits
		Walls  []string
		Weak   bool
	}{e.snap.Digest, e.h.cfg.Engine, roots, b.workerLimits(), b.walls, e.h.cfg.WeakWalls})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	b.key = hex.EncodeToString(sum[:])
	return nil
}

// workerLimits are the limits of a worker's life; those of a run are the host's own to enforce.
func (b *binding) workerLimits() worker.Limits {
	return worker.Limits{
		Memory: b.limits.Memory, TableElements: b.table, OpenFiles: b.limits.OpenFiles, Disk: b.limits.Disk,
		Entries: maxEntries, MinFree: minFree, CPU: workerCPU(b.limits.Time),
	}
}

// workerCPU is the processor time of a worker's whole life, the limit that holds even if the host is stopped: twice the
// time of a run, since an engine has threads of its own, and something for the start.
func workerCPU(run time.Duration) time.Duration { return 2*run + 10*time.Second }

// workingDir is where the guest starts.
func (b *binding) workingDir(job Job) string {
	if job.Dir != "" {
		return path.Clean(job.Dir)
	}
	for _, m := range b.mounts {
		if m.Guest == guestWorkspace && !m.File {
			return guestWorkspace
		}
	}
	return guestSkill
}

// environ is the guest's environment: what the policy gives, and what the runtime and the base set unless the policy has
// it.
func (e *Extension) environ(job Job, r guests.Runtime, dir string) []string {
	host := job.Env
	if host == nil {
		host = os.Environ()
	}
	env := slices.DeleteFunc(e.eff.Environ(host), func(s string) bool { return strings.HasPrefix(s, "PWD=") })
	base := []string{"HOME=" + guestHome, "TMPDIR=" + guestTmp, "PATH=" + guestPath, "USER=guest", "PWD=" + dir}
	for _, s := range append(slices.Clone(r.Env), base...) {
		name, _, _ := strings.Cut(s, "=")
		if !slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			env = append(env, s)
		}
	}
	slices.Sort(env)
	return env
}
