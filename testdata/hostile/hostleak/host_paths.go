//go:build wasip1

// Places of a Unix host that say who runs it: none exists for the guest.
//
// expect: denied ENOENT EPERM ENOTCAPABLE EACCES
package hostleak

import (
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("host_paths", func() {
		for _, path := range []string{"/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/self/maps", "/proc/self/fd/0", "/proc/1/cmdline",
			"/proc/version", "/sys/class/net", "/dev/mem", "/dev/tty", "/dev/fd/0", "/dev/stdin", "/dev/pts/0", "/dev/shm", "/var/root", "/var/root/.ssh",
			"/home", "/var/run/docker.sock", "/run", "/mnt", "/boot", "/outside/secret.txt", "/home/guest/../../outside/secret.txt"} {
			_, err := os.ReadFile(path)
			if err == nil {
				Errorf(nil, "read %s", path)
				continue
			}
			if entries, errDir := os.ReadDir(path); errDir == nil && path != "/home" {
				Errorf(nil, "list %s: %d entries", path, len(entries))
				continue
			}
			if path == "/home" {
				// The one folder above the private home is virtual: the name in it is the guest's own.
				entries, _ := os.ReadDir(path)
				for _, e := range entries {
					if e.Name() != "guest" {
						Errorf(nil, "/home lists %s", e.Name())
					}
				}
				continue
			}
			Errorf(err, "read %s", path)
		}
	})
}
