package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tree is a guest's tree under test, with the events that it told.
type tree struct {
	*testing.T
	fs     *FS
	root   *Dir
	events []Event
}

func newTree(t testing.TB, cfg Config) *tree {
	t.Helper()
	tr := &tree{}
	tr.T, _ = t.(*testing.T)
	if cfg.Events == nil {
		cfg.Events = func(e Event) { tr.events = append(tr.events, e) }
	}
	if cfg.Disk == 0 {
		cfg.Disk = 1 << 30
	}
	if cfg.Entries == 0 {
		cfg.Entries = 100_000
	}
	if cfg.Done == nil {
		cfg.Done = func() bool { return false }
	}
	if cfg.Protected == nil {
		cfg.Protected = []string{".git", ".mcp.json", ".github/workflows", "CLAUDE.md", "*.pth"}
	}
	fs, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tr.fs, tr.root = fs, fs.Root()
	t.Cleanup(func() {
		tr.root.Close()
		fs.Close()
	})
	return tr
}

// refused tells whether an event says that a capability was refused with e.
func (t *tree) refused(capability string, e Errno) bool {
	return slices.ContainsFunc(t.events, func(ev Event) bool {
		return ev.Denied && ev.Capability == capability && ev.Errno == e
	})
}

func (t *tree) open(p string, o OpenOptions) Errno {
	o.Follow = true
	got, e := t.root.Open(p, o)
	switch {
	case got.Dir != nil:
		got.Dir.Close()
	case got.File != nil:
		got.File.Close()
	}
	return e
}

func (t *tree) read(p string) (string, Errno) {
	got, e := t.root.Open(p, OpenOptions{Follow: true, Read: true})
	if e != Success {
		return "", e
	}
	if got.File == nil {
		if got.Dir != nil {
			got.Dir.Close()
		}
		return "", EISDIR
	}
	defer got.File.Close()
	buf := make([]byte, 1<<16)
	n, e := got.File.ReadAt(buf, 0)
	return string(buf[:n]), e
}

func (t *tree) write(p, text string) Errno {
	got, e := t.root.Open(p, OpenOptions{Follow: true, Write: true, Create: true, Trunc: true})
	if e != Success {
		return e
	}
	if got.File == nil {
		return EISDIR
	}
	defer got.File.Close()
	_, e = got.File.WriteAt([]byte(text), 0)
	return e
}

func (t *tree) names(p string) string {
	got, e := t.root.Open(p, OpenOptions{Follow: true, Read: true, Directory: true})
	if e != Success {
		return e.Name()
	}
	defer got.Dir.Close()
	list, e := got.Dir.Entries(true)
	if e != Success {
		return e.Name()
	}
	var out []string
	for _, l := range list[2:] {
		out = append(out, l.Name)
	}
	return strings.Join(out, " ")
}

func (t *tree) want(what string, got, want Errno) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// files makes files ("a/b": "text"), folders ("d/": "") and links ("l": "-> target") below a new folder.
func files(t testing.TB, list map[string]string) string {
	t.Helper()
	base := t.TempDir()
	for name, text := range list {
		p := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(to, p)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func rw(dir string) Config {
	return Config{Mounts: []Mount{{Guest: "/w", Dir: dir, Access: ReadWrite}}}
}

func ro(dir string) Config {
	return Config{Mounts: []Mount{{Guest: "/w", Dir: dir, Access: ReadOnly}}}
}

func host(t testing.TB, p string) string {
	t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

func TestGuestCannotMakeALinkThatLeavesItsMount(t *testing.T) {
	base := files(t, map[string]string{"secret": "s", "in/d/x": "x"})
	tr := newTree(t, rw(filepath.Join(base, "in")))
	for target, at := range map[string]string{
		"../secret": "w/l", "/etc/passwd": "w/l", "../..": "w/d/l", "d/../../secret": "w/l", "d/../x": "w/l",
		`\\host\share`: "w/l", "C:/x": "w/l",
	} {
		tr.want("symlink "+target, tr.root.Symlink(target, at), ENOTCAPABLE)
	}
	tr.open("w/../../etc/shadow", OpenOptions{Read: true})
	if !tr.refused("read /etc/shadow", ENOTCAPABLE) {
		t.Errorf("no event of a path that climbs in %v", tr.events)
	}
	if !tr.refused("write /w/l", ENOTCAPABLE) {
		t.Errorf("no event of the refusal in %v", tr.events)
	}
	tr.want("a link that stays", tr.root.Symlink("../d/x", "w/d/l"), Success)
	if got, e := tr.read("w/d/l"); got != "x" || e != Success {
		t.Errorf("through the link: %q %v", got, e)
	}
	if got := tr.names("w"); got != "d" {
		t.Errorf("the mount now holds %q, want only d", got)
	}
}

func TestLinksOfTheHostAreFollowedOnlyInsideTheMount(t *testing.T) {
	base := files(t, map[string]string{
		"secret": "s", "in/out": "-> ../secret", "in/abs": "-> " + os.TempDir(), "in/dirout": "-> ..", "in/proc": "-> /proc/self/root",
		"in/ok": "-> d/f", "in/d/f": "f", "in/d/up": "-> ../ok", "in/loop": "-> loop", "in/back": "-> d/../../in/d/f",
	})
	for _, cfg := range []Config{rw(filepath.Join(base, "in")), ro(filepath.Join(base, "in"))} {
		tr := newTree(t, cfg)
		for _, p := range []string{"out", "abs", "dirout", "proc", "back"} {
			for _, form := range []string{"w/" + p, "w/" + p + "/", "w/" + p + "/.", "w/" + p + "/x", "w/./" + p, "w/d/../" + p} {
				e := tr.open(form, OpenOptions{Read: true})
				tr.want("open "+form, e, ENOTCAPABLE)
				_, e = tr.root.StatAt(form, true)
				tr.want("stat "+form, e, ENOTCAPABLE)
			}
			text, e := tr.root.Readlink("w/" + p)
			if text != "" || e != ENOTCAPABLE {
				t.Errorf("readlink %s: %q %v, want nothing", p, text, e)
			}
		}
		if got, e := tr.read("w/d/up"); got != "f" || e != Success {
			t.Errorf("a chain inside: %q %v", got, e)
		}
		tr.want("a loop", tr.open("w/loop", OpenOptions{Read: true}), ELOOP)
		if cfg.Mounts[0].Access == ReadWrite {
			tr.want("create through", tr.write("w/dirout/planted", "x"), ENOTCAPABLE)
		}
	}
	if _, err := os.Stat(filepath.Join(base, "planted")); err == nil {
		t.Error("a file was planted outside the mount")
	}
}

func TestPathsNeverClimbAboveTheirFolder(t *testing.T) {
	base := files(t, map[string]string{"a/b/f": "f"})
	tr := newTree(t, rw(base))
	for _, p := range []string{"..", "../", "../w", "w/../..", "./../", "w/a/b/../../../../x", "w/a/../../../w"} {
		tr.want(p, tr.open(p, OpenOptions{Read: true}), ENOTCAPABLE)
	}
	got, e := tr.root.Open("w/a", OpenOptions{Read: true, Directory: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.Dir.Close()
	for _, p := range []string{"..", "../", "b/../..", "./../a", "b/../../a/b/f", "/w/a/b/f", "/"} {
		_, e := got.Dir.Open(p, OpenOptions{Read: true})
		tr.want("below a: "+p, e, ENOTCAPABLE)
	}
	f, e := got.Dir.Open("b/../b/./f", OpenOptions{Read: true})
	tr.want("below a", e, Success)
	if f.File != nil {
		f.File.Close()
	}
}

func TestReadRootKeepsItsBytesAndTimes(t *testing.T) {
	base := files(t, map[string]string{"f": "bytes", "d/g": "g"})
	tr := newTree(t, ro(base))
	before, err := os.Stat(filepath.Join(base, "f"))
	if err != nil {
		t.Fatal(err)
	}
	when := int64(1e18)
	for what, e := range map[string]Errno{
		"read and truncate": tr.open("w/f", OpenOptions{Read: true, Trunc: true}),
		"write":             tr.open("w/f", OpenOptions{Write: true}),
		"append":            tr.open("w/f", OpenOptions{Write: true, Append: true}),
		"create":            tr.open("w/n", OpenOptions{Read: true, Create: true}),
		"mkdir":             tr.root.Mkdir("w/n"),
		"unlink":            tr.root.Unlink("w/f"),
		"rmdir":             tr.root.Rmdir("w/d"),
		"rename":            tr.root.Rename("w/f", tr.root, "w/d/f"),
		"link":              tr.root.Link("w/f", false, tr.root, "w/d/f"),
		"symlink":           tr.root.Symlink("f", "w/l"),
		"times":             tr.root.SetTimesAt("w/f", true, &when, &when),
		"times of a folder": tr.root.SetTimesAt("w/d", true, &when, &when),
		"times of the root": tr.root.SetTimesAt("w", true, &when, &when),
	} {
		tr.want(what, e, EROFS)
	}
	tr.want("create and exclusive, there", tr.open("w/f", OpenOptions{Create: true, Excl: true, Write: true}), EEXIST)
	after, err := os.Stat(filepath.Join(base, "f"))
	if err != nil || host(t, filepath.Join(base, "f")) != "bytes" || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file changed: %v, %v", after, err)
	}
	if !tr.refused("write /w/f", EROFS) {
		t.Error("no event of a refusal")
	}
}

func TestNothingMovesBetweenMounts(t *testing.T) {
	a, b := files(t, map[string]string{"f": "f", "d/": ""}), files(t, map[string]string{"d/": ""})
	tr := newTree(t, Config{Mounts: []Mount{
		{Guest: "/ro", Dir: a, Access: ReadOnly}, {Guest: "/a", Dir: a, Access: ReadWrite}, {Guest: "/b", Dir: b, Access: ReadWrite},
	}})
	tr.want("link ro to rw", tr.root.Link("ro/f", false, tr.root, "b/f"), EXDEV)
	if len(tr.events) != 1 || !tr.events[0].Denied {
		t.Errorf("events of a link %+v", tr.events)
	}
	tr.events = nil
	tr.want("rename ro to rw", tr.root.Rename("ro/f", tr.root, "b/f"), EXDEV)
	tr.want("rename rw to rw", tr.root.Rename("a/f", tr.root, "b/f"), EXDEV)
	if len(tr.events) != 0 {
		t.Errorf("a move to another file system is told as %+v", tr.events)
	}
	tr.want("rename over a folder", tr.root.Rename("a/f", tr.root, "a/d"), EISDIR)
	tr.want("rename a folder over a file", tr.root.Rename("a/d", tr.root, "a/f"), ENOTDIR)
	tr.want("rename of a mount point", tr.root.Rename("a", tr.root, "b/x"), EBUSY)
	tr.want("a folder into itself", tr.root.Rename("a/d", tr.root, "a/d/e"), EINVAL)
	if host(t, filepath.Join(a, "f")) != "f" {
		t.Error("the file is gone")
	}
}

func TestWhatNoRootCoversIsDeniedAndNotThere(t *testing.T) {
	tr := newTree(t, Config{Mounts: []Mount{
		{Guest: "/usr/local", Dir: t.TempDir(), Access: ReadOnly}, {Guest: "/home/guest", Dir: t.TempDir(), Access: ReadWrite, Scratch: true},
	}})
	for p, capability := range map[string]string{
		"etc/passwd": "read /etc/passwd", "usr/bin/sh": "read /usr/bin/sh", "dev/tty": "read /dev/tty", "home/other/.ssh/id": "read /home/other/.ssh/id",
	} {
		tr.want("open "+p, tr.open(p, OpenOptions{Read: true}), EACCES)
		if !tr.refused(capability, EACCES) {
			t.Errorf("no event %q", capability)
		}
		n := len(tr.events)
		_, e := tr.root.StatAt(p, true)
		tr.want("stat "+p, e, ENOENT)
		if len(tr.events) != n {
			t.Errorf("stat %s told an event", p)
		}
	}
	tr.want("create", tr.write("x", ""), EACCES)
	tr.want("mkdir", tr.root.Mkdir("usr/share"), EACCES)
	tr.want("remove", tr.root.Unlink("etc/passwd"), EACCES)
	tr.want("rmdir of a parent folder", tr.root.Rmdir("usr"), EACCES)
	tr.want("rmdir of a mount point", tr.root.Rmdir("usr/local"), EBUSY)
	tr.want("rename", tr.root.Rename("etc/a", tr.root, "home/guest/a"), EACCES)
	if got := tr.names("."); got != "dev home usr" {
		t.Errorf("/ holds %q", got)
	}
	if got := tr.names("usr"); got != "local" {
		t.Errorf("/usr holds %q", got)
	}
	if got := tr.names("dev"); got != "exthost null urandom zero" {
		t.Errorf("/dev holds %q", got)
	}
}

func TestRelativePathsAreLookedUpInTheCurrentFolder(t *testing.T) {
	base := files(t, map[string]string{"f": "f", "d/g": "g"})
	cfg := rw(base)
	cfg.Dir = "/w"
	tr := newTree(t, cfg)
	for p, want := range map[string]string{"f": "f", "d/g": "g", "./f": "", "d/../f": "f"} {
		if got, _ := tr.read(p); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	tr.want("create", tr.write("new", "n"), Success)
	if host(t, filepath.Join(base, "new")) != "n" {
		t.Error("the file was not made in the current folder")
	}
	tr.want("a longer path that is nowhere", tr.open("etc/passwd", OpenOptions{Read: true}), EACCES)
	tr.want("up and out", tr.open("d/../../../x", OpenOptions{Read: true}), ENOTCAPABLE)
}

func TestSpecialFilesAreRefused(t *testing.T) {
	base := t.TempDir()
	special(t, base)
	tr := newTree(t, rw(base))
	for _, name := range []string{"fifo", "socket"} {
		for _, o := range []OpenOptions{{Read: true}, {Write: true}, {Read: true, Write: true, Create: true}} {
			done := make(chan Errno, 1)
			go func() { done <- tr.open("w/"+name, o) }()
			select {
			case e := <-done:
				tr.want(name, e, EACCES)
			case <-time.After(5 * time.Second):
				t.Fatal("the open of a " + name + " waits")
			}
		}
		if !tr.refused("read /w/"+name, EACCES) {
			t.Errorf("no event of the %s", name)
		}
	}
}

func TestFileWithOtherNamesIsNotWritten(t *testing.T) {
	base := files(t, map[string]string{"store/f": "shared", "in/x": "x"})
	if err := os.Link(filepath.Join(base, "store/f"), filepath.Join(base, "in/f")); err != nil {
		t.Skip("no hard links here:", err)
	}
	tr := newTree(t, rw(filepath.Join(base, "in")))
	tr.want("write", tr.open("w/f", OpenOptions{Write: true}), EPERM)
	tr.want("truncate", tr.open("w/f", OpenOptions{Read: true, Trunc: true}), EPERM)
	when := int64(1)
	tr.want("times", tr.root.SetTimesAt("w/f", true, &when, nil), EPERM)
	tr.want("one more name", tr.root.Link("w/f", false, tr.root, "w/g"), EPERM)
	if got, e := tr.read("w/f"); got != "shared" || e != Success {
		t.Errorf("read: %q %v", got, e)
	}
	if !tr.refused("write /w/f", EPERM) {
		t.Error("no event")
	}
	// A name that the guest made itself is not the host's.
	tr.want("link", tr.root.Link("w/x", false, tr.root, "w/y"), Success)
	tr.want("write of an own link", tr.write("w/y", "new"), Success)
	tr.want("removal", tr.root.Unlink("w/f"), Success)
	if host(t, filepath.Join(base, "store/f")) != "shared" {
		t.Error("the shared file changed")
	}
}

func TestProtectedNamesAreReadButNeverWritten(t *testing.T) {
	base := files(t, map[string]string{
		".git/config": "c", ".git/hooks/": "", "sub/.git": "gitdir: x", ".github/workflows/ci.yml": "y", "x/hooks/pre-commit": "p",
		"CLAUDE.md": "m", "plain": "p", "proj/.git/config": "c", "lib/a.py": "", ".github/other": "o",
	})
	tr := newTree(t, rw(base))
	if got, e := tr.read("w/.git/config"); got != "c" || e != Success {
		t.Errorf("reading: %q %v", got, e)
	}
	for _, p := range []string{
		".git/config", ".git/hooks/pre-commit", ".GIT/hooks/x", ".git./x", "GIT~1", "gi7d29~1", ".g\u200cit/x", "sub/.git", ".mcp.json",
		"deep/.MCP.JSON", "lib/x.pth", "CLAUDE.md", "claude.md", ".github/workflows/new.yml", ".git::$INDEX_ALLOCATION", "．git",
	} {
		e := tr.open("w/"+p, OpenOptions{Write: true, Create: true})
		if e != EPERM && e != ENOENT {
			t.Errorf("write %s: %v", p, e)
		}
		if e == ENOENT {
			e = tr.root.Mkdir("w/" + strings.Split(p, "/")[0])
			if strings.Contains(strings.ToLower(p), "git") {
				tr.want("mkdir for "+p, e, EPERM)
			}
		}
	}
	for what, e := range map[string]Errno{
		"rename x to .git":        tr.root.Rename("w/x", tr.root, "w/.git2/../.git"),
		"rename to .GIT":          tr.root.Rename("w/x", tr.root, "w/sub/.GIT"),
		"rename of .git":          tr.root.Rename("w/.git", tr.root, "w/y"),
		"rename of a parent":      tr.root.Rename("w/proj", tr.root, "w/proj2"),
		"rename that makes it so": tr.root.Rename("w/.github/other", tr.root, "w/.github/workflows/o"),
		"remove":                  tr.root.Unlink("w/.git/config"),
		"rmdir":                   tr.root.Rmdir("w/.git/hooks"),
		"link from":               tr.root.Link("w/.git/config", false, tr.root, "w/c"),
		"link to":                 tr.root.Link("w/plain", false, tr.root, "w/.mcp.json"),
		"symlink":                 tr.root.Symlink("x", "w/.git/l"),
		"a link of that name":     tr.root.Symlink("x", "w/lib/.git"),
	} {
		if e != EPERM && !(what == "rename x to .git" && e == ENOENT) {
			t.Errorf("%s: %v, want EPERM", what, e)
		}
	}
	tr.want("a link to it", tr.root.Symlink(".git", "w/alias"), Success)
	tr.want("write through the link", tr.write("w/alias/hooks/pre-commit", "x"), EPERM)
	tr.want("a folder that holds a descriptor", tr.root.Mkdir("w/held"), Success)
	held, e := tr.root.Open("w/held", OpenOptions{Read: true, Directory: true})
	if e != Success {
		t.Fatal(e)
	}
	defer held.Dir.Close()
	if err := os.Rename(filepath.Join(base, "held"), filepath.Join(base, "sub2")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(base, "sub2"), filepath.Join(base, ".git/held")); err != nil {
		t.Fatal(err)
	}
	if _, ok := tr.fs.mounts[0].top.where(); ok {
		tr.want("a folder that another program moved into .git", held.Dir.Mkdir("x"), EPERM)
	}
	if host(t, filepath.Join(base, ".git/config")) != "c" {
		t.Error(".git/config changed")
	}
}

func TestExemptedProtectedNameIsWritten(t *testing.T) {
	base := files(t, map[string]string{"CLAUDE.md": "", "sub/CLAUDE.md": "", ".git/": ""})
	cfg := rw(base)
	cfg.Mounts[0].Protected = []string{"CLAUDE.md", ".git", ".github"}
	tr := newTree(t, cfg)
	tr.want("exempt", tr.write("w/CLAUDE.md", "x"), Success)
	tr.want("exempt folder", tr.write("w/.git/x", "x"), Success)
	tr.want("elsewhere", tr.write("w/sub/CLAUDE.md", "x"), EPERM)
	tr.want("another protected name below it", tr.write("w/.git/.mcp.json", "x"), EPERM)
	tr.want("mkdir", tr.root.Mkdir("w/.github"), Success)
	tr.want("a protected folder below it", tr.root.Mkdir("w/.github/workflows"), EPERM)
}

func TestFolderDoesNotBecomeABareRepository(t *testing.T) {
	base := files(t, map[string]string{"d/HEAD": "", "d/objects/": "", "full/HEAD": "", "full/objects/": "", "full/refs/": "", "refs/": ""})
	tr := newTree(t, rw(base))
	tr.want("mkdir refs", tr.root.Mkdir("w/d/refs"), EPERM)
	tr.want("file refs", tr.write("w/d/refs", ""), EPERM)
	tr.want("link refs", tr.root.Symlink("objects", "w/d/refs"), EPERM)
	tr.want("rename to refs", tr.root.Rename("w/refs", tr.root, "w/d/refs"), EPERM)
	tr.want("write in one", tr.write("w/full/config", "x"), EPERM)
	tr.want("rename of one", tr.root.Rename("w/full", tr.root, "w/other"), EPERM)
	tr.want("two of three", tr.root.Unlink("w/d/HEAD"), Success)
	tr.want("then refs", tr.root.Mkdir("w/d/refs"), Success)
	tr.want("then HEAD", tr.write("w/d/HEAD", ""), EPERM)

	// git looks for objects and refs where commondir says.
	base = files(t, map[string]string{"a/HEAD": "", "b/commondir": "", "link/HEAD": "", "link/commondir": ""})
	tr = newTree(t, rw(base))
	tr.want("commondir beside HEAD", tr.write("w/a/commondir", "../store"), EPERM)
	tr.want("HEAD beside commondir", tr.write("w/b/HEAD", ""), EPERM)
	tr.want("write beside both", tr.write("w/link/config", ""), EPERM)
	tr.want("rename of both", tr.root.Rename("w/link", tr.root, "w/other"), EPERM)
	tr.want("commondir alone", tr.write("w/commondir", ""), Success)
}

func TestProtectedNameOfTwoPartsCountsTheFolderAboveTheMount(t *testing.T) {
	base := files(t, map[string]string{"x/": ""})
	cfg := rw(base)
	cfg.Mounts[0].Above = []string{"project", ".GitHub"}
	tr := newTree(t, cfg)
	tr.want("mkdir", tr.root.Mkdir("w/workflows"), EPERM)
	tr.want("rename to it", tr.root.Rename("w/x", tr.root, "w/Workflows"), EPERM)
	tr.want("below it", tr.root.Mkdir("w/x/workflows"), Success)
	cfg.Mounts[0].Protected = []string{"workflows"}
	tr = newTree(t, cfg)
	tr.want("exempt", tr.root.Mkdir("w/workflows"), Success)
	tr.want("what lies above is not judged here", tr.write("w/file", ""), Success)
}

func TestFolderThatTheGuestHoldsIsJudgedWhereItIsNow(t *testing.T) {
	base := files(t, map[string]string{"in/a/b/": "", "in/c/d/e/l": "-> ../../../x"})
	tr := newTree(t, rw(filepath.Join(base, "in")))
	if tr.fs.mounts[0].topPath == "" {
		t.Skip("this system does not tell where an open folder is")
	}
	got, e := tr.root.Open("w/a/b", OpenOptions{Directory: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.Dir.Close()
	tr.want("the link where it was opened", got.Dir.Symlink("../../x", "before"), Success)
	tr.want("with the link it stays deep", tr.root.Rename("w/a/b", tr.root, "w/up"), ENOTCAPABLE)
	tr.want("unlink", got.Dir.Unlink("before"), Success)
	tr.want("rename", tr.root.Rename("w/a/b", tr.root, "w/up"), Success)
	tr.want("the link one folder higher", got.Dir.Symlink("../../x", "after"), ENOTCAPABLE)
	tr.want("a folder with a link moved into it", tr.root.Rename("w/c/d/e", got.Dir, "e"), ENOTCAPABLE)
	tr.want("a file", func() Errno {
		o, e := got.Dir.Open("f", OpenOptions{Write: true, Create: true})
		if e == Success {
			o.File.Close()
		}
		return e
	}(), Success)
	if got := host(t, filepath.Join(base, "in/up/f")); got != "" {
		t.Errorf("the file holds %q", got)
	}
	if !slices.ContainsFunc(tr.events, func(e Event) bool { return e.Capability == "write /w/up/f" }) {
		t.Errorf("no event names the place where the file was made: %v", tr.events)
	}
}

func TestRacingGuestsMakeNoLinkThatLeavesTheirMount(t *testing.T) {
	base := files(t, map[string]string{"in/a/b/": ""})
	one, two := newTree(t, rw(filepath.Join(base, "in"))), newTree(t, rw(filepath.Join(base, "in")))
	if one.fs.mounts[0].topPath == "" {
		t.Skip("this system does not tell where an open folder is")
	}
	stop, moved := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				moved <- n
				return
			default:
			}
			if two.root.Rename("w/a/b", two.root, "w/b") == Success {
				n++
			}
			two.root.Rename("w/b", two.root, "w/a/b")
		}
	}()
	left := 0
	for range 3000 {
		got, e := one.root.Open("w/a/b", OpenOptions{Directory: true})
		if e != Success {
			continue
		}
		if got.Dir.Symlink("../../x", "l") == Success {
			for range 20 { // it may be seen in either place only while it stays below the mount
				if to, err := os.Readlink(filepath.Join(base, "in/b/l")); err == nil && to != "" {
					time.Sleep(time.Millisecond)
					if _, err := os.Readlink(filepath.Join(base, "in/b/l")); err == nil {
						left++
						break
					}
				}
			}
			got.Dir.Unlink("l")
		}
		got.Dir.Close()
	}
	close(stop)
	if n := <-moved; left > 0 || n == 0 {
		t.Errorf("%d links led out of the mount, %d renames", left, n)
	}
}

func TestHiddenFilesAreNotThere(t *testing.T) {
	base := files(t, map[string]string{".env": "K", "a/.env.local": "K", "a/x": "", ".git/config": "token"})
	cfg := rw(base)
	cfg.Mounts[0].Hide = []string{"**/.env*", ".git/config"}
	tr := newTree(t, cfg)
	for _, p := range []string{"w/.env", "w/a/.env.local", "w/.ENV", "w/.git/config", "w/a/../.env"} {
		tr.want("open "+p, tr.open(p, OpenOptions{Read: true}), ENOENT)
		_, e := tr.root.StatAt(p, true)
		tr.want("stat "+p, e, ENOENT)
		tr.want("create "+p, tr.write(p, "x"), EACCES)
	}
	if got := tr.names("w") + "|" + tr.names("w/a"); got != ".git a|x" {
		t.Errorf("listing %q", got)
	}
	tr.want("rename of what holds one", tr.root.Rename("w/a", tr.root, "w/b"), EACCES)
	tr.want("a link to it", tr.root.Symlink(".env", "w/l"), Success)
	tr.want("through the link", tr.open("w/l", OpenOptions{Read: true}), ENOENT)
	if host(t, filepath.Join(base, ".env")) != "K" {
		t.Error("the hidden file changed")
	}
}

func TestNarrowedPathsAreWeaker(t *testing.T) {
	base := files(t, map[string]string{"pub/f": "f", "none/f": "f", "none/open/g": "g", "w/f": "", "deep/none/f": ""})
	cfg := rw(base)
	cfg.Mounts[0].Narrow = []Narrow{{"/w/pub", ReadOnly}, {"/w/none", NoAccess}, {"/w/none/open", ReadOnly}, {"/w/deep/none", NoAccess}}
	tr := newTree(t, cfg)
	tr.want("write", tr.write("w/pub/f", "x"), EROFS)
	tr.want("read", tr.open("w/pub/f", OpenOptions{Read: true}), Success)
	tr.want("taken away", tr.open("w/none/f", OpenOptions{Read: true}), EACCES)
	tr.want("given back", tr.open("w/none/open/g", OpenOptions{Read: true}), Success)
	tr.want("rename of it", tr.root.Rename("w/none", tr.root, "w/x"), EROFS)
	tr.want("rename of a parent", tr.root.Rename("w/deep", tr.root, "w/x"), EACCES)
	tr.want("rename to it", tr.root.Rename("w/w", tr.root, "w/deep/none"), EACCES)
	if got := tr.names("w") + "|" + tr.names("w/deep"); got != "deep none pub w|" {
		t.Errorf("listing %q", got)
	}
	tr.want("elsewhere", tr.write("w/w/f", "x"), Success)
}

func TestAnotherSpellingGetsNoMoreAccess(t *testing.T) {
	base := files(t, map[string]string{"a/pub/f": "pub", "b/f": "b"})
	for _, name := range []string{"a/PUB", "a/pub:x", "a/pub."} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Skipf("this file system has one name for both: %v", err)
		}
		if err := os.WriteFile(filepath.Join(base, name, "f"), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := rw(base)
	cfg.Mounts[0].Narrow = []Narrow{{"/w/a", NoAccess}, {"/w/a/pub", ReadWrite}, {"/w/b", ReadOnly}}
	tr := newTree(t, cfg)
	if got, e := tr.read("w/a/pub/f"); got != "pub" || e != Success {
		t.Errorf("given back: %q %v", got, e)
	}
	tr.want("given back, write", tr.write("w/a/pub/g", "x"), Success)
	for _, p := range []string{"w/a/PUB/f", "w/a/pub:x/f", "w/a/pub./f"} {
		tr.want(p, tr.open(p, OpenOptions{Read: true}), EACCES)
	}
	tr.want("weaker in any spelling", tr.write("w/B", "x"), EROFS)
	if got := tr.names("w/a"); strings.Contains(got, "PUB") {
		t.Errorf("the listing shows %q", got)
	}
}

func TestSingleFileMountIsRewrittenInPlace(t *testing.T) {
	base := files(t, map[string]string{"f": "old", "g": "low"})
	tr := newTree(t, Config{Mounts: []Mount{
		{Guest: "/etc/app.conf", Dir: filepath.Join(base, "f"), File: true, Access: ReadWrite},
		{Guest: "/etc/ro", Dir: filepath.Join(base, "f"), File: true, Access: ReadOnly},
		{Guest: "/etc/ov", Dir: filepath.Join(base, "g"), File: true, Access: Overlay, Upper: t.TempDir()},
	}})
	tr.want("write", tr.write("etc/app.conf", "new"), Success)
	if host(t, filepath.Join(base, "f")) != "new" {
		t.Error("not rewritten")
	}
	tr.want("read-only", tr.write("etc/ro", "x"), EROFS)
	tr.want("unlink", tr.root.Unlink("etc/app.conf"), EBUSY)
	tr.want("rename", tr.root.Rename("etc/app.conf", tr.root, "etc/ro"), EBUSY)
	tr.want("beside it", tr.write("etc/other", "x"), EACCES)
	tr.want("overlay", tr.write("etc/ov", "up"), Success)
	if got, _ := tr.read("etc/ov"); got != "up" || host(t, filepath.Join(base, "g")) != "low" {
		t.Errorf("overlay: guest %q, host %q", got, host(t, filepath.Join(base, "g")))
	}
	if got := tr.names("etc"); got != "app.conf ov ro" {
		t.Errorf("listing %q", got)
	}
}

func TestOverlayKeepsTheLowerFolderAsItIs(t *testing.T) {
	low := files(t, map[string]string{"f": "low", "gone": "g", "d/a": "a", "d/b": "b", "e/": "", "l": "-> f"})
	up := t.TempDir()
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: low, Upper: up, Access: Overlay}}})
	tr.want("append", func() Errno {
		o, e := tr.root.Open("w/f", OpenOptions{Write: true, Append: true})
		if e != Success {
			return e
		}
		defer o.File.Close()
		_, _, e = o.File.Append([]byte("+up"))
		return e
	}(), Success)
	if got, _ := tr.read("w/l"); got != "low+up" {
		t.Errorf("after the append: %q", got)
	}
	tr.want("unlink", tr.root.Unlink("w/gone"), Success)
	tr.want("gone", tr.open("w/gone", OpenOptions{Read: true}), ENOENT)
	tr.want("create in a lower folder", tr.write("w/d/c", "c"), Success)
	if got := tr.names("w/d"); got != "a b c" {
		t.Errorf("merged %q", got)
	}
	tr.want("rmdir not empty", tr.root.Rmdir("w/d"), ENOTEMPTY)
	tr.want("rename of a lower folder", tr.root.Rename("w/d", tr.root, "w/d2"), EXDEV)
	tr.want("rename of a lower file", tr.root.Rename("w/d/a", tr.root, "w/moved"), Success)
	for _, p := range []string{"w/d/b", "w/d/c"} {
		tr.want("unlink", tr.root.Unlink(p), Success)
	}
	tr.want("rmdir", tr.root.Rmdir("w/d"), Success)
	tr.want("made again", tr.root.Mkdir("w/d"), Success)
	if got := tr.names("w/d"); got != "" {
		t.Errorf("the new folder shows the old one's %q", got)
	}
	tr.want("a new folder", tr.root.Mkdir("w/n"), Success)
	tr.want("its rename", tr.root.Rename("w/n", tr.root, "w/n2"), Success)
	if got := tr.names("w"); got != "d e f l moved n2" {
		t.Errorf("in the end %q", got)
	}
	removed := tr.fs.Removed()
	slices.Sort(removed)
	if got := strings.Join(removed, " "); got != "/w/d /w/gone" {
		t.Errorf("removed %q", got)
	}
	if got := host(t, filepath.Join(low, "f")) + host(t, filepath.Join(low, "gone")) + host(t, filepath.Join(low, "d/b")); got != "lowgb" {
		t.Errorf("the lower folder changed: %q", got)
	}
	tr.want("a protected name", tr.root.Mkdir("w/.git"), EPERM)
}

func TestTimesOfAFileBelowAnOverlayStay(t *testing.T) {
	low := files(t, map[string]string{"f": "low"})
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: low, Upper: t.TempDir(), Access: Overlay}}})
	before, err := os.Stat(filepath.Join(low, "f"))
	if err != nil {
		t.Fatal(err)
	}
	got, e := tr.root.Open("w/f", OpenOptions{Read: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.File.Close()
	then := int64(1e9)
	tr.want("by descriptor", got.File.SetTimes(&then, &then), EROFS)
	tr.want("by path", tr.root.SetTimesAt("w/f", true, &then, &then), Success)
	if s, e := tr.root.StatAt("w/f", true); e != Success || s.Mtim != then {
		t.Errorf("the guest sees %d, %v", s.Mtim, e)
	}
	if after, err := os.Stat(filepath.Join(low, "f")); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the time of the lower file is %v, %v", after.ModTime(), err)
	}
}

func TestOverlayCopiesUpAFileWithOtherNames(t *testing.T) {
	low := files(t, map[string]string{"f": "shared"})
	if err := os.Link(filepath.Join(low, "f"), filepath.Join(low, "g")); err != nil {
		t.Skip("no hard links here:", err)
	}
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: low, Upper: t.TempDir(), Access: Overlay}}})
	tr.want("write", tr.write("w/f", "mine"), Success)
	if got, _ := tr.read("w/g"); got != "shared" {
		t.Errorf("the other name shows %q", got)
	}
}

func TestDiskAndEntriesAreCounted(t *testing.T) {
	base := t.TempDir()
	cfg := Config{Mounts: []Mount{{Guest: "/w", Dir: base, Access: ReadWrite, Scratch: true}}, Disk: 1000, Entries: 3}
	tr := newTree(t, cfg)
	open := func(p string) *File {
		o, e := tr.root.Open(p, OpenOptions{Read: true, Write: true, Create: true})
		if e != Success {
			t.Fatal(p, e)
		}
		t.Cleanup(o.File.Close)
		return o.File
	}
	f := open("w/a")
	_, e := f.WriteAt(make([]byte, 800), 0)
	tr.want("write", e, Success)
	n, e := f.WriteAt(make([]byte, 800), 800)
	if n != 200 || e != Success {
		t.Errorf("what fits: %d %v, want 200", n, e)
	}
	_, e = f.WriteAt([]byte{1}, 1000)
	tr.want("over", e, EDQUOT)
	_, e = f.WriteAt(make([]byte, 1000), 0)
	tr.want("in place", e, Success)
	tr.want("a hole", f.SetSize(1<<40), EDQUOT)
	tr.want("allocate", f.Allocate(0, 1<<40), EDQUOT)
	tr.want("shorter", f.SetSize(100), Success)
	g := open("w/b")
	_, e = g.WriteAt([]byte{1}, 899)
	tr.want("a hole that fits", e, Success)
	_, e = g.WriteAt([]byte{1}, 900)
	tr.want("one more", e, EDQUOT)
	tr.want("folder", tr.root.Mkdir("w/d"), Success)
	tr.want("one too many", tr.root.Mkdir("w/e"), EDQUOT)
	tr.want("removed", tr.root.Rmdir("w/d"), Success)
	tr.want("again", tr.root.Mkdir("w/e"), Success)
	tr.want("unlink while open", tr.root.Unlink("w/b"), Success)
	if u := tr.fs.Usage(); u.Disk != 1000 || u.Entries != 2 {
		t.Errorf("usage %+v, want 1000 bytes while the file is open, and 2 entries", u)
	}
	if !tr.refused("limit disk", EDQUOT) || !tr.refused("limit entries", EDQUOT) {
		t.Error("no event of the limits")
	}
}

func TestRemovedFilesGiveTheirSpaceBack(t *testing.T) {
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: t.TempDir(), Access: ReadWrite, Scratch: true}}, Disk: 100})
	for i := range 10 {
		tr.want(fmt.Sprint("round ", i), tr.write("w/tmp", strings.Repeat("x", 90)), Success)
		tr.want("unlink", tr.root.Unlink("w/tmp"), Success)
	}
	if u := tr.fs.Usage(); u.Disk != 0 || u.Written != 900 || u.Entries != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestDepthAndNamesAreBounded(t *testing.T) {
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: t.TempDir(), Access: ReadWrite, Scratch: true}}})
	p := "w"
	var e Errno
	n := 0
	for e == Success && n < 100 {
		p += "/d"
		e = tr.root.Mkdir(p)
		n++
	}
	if n != MaxDepth+1 || e != ENAMETOOLONG {
		t.Errorf("%d folders, then %v", n-1, e)
	}
	tr.want("name", tr.root.Mkdir("w/"+strings.Repeat("n", 256)), ENAMETOOLONG)
	tr.want("path", tr.root.Mkdir(strings.Repeat("w/", 3000)), ENAMETOOLONG)
	tr.want("NUL", tr.root.Mkdir("w/\x00"), EINVAL)
	tr.want("not UTF-8", tr.root.Mkdir("w/\xff"), EILSEQ)
	tr.want("empty", tr.root.Mkdir(""), ENOENT)
}

func TestTrailingSlashesAndDotsAreThoseOfPosix(t *testing.T) {
	base := files(t, map[string]string{"f": "", "d/": "", "dl": "-> d", "fl": "-> f"})
	tr := newTree(t, rw(base))
	for what, c := range map[string]struct{ got, want Errno }{
		"open f/":       {tr.open("w/f/", OpenOptions{Read: true}), ENOTDIR},
		"open fl/":      {tr.open("w/fl/", OpenOptions{Read: true}), ENOTDIR},
		"create new/":   {tr.open("w/new/", OpenOptions{Create: true, Write: true}), EISDIR},
		"unlink f/":     {tr.root.Unlink("w/f/"), ENOTDIR},
		"unlink d":      {tr.root.Unlink("w/d"), EISDIR},
		"unlink d/":     {tr.root.Unlink("w/d/"), EISDIR},
		"unlink dl/":    {tr.root.Unlink("w/dl/"), ENOTDIR},
		"rmdir dl/":     {tr.root.Rmdir("w/dl/"), ENOTDIR},
		"rmdir f":       {tr.root.Rmdir("w/f"), ENOTDIR},
		"rmdir d/.":     {tr.root.Rmdir("w/d/."), EINVAL},
		"rmdir d/..":    {tr.root.Rmdir("w/d/.."), ENOTEMPTY},
		"mkdir d":       {tr.root.Mkdir("w/d/"), EEXIST},
		"mkdir .":       {tr.root.Mkdir("w/."), EEXIST},
		"rename f g/":   {tr.root.Rename("w/f", tr.root, "w/g/"), ENOTDIR},
		"symlink to s/": {tr.root.Symlink("f", "w/s/"), ENOENT},
		"open a link":   {func() Errno { _, e := tr.root.Open("w/fl", OpenOptions{Read: true}); return e }(), ELOOP},
		"write d":       {tr.open("w/d", OpenOptions{Write: true}), EISDIR},
		"f as a folder": {tr.open("w/f", OpenOptions{Read: true, Directory: true}), ENOTDIR},
		"under a file":  {tr.open("w/f/x", OpenOptions{Read: true}), ENOTDIR},
		"mkdir n/":      {tr.root.Mkdir("w/n/"), Success},
		"unlink fl":     {tr.root.Unlink("w/fl"), Success},
	} {
		tr.want(what, c.got, c.want)
	}
	s, e := tr.root.StatAt("w/dl/", false)
	if s.Kind != KindDir || e != Success {
		t.Errorf("lstat dl/: kind %d, %v; the slash follows the link", s.Kind, e)
	}
}

func TestSwappedLinkNeverLeadsOut(t *testing.T) {
	base := files(t, map[string]string{"secret/f": "secret", "in/real/f": "mine", "in/a/f": "mine"})
	in := filepath.Join(base, "in")
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: in, Access: ReadWrite}}, Events: func(Event) {}})
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			// Another program has the folder: "a" is a folder at times and a link out at times.
			_ = os.Rename(filepath.Join(in, "a"), filepath.Join(in, "b"))
			_ = os.Symlink("../secret", filepath.Join(in, "a"))
			_ = os.Remove(filepath.Join(in, "a"))
			_ = os.Rename(filepath.Join(in, "b"), filepath.Join(in, "a"))
		}
	}()
	reads, until := 0, time.Now().Add(time.Second)
	for time.Now().Before(until) {
		got, e := tr.read("w/a/f")
		if got == "secret" {
			t.Error("the guest read a file outside its mount")
			break
		}
		if e == Success {
			reads++
		}
		tr.write("w/a/planted", "x")
	}
	stop.Store(true)
	<-done
	if _, err := os.Stat(filepath.Join(base, "secret/planted")); err == nil {
		t.Error("a file was planted outside the mount")
	}
	if reads == 0 {
		t.Error("the race never let a read through: nothing was tested")
	}
}

func TestListingStaysAsItWasRead(t *testing.T) {
	base := files(t, map[string]string{"a": "", "b": "", "c": ""})
	tr := newTree(t, rw(base))
	got, e := tr.root.Open("w", OpenOptions{Read: true, Directory: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.Dir.Close()
	first, _ := got.Dir.Entries(true)
	tr.want("unlink", tr.root.Unlink("w/a"), Success)
	second, _ := got.Dir.Entries(false)
	third, _ := got.Dir.Entries(true)
	if len(first) != 5 || len(second) != 5 || len(third) != 4 {
		t.Errorf("%d, %d, %d entries, want 5, 5, 4", len(first), len(second), len(third))
	}
}

func TestNamesFoldToOneKey(t *testing.T) {
	for _, name := range []string{".git", ".GIT", ".Git.", ".git ", ".git. .", ".gi\u200dt", ".g\u0131t", "．ｇｉｔ", ".git\u00ad", ".gIt\u180e"} {
		want := ".git"
		if name == ".g\u0131t" { // a dotless i is another letter everywhere
			want = ".gıt"
		}
		if got := fold(name); got != want {
			t.Errorf("fold(%+q) = %+q, want %+q", name, got, want)
		}
	}
	if got := withoutStream(fold(".GIT .:x")); got != ".git" {
		t.Errorf("the file of the stream .GIT .:x is %q", got)
	}
	if fold("Straße") != fold("STRASSE") || fold("e\u0301") != fold("\u00e9") || fold("\u212aey") != "key" {
		t.Error("letters that fold together do not")
	}
}

func TestGlobsMatchWholeSegments(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"**/.env*", ".env", true}, {"**/.env*", "a/b/.env.local", true}, {"**/.env*", "env", false}, {".git/config", ".git/config", true},
		{".git/config", "a/.git/config", false}, {"a/**", "a/b/c", true}, {"a/**/z", "a/z", true}, {"a/*/z", "a/b/c/z", false}, {"*.pem", "x.pem", true},
		{"*.pem", "d/x.pem", false}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXbY", false}, {"**", "x/y", true},
		{"*.pem", "a:b.pem", true}, {"**/.git", ".git:x", true}, {".env*", ".env:x", true}, {"a:*.pem", "a:b.pem", true}, {"b", "a:b", false},
	} {
		if got := parseGlob(c.glob).match(foldAll(components(c.path))); got != c.want {
			t.Errorf("%s on %s: %t", c.glob, c.path, got)
		}
	}
}

func TestFreeSpaceFloorHolds(t *testing.T) {
	cfg := rw(t.TempDir())
	cfg.MinFree = 1 << 60
	tr := newTree(t, cfg)
	if _, e := tr.fs.mounts[0].top.free(); e != Success {
		t.Skip("the free space is not known here")
	}
	tr.want("write", tr.write("w/f", "x"), ENOSPC)
	if !tr.refused("limit disk", ENOSPC) {
		t.Error("no event")
	}
}

func TestMovedMountGoesOnWorking(t *testing.T) {
	base := files(t, map[string]string{"in/.git/": "", "in/f": ""})
	tr := newTree(t, rw(filepath.Join(base, "in")))
	if err := os.Rename(filepath.Join(base, "in"), filepath.Join(base, "moved")); err != nil {
		t.Skip("an open folder cannot be renamed here:", err)
	}
	tr.want("write", tr.write("w/f", "x"), Success)
	tr.want("a protected name", tr.write("w/.git/x", "x"), EPERM)
}

func TestOverlayFolderThatWasOpenSeesNewFiles(t *testing.T) {
	low := files(t, map[string]string{"d/e/a": "a"})
	tr := newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: low, Upper: t.TempDir(), Access: Overlay, Immutable: true}}})
	got, e := tr.root.Open("w/d/e", OpenOptions{Read: true, Directory: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.Dir.Close()
	tr.want("write by another way", tr.write("w/d/e/b", "b"), Success)
	list, _ := got.Dir.Entries(true)
	if len(list) != 4 {
		t.Errorf("%d entries, want ., .., a, b", len(list))
	}
	b, e := got.Dir.Open("b", OpenOptions{Read: true})
	if e != Success {
		t.Fatalf("open: %v", e)
	}
	b.File.Close()
}
