package text

import (
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func TestShufTellsAReadErrorFromTheEnd(t *testing.T) {
	got := cmdtest.Run(t, Commands, "/", "", "shuf", "/proc/self/mem")
	if got.Code != 1 || !strings.Contains(got.Stderr, "read error") {
		t.Errorf("%+v; want a read error", got)
	}
}
