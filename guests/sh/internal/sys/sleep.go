package sys

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func sleep(ctx context.Context, c *cmd.Call) int {
	operands, code, done := onlyCommon(c, "NUMBER[SUFFIX]...", 1)
	if done {
		return code
	}
	if len(operands) == 0 {
		return c.BadUsage(fmt.Errorf("missing operand"), 1)
	}
	var total time.Duration
	bad := false
	for _, o := range operands {
		d, ok := duration(o)
		if !ok {
			c.Errorf("invalid time interval %s", cmd.Quote(o))
			bad = true
		}
		if total += d; total < 0 {
			total = math.MaxInt64
		}
	}
	if bad {
		return tryHelp(c, 1)
	}
	pause(ctx, total)
	return 0
}

// pause waits, and ends the command when ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		cmd.Check(ctx)
	}
}

// duration reads a time as sleep and timeout take it: a decimal number and s, m, h or d. Too long is as long as can be.
func duration(s string) (time.Duration, bool) {
	unit := time.Second
	number := s
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			number = s[:len(s)-1]
		case 'm':
			number, unit = s[:len(s)-1], time.Minute
		case 'h':
			number, unit = s[:len(s)-1], time.Hour
		case 'd':
			number, unit = s[:len(s)-1], 24*time.Hour
		}
	}
	if strings.ContainsAny(number, "_") {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimLeft(number, " \t\n"), 64)
	if math.IsInf(n, 1) {
		return math.MaxInt64, true // "infinity", or out of range
	}
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	if n *= float64(unit); n >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(math.Ceil(n)), true
}
