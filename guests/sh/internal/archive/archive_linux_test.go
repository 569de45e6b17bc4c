package archive

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/files"
	"github.com/exthost/exthost/guests/sh/internal/files/scripttest"
)

// TestScripts compares the commands with testdata, and testdata with the tools of the machine where they are.
func TestScripts(t *testing.T) {
	table := maps.Clone(files.Commands)
	maps.Copy(table, Commands)
	scripttest.Config{
		Table: table,
		Normal: func(command, text string) string {
			if command == "tar" {
				// The owner of the test's files is shown as the guest's; both columns are wide enough.
				text = strings.ReplaceAll(text, "root/root  ", "guest/guest")
			}
			return text
		},
		// zip and unzip complain on standard output, where they do.
		Quiet: func(line string) bool { return strings.HasPrefix(line, "zip") || strings.HasPrefix(line, "unzip") },
		// How well data are packed differs.
		Opaque: func(name string) bool {
			return slices.Contains([]string{".gz", ".tgz", ".tar", ".zip", ".z"}, filepath.Ext(name))
		},
	}.Run(t)
}
