package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// jsonpath FILE PATH [WANT]: looks up a dotted path in a JSON file ("stdout" is the last output). Without WANT the value
// must be there; "!" before jsonpath: it must not.
//
// jsonpath FILE schema SCHEMAFILE NAME: validates the file against one of the schemas of "help json".
func jsonPath(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] jsonpath FILE PATH [WANT] | jsonpath FILE schema SCHEMAFILE NAME")
	}
	var doc any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	ts.Check(dec.Decode(&doc))
	if args[1] == "schema" && len(args) == 4 {
		ts.Check(validate(doc, ts.ReadFile(args[2]), args[3]))
		return
	}
	value, ok := lookUp(doc, strings.Split(args[1], "."))
	switch {
	case neg:
		if ok && (len(args) == 2 || fmt.Sprint(value) == args[2]) {
			ts.Fatalf("%s is there: %v", args[1], value)
		}
	case !ok:
		ts.Fatalf("%s is not there", args[1])
	case len(args) > 2 && fmt.Sprint(value) != args[2]:
		ts.Fatalf("%s is %v, want %s", args[1], value, args[2])
	}
}

func lookUp(doc any, path []string) (any, bool) {
	for _, key := range path {
		switch d := doc.(type) {
		case map[string]any:
			v, ok := d[key]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(d) {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func validate(doc any, schemas, name string) error {
	var all map[string]any
	if err := json.Unmarshal([]byte(schemas), &all); err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///"+name, all[name]); err != nil {
		return err
	}
	s, err := c.Compile("mem:///" + name)
	if err != nil {
		return err
	}
	return s.Validate(doc)
}
