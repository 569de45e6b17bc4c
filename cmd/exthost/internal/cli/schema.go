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
	for _, s := range []*jsonschema.Schema{run, dry} {
		open(s)
	}
	return map[string]*jsonschema.Schema{"run": run, "dry-run": dry}, nil
}

// open takes the ban on further properties away: fields are only ever added, so an older schema must accept a newer
// object.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Type == "object" {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
}

// printSchemas is "help json": one object that holds the schemas by name.
func (a *app) printSchemas() error {
	all, err := schemas()
	if err != nil {
		return err
	}
	return a.printJSON(a.stdout, all)
}
