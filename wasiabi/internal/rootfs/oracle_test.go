package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The oracle is a file system in memory with a walk of its own, written from POSIX and the rule "links stay inside
// their mount", as a map from path to what is there: "" a folder, "->T" a link, else a file's text.
var oracleTree = map[string]string{
	"": "", "a": "", "a/f": "af", "a/b": "", "a/b/f": "abf", "f": "f", "to-a": "->a", "to-f": "->f", "a/up": "->..", "a/b/top": "->../../f",
	"a/out": "->../../secret", "abs": "->/f", "loop": "->loop", "chain": "->to-a/b", "a/self": "->.", "slash": "->a/",
}

// oracle resolves p below the mount /w and gives the text of the file, "" for a folder; ok is false for a refusal or
// a path that is not there.
func oracle(p string) (text string, ok bool) {
	todo := strings.Split(p, "/")
	dirs := strings.HasSuffix(p, "/")
	type at struct {
		path string
		root bool // "/", above the mount
	}
	cur := at{root: true}
	file := false
	fromLink := 0
	for links := 0; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		link := fromLink > 0
		if link {
			fromLink--
		}
		if c == "" && !link && len(todo) == len(strings.Split(p, "/"))-1 && p[0] == '/' {
			continue
		}
		if c == "" || c == "." {
			if file {
				return "", false
			}
			continue
		}
		if file {
			return "", false
		}
		if c == ".." {
			switch {
			case cur.root, link && cur.path == "":
				return "", false
			case cur.path == "":
				cur.root = true
			default:
				cur.path = strings.TrimPrefix(filepath.ToSlash(filepath.Dir("/"+cur.path)), "/")
			}
			continue
		}
		if cur.root {
			if c != "w" {
				return "", false
			}
			cur = at{}
			continue
		}
		next := strings.TrimPrefix(cur.path+"/"+c, "/")
		v, there := oracleTree[next]
		if !there {
			return "", false
		}
		if to, isLink := strings.CutPrefix(v, "->"); isLink {
			links++
			if links > maxLinks || to[0] == '/' {
				return "", false
			}
			parts := strings.Split(to, "/")
			todo = append(parts, todo...)
			fromLink += len(parts)
			continue
		}
		if v != "" {
			file = true
		}
		cur.path = next
	}
	if cur.root {
		return "", true
	}
	if dirs && file {
		return "", false
	}
	return oracleTree[cur.path], true
}

func oracleMount(t testing.TB) *tree {
	base := t.TempDir()
	list := map[string]string{"secret": "secret"}
	for p, v := range oracleTree {
		switch to, link := strings.CutPrefix(v, "->"); {
		case link:
			list["in/"+p] = "-> " + to
		case v == "":
			list["in/"+p+"/"] = ""
		default:
			list["in/"+p] = v
		}
	}
	for name, text := range list {
		p := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch to, link := strings.CutPrefix(text, "-> "); {
		case link:
			err = os.Symlink(to, p)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o755)
		default:
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return newTree(t, Config{Mounts: []Mount{{Guest: "/w", Dir: filepath.Join(base, "in"), Access: ReadOnly}}, Events: func(Event) {}})
}

// FuzzPath opens any path and compares with the oracle: what opens is what the oracle says, and nothing else opens.
func FuzzPath(f *testing.F) {
	for p := range oracleTree {
		f.Add("w/" + p)
		f.Add("w/" + p + "/")
		f.Add("w/" + p + "/../f")
		f.Add("w/" + p + "/b/../../../w/a/b/top")
	}
	for _, p := range []string{"..", "../", "w/..", "/w/f", "//w//a/./b/f", "w/a/up/a/up/f", "w/a/self/self/f", "w/slash/f", "w/chain/top", "w/../w/f/."} {
		f.Add(p)
	}
	tr := oracleMount(f)
	f.Fuzz(func(t *testing.T, p string) {
		if len(p) == 0 || len(p) > 300 || checkPath(p) != Success {
			t.Skip()
		}
		for _, c := range strings.Split(p, "/") {
			if len(c) > MaxName {
				t.Skip()
			}
			if strings.Trim(c, ".abfwtolchinpseu-") != "" {
				t.Skip() // a name that is nowhere: not what this is about
			}
		}
		want, ok := oracle(p)
		got, e := tr.root.Open(p, OpenOptions{Read: true, Follow: true})
		if (e == Success) != ok && !strings.HasPrefix(strings.TrimLeft(p, "./"), "dev") {
			t.Fatalf("%q: %v, the oracle says %t", p, e, ok)
		}
		switch {
		case got.File != nil:
			buf := make([]byte, 64)
			n, _ := got.File.ReadAt(buf, 0)
			got.File.Close()
			if string(buf[:n]) != want || want == "" {
				t.Fatalf("%q: the file holds %q, the oracle says %q", p, buf[:n], want)
			}
		case got.Dir != nil:
			got.Dir.Close()
			if want != "" {
				t.Fatalf("%q: a folder, the oracle says %q", p, want)
			}
		}
	})
}
