package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

var timeUnits = []struct {
	name string
	unit time.Duration
}{{"ms", time.Millisecond}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// ParseSize reads a whole number directly followed by KiB, MiB or GiB, for instance "256MiB", and returns bytes.
// Zero, a sign, a fraction and a missing unit are errors: no limit can be switched off.
func ParseSize(s string) (int64, error) {
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			v, err := parseCount(n)
			if err != nil || v > (1<<62)/u.bytes {
				break
			}
			return v * u.bytes, nil
		}
	}
	return 0, fmt.Errorf("size %q is not a whole number above 0 with a unit KiB, MiB or GiB", s)
}

// FormatSize is the inverse of [ParseSize]. Bytes below a whole KiB are dropped, but never to nothing.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(max(n>>10, 1), 10) + "KiB"
}

// ParseTime reads a whole number directly followed by ms, s, m or h, for instance "90s".
func ParseTime(s string) (time.Duration, error) {
	for _, u := range timeUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			v, err := parseCount(n)
			if err != nil || v > int64((1<<62)/u.unit) {
				break
			}
			return time.Duration(v) * u.unit, nil
		}
	}
	return 0, fmt.Errorf("time %q is not a whole number above 0 with a unit ms, s, m or h", s)
}

// FormatTime is the inverse of [ParseTime]. What is below a millisecond is dropped, but never to nothing.
func FormatTime(d time.Duration) string {
	for _, u := range []int{1, 2, 3} { // h, m, s
		if unit := timeUnits[u].unit; d >= unit && d%unit == 0 {
			return strconv.FormatInt(int64(d/unit), 10) + timeUnits[u].name
		}
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms"
}

// parseCount reads a decimal number above zero: no sign, no leading zero, no underscore.
func parseCount(s string) (int64, error) {
	if s == "" || s[0] < '1' || s[0] > '9' || len(s) > 18 {
		return 0, fmt.Errorf("%q is not a whole number above 0", s)
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("%q is not a whole number above 0", s)
		}
	}
	return strconv.ParseInt(s, 10, 64)
}
