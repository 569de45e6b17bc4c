package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// environ is the environment of one invocation.
type environ struct {
	list []string
	vars map[string]string
}

func parseEnviron(list []string) environ {
	e := environ{list: list, vars: make(map[string]string, len(list))}
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok {
			e.vars[name] = value
		}
	}
	return e
}

func (e environ) get(name string) string { return e.vars[name] }

// config is exthost's own configuration: config.yaml, then EXTHOST_*, then flags. Nothing in it is authority over a
// guest; policies have a parser of their own.
type config struct {
	home    string // absolute; "" when there is none: nothing is read from it or written to it
	cache   string // absolute; "": the user's cache folder
	engine  string
	workers int
}

// settings are the keys of config.yaml, each with its environment variable and the flag that wins over both.
var settings = []struct {
	key, env, flag, what string
	check                func(string) error
}{
	{"cache", "EXTHOST_CACHE", "", "folder of compiled modules, unpacked runtimes and snapshots", nil},
	{"engine", "EXTHOST_ENGINE", "engine", "wasmtime or wazero", checkEngine},
	{"workers", "EXTHOST_WORKERS", "", "most worker processes alive at once", checkWorkers},
}

func checkEngine(v string) error {
	if v != "wasmtime" && v != "wazero" {
		return fmt.Errorf("%q is neither wasmtime nor wazero", v)
	}
	return nil
}

func checkWorkers(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 4096 {
		return fmt.Errorf("%q is not a number from 1 to 4096", v)
	}
	return nil
}

// layer is one source of settings for koanf.
type layer map[string]any

func (l layer) Read() (map[string]any, error) { return maps.Clone(l), nil }

func (l layer) ReadBytes() ([]byte, error) { return nil, errors.New("not a source of bytes") }

// loadConfig reads the configuration. A value is checked in the layer that supplied it, so that the error can name it.
func loadConfig(env environ, g globals, flags *pflag.FlagSet) (config, error) {
	var c config
	var err error
	if c.home, err = homeFolder(env, g); err != nil {
		return c, err
	}
	file, fileName, err := configFile(c.home)
	if err != nil {
		return c, err
	}
	vars, given := layer{}, layer{}
	for _, s := range settings {
		check := func(from, v string) error {
			if s.check == nil {
				return nil
			}
			if err := s.check(v); err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			return nil
		}
		if v, ok := file[s.key]; ok {
			if err := check(fileName+": "+s.key, fmt.Sprint(v)); err != nil {
				return c, err
			}
		}
		if v := env.get(s.env); v != "" {
			if err := check(s.env, v); err != nil {
				return c, err
			}
			vars[s.key] = v
		}
		if s.flag == "" || flags == nil {
			continue
		}
		if f := flags.Lookup(s.flag); f != nil && f.Changed {
			if err := check("--"+s.flag, f.Value.String()); err != nil {
				return c, err
			}
			given[s.key] = f.Value.String()
		}
	}
	k := koanf.New(".")
	for _, l := range []layer{file, vars, given} {
		if err := k.Load(l, nil); err != nil {
			return c, fmt.Errorf("configuration: %w", err)
		}
	}
	c.engine, c.workers = k.String("engine"), k.Int("workers")
	if dir := k.String("cache"); dir != "" {
		if c.cache, err = filepath.Abs(dir); err != nil {
			return c, fmt.Errorf("cache folder %q: %w", dir, err)
		}
	}
	return c, nil
}

// homeFolder is --home, $EXTHOST_HOME or ~/.exthost, absolute; "" when there is no home folder at all.
func homeFolder(env environ, g globals) (string, error) {
	dir := g.home
	if dir == "" {
		dir = env.get("EXTHOST_HOME")
	}
	if dir == "" {
		if person := personHome(env); person != "" {
			dir = filepath.Join(person, ".exthost")
		}
	}
	if dir == "" {
		return "", nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("home folder %q: %w", dir, err)
	}
	return abs, nil
}

// personHome is the person's home folder, or "" if the environment names none.
func personHome(env environ) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir := env.get(name); filepath.IsAbs(dir) {
			return dir
		}
	}
	return ""
}

// configFile reads config.yaml. A missing file is an empty one; an unknown key is an error.
func configFile(home string) (layer, string, error) {
	if home == "" {
		return layer{}, "", nil
	}
	name := filepath.Join(home, "config.yaml")
	data, err := readState(name, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return layer{}, name, nil
	}
	if err != nil {
		return nil, name, fmt.Errorf("config.yaml: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, name, fmt.Errorf("%s: %w", name, err)
	}
	l := layer{}
	if len(doc.Content) == 0 { // nothing but comments
		return l, name, nil
	}
	top := doc.Content[0]
	wrong := func(n *yaml.Node, format string, args ...any) (layer, string, error) {
		return nil, name, fmt.Errorf("%s:%d:%d: %s", name, n.Line, n.Column, fmt.Sprintf(format, args...))
	}
	if top.Kind != yaml.MappingNode {
		return wrong(top, "keys with values are expected")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if seen[key.Value] {
			return wrong(key, "%q is there twice", key.Value)
		}
		seen[key.Value] = true
		known := key.Value == "version"
		for _, s := range settings {
			known = known || s.key == key.Value
		}
		switch {
		case !known:
			return wrong(key, "unknown key %q", key.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return wrong(value, "%s: a single value is expected", key.Value)
		case key.Value == "version":
			if err := checkVersion(name, value.Value, ""); err != nil {
				return nil, name, err
			}
		default:
			l[key.Value] = value.Value
		}
	}
	return l, name, nil
}

// workspace is --workspace or the current folder, absolute. It must be a folder.
func workspace(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("workspace %q: %w", dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("workspace %q is not a folder", abs)
	}
	return abs, nil
}
