package cmd

import (
	"strings"
	"unicode/utf8"
)

// Options makes Opts of a list like "a,all n,lines= ,color? x": letter and long name of each option with a comma
// before the long name, followed by = when it takes an argument and ? when that is optional.
func Options(list string) Opts {
	var all Opts
	for _, word := range strings.Fields(list) {
		var o Opt
		if t, ok := strings.CutSuffix(word, "="); ok {
			word, o.Arg = t, Value
		} else if t, ok := strings.CutSuffix(word, "?"); ok && t != "" {
			word, o.Arg = t, Optional
		}
		letter, long, _ := strings.Cut(word, ",")
		if letter != "" {
			o.Short, _ = utf8.DecodeRuneInString(letter)
		}
		o.Long = long
		all = append(all, o)
	}
	return all
}
