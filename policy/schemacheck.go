package policy

import (
	"errors"
	"strings"

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
	if _, err := c.Compile("mem:///schema"); err != nil {
		// The last line of a long report is about the value itself.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return errors.New(strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "- "))
	}
	return nil
}
