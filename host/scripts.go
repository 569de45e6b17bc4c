package host

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/snapshot"
)

// languages are those that a script's extension or first line may name, beside the ones of the runtimes. This binary has
// no runtime for them.
var languages = []struct {
	name         string
	extensions   []string
	interpreters []string
}{
	{"fish", []string{".fish"}, []string{"fish"}},
	{"javascript", []string{".js", ".mjs", ".cjs"}, []string{"node", "nodejs", "bun", "deno"}},
	{"typescript", []string{".ts", ".mts", ".cts"}, []string{"tsx", "ts-node"}},
	{"ruby", []string{".rb"}, []string{"ruby"}},
	{"perl", []string{".pl"}, []string{"perl"}},
	{"php", []string{".php"}, []string{"php"}},
	{"powershell", []string{".ps1"}, []string{"pwsh", "powershell"}},
	{"applescript", []string{".applescript", ".scpt"}, []string{"osascript"}},
	{"r", []string{".r"}, []string{"Rscript"}},
	{"lua", []string{".lua"}, []string{"lua"}},
}

// goMark stands in the first section of every module that Go's linker made.
const goMark = "go:buildid"

// wasmMagic begins a WebAssembly module.
const wasmMagic = "\x00asm"

// Scripts lists the files of the extension that a runtime of this project, or of a language that it knows, would run,
// sorted by path. Python modules without a first line that names an interpreter are listed too: whether a file is meant
// to be run cannot be told from outside.
func (e *Extension) Scripts() []Script {
	var out []Script
	for _, s := range e.scripts {
		if s.known {
			out = append(out, s.Script)
		}
	}
	return out
}

// findScripts looks at every file of the copy. Which language it is in is told by its extension, else by its first
// line; the mode bit tells nothing, since many archives lose it.
func (e *Extension) findScripts() []script {
	var out []script
	for _, entry := range e.snap.Entries {
		if entry.Kind != snapshot.Link {
			out = append(out, e.classify(entry))
		}
	}
	return out
}

func (e *Extension) classify(entry snapshot.Entry) script {
	s := script{Script: Script{Path: entry.Path}, entry: entry}
	use := func(r guests.Runtime) script {
		s.runtime, s.known = r, true
		s.Language, s.Runtime = cmp.Or(r.Language, r.Name), r.Name
		head := e.head(entry.Path)
		if r.Archive() == "" {
			// Go's scheduler polls its standard input, other guests want to be blocked by it.
			s.nonblock = bytes.Contains(head, []byte(goMark))
			return s
		}
		s.nonblock = r.Nonblock
		s.notes = shellNotes(r, s.Path, head)
		if r.Language == "shell" { // "#!/bin/bash -e": without it the script would go on after an error
			s.options = guests.Options(head)
		}
		s.damaged = damaged(head)
		if err := cmp.Or(s.damaged, r.Err()); err != nil {
			s.Missing = err.Error()
		}
		return s
	}
	lacks := func(language string) script {
		s.Language, s.known = language, true
		s.Missing = "this version has no runtime for " + language
		return s
	}
	if r, ok := guests.ForScript(entry.Path, nil); ok {
		return use(r)
	}
	ext := strings.ToLower(path.Ext(entry.Path))
	for _, l := range languages {
		if slices.Contains(l.extensions, ext) {
			return lacks(l.name)
		}
	}
	head := e.head(entry.Path)
	if r, ok := guests.Lookup("wasm"); ok && bytes.HasPrefix(head, []byte(wasmMagic)) {
		return use(r)
	}
	if r, ok := guests.ForScript("script", head); ok {
		return use(r)
	}
	program := guests.Interpreter(head)
	for _, l := range languages {
		if slices.Contains(l.interpreters, program) {
			return lacks(l.name)
		}
	}
	s.Missing = "neither its extension nor its first line names a language"
	if program != "" {
		s.Missing = fmt.Sprintf("this version has no runtime for %q, which its first line names", program)
	}
	return s
}

// damaged says what is wrong with a script whose line ends were lost on the way: as one long comment it would do nothing
// and end well.
func damaged(head []byte) error {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(line, []byte("#!")) && bytes.Contains(line, []byte(`\n`)) {
		return fmt.Errorf(`%w: its first line holds "\n" as text, in place of the ends of lines`, ErrDamaged)
	}
	return nil
}

// shellNotes are what a person should know about a shell script that was written for another shell.
func shellNotes(r guests.Runtime, name string, head []byte) (out []string) {
	if r.Language != "shell" {
		return nil
	}
	for _, other := range []string{"zsh", "ksh"} {
		if guests.Interpreter(head) == other || strings.EqualFold(path.Ext(name), "."+other) {
			out = append(out, fmt.Sprintf("%s is written for %s and runs as bash", name, other))
		}
	}
	return out
}

// head is the beginning of a file of the copy.
func (e *Extension) head(name string) []byte {
	f, err := os.Open(filepath.Join(e.snap.Dir, filepath.FromSlash(name)))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 256))
	return b
}

// find returns the script that a job names.
func (e *Extension) find(name string) (script, error) {
	if name == "" {
		if e.single == "" {
			return script{}, fmt.Errorf("%s: no script was named: %w%s", e.name, ErrNotFound, e.suggest())
		}
		name = e.single
	}
	clean := path.Clean("/" + strings.ReplaceAll(name, "\\", "/"))[1:]
	// A link inside the extension leads to the script that it names. Links were judged when the copy was made.
	real, err := filepath.EvalSymlinks(filepath.Join(e.snap.Dir, filepath.FromSlash(clean)))
	if err == nil && within(e.snap.Dir, real) {
		if rel, err := filepath.Rel(e.snap.Dir, real); err == nil {
			for _, s := range e.scripts {
				if s.Path != filepath.ToSlash(rel) {
					continue
				}
				if s.damaged != nil {
					return s, fmt.Errorf("%s %s: %w", e.name, clean, s.damaged)
				}
				if s.runtime.Name == "" || s.Missing != "" {
					return s, fmt.Errorf("%s %s: %w: %s", e.name, clean, ErrNoRuntime, s.Missing)
				}
				s.Path = clean // as it was asked for: that is its own name in the guest
				return s, nil
			}
		}
	}
	return script{}, fmt.Errorf("%s: script %q: %w%s", e.name, name, ErrNotFound, e.suggest())
}

// suggest names a few scripts.
func (e *Extension) suggest() string {
	var names []string
	for _, s := range e.scripts {
		if s.known && s.Missing == "" {
			names = append(names, fmt.Sprintf("%q", s.Path))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if len(names) > 8 {
		names = append(names[:8], "...")
	}
	return " (it has " + strings.Join(names, ", ") + ")"
}
