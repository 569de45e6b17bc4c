package policy

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// noLoader refuses every reference to another document: a policy must not make us read files or dial.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not allowed")
}

// validSchema reports why v, decoded JSON, is not a JSON Schema.
func validSchema(v any) error {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("mem:///schema", v); err != nil {
		return err
	}
	_, err := c.Compile("mem:///schema")
	return err
}
