package cli

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/exthost/exthost/policy"
)

// byteSize is a flag value such as 64MiB, spelt as in policies. 0: not given.
type byteSize int64

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return policy.FormatSize(int64(*b))
}

func (b *byteSize) Type() string { return "SIZE" }

func (b *byteSize) Set(s string) error {
	n, err := policy.ParseSize(s)
	if err == nil {
		*b = byteSize(n)
	}
	return err
}

// span is a flag value such as 90s, spelt as in policies. 0: not given.
type span time.Duration

func (d *span) String() string {
	if *d == 0 {
		return ""
	}
	return policy.FormatTime(time.Duration(*d))
}

func (d *span) duration() time.Duration { return time.Duration(*d) }

func (d *span) Type() string { return "TIME" }

func (d *span) Set(s string) error {
	t, err := policy.ParseTime(s)
	if err == nil {
		*d = span(t)
	}
	return err
}

// formatBytes prints any number of bytes.
func formatBytes(n int64) string {
	if n >= 1<<10 {
		return policy.FormatSize(n)
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// yamlString spells s as a YAML scalar: double-quoted YAML takes every JSON string.
func yamlString(s string) string {
	data, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return `""`
	}
	return string(data)
}
