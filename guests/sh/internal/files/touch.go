package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

func touch(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "a c,no-create d,date= f h,no-dereference m r,reference= t= ,time=", "[OPTION]... FILE...", 1)
	if !ok {
		return code
	}
	var onlyA, onlyM, noCreate, link, set bool
	now := time.Now()
	atime, mtime := now, now
	var ref, date *string
	for _, g := range given {
		switch g.Key {
		case "a":
			onlyA = true
		case "m":
			onlyM = true
		case "c":
			noCreate = true
		case "h":
			link, noCreate = true, true
		case "d":
			date = &g.Value
		case "r":
			ref = &g.Value
		case "t":
			t, ok := stamp(g.Value, now, sys.Local(c))
			if !ok {
				c.Errorf("invalid date format %s", cmd.Quote(g.Value))
				return 1
			}
			atime, mtime, set = t, t, true
		case "time":
			switch g.Value {
			case "access", "atime", "use":
				onlyA = true
			case "modify", "mtime":
				onlyM = true
			default:
				return c.BadUsage(cmd.BadWord(g.Value, "--time", "atime access use", "mtime modify"), 1)
			}
		case "f": // BSD's, without effect there too
		}
	}
	if set && (ref != nil || date != nil) {
		return usage(c, "cannot specify times from more than one source")
	}
	if ref != nil {
		look := status
		if link {
			look = linkStatus
		}
		in, err := look(c, *ref)
		if err != nil {
			c.Errorf("failed to get attributes of %s: %s", quote(*ref), cmd.Reason(err))
			return 1
		}
		atime, mtime = in.atime, in.mtime
	}
	if date != nil {
		a, ok := sys.ParseDate(*date, atime.In(sys.Local(c)))
		m, ok2 := sys.ParseDate(*date, mtime.In(sys.Local(c)))
		if !ok || !ok2 {
			c.Errorf("invalid date format %s", cmd.Quote(*date))
			return 1
		}
		atime, mtime = a, m
	}
	if len(operands) == 0 {
		return usage(c, "missing file operand")
	}
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		if name == "-" {
			continue // the times of standard output
		}
		look := status
		if link {
			look = linkStatus
		}
		in, err := look(c, name)
		if errors.Is(err, fs.ErrNotExist) && !link {
			if noCreate {
				continue
			}
			var f cmd.File
			if f, err = c.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666&^c.Umask); err == nil {
				err = f.Close()
			}
			if err != nil {
				c.Errorf("cannot touch %s: %s", quote(name), cmd.Reason(err))
				code = 1
				continue
			}
			in, err = status(c, name)
		}
		if err == nil {
			a, m := atime, mtime
			if onlyA && !onlyM {
				m = in.mtime
			}
			if onlyM && !onlyA {
				a = in.atime
			}
			err = setTimes(c.Path(name), link && in.link(), a, m)
		}
		if err != nil {
			c.Errorf("setting times of %s: %s", quote(name), cmd.Reason(err))
			code = 1
		}
	}
	return code
}

// stamp reads [[CC]YY]MMDDhhmm[.ss].
func stamp(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	digits, seconds, has := strings.Cut(text, ".")
	if has && len(seconds) != 2 || strings.Trim(digits+seconds, "0123456789") != "" {
		return time.Time{}, false
	}
	year := now.In(zone).Year()
	switch len(digits) {
	case 8:
	case 10:
		year, _ = strconv.Atoi(digits[:2])
		if year += 1900; year < 1969 {
			year += 100
		}
	case 12:
		year, _ = strconv.Atoi(digits[:4])
	default:
		return time.Time{}, false
	}
	digits = digits[len(digits)-8:]
	field := func(at int) int {
		n, _ := strconv.Atoi(digits[at : at+2])
		return n
	}
	second, _ := strconv.Atoi("0" + seconds)
	month, day, hour, minute := field(0), field(2), field(4), field(6)
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, zone)
	ok := month >= 1 && month <= 12 && t.Day() == day && hour < 24 && minute < 60 && second <= 60
	return t, ok
}
