package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// closed is the schema of a file as nobody should use it: a field that it does not
// have is an error, so that none is left out of it.
func closed(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(filepath.Base(file), doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeObjects(doc any) {
	switch d := doc.(type) {
	case map[string]any:
		if d["type"] == "object" {
			d["additionalProperties"] = false
		}
		for _, v := range d {
			closeObjects(v)
		}
	case []any:
		for _, v := range d {
			closeObjects(v)
		}
	}
}

func validate(t *testing.T, s *jsonschema.Schema, name string, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestReportsAreAsTheirSchemaSays(t *testing.T) {
	s := closed(t, "../docs/report.schema.json")
	for name, r := range goldenRuns() {
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		validate(t, s, name, b.Bytes())
	}
}

// A schema that takes everything is none.
func TestTheSchemaRefuses(t *testing.T) {
	s := closed(t, "../docs/report.schema.json")
	var b bytes.Buffer
	if err := JSON(&b, lost()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new string }{
		{`"schema": 1`, `"schema": 2`},
		{`"exit": 10`, `"exit": 9`},
		{`"outcome": "FAIL"`, `"outcome": "BAD"`},
		{`"level": "PROVEN"`, `"level": "SURE"`},
		{`"code": "LF104"`, `"code": "lost-update"`},
		{`"net_deficit": 6`, `"net_deficit": "6"`},
		{`"started": "2026-05-04T`, `"started": "yesterday`},
		{`"seed"`, `"sede"`},
	} {
		text := strings.Replace(b.String(), c.old, c.new, 1)
		if text == b.String() {
			t.Fatalf("%s is not in the report", c.old)
		}
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("%s passes", c.new)
		}
	}
}

// The schema has each field that a report can have, whether or not a run of the tests
// fills it, and says of each of the first row what it is.
func TestTheSchemaIsWhole(t *testing.T) {
	fieldsAreIn(t, "../docs/report.schema.json", jsonReport{})
}

func fieldsAreIn(t *testing.T, file string, value any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc node
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name, p := range doc.Properties {
		if p.Description == "" {
			t.Errorf("%s is not described", name)
		}
	}
	doc.has(t, doc.Defs, reflect.TypeOf(value))
}

// A node is as much of a schema as says which fields there are.
type node struct {
	Description string
	Required    []string
	Properties  map[string]*node
	Items       *node
	Ref         string           `json:"$ref"`
	AnyOf       []*node          `json:"anyOf"`
	Defs        map[string]*node `json:"$defs"`
}

func (n *node) has(t *testing.T, defs map[string]*node, of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
		if n.Items != nil {
			n = n.Items
		}
	}
	for _, either := range n.AnyOf {
		if either.Ref != "" {
			n = either
		}
	}
	if n.Ref != "" {
		n = defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
	}
	if of.Kind() != reflect.Struct {
		return
	}
	fields := slices.DeleteFunc(reflect.VisibleFields(of), func(f reflect.StructField) bool { return f.Anonymous || f.Tag.Get("json") == "-" })
	for _, f := range fields {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch p := n.Properties[name]; {
		case p == nil:
			t.Errorf("%s has no field %s in the schema", of.Name(), name)
		case slices.Contains(n.Required, name) == (options == "omitempty"):
			t.Errorf("%s: field %s: wrongly required, or wrongly not", of.Name(), name)
		default:
			p.has(t, defs, f.Type)
		}
	}
	if len(n.Properties) != len(fields) {
		t.Errorf("%s has %d fields, the schema %d", of.Name(), len(fields), len(n.Properties))
	}
}
