package shell_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "record: what bash does with -run Real, what the sandbox does in subjects of its own and in listed differences with -run Sandbox")

// modified is the time of every file of the work folder.
var modified = time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)

// recorded are the versions that the cases were recorded from, by what a program says of itself.
var recorded = []struct {
	version string // command
	says    string // part of its output
	of      string // Debian package
}{
	{"bash --version", "version 5.2", "bash"},
	{"sort --version", "(GNU coreutils) 9.1", "coreutils"},
	{"grep --version", "(GNU grep) 3.8", "grep"},
	{"sed --version", "(GNU sed) 4.9", "sed"},
	{"find --version", "4.9.0", "findutils"},
	{"diff --version", "3.8", "diffutils"},
	{"awk -W version", "mawk 1.3.4", "mawk"},
	{"jq --version", "jq-1.6", "jq"},
	{"bc --version", "bc 1.07", "bc"},
	{"xxd --version", "xxd ", "xxd"},
	{"zip --version", "Zip 3.0", "zip"},
	{"unzip -v", "UnZip 6.00", "unzip"},
	{"column --version", "2.38", "bsdextrautils"},
	{"hexdump --version", "2.38", "bsdextrautils"},
	{"file --version", "file-5.44", "file"},
	{"patch --version", "2.7.6", "patch"},
	{"envsubst --version", "0.21", "gettext-base"},
	{"tar --version", "1.34", "tar"},
	{"gzip --version", "1.12", "gzip"},
	{"strings --version", "2.40", "binutils"},
}

// lacks names what this machine does not have in the recorded version.
var lacks = sync.OnceValue(func() (missing []string) {
	for _, p := range recorded {
		args := strings.Fields(p.version)
		out, _ := exec.Command(args[0], args[1:]...).CombinedOutput()
		if !strings.Contains(string(out), p.says) {
			missing = append(missing, args[0]+" (package "+p.of+")")
		}
	}
	return missing
})

// room is where cases run, one at a time: a work folder that is made anew for each, and what lies around it.
type room struct {
	dir string
}

func newRoom(t testing.TB) *room {
	t.Helper()
	dir, err := os.MkdirTemp("", "shell-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Others pass through: the scripts of root's tests do not run as root.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return &room{dir}
}

// nobody is who runs the scripts outside when the tests run as root: a mistake in a case must not reach the machine.
const nobody = 65534

// disown makes the folders that a script writes to belong to nobody.
func (r *room) disown() error {
	for _, dir := range []string{"workspace", "home", "tmp"} {
		err := filepath.WalkDir(r.in(dir), func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, nobody, nobody)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *room) in(name string) string { return filepath.Join(r.dir, name) }

// clean gives the next case its work folder, an empty home and an empty temporary folder.
func (r *room) clean() error {
	for _, name := range []string{"workspace", "home/guest", "tmp"} {
		// What is below goes, not the folder: an extension may be bound to it.
		list, err := os.ReadDir(r.in(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			if err := os.RemoveAll(filepath.Join(r.in(name), e.Name())); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(r.in(name), 0o755); err != nil {
			return err
		}
	}
	return plant("work", r.in("workspace"))
}

// plant copies a folder of ours, every file with the same time.
func plant(from, to string) error {
	var names []string
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		names = append(names, target)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	for i := len(names) - 1; err == nil && i >= 0; i-- {
		err = os.Chtimes(names[i], modified, modified)
	}
	return err
}

// leftover tells what a case changed in its work folder.
func (r *room) leftover() (map[string]string, error) {
	before, err := listing("work")
	if err != nil {
		return nil, err
	}
	after, err := listing(r.in("workspace"))
	if err != nil {
		return nil, err
	}
	left := map[string]string{}
	for name, what := range after {
		if before[name] != what {
			left[name] = what
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			left[name] = "gone\x00"
		}
	}
	return left, nil
}

// listing describes everything below dir: the kind, a zero byte, and the content or target.
func listing(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir():
			all[rel] = "folder\x00"
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			all[rel] = "link\x00" + target
		default:
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			all[rel] = "file\x00" + string(text)
		}
		return nil
	})
	return all, err
}

// environment is what a script sees, with the room's folders where the guest has its own.
func (r *room) environment(path string) []string {
	return append([]string{"HOME=" + r.in("home/guest"), "TMPDIR=" + r.in("tmp"), "USER=guest", "PATH=" + path}, locale...)
}

var locale = []string{"LC_ALL=C.UTF-8", "TZ=UTC"}

// guestPaths replaces the room's folders by the guest's names for them.
func (r *room) guestPaths(s string) string {
	return strings.NewReplacer(r.in("workspace"), "/workspace", r.in("home/guest"), "/home/guest", r.in("tmp"), "/tmp",
		r.in("skill"), "/skill").Replace(s)
}

// layScripts writes the extension: the scripts of all cases, and what they source.
func layScripts(dir string, cases map[string][]*case_) error {
	if err := plant("skill", dir); err != nil {
		return err
	}
	for subject, cs := range cases {
		if err := os.MkdirAll(filepath.Join(dir, subject), 0o755); err != nil {
			return err
		}
		for _, c := range cs {
			if err := os.WriteFile(filepath.Join(dir, c.id+".sh"), []byte(c.script), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// runs a case as a process of this system: bash, or a guest built for it.
func (r *room) process(ctx context.Context, c *case_, path, shell string, args ...string) (outcome, error) {
	if err := r.clean(); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, append(args, r.in("skill/"+c.id+".sh"))...)
	out, err := capture(&cmd.Stdout)
	if err != nil {
		return outcome{}, err
	}
	errs, err := capture(&cmd.Stderr)
	if err != nil {
		return outcome{}, err
	}
	cmd.Dir = r.in("workspace")
	cmd.Env = r.environment(path)
	// A group of its own: a script may send signals to the whole of its group, and leave jobs behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		if err := r.disown(); err != nil {
			return outcome{}, err
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	stdout, stderr := out(), errs()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcome{}, err
	}
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	o := outcome{stdout: r.guestPaths(stdout), stderr: r.guestPaths(stderr), exit: cmd.ProcessState.ExitCode()}
	o.left, err = r.leftover()
	for name, what := range o.left {
		o.left[name] = r.guestPaths(what)
	}
	return o, err
}

// capture makes a pipe for w and returns what ends it and gives what was written. Not a bytes.Buffer: a script opens
// /dev/stdout, and must own it.
func capture(w *io.Writer) (func() string, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := out.Chown(nobody, nobody); err != nil {
			return nil, err
		}
	}
	*w = out
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(in)
		_ = in.Close()
		text <- string(all)
	}()
	return func() string {
		_ = out.Close()
		// A job that a script left behind may hold the other end.
		_ = in.SetReadDeadline(time.Now().Add(5 * time.Second))
		return <-text
	}, nil
}

func TestReal(t *testing.T) {
	if missing := lacks(); len(missing) > 0 {
		message := "cases were recorded from Debian 12; this machine lacks its " + strings.Join(missing, ", ")
		if os.Getenv("REQUIRE_SHELLS") != "" || *update {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	order, cases, _ := subjects(t)
	rooms := newRooms(t, cases)
	t.Run("all", func(t *testing.T) {
		for _, subject := range order {
			if own(subject) {
				continue
			}
			for _, c := range cases[subject] {
				t.Run(c.id, func(t *testing.T) {
					t.Parallel()
					r := rooms.take()
					defer rooms.give(r)
					got, err := r.process(t.Context(), c, systemPath, "bash", "--noprofile", "--norc")
					if err != nil {
						t.Fatal(err)
					}
					if *update {
						c.want = got.String()
					} else if got.String() != c.want {
						t.Error(report(c, c.want, got))
					}
				})
			}
		}
	})
	if *update {
		write(t, cases)
	}
}

// write records the outcomes of the cases that are still as they were read.
func write(t *testing.T, cases map[string][]*case_) {
	t.Helper()
	order, now, heads := subjects(t)
	for _, subject := range order {
		for _, c := range now[subject] {
			for _, ran := range cases[subject] {
				if ran.id == c.id && ran.script == c.script {
					c.want = ran.want
				}
			}
		}
		if err := os.WriteFile(subject+".txt", []byte(format(heads[subject], now[subject])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func report(c *case_, want string, got outcome) string {
	return c.subject + ".txt:" + itoa(c.line) + ": " + c.claim + "\n" + c.script + "\nwant:\n" + want + "got:\n" + got.String() +
		"stderr:\n" + got.stderr
}

// systemPath is where the tools are outside, and the native guest's where it has its own.
const systemPath = "/usr/local/bin:/usr/bin:/bin"
