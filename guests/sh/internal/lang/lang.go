// Package lang has the commands that are languages: awk and jq.
package lang

import (
	"maps"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/lang/awk"
	"github.com/exthost/exthost/guests/sh/internal/lang/jq"
)

// Commands returns the commands of the package.
func Commands() map[string]cmd.Func {
	all := maps.Clone(awk.Commands)
	maps.Copy(all, jq.Commands)
	return all
}
