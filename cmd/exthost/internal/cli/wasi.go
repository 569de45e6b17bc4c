package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

// wasiFlags are the flags of wasi, which are its whole grant.
type wasiFlags struct {
	dirs   []string
	env    []string
	policy string
	engine string
	time   span
	memory byteSize
	disk   byteSize
	output byteSize
}

func newWASI() *command {
	var f wasiFlags
	return &command{
		name: "wasi", args: "MODULE.wasm [ARG...]", short: "run a WASI command module, granted what the flags say",
		guest: true, stop: true,
		long: "Everything after MODULE is the guest's. The flags are the whole grant, and may raise limits; ceiling.yaml of the\n" +
			"home folder still takes away. Standard streams pass through. --env PWD=DIR sets the working directory.",
		examples: []string{
			"wasi tool.wasm --version",
			"wasi --dir .:/workspace:ro --dir out:/out --env LANG=C tool.wasm -o /out/a.txt",
		},
		flags: func(fs *pflag.FlagSet) {
			fs.StringArrayVar(&f.dirs, "dir", nil, "`HOST:GUEST[:ro]`: a folder or file and where the guest sees it (repeat)")
			fs.StringArrayVar(&f.env, "env", nil, "`K=V` in the guest's environment (repeat)")
			fs.StringVar(&f.policy, "policy", "", "policy `FILE` that grants, instead of --dir and --env")
			fs.StringVar(&f.engine, "engine", "", "`ENGINE`: wasmtime or wazero")
			fs.Var(&f.time, "time", "end the run after this `TIME`")
			fs.Var(&f.memory, "memory", "`SIZE` of the guest's memory")
			fs.Var(&f.disk, "disk", "`SIZE` that the guest may write")
			fs.Var(&f.output, "output", "`SIZE` of each of stdout and stderr")
		},
		run: func(a *app, args []string) error {
			if len(args) == 0 {
				return fail(0, "exthost wasi --help", "no module was named")
			}
			return a.wasi(&f, args[0], args[1:])
		},
	}
}

// wasi is the command wasi.
func (a *app) wasi(f *wasiFlags, module string, args []string) error {
	// The module is always a path here: there is nothing else that it could be.
	arg := module
	if !isPath(arg) {
		arg = "./" + arg
	}
	x, err := a.resolve(arg)
	if err != nil {
		return err
	}
	if !x.file {
		return fail(exitUnable, shellCommand("exthost", "run", arg), "%s is a folder", module)
	}
	g, dir, err := a.wasiGrant(f, x)
	if err != nil {
		return err
	}
	ceilings, err := a.findCeilings(nil)
	if err != nil {
		return err
	}
	ws, err := workspace("")
	if err != nil {
		return err
	}
	h, err := a.newHost(ceilings, false)
	if err != nil {
		return err
	}
	defer h.Close() // ends the workers; there is nobody to tell
	ext, err := h.Open(a.ctx, x.path, g.policy, host.Bindings{Name: x.name, Workspace: ws, Home: personHome(a.env)})
	if err != nil {
		return a.openError(x, g, err)
	}
	defer ext.Close()
	s := &session{
		app: a, x: x, ext: ext, grant: g, workspace: ws, engine: h.Engine(),
		job: host.Job{Args: args, Env: a.env.list, Dir: dir, Stdin: a.stdin},
	}
	return s.run(ext.Effective().Limits().Output)
}

// wasiGrant makes a policy of the flags, through the same parser that reads files. dir is the working directory.
func (a *app) wasiGrant(f *wasiFlags, x extension) (g *grant, dir string, err error) {
	g = &grant{source: fromFlags, name: x.name}
	var p *policy.Policy
	if f.policy != "" {
		if len(f.dirs) > 0 || len(f.env) > 0 {
			return nil, "", fail(exitUnable, "", "--policy excludes --dir and --env: a grant comes from one place")
		}
		g.source, g.file = fromFlag, f.policy
		if g.data, p, err = readPolicy(f.policy); err != nil {
			return nil, "", err
		}
	} else {
		var text []byte
		if text, dir, err = wasiPolicyText(f, x.name); err != nil {
			return nil, "", err
		}
		if p, err = policy.Parse("flags", text); err != nil {
			return nil, "", err
		}
	}
	// Here alone a flag may raise a limit. A formatted policy is parsed again, so that the parser's bounds hold.
	raised := *p
	setIf(&raised.Limits.Memory, int64(f.memory))
	setIf(&raised.Limits.Disk, int64(f.disk))
	setIf(&raised.Limits.Output, int64(f.output))
	if f.time != 0 {
		raised.Limits.Time = f.time.duration()
	}
	if raised.Limits != p.Limits {
		g.data = policy.Format(&raised)
		if p, err = policy.Parse(g.describe(), g.data); err != nil {
			return nil, "", err
		}
	}
	g.policy = p
	return g, dir, nil
}

func setIf(to *int64, v int64) {
	if v != 0 {
		*to = v
	}
}

// wasiPolicyText spells --dir and --env as a policy.
func wasiPolicyText(f *wasiFlags, name string) (text []byte, dir string, err error) {
	var b strings.Builder
	b.Write(policy.NewFile(name, ""))
	seen := map[string]bool{}
	for i, spec := range f.dirs {
		hostDir, guest, access, err := parseDir(spec)
		if err != nil {
			return nil, "", err
		}
		if i == 0 {
			b.WriteString("files:\n")
		}
		if seen[guest] {
			return nil, "", fail(exitUnable, "", "--dir %q: %s is there already", spec, guest)
		}
		seen[guest] = true
		fmt.Fprintf(&b, "  %s: {host: %s, access: %s}\n", yamlString(guest), yamlString(hostDir), access)
	}
	env := map[string]string{}
	var names []string
	for _, kv := range f.env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			return nil, "", fail(exitUnable, "", "--env %q is not NAME=VALUE", kv)
		}
		if name == "PWD" { // the host keeps PWD and the working directory the same
			dir = value
			continue
		}
		if _, twice := env[name]; !twice {
			names = append(names, name)
		}
		env[name] = value // the last one counts
	}
	slices.Sort(names)
	for i, name := range names {
		if i == 0 {
			b.WriteString("env:\n  set:\n")
		}
		fmt.Fprintf(&b, "    %s: %s\n", yamlString(name), yamlString(env[name]))
	}
	return []byte(b.String()), dir, nil
}

// parseDir reads HOST:GUEST[:ro]. HOST is made absolute; it may hold colons, GUEST may not.
func parseDir(spec string) (hostDir, guest, access string, err error) {
	rest, readOnly := strings.CutSuffix(spec, ":ro")
	access = "write"
	if readOnly {
		access = "read"
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 1 || !strings.HasPrefix(rest[i+1:], "/") {
		return "", "", "", fail(exitUnable, "", "--dir %q is not HOST:GUEST or HOST:GUEST:ro, with GUEST beginning with /", spec)
	}
	if hostDir, err = filepath.Abs(rest[:i]); err != nil {
		return "", "", "", fmt.Errorf("--dir %q: %w", spec, err)
	}
	return filepath.ToSlash(hostDir), rest[i+1:], access, nil
}
