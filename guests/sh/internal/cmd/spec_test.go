package cmd

import (
	"slices"
	"testing"
)

func TestOptionsReadsAList(t *testing.T) {
	got := Options("a,all n,lines= ,color? x i=")
	want := Opts{{Short: 'a', Long: "all"}, {Short: 'n', Long: "lines", Arg: Value}, {Long: "color", Arg: Optional}, {Short: 'x'}, {Short: 'i', Arg: Value}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}
