package cli

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

//go:embed topics/*.txt
var topicFiles embed.FS

// topics are the names after "exthost help" that are not commands. json is generated.
var topics = []string{"policy", "exit", "files", "env", "abi", "json"}

func newHelp() *command {
	return &command{
		name: "help", args: "[TOPIC]", short: "explain a command or a topic",
		long:     "Topics: " + strings.Join(topics, ", ") + ".",
		examples: []string{"help exit", "help json", "help run"},
		run: func(a *app, args []string) error {
			if len(args) == 0 {
				return a.printOverview(a.stdout)
			}
			name := strings.Join(args, " ")
			if name == "json" {
				return a.printSchemas()
			}
			if slices.Contains(topics, name) {
				text, err := topicFiles.ReadFile("topics/" + name + ".txt")
				if err != nil {
					return err
				}
				return a.say("%s", text)
			}
			cmd, rest, err := find(args)
			switch {
			case err != nil:
				return fail(exitCannot, "exthost help", "no help on %q: it is neither a command nor a topic (%s)", name,
					strings.Join(topics, ", "))
			case cmd == nil:
				return a.printNoun(a.stdout, args[0])
			case len(rest) > 0:
				return fail(exitCannot, "exthost help "+cmd.name, "no help on %q", name)
			}
			return a.printCommand(a.stdout, cmd)
		},
	}
}

func (a *app) printOverview(w io.Writer) error {
	var b strings.Builder
	b.WriteString("exthost runs agent extensions that nobody has reason to trust.\n\n")
	b.WriteString("usage: exthost COMMAND [FLAG...] [ARG...]\n\n")
	for _, c := range table() {
		fmt.Fprintf(&b, "  %-16s %s\n", c.name, c.short)
	}
	b.WriteString("\nEXT is a folder with SKILL.md, or a file (.sh, .py, .wasm), and begins with ./ ../ / or ~/\n")
	b.WriteString("\nflags of every command:\n" + globalUsage())
	b.WriteString("\nexthost help COMMAND, exthost help TOPIC (" + strings.Join(topics, ", ") + ")\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) printNoun(w io.Writer, noun string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: exthost %s VERB [FLAG...] [ARG...]\n\n", noun)
	for _, c := range table() {
		if strings.HasPrefix(c.name, noun+" ") {
			fmt.Fprintf(&b, "  %-16s %s\n", c.name, c.short)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) printCommand(w io.Writer, c *command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: exthost %s", c.name)
	own := newFlagSet()
	if c.flags != nil {
		c.flags(own)
	}
	if own.HasFlags() {
		b.WriteString(" [FLAG...]")
	}
	if c.args != "" {
		b.WriteString(" " + c.args)
	}
	fmt.Fprintf(&b, "\n\n%s\n", sentence(c.short))
	if c.long != "" {
		b.WriteString("\n" + c.long + "\n")
	}
	if own.HasFlags() {
		b.WriteString("\nflags:\n" + own.FlagUsagesWrapped(100))
	}
	b.WriteString("\nflags of every command:\n" + globalUsage())
	if len(c.examples) > 0 {
		b.WriteString("\nexamples:\n")
		for _, e := range c.examples {
			b.WriteString("  exthost " + e + "\n")
		}
	}
	b.WriteString("\nexit codes: ")
	switch {
	case c.guest:
		b.WriteString("the guest's; 124 limit, 125 could not run, 126 denied, 127 not found, 134 trap")
	case c.name == "grant":
		b.WriteString("0 yes, 1 a finding, 2 could not run, 125 no terminal")
	default:
		b.WriteString("0 yes, 1 a finding, 2 could not run")
	}
	b.WriteString(" (exthost help exit)\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func globalUsage() string {
	fs := newFlagSet()
	new(globals).register(fs)
	return fs.FlagUsagesWrapped(100)
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func newCompletion() *command {
	return &command{
		name: "completion", args: "bash|zsh|fish", short: "print a completion script for a shell",
		examples: []string{"completion bash > ~/.local/share/bash-completion/completions/exthost"},
		run: func(a *app, args []string) error {
			if len(args) != 1 {
				return fail(exitCannot, "exthost completion --help", "one shell is expected: bash, zsh or fish")
			}
			var text string
			switch args[0] {
			case "bash":
				text = bashCompletion()
			case "zsh":
				text = "#compdef exthost\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion()
			case "fish":
				text = fishCompletion()
			default:
				return fail(exitCannot, "exthost completion --help", "no completion for %q: bash, zsh and fish are known", args[0])
			}
			return a.say("%s", text)
		},
	}
}

// words is what may follow: the verbs of a noun, the topics of help, and the flags of a command.
func completionWords() (first []string, verbs map[string][]string, flags map[string][]string) {
	verbs, flags = map[string][]string{}, map[string][]string{}
	for _, c := range table() {
		noun, verb, two := strings.Cut(c.name, " ")
		if !slices.Contains(first, noun) {
			first = append(first, noun)
		}
		if two {
			verbs[noun] = append(verbs[noun], verb)
		}
		fs := newFlagSet()
		if c.flags != nil {
			c.flags(fs)
		}
		new(globals).register(fs)
		fs.VisitAll(func(f *pflag.Flag) { flags[c.name] = append(flags[c.name], "--"+f.Name) })
	}
	verbs["help"] = append(slices.Clone(topics), first...)
	verbs["completion"] = []string{"bash", "zsh", "fish"}
	return first, verbs, flags
}

func bashCompletion() string {
	first, verbs, flags := completionWords()
	var b strings.Builder
	b.WriteString(`_exthost() {
  local cur=${COMP_WORDS[COMP_CWORD]} noun= verb= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) return ;;
      -*) ;;
      *) if [[ -z $noun ]]; then noun=${COMP_WORDS[i]}; elif [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; fi ;;
    esac
  done
  local words=
  if [[ $cur == -* ]]; then
    case "$noun $verb" in
`)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		pattern := `"` + name + `"*`
		if !strings.Contains(name, " ") {
			pattern = `"` + name + ` "*`
		}
		fmt.Fprintf(&b, "      %s) words=\"%s\" ;;\n", pattern, strings.Join(flags[name], " "))
	}
	fmt.Fprintf(&b, `    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [[ -z $noun ]]; then
    COMPREPLY=($(compgen -W "%s" -- "$cur"))
    return
  fi
  if [[ -z $verb ]]; then
    case $noun in
`, strings.Join(first, " "))
	for _, noun := range slices.Sorted(maps.Keys(verbs)) {
		fmt.Fprintf(&b, "      %s) words=\"%s\" ;;\n", noun, strings.Join(verbs[noun], " "))
	}
	b.WriteString(`    esac
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _exthost exthost
`)
	return b.String()
}

func fishCompletion() string {
	_, verbs, _ := completionWords()
	var b strings.Builder
	seen := map[string]bool{}
	for _, c := range table() {
		noun, verb, two := strings.Cut(c.name, " ")
		at := "__fish_seen_subcommand_from " + noun
		if !two {
			fmt.Fprintf(&b, "complete -c exthost -n __fish_use_subcommand -a %s -d '%s'\n", noun, fishQuote(c.short))
		} else {
			if !seen[noun] {
				fmt.Fprintf(&b, "complete -c exthost -n __fish_use_subcommand -a %s\n", noun)
				seen[noun] = true
			}
			fmt.Fprintf(&b, "complete -c exthost -n '%s; and not __fish_seen_subcommand_from %s' -a %s -d '%s'\n",
				at, strings.Join(verbs[noun], " "), verb, fishQuote(c.short))
			at += "; and __fish_seen_subcommand_from " + verb
		}
		fs := newFlagSet()
		if c.flags != nil {
			c.flags(fs)
		}
		new(globals).register(fs)
		fs.VisitAll(func(f *pflag.Flag) {
			_, text := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, "complete -c exthost -n '%s' -l %s", at, f.Name)
			if f.Shorthand != "" {
				b.WriteString(" -s " + f.Shorthand)
			}
			if f.NoOptDefVal == "" {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d '%s'\n", fishQuote(text))
		})
	}
	for _, noun := range []string{"help", "completion"} {
		fmt.Fprintf(&b, "complete -c exthost -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", noun,
			strings.Join(verbs[noun], " "))
	}
	return b.String()
}

func fishQuote(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) }
