package files

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// backups says what becomes of files that would be overwritten: -b, --backup and -S.
type backups struct {
	how    byte // 0: none, 's': NAME~, 'n': NAME.~1~, 'e': numbered where there are such
	suffix string
}

// option takes one of the options; it is false when the value is no method.
func (b *backups) option(c *cmd.Call, g cmd.Given) bool {
	if b.suffix == "" {
		if b.suffix = c.Getenv("SIMPLE_BACKUP_SUFFIX"); b.suffix == "" {
			b.suffix = "~"
		}
	}
	method := c.Getenv("VERSION_CONTROL")
	switch g.Key {
	case "S":
		b.suffix = g.Value
		if b.how != 0 {
			return true
		}
	case "backup":
		if g.Has {
			method = g.Value
		}
	}
	switch method {
	case "none", "off":
		b.how = 0
	case "", "existing", "nil":
		b.how = 'e'
	case "numbered", "t":
		b.how = 'n'
	case "simple", "never":
		b.how = 's'
	default:
		c.Errorf("%v", cmd.BadWord(method, "backup type", "none off", "simple never", "existing nil", "numbered t"))
		return false
	}
	return true
}

// save moves the file name away, if there are to be backups: it returns the name it has then.
func (b *backups) save(c *cmd.Call, name string) (to string, err error) {
	if b.how == 0 {
		return "", nil
	}
	to = name + b.suffix
	if highest, any := b.numbered(c, name); b.how == 'n' || b.how == 'e' && any {
		to = fmt.Sprintf("%s.~%d~", name, highest+1)
	}
	if err := os.Rename(c.Path(name), c.Path(to)); err != nil {
		return "", err
	}
	return to, nil
}

// backupNote is what cp -v and mv -v add for a backup.
func backupNote(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (backup: %s)", quote(name))
}

// numbered is the highest number of a backup of name.
func (b *backups) numbered(c *cmd.Call, name string) (highest int, any bool) {
	entries, err := os.ReadDir(c.Path(parent(name)))
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), base(name)+".~"); ok && strings.HasSuffix(rest, "~") {
			if n, err := strconv.Atoi(rest[:len(rest)-1]); err == nil && n > 0 {
				highest, any = max(highest, n), true
			}
		}
	}
	return highest, any
}
