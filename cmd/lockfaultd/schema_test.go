package main

import (
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fits is `fits SCHEMA FILE`: the file is as a schema of docs/ says.
func fits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fits SCHEMA FILE")
	}
	path, err := filepath.Abs(filepath.Join("../../docs", args[0]))
	ts.Check(err)
	schema, err := jsonschema.NewCompiler().Compile(path)
	ts.Check(err)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(schema.Validate(v))
}
