package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/exthost/exthost/host"
)

// extension is what EXT names: a folder or a file of this machine.
type extension struct {
	arg  string // as the person wrote it
	path string // absolute
	name string // base name of the path, in the characters that a name may have
	file bool
}

// isPath tells a path from a name: it begins with ./ ../ / or ~/.
func isPath(arg string) bool {
	if arg == "." || arg == ".." || filepath.IsAbs(arg) {
		return true
	}
	slashed := filepath.ToSlash(arg)
	for _, prefix := range []string{"./", "../", "/", "~/"} {
		if strings.HasPrefix(slashed, prefix) {
			return true
		}
	}
	return false
}

// resolve finds EXT. Everything that is not there is exit code 127.
func (a *app) resolve(arg string) (extension, error) {
	x := extension{arg: arg}
	if arg == "" {
		return x, fail(exitNotFound, "", "the extension's name is empty")
	}
	if !isPath(arg) {
		return x, notInstalled(arg)
	}
	path := arg
	if rest, ok := strings.CutPrefix(arg, "~/"); ok {
		person := personHome(a.env)
		if person == "" {
			return x, fail(exitNotFound, "", "%s: HOME is not set", arg)
		}
		path = filepath.Join(person, rest)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return x, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return x, fail(exitNotFound, "", "no such extension: %s", arg)
	case err != nil:
		return x, err
	case info.IsDir():
		if !hasSkillFile(abs) {
			return x, fail(exitNotFound, "", "%s is not an extension: it has no SKILL.md", arg)
		}
	case info.Mode().IsRegular():
		x.file = true
	default:
		return x, fail(exitNotFound, "", "%s is neither a folder nor a file", arg)
	}
	x.path, x.name = abs, nameOf(abs)
	return x, nil
}

// hasSkillFile accepts any case, as real skills have it.
func hasSkillFile(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true // let the host tell what is wrong with the folder
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), "SKILL.md") {
			return true
		}
	}
	return false
}

// notInstalled answers the forms of EXT that need an installer, which this version has not.
func notInstalled(arg string) error {
	switch {
	case strings.HasPrefix(arg, "npm:") || strings.HasPrefix(arg, "git:") || strings.Contains(arg, "/") && !exists(arg):
		return fail(exitNotFound, "", "%q: this version runs a folder or a file only, which begins with ./ ../ / or ~/", arg)
	case exists(arg):
		return fail(exitNotFound, shellCommand("exthost", "run", "./"+arg),
			"%q: no such extension is installed; a folder or a file begins with ./", arg)
	}
	return fail(exitNotFound, "", "no such extension: %q (this version runs a folder or a file, which begins with ./ ../ / or ~/)", arg)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// nameOf makes a name of a path's last component. Two paths may give the same name: a grant is bound to a digest.
func nameOf(path string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, filepath.Base(path))
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	name = strings.TrimLeft(name, "._-")
	if name == "" {
		return "extension"
	}
	return name[:min(len(name), 64)]
}

var extensionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// validName reports whether a name can be the name of a policy file.
func validName(name string) bool {
	return extensionName.MatchString(name) && !strings.Contains(name, "..")
}

// pickScript is the script to run: the one that was asked for, else the only one.
func pickScript(x extension, ext *host.Extension, asked string) (string, error) {
	if x.file {
		if asked != "" {
			return "", &failure{code: exitUnable,
				err:  fmt.Errorf("%s is one file: there is no script %q in it", x.arg, asked),
				hint: []string{shellCommand("exthost", "run", x.arg, "--", asked)}}
		}
		return "", nil
	}
	if asked != "" {
		return filepath.ToSlash(strings.TrimPrefix(asked, "./")), nil
	}
	var can []string
	for _, s := range ext.Scripts() {
		if s.Missing == "" {
			can = append(can, s.Path)
		}
	}
	switch len(can) {
	case 0:
		return "", fail(exitNotFound, "exthost runtime list", "%s has no script that this version can run", x.arg)
	case 1:
		return can[0], nil
	}
	f := &failure{code: exitUnable, err: fmt.Errorf("%s has %d scripts; which one?", x.arg, len(can))}
	const shown = 20
	for i, s := range can {
		if i == shown {
			f.hint = append(f.hint, fmt.Sprintf("and %d more", len(can)-shown))
			break
		}
		if strings.HasPrefix(s, "-") {
			s = "./" + s // no flag
		}
		f.hint = append(f.hint, shellCommand("exthost", "run", x.arg, s))
	}
	return "", f
}

// tilde shortens a path below the person's home folder for display.
func (a *app) tilde(path string) string {
	person := personHome(a.env)
	if person == "" || person == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, person+string(filepath.Separator)); ok {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}
