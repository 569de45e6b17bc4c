package cli

import (
	"os"

	"github.com/exthost/exthost/host"
)

// checkPrivate only finds the folder: its access list is inherited from the user's profile.
func checkPrivate(name, dir string) host.Check {
	if _, err := os.Stat(dir); err != nil && !os.IsNotExist(err) {
		return host.Check{Name: name, State: "fail", Detail: err.Error()}
	}
	return host.Check{Name: name, State: "ok", Detail: dir}
}
