package policy

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// protectedNames are files that make something else run code or steer an agent. They are read where a root is read and
// never written, unless the root's protected key names them. Patterns are matched against folded paths ([FoldName])
// below a root, and cover what lies below a match.
var protectedNames = []string{
	// Version control: hooks, fsmonitor, sshCommand, filters, submodule addresses.
	"**/.git", "**/.gitmodules", "**/.gitattributes", "**/.gitconfig", "**/.git-credentials",
	"**/.hg", "**/.svn", "**/.jj", "**/.husky", "**/.pre-commit-config.yaml", "**/.pre-commit-config.yml", "**/lefthook.yml", "**/lefthook.yaml", "**/.lefthook.yml", "**/.lefthook.yaml", "**/.lefthook", "**/lefthook-local.yml",
	// Continuous integration.
	"**/.github/workflows", "**/.github/actions", "**/.gitlab-ci.yml", "**/.circleci", "**/.forgejo", "**/.gitea", "**/.woodpecker", "**/.woodpecker.yml", "**/.travis.yml", "**/.drone.yml", "**/azure-pipelines.yml", "**/jenkinsfile", "**/bitbucket-pipelines.yml", "**/.buildkite",
	// Editors and development containers that run tasks when a folder is opened.
	"**/.vscode", "**/.idea", "**/.fleet", "**/.zed", "**/.devcontainer", "**/.devcontainer.json", "**/*.code-workspace", "**/.vimrc", "**/.nvimrc", "**/.nvim.lua", "**/.exrc", "**/_vimrc", "**/.dir-locals.el", "**/.dir-locals-2.el", "**/.emacs", "**/.emacs.d", "**/.config/nvim", "**/.vim",
	// Agents: servers they start, instructions they read, hooks they run.
	"**/.mcp.json", "**/mcp.json", "**/.claude", "**/.claude.json", "**/.cursor", "**/.cursorrules", "**/.windsurf", "**/.windsurfrules", "**/.codex", "**/.gemini", "**/.continue", "**/.aider*", "**/.clinerules", "**/.roo", "**/.roomodes", "**/.kiro", "**/.opencode", "**/opencode.json", "**/opencode.jsonc", "**/.amp", "**/.agents", "**/.goosehints", "**/.exthost",
	"**/claude.md", "**/claude.local.md", "**/agents.md", "**/agents.override.md", "**/agent.md", "**/gemini.md", "**/skill.md", "**/soul.md", "**/memory.md", "**/copilot-instructions.md", "**/.github/instructions", "**/.github/prompts", "**/.github/chatmodes", "**/.github/agents", "**/.github/copilot-instructions.md",
	// Shells and what they read on the way.
	"**/.profile", "**/.bashrc", "**/.bash_profile", "**/.bash_login", "**/.bash_logout", "**/.bash_aliases", "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlogin", "**/.zlogout", "**/.kshrc", "**/.cshrc", "**/.tcshrc", "**/.login", "**/.inputrc", "**/.config/fish", "**/.config/powershell", "**/microsoft.powershell_profile.ps1", "**/profile.ps1", "**/.envrc", "**/.direnv", "**/.mise.toml", "**/mise.toml", "**/.mise", "**/.tool-versions", "**/.xprofile", "**/.xinitrc", "**/.xsession",
	// Package managers and language runtimes that load code by name.
	"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.yarn", "**/.pnpmfile.cjs", "**/.pnpmfile.mjs", "**/.pnp.cjs", "**/.pnp.loader.mjs", "**/bunfig.toml", "**/.cargo/config", "**/.cargo/config.toml", "**/.pypirc", "**/pip.conf", "**/.pip", "**/pip.ini", "**/.gemrc", "**/.bundle", "**/.irbrc", "**/.pryrc", "**/.rprofile", "**/.mvn", "**/gradle-wrapper.jar", "**/maven-wrapper.jar",
	"**/conftest.py", "**/sitecustomize.py", "**/usercustomize.py", "**/sitecustomize", "**/usercustomize", "**/*.pth", "**/pyvenv.cfg", "**/.pdbrc", "**/.pythonrc", "**/.pythonstartup", "**/.gdbinit", "**/.lldbinit",
	// Remote access, credentials and what starts with the session.
	"**/.ssh", "**/.gnupg", "**/.netrc", "**/_netrc", "**/.aws", "**/.azure", "**/.kube", "**/.docker", "**/.config/gcloud", "**/.config/gh", "**/.config/git", "**/.config/systemd", "**/.config/autostart", "**/.config/environment.d", "**/.local/share/applications", "**/library/launchagents", "**/library/launchdaemons", "**/start menu/programs/startup", "**/.crontab", "**/autorun.inf", "**/desktop.ini",
}

// defaultHide is the hide list of a root that names none.
var defaultHide = []string{"**/.env*", "**/.git/config"}

var (
	protectedGlobs   = mustGlobs(protectedNames)
	defaultHideGlobs = mustGlobs(defaultHide)
)

func mustGlobs(list []string) []Glob {
	out := make([]Glob, len(list))
	for i, s := range list {
		g, err := ParseGlob(s)
		if err != nil {
			panic(err)
		}
		out[i] = g
	}
	return out
}

// Protected returns the patterns of files that are never written. They are relative to a root, in the grammar of
// [Glob], and are to be matched against components folded as [FoldName] does. The caller owns the slice.
func Protected() []string { return clone(protectedNames) }

// DefaultHide returns the hide list of a root that names none. The caller owns the slice.
func DefaultHide() []string { return clone(defaultHide) }

// FoldName returns the key under which a path component is judged: NFKC, case folded, without characters that are not
// shown and that some file systems ignore, without the name of an NTFS stream, and without trailing dots and blanks.
func FoldName(name string) string {
	s := foldWhole(name)
	if i := strings.IndexByte(s, ':'); i > 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, ". ")
}

// foldWhole is FoldName for a file system on which a colon is a character like any other.
func foldWhole(name string) string {
	s := foldOnce(name)
	for range 4 { // folding can make new compositions; it settles at once in practice
		next := foldOnce(s)
		if next == s {
			break
		}
		s = next
	}
	return strings.TrimRight(s, ". ")
}

func foldOnce(s string) string {
	if plainASCII(s) {
		return strings.ToLower(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
	return norm.NFKC.String(cases.Fold().String(s))
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func foldAll(components []string) []string {
	out := make([]string, len(components))
	for i, c := range components {
		out[i] = FoldName(c)
	}
	return out
}

// foldings are the ways in which components are judged: as names of files, and, if one of them holds a colon, whole.
func foldings(components []string) [][]string {
	out := [][]string{foldAll(components)}
	whole := make([]string, len(components))
	for i, c := range components {
		whole[i] = foldWhole(c)
	}
	if !slices.Equal(out[0], whole) {
		out = append(out, whole)
	}
	return out
}

// IsProtected reports whether the file at components, the path below a root, or a folder above it has a protected name.
func IsProtected(components ...string) bool {
	_, ok := protectedBy(nil, components, nil)
	return ok
}

// protectedBy returns the protected name that forbids a write to path, which lies in the folders above: they count for
// names of several segments. exempt are the root's protected key, folded: an
// exemption frees a protected name when it matches it or something below it on the way to path, and then everything
// below itself up to the next protected name.
func protectedBy(above, path []string, exempt []Glob) (string, bool) {
	outer := foldAll(above)
	for _, folded := range foldings(path) {
		if name, ok := protectedIn(outer, folded, exempt); ok {
			return name, true
		}
	}
	return "", false
}

func protectedIn(above, path []string, exempt []Glob) (string, bool) {
	full := append(above[:len(above):len(above)], path...)
	free := 0 // length of the longest prefix of path that an exemption matches
	for n := len(path); n > 0 && free == 0; n-- {
		if slices.ContainsFunc(exempt, func(g Glob) bool { return g.Match(path[:n]) }) {
			free = n
		}
	}
	for n := len(path); n > free; n-- {
		last, place := path[n-1], full[:len(above)+n]
		if shortName(last) {
			return last, true
		}
		for _, g := range protectedByLast[last] {
			if g.Match(place) {
				return g.String(), true
			}
		}
		for _, g := range protectedWild {
			if g.Match(place) {
				return g.String(), true
			}
		}
	}
	return "", false
}

// The list is long and is asked for each component of each write: most patterns are found by their last segment.
var protectedByLast, protectedWild = func() (map[string][]Glob, []Glob) {
	byLast, wild := map[string][]Glob{}, []Glob(nil)
	for _, g := range protectedGlobs {
		if last := g.segs[len(g.segs)-1]; strings.Contains(last, "*") {
			wild = append(wild, g)
		} else {
			byLast[last] = append(byLast[last], g)
		}
	}
	return byLast, wild
}()

// shortStems are the letters that the 8.3 forms of protected names are made of, such as "git" of GIT~1.
var shortStems = func() []string {
	var out []string
	for _, g := range protectedGlobs {
		for _, seg := range g.segs {
			seg = strings.TrimLeft(seg, ".")
			if i := strings.LastIndexByte(seg, '.'); i > 0 {
				seg = seg[:i]
			}
			seg = strings.ReplaceAll(strings.ReplaceAll(seg, ".", ""), " ", "")
			if seg != "" && !strings.Contains(seg, "*") {
				out = append(out, seg)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}()

// shortName reports whether a folded name looks like the 8.3 form of a protected one: git~1, or, after collisions, two
// letters and four hex digits.
func shortName(key string) bool {
	stem, rest, ok := strings.Cut(key, "~")
	if !ok || stem == "" || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return false
	}
	return slices.ContainsFunc(shortStems, func(full string) bool {
		return stem == full[:min(6, len(full))] ||
			len(stem) >= 3 && len(stem) < 6 && strings.HasPrefix(full, stem) ||
			len(stem) == 6 && strings.HasPrefix(full, stem[:min(2, len(full))]) && strings.Trim(stem[2:], "0123456789abcdef") == ""
	})
}

// hideList is a hide key ready for matching.
type hideList struct{ raw, folded []Glob }

func hideListOf(globs []Glob) hideList {
	h := hideList{raw: globs}
	for _, g := range globs {
		h.folded = append(h.folded, g.folded())
	}
	return h
}

// hides returns the first pattern that hides path or a folder above it. Names are compared folded too: what is hidden
// must not be reached by another spelling on a file system that ignores case.
func (h hideList) hides(path []string) (Glob, bool) {
	if len(h.raw) == 0 || len(path) == 0 {
		return Glob{}, false
	}
	folded := foldings(path)
	for i, g := range h.raw {
		if g.MatchPrefix(path) > 0 || slices.ContainsFunc(folded, func(f []string) bool { return h.folded[i].MatchPrefix(f) > 0 }) {
			return g, true
		}
	}
	return Glob{}, false
}

func hiddenBy(path []string, hide []Glob) (Glob, bool) { return hideListOf(hide).hides(path) }

// folded returns the pattern under which folded names are matched. What precedes a "*" keeps its own dots.
func (g Glob) folded() Glob {
	segs := make([]string, len(g.segs))
	for i, s := range g.segs {
		if !strings.Contains(s, "*") {
			segs[i] = foldWhole(s)
			continue
		}
		parts := strings.Split(s, "*")
		for j, part := range parts {
			if j == len(parts)-1 {
				parts[j] = foldWhole(part)
			} else {
				parts[j] = strings.TrimSuffix(foldWhole(part+"x"), "x")
			}
		}
		segs[i] = strings.Join(parts, "*")
	}
	return Glob{segs: segs, abs: g.abs}
}
