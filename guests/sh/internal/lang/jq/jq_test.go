package jq

import (
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

func TestQuick(t *testing.T) {
	for _, a := range [][]string{{"jq", "."}, {"jq", "-c", ".b,.a[1:],(.a|map(.+1)),keys,to_entries"}} {
		t.Log(cmdtest.Run(t, Commands, "/", `{"b":1,"a":[1,2,{"z":null,"y":1.0}]}`, a...))
	}
}
