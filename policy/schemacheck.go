package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaKeywords are the keywords of JSON Schema and the form of their values. An unknown keyword is an error, although
// the specification ignores it: a misspelt constraint would constrain nothing.
var schemaKeywords = map[string]string{
	"$schema": "text", "$id": "text", "$ref": "text", "$anchor": "text", "$dynamicRef": "text", "$dynamicAnchor": "text", "$comment": "text", "$defs": "schemas", "definitions": "schemas",
	"title": "text", "description": "text", "format": "text", "pattern": "text", "contentEncoding": "text", "contentMediaType": "text", "contentSchema": "schema",
	"type": "types", "enum": "list", "const": "any", "default": "any", "examples": "list", "deprecated": "bool", "readOnly": "bool", "writeOnly": "bool",
	"minLength": "count", "maxLength": "count", "minItems": "count", "maxItems": "count", "minContains": "count", "maxContains": "count", "minProperties": "count", "maxProperties": "count",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "positive", "uniqueItems": "bool",
	"properties": "schemas", "patternProperties": "schemas", "additionalProperties": "schema", "unevaluatedProperties": "schema", "propertyNames": "schema", "required": "names", "dependentRequired": "namelists", "dependentSchemas": "schemas",
	"items": "schema", "prefixItems": "schemalist", "additionalItems": "schema", "unevaluatedItems": "schema", "contains": "schema",
	"allOf": "schemalist", "anyOf": "schemalist", "oneOf": "schemalist", "not": "schema", "if": "schema", "then": "schema", "else": "schema",
}

var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// validSchema reports why v, decoded JSON with [json.Number], is not a JSON Schema. References to other documents are
// errors: a policy must not make us read files or dial.
func validSchema(v any) error {
	if err := checkSchema(v, ""); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return errors.New("its form is not understood")
	}
	// Resolving settles references and patterns; without a loader nothing is fetched.
	if _, err := s.Resolve(nil); err != nil {
		return fmt.Errorf("references and patterns: %s", err)
	}
	return nil
}

func checkSchema(v any, at string) error {
	if _, ok := v.(bool); ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("at %q: a schema is a mapping, true or false", at)
	}
	for _, k := range slices.Sorted(maps.Keys(m)) { // the same error every time
		form, known := schemaKeywords[k]
		switch {
		case known:
		case strings.HasPrefix(k, "x-"):
			form = "any"
		default:
			return fmt.Errorf("at %q: unknown keyword %q", at, clip(k))
		}
		if err := checkKeyword(form, m[k], at+"/"+k); err != nil {
			return err
		}
	}
	return nil
}

func checkKeyword(form string, v any, at string) error {
	bad := func(want string) error { return fmt.Errorf("at %q: want %s", at, want) }
	each := func(check func(v any, at string) error) error {
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return bad("a list that is not empty")
		}
		for i, x := range list {
			if err := check(x, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	switch form {
	case "text":
		if _, ok := v.(string); !ok {
			return bad("text")
		}
	case "bool":
		if _, ok := v.(bool); !ok {
			return bad("true or false")
		}
	case "list":
		if _, ok := v.([]any); !ok {
			return bad("a list")
		}
	case "number", "count", "positive":
		n, ok := v.(json.Number)
		f, err := n.Float64()
		switch {
		case !ok || err != nil:
			return bad("a number")
		case form == "count" && (f < 0 || f != float64(int64(f))):
			return bad("a whole number")
		case form == "positive" && f <= 0:
			return bad("a number above 0")
		}
	case "types":
		if s, ok := v.(string); ok {
			v = []any{s}
		}
		return each(func(v any, at string) error {
			if s, ok := v.(string); !ok || !slices.Contains(schemaTypes, s) {
				return fmt.Errorf("at %q: want one of %s", at, strings.Join(schemaTypes, ", "))
			}
			return nil
		})
	case "names":
		list, ok := v.([]any)
		if !ok {
			return bad("a list of names")
		}
		seen := map[string]bool{}
		for _, x := range list {
			s, ok := x.(string)
			if !ok || seen[s] {
				return bad("a list of names, each once")
			}
			seen[s] = true
		}
	case "namelists", "schemas":
		m, ok := v.(map[string]any)
		if !ok {
			return bad("a mapping")
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			x, err := m[k], error(nil)
			if form == "schemas" {
				err = checkSchema(x, at+"/"+k)
			} else {
				err = checkKeyword("names", x, at+"/"+k)
			}
			if err != nil {
				return err
			}
		}
	case "schemalist":
		return each(checkSchema)
	case "schema":
		return checkSchema(v, at)
	}
	return nil
}
