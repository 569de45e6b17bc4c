package cli

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/exthost/exthost/host"
)

// schemas are the JSON Schemas of what run prints, made from the structs themselves.
func schemas() (map[string]*jsonschema.Schema, error) {
	// An outcome is a closed set, and bytes are base64 text.
	options := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[host.Outcome](): {
			Type: "string",
			Enum: []any{string(host.Exit), string(host.Trap), string(host.Limit), string(host.Denied), string(host.HostError)},
		},
		reflect.TypeFor[[]byte](): {Type: "string", ContentEncoding: "base64"},
	}}
	run, err := jsonschema.For[runObject](options)
	if err != nil {
		return nil, err
	}
	run.Schema = "https://json-schema.org/draft/2020-12/schema"
	run.Title = "exthost run --json, run --report, wasi --json"
	dry, err := jsonschema.For[binding](options)
	if err != nil {
		return nil, err
	}
	dry.Schema = run.Schema
	dry.Title = "exthost run --dry-run --json"
	return map[string]*jsonschema.Schema{"run": run, "dry-run": dry}, nil
}

// printSchemas is "help json": one object that holds the schemas by name.
func (a *app) printSchemas() error {
	all, err := schemas()
	if err != nil {
		return err
	}
	return a.printJSON(a.stdout, all)
}
