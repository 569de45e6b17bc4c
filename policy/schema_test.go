package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("mem:///policy", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///policy")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML the way an editor does.
func asJSON(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
}

func TestSchemaAcceptsEveryExample(t *testing.T) {
	s := compiledSchema(t)
	for name, data := range validFiles(t) {
		v, err := asJSON(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := Format(genPolicy("g").Draw(t, "policy"))
		v, err := asJSON(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if err := s.Validate(v); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// schemaCannotTell are invalid examples whose fault a JSON Schema cannot express, or that a YAML reader of an editor
// settles before the schema sees it.
var schemaCannotTell = map[string]string{
	"several-documents":      "only the first document is read",
	"merge-key":              "merged before the schema sees it",
	"secret-without-network": "needs two sections",
}

func TestSchemaRejectsWhatItCan(t *testing.T) {
	s := compiledSchema(t)
	names, err := filepath.Glob(examples + "/invalid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := asJSON(data)
		if err == nil {
			err = s.Validate(v)
		}
		why, listed := schemaCannotTell[strings.TrimSuffix(filepath.Base(name), ".yaml")]
		switch {
		case err != nil && listed:
			t.Errorf("%s does not fit the schema, but is listed as %q", name, why)
		case err != nil:
			rejected++
		case !listed:
			t.Errorf("%s fits the schema", name)
		}
	}
	if rejected < len(names)*3/4 {
		t.Errorf("only %d of %d invalid examples are rejected", rejected, len(names))
	}
}

// TestSchemaKnowsTheKeysThatTheParserKnows takes each key out of the schema and asks the parser.
func TestSchemaKnowsTheKeysThatTheParserKnows(t *testing.T) {
	p, err := Parse("all", validFiles(t)[examples+"/valid/all-keys.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	text := string(Format(p))
	for _, key := range keyNames() {
		last := key[strings.LastIndexAny(key, ".")+1:]
		if !strings.Contains(text, last+":") && key != "files.*.create" && key != "network[].scheme" && key != "network[].port" {
			t.Errorf("the example with every key has no %s", key)
		}
	}
}

func TestSchemaIsStable(t *testing.T) {
	if !bytes.Equal(Schema(), Schema()) {
		t.Error("the schema differs from call to call")
	}
	for _, want := range []string{`"additionalProperties": false`, `"open-files"`, `"deny-hints"`, "2020-12"} {
		if !bytes.Contains(Schema(), []byte(want)) {
			t.Errorf("%s is missing", want)
		}
	}
}

// noLoader refuses every reference to another document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("not allowed") }

// TestToolSchemasAreJudgedAsByAFullValidator compares the check of arguments with a validator that knows the metaschema.
// Ours may be stricter, never laxer.
func TestToolSchemasAreJudgedAsByAFullValidator(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `{}`: true, `{"properties":{"owner":{"const":"acme"}},"required":["owner"],"additionalProperties":false}`: true,
		`{"type":["string","null"],"minLength":1,"pattern":"^a+$","enum":["a"]}`: true, `{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`: true,
		`{"items":{"type":"integer","minimum":-1.5,"multipleOf":0.5},"maxItems":3}`: true, `{"anyOf":[{"required":["a"]},{"not":{}}],"dependentRequired":{"a":["b"]}}`: true, `{"x-note":5}`: true,
		`5`: false, `"a"`: false, `[]`: false, `null`: false, `{"type":"nothing"}`: false, `{"type":[]}`: false, `{"type":["string","strin"]}`: false, `{"minLength":-1}`: false, `{"minLength":1.5}`: false,
		`{"required":"a"}`: false, `{"required":["a","a"]}`: false, `{"required":[1]}`: false, `{"enum":5}`: false, `{"items":5}`: false, `{"properties":{"a":[]}}`: false, `{"properties":[]}`: false,
		`{"multipleOf":0}`: false, `{"additionalProperties":"x"}`: false, `{"allOf":[]}`: false, `{"allOf":{}}`: false, `{"format":5}`: false, `{"uniqueItems":"x"}`: false, `{"maximum":"x"}`: false,
		`{"dependentRequired":{"a":"b"}}`: false, `{"pattern":"("}`: false, `{"patternProperties":{"(":{}}}`: false, `{"$ref":"#/nope"}`: false, `{"$ref":"file:///etc/passwd"}`: false, `{"$ref":"https://a.test/s"}`: false, `{"properties":{"a":{"$ref":"other.json"}}}`: false,
		`{"propertys":{}}`: false, `{"Type":"string"}`: false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		err = validSchema(v)
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			continue
		}
		c := jsonschema.NewCompiler()
		c.UseLoader(noLoader{})
		if err := c.AddResource("mem:///x", v); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("mem:///x"); err != nil {
			t.Errorf("%s is accepted, but %v", text, err)
		}
	}
}
