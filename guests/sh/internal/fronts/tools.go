package fronts

import (
	"context"
	"io"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// split divides arguments into options and operands for tools with one-letter options, of which those in valued take a
// value. The options end at "--", and at the first operand when leading is set.
func split(args []string, valued string, leading bool) (options map[string]string, operands []string) {
	options = map[string]string{}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			return options, append(operands, args...)
		case len(a) < 2 || a[0] != '-':
			operands = append(operands, a)
			if leading {
				return options, append(operands, args...)
			}
		case a[1] == '-':
			name, value, _ := strings.Cut(a[2:], "=")
			options[name] = value
		default:
			for i := 1; i < len(a); i++ {
				letter := a[i : i+1]
				if strings.Contains(valued, letter) {
					value := a[i+1:]
					if value == "" && len(args) > 0 {
						value, args = args[0], args[1:]
					}
					options[letter] = value
					break
				}
				options[letter] = ""
			}
		}
	}
	return options, operands
}

// longValues removes the value that stands behind each of the long options in names, "--user NAME".
func longValues(args []string, names string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(kept, args[i:]...)
		}
		kept = append(kept, args[i])
		if strings.HasPrefix(args[i], "--") && strings.Contains(" "+names+" ", " "+args[i][2:]+" ") {
			i++
		}
	}
	return kept
}

func git(_ context.Context, c *cmd.Call) int {
	args := longValues(c.Args, "git-dir work-tree namespace super-prefix config-env exec-path")
	options, operands := split(args, "Cc", true)
	if len(operands) == 0 {
		switch {
		case has(options, "version"), has(options, "v"):
			operands = []string{"version"}
		case has(options, "help"), has(options, "h"):
			operands = []string{"help"}
		default:
			say(c, "usage: git [-v | --version] [-h | --help] [-C <path>] [-c <name>=<value>] <command> [<args>]")
			return 1
		}
	}
	verb, rest := operands[0], operands[1:]
	if !word(verb) {
		verb = ""
	}
	remote := ""
	for _, a := range rest {
		if u := gitURL(a); u != "" {
			remote = u
			break
		}
	}
	why := program("git", verb, remote)
	switch {
	case remote != "":
		say(c, "fatal: unable to access '%s': %s", remote, why)
	case verb == "push" || verb == "pull" || verb == "fetch" || verb == "clone":
		say(c, "fatal: Could not read from remote repository: %s", why)
	default:
		say(c, "fatal: not a git repository: %s", why)
	}
	return 128
}

// gitURL is an argument as a URL without user and secrets, "" if it is none: https://, ssh:// or user@host:path.
func gitURL(a string) string {
	if strings.HasPrefix(a, "-") || strings.HasPrefix(a, ":") {
		return ""
	}
	if strings.Contains(a, "://") {
		t := parseURL(a)
		if t.host == "" || t.scheme == "" {
			return ""
		}
		return t.String()
	}
	host, path, ok := strings.Cut(a, ":")
	if !ok || path == "" || strings.ContainsAny(host, "/ ") || !strings.Contains(host, "@") {
		return "" // main:main is a refspec, not a host
	}
	return target{scheme: "ssh", host: host[strings.LastIndexByte(host, '@')+1:], path: "/" + strings.TrimPrefix(path, "/")}.String()
}

func has(options map[string]string, name string) bool {
	_, ok := options[name]
	return ok
}

// word tells whether s is the plain name of a subcommand.
func word(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+:") == ""
}

func ssh(_ context.Context, c *cmd.Call) int {
	options, operands := split(c.Args, "BbcDEeFIiJLlmOopQRSWw", true)
	if len(operands) == 0 {
		say(c, "usage: ssh [-p port] [-l login_name] [-i identity_file] [-o option] destination [command [argument ...]]")
		return 255
	}
	t := parseURL(operands[0])
	if t.scheme == "" {
		t = target{host: operands[0][strings.LastIndexByte(operands[0], '@')+1:]}
	}
	t.scheme, t.path = "ssh", ""
	if p := options["p"]; p != "" {
		t.port = p
	}
	why := program("ssh", endpoint(t))
	say(c, "ssh: connect to host %s port %s: %s", t.host, t.portOr(), why)
	return 255
}

// endpoint is a host, and its port if that is said.
func endpoint(t target) string {
	if t.port == "" {
		return t.host
	}
	return t.host + ":" + t.port
}

func scp(_ context.Context, c *cmd.Call) int {
	options, operands := split(c.Args, "BcDFiJlobPRSsX", false)
	port := options["P"]
	t := target{scheme: "ssh", port: port}
	for _, o := range operands {
		if strings.Contains(o, "://") {
			u := parseURL(o)
			t.host = u.host
			if u.port != "" {
				t.port = u.port
			}
			break
		}
		host, _, ok := strings.Cut(o, ":")
		if !ok && c.Name == "sftp" {
			host, ok = o, true
		}
		if ok && host != "" && !strings.Contains(host, "/") {
			t.host = host[strings.LastIndexByte(host, '@')+1:]
			break
		}
	}
	if len(operands) == 0 || c.Name == "scp" && len(operands) < 2 {
		say(c, "usage: %s [-P port] [-i identity_file] [-o ssh_option] source ... target", c.Name)
		return 1
	}
	if t.host == "" {
		c.Errorf("%s", program(c.Name))
		return 1
	}
	why := program(c.Name, endpoint(t))
	say(c, "ssh: connect to host %s port %s: %s", t.host, t.portOr(), why)
	c.Errorf("Connection closed")
	return 255
}

func nc(_ context.Context, c *cmd.Call) int {
	options, operands := split(longValues(c.Args, "exec sh-exec lua-exec max-conns delay output source source-port proxy proxy-type proxy-auth wait idle-timeout"), "gGIiMmeOPpqsTVWwXxo", false)
	where := ""
	switch {
	case has(options, "l") || has(options, "listen"):
		where = "listen"
	case len(operands) == 0:
		say(c, "usage: nc [-46DdhklNnrStUuvZz] [-w timeout] [destination] [port]")
		return 1
	default:
		where = strings.Join(operands[:min(len(operands), 2)], ":")
	}
	c.Errorf("connect to %s failed: %s", strings.Replace(where, ":", " port ", 1), program("nc", where))
	return 1
}

func ping(_ context.Context, c *cmd.Call) int {
	_, operands := split(c.Args, "cFIiLlmMNpQSsTtWwe", false)
	if len(operands) == 0 {
		c.Errorf("usage error: Destination address required")
		return 1
	}
	host := operands[len(operands)-1]
	c.Errorf("connect: %s: %s", host, program("ping", host))
	return 2
}

func sudo(_ context.Context, c *cmd.Call) int {
	if c.Name == "su" {
		c.Errorf("Authentication failure: %s", program("su"))
		return 1
	}
	_, operands := split(longValues(c.Args, "user group host prompt chdir chroot role type command-timeout other-user close-from"), "CDghpRrtTUu", true)
	for len(operands) > 0 && strings.Contains(operands[0], "=") {
		operands = operands[1:] // a variable
	}
	command := ""
	if len(operands) > 0 && (word(operands[0]) || strings.HasPrefix(operands[0], "/")) {
		command = operands[0]
	}
	c.Errorf("%s", program("sudo", command))
	return 1
}

func docker(_ context.Context, c *cmd.Call) int {
	_, operands := split(longValues(c.Args, "config context host log-level tlscacert tlscert tlskey"), "cHl", true)
	if len(operands) == 0 {
		say(c, "\nUsage:  docker [OPTIONS] COMMAND")
		return 0
	}
	verb, rest := operands[0], operands[1:]
	if !word(verb) {
		verb = ""
	}
	image := ""
	switch verb {
	case "run", "create", "exec":
		// Which options of run take a value decides what is the image.
		_, words := split(longValues(rest, "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-rt-period "+
			"cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device device-cgroup-rule device-read-bps device-read-iops device-write-bps "+
			"device-write-iops dns dns-option dns-search domainname entrypoint env env-file expose gpus group-add health-cmd health-interval health-retries "+
			"health-start-period health-timeout hostname ip ip6 ipc isolation kernel-memory label label-file link link-local-ip log-driver log-opt mac-address "+
			"memory memory-reservation memory-swap memory-swappiness mount name network network-alias oom-score-adj pid pids-limit platform publish pull "+
			"restart runtime security-opt shm-size stop-signal stop-timeout storage-opt sysctl tmpfs ulimit user userns uts volume volume-driver volumes-from "+
			"workdir net"), "acehlmpuvw", true)
		if len(words) > 0 {
			image = imageName(words[0])
		}
	case "pull", "push":
		if _, words := split(longValues(rest, "platform"), "", false); len(words) > 0 {
			image = imageName(words[0])
		}
	case "compose", "image", "container", "volume", "network", "buildx", "system":
		if len(rest) > 0 && word(rest[0]) && rest[0][0] != '-' {
			image = rest[0]
		}
	}
	why := program("docker", verb, image)
	say(c, "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock: %s", why)
	if verb == "run" || verb == "create" {
		return 125
	}
	return 1
}

// imageName is a name of an image, "" for what is none and might be a value.
func imageName(s string) string {
	if len(s) > 200 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+:/@") != "" {
		return ""
	}
	return s
}

// packageName is what is to be installed: a name with its version, or a URL without secrets.
func packageName(s string) string {
	if strings.Contains(s, "://") {
		prefix, rest, _ := strings.Cut(s, "://")
		t := parseURL(prefix + "://" + rest)
		return t.String()
	}
	if len(s) > 100 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+:/@<>=!~^,[] ") != "" {
		return ""
	}
	return s
}

func npm(_ context.Context, c *cmd.Call) int {
	args := longValues(c.Args, "prefix registry cache userconfig globalconfig loglevel workspace tag otp package call userconfig script-shell")
	_, operands := split(args, "wpc", false)
	var words []string
	if c.Name == "npx" {
		for _, o := range operands[:min(len(operands), 1)] {
			words = append(words, packageName(o))
		}
	} else {
		for i, o := range operands[:min(len(operands), 4)] {
			if i == 0 && !word(o) {
				continue
			}
			if i > 0 && (operands[0] == "config" || operands[0] == "set" || operands[0] == "c") {
				break // its operands may be a token
			}
			words = append(words, packageName(o))
		}
	}
	say(c, "npm ERR! %s", program(c.Name, words...))
	return 1
}

func pip(_ context.Context, c *cmd.Call) int {
	args := longValues(c.Args, "requirement constraint target index-url extra-index-url find-links proxy timeout retries cert client-cert cache-dir log python trusted-host "+
		"prefix root src platform python-version implementation abi exists-action editable no-binary only-binary format report upgrade-strategy progress-bar")
	options, operands := split(args, "rctief", false)
	var words []string
	if len(operands) > 0 && word(operands[0]) {
		words = append(words, operands[0])
		for _, o := range operands[1:min(len(operands), 9)] {
			words = append(words, packageName(o))
		}
		if r := options["r"]; r != "" && len(operands) == 1 {
			words = append(words, "-r")
		}
	}
	why := program(c.Name, words...)
	if len(words) > 1 && words[0] == "install" && words[1] != "-r" && words[1] != "" {
		say(c, "ERROR: Could not install %s: %s", strings.Join(words[1:], " "), why)
	} else {
		say(c, "ERROR: %s", why)
	}
	return 1
}

// interpreter stands for python3 and node, which are not among this guest's programs.
func interpreter(ctx context.Context, c *cmd.Call) int {
	valued := "cmWX"
	if c.Name == "node" {
		valued = "epr"
	}
	what := ""
	options, operands := split(c.Args, valued, true)
	m, hasModule := options["m"]
	switch {
	case hasModule && c.Name != "node":
		what = "-m"
		if word(m) {
			what = "-m " + m
		}
	case has(options, "c"), has(options, "e"), has(options, "p"):
	case len(operands) > 0 && operands[0] != "-":
		what = operands[0]
	case len(operands) > 0 || len(c.Args) == 0:
		// The program comes on standard input: reading it spares the writer a broken pipe.
		io.Copy(io.Discard, io.LimitReader(cmd.Reader(ctx, c.Stdin), 64<<20))
	}
	c.Errorf("%s", program(c.Name, strings.Fields(what)...))
	return 126
}
