package engines_test

import "github.com/exthost/exthost/wasiabi"

func exitError(c uint32) error { e, _ := any(&wasiabi.Exit{Code: c}).(error); return e }
