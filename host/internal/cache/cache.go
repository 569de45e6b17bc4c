// Package cache keeps compiled modules on disk.
//
// # What it guards against
//
// Compiled code is native code: whoever can write it can run anything in a worker. Workers and guests have no access to
// the folder, so the attacker here is one who got a single write into it by some other fault. A file is therefore used
// only if an index says what it must hold, and the index carries a MAC under a key that lies in the same folder, readable
// by the user alone. A process of the same user can replace exthost itself; the cache does not try to resist that.
//
// # What is checked
//
// The index has for each file its SHA-256 and its inode, size, mtime and ctime. A file whose metadata still fit is used
// without hashing it, any other is hashed, and one with another hash makes the entry void. With [Options.Verify] every
// file is hashed. In either case the file is copied into sealed memory and only that copy is executed, so nothing that
// happens to the file later matters.
//
// # Layout
//
//	key            32 random bytes, mode 0600
//	NAME/          one entry, named by [Key.Name]; made aside and renamed into place as a whole
//	NAME/module    the prepared module
//	NAME/code      its compiled code
//	NAME/index     JSON and MAC
//	NAME.lock      held while a process compiles the entry
package cache

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/host/internal/lock"
	"github.com/exthost/exthost/host/internal/scratch"
)

// ErrMiss says that there is no entry that may be used.
var ErrMiss = errors.New("not in the cache")

// Key is what an artefact depends on.
type Key struct {
	Module  [sha256.Size]byte // SHA-256 of the module as it came
	Code    string            // engine.CodeKey: engine, version, settings, processor
	Memory  int64             // the lowered limits
	Table   uint32
	Owner   string // digest of the extension, or the runtime's: code of one extension is never used for another
	Comment string // for people, in the index
}

// Name is the name of the entry: 64 hexadecimal digits.
func (k Key) Name() string {
	h := sha256.New()
	fmt.Fprintf(h, "exthost module 1\n%x\n%q\n%d\n%d\n%q\n", k.Module, k.Code, k.Memory, k.Table, k.Owner)
	return hex.EncodeToString(h.Sum(nil))
}

// Artefact is a compiled module in sealed memory, or in the cache's own files. Its owner closes it.
type Artefact struct {
	Prepared *os.File
	Code     *os.File
	CodeName string
	InPlace  bool // both are files of the cache, open for reading
}

// Close closes both files.
func (a *Artefact) Close() error { return errors.Join(a.Prepared.Close(), a.Code.Close()) }

// Options configures a Store.
type Options struct {
	// Verify hashes every file whatever its metadata say. It is meant for a process that lives long and pays once.
	Verify bool
	// InPlace hands out the cache's own files, without a copy in memory, if their metadata fit. It is meant for a process
	// that maps them at once and ends soon: what is written to them while they are mapped shows. Verify overrides it.
	InPlace bool
	// MaxBytes bounds the sum of all entries; those that were not used for longest are removed. 0: 2 GiB.
	MaxBytes int64
}

// Store is a folder of compiled modules. It is safe for concurrent use, by several processes too.
type Store struct {
	root *os.Root
	dir  string
	key  []byte
	opt  Options
}

const (
	keyFile     = "key"
	moduleFile  = "module"
	codeFile    = "code"
	indexFile   = "index"
	tmpPrefix   = "tmp-"
	maxIndex    = 16 << 10
	maxArtefact = 2 << 30 // bytes of one file
	defaultMax  = 2 << 30
)

// Open opens the store in dir, which must exist and be private (package private).
func Open(dir string, o Options) (*Store, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMax
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{root: root, dir: dir, opt: o}
	if s.key, err = s.loadKey(); err != nil {
		root.Close()
		return nil, fmt.Errorf("cache: %w", err)
	}
	return s, nil
}

// Close ends the use of the folder; artefacts stay usable.
func (s *Store) Close() error { return s.root.Close() }

// loadKey reads the key or makes one. A key that others could read is no key: it is replaced, and with it all entries
// become void.
func (s *Store) loadKey() ([]byte, error) {
	for range 10 { // another process may make or replace it at the same time
		f, err := s.openFile(keyFile, 0o600)
		if err == nil {
			key, err := io.ReadAll(io.LimitReader(f, sha256.Size+1))
			f.Close()
			if err == nil && len(key) == sha256.Size {
				return key, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			if err := s.root.Remove(keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		if err := s.makeKey(); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, errors.New("the key changes all the time")
}

func (s *Store) makeKey() error {
	tmp := tmpPrefix + rand.Text()
	key := make([]byte, sha256.Size)
	rand.Read(key)
	if err := s.writeFile(tmp, bytes.NewReader(key), 0o600); err != nil {
		return err
	}
	defer s.root.Remove(tmp)
	// Unlike a rename, a link never replaces the key that another process made meanwhile.
	return s.root.Link(tmp, keyFile)
}

// index is what an entry must hold.
type index struct {
	Version  int             `json:"version"`
	Name     string          `json:"name"`
	CodeName string          `json:"code_name"`
	Comment  string          `json:"comment"`
	Files    map[string]file `json:"files"`
}

type file struct {
	SHA256 string `json:"sha256"`
	Meta   meta   `json:"meta"`
}

// meta changes whenever a file is written, replaced, linked or restored with other times: ctime cannot be set.
type meta struct {
	Inode uint64 `json:"inode"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime_ns"`
	Ctime int64  `json:"ctime_ns"`
}

// Get returns the artefact of k. An error matches [ErrMiss] if there is none that may be used; an entry that is damaged
// was removed then.
func (s *Store) Get(k Key) (*Artefact, error) {
	name := k.Name()
	ix, err := s.readIndex(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMiss
	}
	if err != nil {
		return nil, s.drop(name, err)
	}
	if a := s.inPlace(name, &ix); a != nil {
		return a, nil
	}
	a := &Artefact{CodeName: ix.CodeName}
	stale := false
	if a.Prepared, err = s.load(name, moduleFile, &ix, &stale); err != nil {
		return nil, s.drop(name, err)
	}
	if a.Code, err = s.load(name, codeFile, &ix, &stale); err != nil {
		a.Prepared.Close()
		return nil, s.drop(name, err)
	}
	if stale {
		_ = s.writeIndex(name, ix) // only saves the next hashing
	}
	s.touch(name)
	return a, nil
}

// touch is for evict.
func (s *Store) touch(name string) {
	now := time.Now()
	_ = s.root.Chtimes(name, now, now)
}

// inPlace returns the files of an entry as they are, or nil if they have to be copied.
func (s *Store) inPlace(name string, ix *index) *Artefact {
	if !s.opt.InPlace || s.opt.Verify {
		return nil
	}
	var files [2]*os.File
	for i, part := range []string{moduleFile, codeFile} {
		f, err := s.openFile(name+"/"+part, 0o400)
		if err == nil {
			files[i] = f
			var m meta
			if m, err = metaOf(f); err == nil && m == ix.Files[part].Meta {
				continue
			}
		}
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
		return nil
	}
	s.touch(name)
	return &Artefact{Prepared: files[0], Code: files[1], CodeName: ix.CodeName, InPlace: true}
}

// Remove removes the entry of that name ([Key.Name]), if there is one.
func (s *Store) Remove(name string) { _ = scratch.Remove(filepath.Join(s.dir, filepath.Base(name))) }

// drop removes an entry that may not be used.
func (s *Store) drop(name string, why error) error {
	_ = scratch.Remove(filepath.Join(s.dir, name))
	return fmt.Errorf("%w: %w", ErrMiss, why)
}

// load copies a file of an entry into sealed memory and checks the copy.
func (s *Store) load(name, part string, ix *index, stale *bool) (*os.File, error) {
	want, ok := ix.Files[part]
	if !ok {
		return nil, fmt.Errorf("%s: not in the index", part)
	}
	f, err := s.openFile(name+"/"+part, 0o400)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := metaOf(f)
	if err != nil {
		return nil, err
	}
	if before.Size > maxArtefact {
		return nil, fmt.Errorf("%s: too big", part)
	}
	fits := before == want.Meta
	h := sha256.New()
	var sum io.Writer = h
	if fits && !s.opt.Verify {
		sum = nil
	}
	m, err := sealed(part, f, before.Size, sum)
	if err != nil {
		return nil, err
	}
	// Whoever wrote the file while it was copied has changed its metadata by now.
	after, err := metaOf(f)
	switch {
	case err != nil:
	case after != before:
		err = fmt.Errorf("%s: it changed while it was read", part)
	case sum != nil && hex.EncodeToString(h.Sum(nil)) != want.SHA256:
		err = fmt.Errorf("%s: its content is not what was written", part)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	if !fits {
		ix.Files[part] = file{want.SHA256, after}
		*stale = true
	}
	return m, nil
}

// openFile opens a regular file of the user's own that has one name and the given mode, and no other.
func (s *Store) openFile(name string, mode fs.FileMode) (*os.File, error) {
	was, err := s.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if !was.Mode().IsRegular() || was.Mode().Perm() != mode {
		return nil, fmt.Errorf("%s: its mode is %v", name, was.Mode())
	}
	f, err := s.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err == nil && (!os.SameFile(was, is) || !oneOwnName(is)) {
		err = fmt.Errorf("%s: it has other names, another owner, or was replaced", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Put writes an artefact and leaves the caller the ownership of its files. It returns no error if another process was
// faster.
func (s *Store) Put(k Key, a *Artefact) error {
	name := k.Name()
	tmp := tmpPrefix + rand.Text()
	if err := s.root.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	defer func() { _ = scratch.Remove(filepath.Join(s.dir, tmp)) }()
	ix := index{Version: 1, Name: name, CodeName: a.CodeName, Comment: k.Comment, Files: map[string]file{}}
	for part, f := range map[string]*os.File{moduleFile: a.Prepared, codeFile: a.Code} {
		h := sha256.New()
		// Read by offset: the caller's file position stays where it is.
		src := io.NewSectionReader(f, 0, maxArtefact)
		if err := s.writeFile(tmp+"/"+part, io.TeeReader(src, h), 0o400); err != nil {
			return err
		}
		w, err := s.openFile(tmp+"/"+part, 0o400)
		if err != nil {
			return err
		}
		m, err := metaOf(w)
		w.Close()
		if err != nil {
			return err
		}
		ix.Files[part] = file{hex.EncodeToString(h.Sum(nil)), m}
	}
	if err := s.writeIndex(tmp, ix); err != nil {
		return err
	}
	if err := s.root.Rename(tmp, name); err != nil {
		if _, err := s.readIndex(name); err == nil {
			return nil // another process was faster
		}
		_ = scratch.Remove(filepath.Join(s.dir, name))
		if err := s.root.Rename(tmp, name); err != nil {
			return err
		}
	}
	s.evict(name)
	return nil
}

// writeFile writes a new file and waits until it is on disk, so that a rename after it never names an empty file.
func (s *Store) writeFile(name string, r io.Reader, mode fs.FileMode) error {
	f, err := s.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

func (s *Store) mac(name string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "exthost index 1\n%s\n", name)
	h.Write(body)
	return h.Sum(nil)
}

// writeIndex writes ix into the folder dir, in which it becomes visible at once and whole.
func (s *Store) writeIndex(dir string, ix index) error {
	body, err := json.Marshal(ix)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s\n%x\n", body, s.mac(ix.Name, body))
	tmp := dir + "/" + tmpPrefix + rand.Text()
	if err := s.writeFile(tmp, bytes.NewReader(text), 0o400); err != nil {
		return err
	}
	return s.root.Rename(filepath.FromSlash(tmp), filepath.FromSlash(dir+"/"+indexFile))
}

func (s *Store) readIndex(name string) (index, error) {
	fi, err := s.root.Lstat(name)
	if err != nil {
		return index{}, err
	}
	if !fi.IsDir() {
		return index{}, errors.New("the entry is not a folder")
	}
	f, err := s.openFile(name+"/"+indexFile, 0o400)
	if err != nil {
		return index{}, fmt.Errorf("index: %v", err) // not matching ErrNotExist: an entry without an index is damaged
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return index{}, err
	}
	body, sum, _ := strings.Cut(string(text), "\n")
	mac, err := hex.DecodeString(strings.TrimSuffix(sum, "\n"))
	if err != nil || !hmac.Equal(mac, s.mac(name, []byte(body))) {
		return index{}, errors.New("index: its MAC does not fit")
	}
	var ix index
	if err := json.Unmarshal([]byte(body), &ix); err != nil {
		return index{}, err
	}
	if ix.Version != 1 || ix.Name != name {
		return index{}, errors.New("index: it is of another entry or version")
	}
	return ix, nil
}

// Lock waits until no other process compiles k. Whoever holds it looks with Get first: the other may have made the
// entry meanwhile.
func (s *Store) Lock(ctx context.Context, k Key) (*lock.Lock, error) {
	name := k.Name() + ".lock"
	for {
		f, err := s.root.OpenFile(name, os.O_RDONLY|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		f.Close()
		l, err := lock.Exclusive(ctx, filepath.Join(s.dir, name))
		if !errors.Is(err, fs.ErrNotExist) { // evict removed the file between the two calls
			return l, err
		}
	}
}

// evict removes the entries that were not used for longest until the rest fits, and what dead processes left.
func (s *Store) evict(keep string) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	type item struct {
		name string
		used time.Time
		size int64
	}
	var items []item
	var sum int64
	for _, d := range list {
		fi, err := d.Info()
		if err != nil {
			continue
		}
		old := time.Since(fi.ModTime()) > time.Hour
		switch {
		case strings.HasPrefix(d.Name(), tmpPrefix):
			if old {
				_ = scratch.Remove(filepath.Join(s.dir, d.Name()))
			}
		case strings.HasSuffix(d.Name(), ".lock"):
			if old {
				if l, err := lock.TryExclusive(filepath.Join(s.dir, d.Name())); err == nil {
					_ = s.root.Remove(d.Name())
					l.Close()
				}
			}
		case fi.IsDir():
			it := item{d.Name(), fi.ModTime(), scratch.Size(filepath.Join(s.dir, d.Name()))}
			sum += it.size
			if d.Name() != keep {
				items = append(items, it)
			}
		}
	}
	slices.SortFunc(items, func(a, b item) int { return a.used.Compare(b.used) })
	for _, it := range items {
		if sum <= s.opt.MaxBytes {
			return
		}
		if scratch.Remove(filepath.Join(s.dir, it.name)) == nil {
			sum -= it.size
		}
	}
}
