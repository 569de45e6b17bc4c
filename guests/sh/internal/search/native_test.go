package search

import (
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

var samples = map[string]string{
	"t":            "x foo foo\nyfoo\n\nz\n",
	"nums":         "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
	"log":          "2024-01-02 ERROR disk full\n2024-01-03 INFO ok\n2024-01-04 WARN slow: 35ms\n2024-01-05 ERROR net down\n",
	"noeol":        "a\nb",
	"bin":          "a\x00foo\nb\n",
	"latin":        "caf\xe9\nfoo\n",
	"uni":          "été\nÜber straße\nfoo é\n",
	"empty":        "",
	"zeros":        "a\nb\x00c\x00",
	"conf":         "# comment\nname = value\n[section]\nkey=1\nkey2 = \"two\"\n\n[other]\nkey=3\n",
	"pats":         "foo\nz\n",
	"d/f1":         "a\nfoo\nb\n",
	"d/sub/f2.txt": "foo bar\n",
	"d/sub/f3.md":  "bar\n",
	"json":         "{\"name\": \"demo\", \"version\": \"1.2.3\"}\n",
	"script.sed":   "# a script\ns/foo/bar/g\n/^$/d\na\\\n  appended\n",
	"scriptn.sed":  "#n\n/2/p\n",
	"script.sh":    "#!/bin/bash\nset -e\n# a comment\necho \"$1\"\nfunction f() {\n  return 1\n}\n",
}

func sample(t testing.TB) string { return cmdtest.Files(t, samples) }
