package policy

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// rules are what the rule tags of the document types mean. A JSON Schema cannot say all that the parser checks; what it
// says is never stricter, so that an editor does not complain about a file that [Parse] accepts.
var rules = map[string]map[string]any{
	"one":         {"const": 1},
	"name":        {"pattern": `^[A-Za-z0-9._+-]{1,64}$`},
	"digest":      {"pattern": `^sha256:[0-9a-f]{64}$`},
	"envpattern":  {"pattern": `^[A-Za-z_][A-Za-z0-9_]*\*?$`},
	"hostpath":    {"pattern": `^(/|~$|~/|\$\{(workspace|skill|data)\}($|/))`},
	"access":      {"enum": []string{"read", "write", "overlay"}},
	"glob":        {"pattern": `^[^/\\][^\\]*$`},
	"pathglob":    {"pattern": `^/[^\\?#;]*$`},
	"hostpattern": {"pattern": `^(\*|(\*\.)?[^\s/\\@*:\[\]]+|\[?[0-9A-Fa-f:.]+\]?)$`},
	"scheme":      {"enum": []string{"https", "http"}},
	"port":        {"minimum": 1, "maximum": 65535},
	"method":      {"pattern": `^(\*|[A-Z][A-Z-]*)$`, "not": map[string]any{"enum": []string{"CONNECT", "TRACE"}}},
	"cidr":        {"pattern": `^[0-9A-Fa-f:.]+/[0-9]+$`},
	"secretfrom":  {"pattern": `^(env:[A-Za-z_][A-Za-z0-9_]*|host:[A-Za-z0-9._+-]+|file:(/|~).*)$`},
	"secretto":    {"pattern": `^((\*\.)?[^\s/\\@*:\[\]]+|\[?[0-9A-Fa-f:.]+\]?)$`},
	"secretin":    {"pattern": `^(header:.+|query:.+|basic|body)$`},
	"toolpattern": {"pattern": `^([A-Za-z0-9_./:-]+\*?|\*)$`},
	"hint":        {"enum": hintNames},
	"time":        {"pattern": `^[1-9][0-9]*(ms|s|m|h)$`},
	"size":        {"pattern": `^[1-9][0-9]*(KiB|MiB|GiB)$`},
	"wall":        {"enum": wallNames},
	"capability":  {"pattern": `^((read|write) /|env [A-Za-z_]|secret [A-Za-z_]|tool [A-Za-z0-9]|program [A-Za-z0-9._+-]|[A-Z][A-Z-]* [Hh][Tt][Tt][Pp][Ss]?://)`},
}

var keyRules = map[string]string{
	"guestkeys": `^/[^*\\]*$`,
	"envkeys":   `^[A-Za-z_][A-Za-z0-9_]*$`,
	"toolkeys":  `^[A-Za-z0-9_./:-]+$`,
}

// Schema returns the JSON Schema (2020-12) of the policy file, generated from the types that [Format] writes.
func Schema() []byte {
	s := structSchema(reflect.TypeFor[fileDoc]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "exthost policy"
	s["description"] = "What one extension may do. See policy/FORMAT.md."
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("policy: schema: " + err.Error()) // maps of strings, numbers and lists
	}
	return append(out, '\n')
}

func structSchema(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for f := range fieldsOf(t) {
		props[f.name] = fieldSchema(f)
		if f.has("required") {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// docField is one field of a document type.
type docField struct {
	name  string
	doc   string
	rules []string
	typ   reflect.Type // without pointer
}

func (f *docField) has(rule string) bool {
	for _, r := range f.rules {
		if r == rule {
			return true
		}
	}
	return false
}

func fieldsOf(t reflect.Type) func(yield func(docField) bool) {
	return func(yield func(docField) bool) {
		for i := range t.NumField() {
			sf := t.Field(i)
			name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
			f := docField{name: name, doc: sf.Tag.Get("doc"), typ: sf.Type}
			if r := sf.Tag.Get("rule"); r != "" {
				f.rules = strings.Split(r, ",")
			}
			if f.typ.Kind() == reflect.Pointer {
				f.typ = f.typ.Elem()
			}
			if !yield(f) {
				return
			}
		}
	}
}

func fieldSchema(f docField) map[string]any {
	var s map[string]any
	leaf := map[string]any{}
	for _, r := range f.rules {
		name, arg, _ := strings.Cut(r, "=")
		for k, v := range rules[name] {
			leaf[k] = v
		}
		if name == "count" {
			most, _ := strconv.Atoi(arg)
			leaf["minimum"], leaf["maximum"] = 1, most
		}
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		s = structSchema(f.typ)
	case reflect.Slice:
		item := leaf
		if f.typ.Elem().Kind() == reflect.Struct {
			item = structSchema(f.typ.Elem())
		} else {
			item["type"] = "string"
		}
		s = map[string]any{"type": "array", "items": item}
		if len(f.rules) > 0 && !f.has("capability") {
			s["uniqueItems"] = true
		}
		if f.has("nonempty") {
			s["minItems"] = 1
		}
	case reflect.Map:
		s = map[string]any{"type": "object", "additionalProperties": mapValue(f.typ.Elem())}
		for _, r := range f.rules {
			if p, ok := keyRules[r]; ok {
				s["propertyNames"] = map[string]any{"pattern": p}
			}
		}
	case reflect.Int:
		s = leaf
		s["type"] = "integer"
	case reflect.Bool:
		s = map[string]any{"type": "boolean"}
	default:
		s = leaf
		s["type"] = "string"
	}
	s["description"] = f.doc
	return s
}

func mapValue(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Name() == "Node": // a JSON Schema of its own
		return map[string]any{"type": []string{"object", "boolean"}}
	}
	return structSchema(t)
}

// keyNames returns every key of the format, "files.*.access", "network[].host", in the order of the document types.
func keyNames() []string {
	var out []string
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for f := range fieldsOf(t) {
			name := prefix + f.name
			elem, sub := f.typ, name+"."
			switch f.typ.Kind() {
			case reflect.Slice:
				elem, sub = f.typ.Elem(), name+"[]."
			case reflect.Map:
				elem, sub = f.typ.Elem(), name+".*."
			}
			if elem.Kind() == reflect.Struct && elem.Name() != "Node" {
				walk(elem, sub)
				continue
			}
			out = append(out, name)
		}
	}
	walk(reflect.TypeFor[fileDoc](), "")
	return out
}
