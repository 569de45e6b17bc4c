package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// stateVersion is the version of every state file that this version writes. A newer one is refused.
const stateVersion = 1

// Sizes that no state file of ours comes near.
const (
	maxStateFile = 4 << 20
	maxDenials   = 200
)

// checkVersion refuses a state file of a newer exthost. by is the version that wrote it, if the file says so.
func checkVersion(file, version, by string) error {
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 {
		return fmt.Errorf("%s: version %q is not a number from 1", file, version)
	}
	if n > stateVersion {
		if by != "" {
			by = " by exthost " + by
		}
		return fmt.Errorf("%s: version %d was written%s; this exthost reads version %d", file, n, by, stateVersion)
	}
	return nil
}

// readState reads a file of exthost's own folder: a regular file of at most limit bytes.
func readState(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, limit)
	}
	return data, nil
}

// writeFile replaces file atomically: readers see the old or the new one, also after a crash. The file is the user's
// own (0600); folders that are missing are made 0700.
func writeFile(file string, data []byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// denial is one line of denials.jsonl.
type denial struct {
	Version    int       `json:"version"`
	Time       time.Time `json:"time"`
	Name       string    `json:"name"`   // of the extension
	Path       string    `json:"path"`   // absolute host path of the extension
	Digest     string    `json:"digest"` // of the tree that asked
	Script     string    `json:"script,omitempty"`
	Capability string    `json:"capability"`
	Suggest    string    `json:"suggest,omitempty"` // what to grant, with "=HOST" where it is needed; "": it cannot be granted
	Reason     string    `json:"reason,omitempty"`
	Ceiling    bool      `json:"ceiling,omitempty"` // a ceiling refused it
}

// once is a grant for the next run only.
type once struct {
	Name       string `json:"name"`
	Digest     string `json:"digest"`
	Capability string `json:"capability"` // as in grant, with "=HOST"
}

// never is a denial that a person does not want to be asked about again.
type never struct {
	Name       string `json:"name"`
	Capability string `json:"capability"`
}

// grantsFile is grants.json.
type grantsFile struct {
	Version int     `json:"version"`
	By      string  `json:"by,omitempty"`
	Once    []once  `json:"once"`
	Never   []never `json:"never"`
}

// errNoHome is what a command says that needs exthost's own folder when there is none.
var errNoHome = &failure{
	err:  errors.New("there is no folder for policies: neither HOME nor EXTHOST_HOME is set"),
	hint: []string{"set EXTHOST_HOME, or use --home DIR"},
}

// locked runs f while this process alone changes the state files of the home folder.
func (a *app) locked(f func() error) error {
	if a.cfg.home == "" {
		return errNoHome
	}
	if err := os.MkdirAll(a.cfg.home, 0o700); err != nil {
		return fmt.Errorf("home folder: %w", err)
	}
	unlock, err := lockFolder(a.cfg.home)
	if err != nil {
		return fmt.Errorf("home folder: %w", err)
	}
	return errors.Join(f(), unlock())
}

// readDenials reads the log, oldest first. A line that does not parse is skipped: the log is a convenience.
func (a *app) readDenials() ([]denial, error) {
	if a.cfg.home == "" {
		return nil, nil
	}
	file := filepath.Join(a.cfg.home, "denials.jsonl")
	data, err := readState(file, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("denial log: %w", err)
	}
	var all []denial
	for line := range bytes.Lines(data) {
		var d denial
		if json.Unmarshal(line, &d) != nil {
			continue
		}
		if err := checkVersion(file, strconv.Itoa(d.Version), ""); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// logDenials adds to the log and keeps the last of it. The same capability of the same extension is kept once.
func (a *app) logDenials(add []denial) error {
	if len(add) == 0 || a.cfg.home == "" {
		return nil
	}
	return a.locked(func() error {
		all, err := a.readDenials()
		if err != nil {
			return err
		}
		for _, d := range add {
			all = slices.DeleteFunc(all, func(o denial) bool {
				return o.Name == d.Name && o.Path == d.Path && o.Capability == d.Capability
			})
			all = append(all, d)
		}
		return a.writeDenials(all)
	})
}

// shorten drops the oldest line of the extension that has the most, until no more than n are left: one that is denied
// a thousand things does not push out what others asked for.
func shorten(all []denial, n int) []denial {
	for len(all) > n {
		count, most := map[string]int{}, ""
		for _, d := range all {
			if count[d.Name]++; count[d.Name] > count[most] {
				most = d.Name
			}
		}
		i := slices.IndexFunc(all, func(d denial) bool { return d.Name == most })
		all = slices.Delete(all, i, i+1)
	}
	return all
}

func (a *app) writeDenials(all []denial) error {
	all = shorten(all, maxDenials)
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, d := range all {
		if err := enc.Encode(d); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(a.cfg.home, "denials.jsonl"), buf.Bytes()); err != nil {
		return fmt.Errorf("denial log: %w", err)
	}
	return nil
}

// readGrants reads grants.json; a missing file is an empty one.
func (a *app) readGrants() (grantsFile, error) {
	g := grantsFile{Version: stateVersion, Once: []once{}, Never: []never{}}
	if a.cfg.home == "" {
		return g, nil
	}
	file := filepath.Join(a.cfg.home, "grants.json")
	data, err := readState(file, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("grants.json: %w", err)
	}
	var head struct {
		Version int    `json:"version"`
		By      string `json:"by"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return g, fmt.Errorf("%s: %w", file, err)
	}
	if err := checkVersion(file, strconv.Itoa(head.Version), head.By); err != nil {
		return g, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		return g, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
}

// writeGrants replaces grants.json. Preconditions: the home folder is locked.
func (a *app) writeGrants(g grantsFile) error {
	g.Version, g.By = stateVersion, versionText()
	data, err := encodeJSON(g)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(a.cfg.home, "grants.json"), data); err != nil {
		return fmt.Errorf("grants.json: %w", err)
	}
	return nil
}

// policyFiles lists the grants of the home folder.
func (a *app) policyFiles() []string {
	files, err := filepath.Glob(filepath.Join(a.cfg.home, "policies", "*.yaml"))
	if err != nil { // only for a pattern that is wrong
		return nil
	}
	return files
}
