package sys

import (
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Local is the time zone of a call: see [local].
func Local(c *cmd.Call) *time.Location { return local(c) }

// ParseDate reads a date as `date -d` does, relative to now and in its zone.
func ParseDate(s string, now time.Time) (time.Time, bool) { return parseDate(s, now) }

// Strftime formats t as `date` does.
func Strftime(format string, t time.Time) string { return strftime(format, t) }
