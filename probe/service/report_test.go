package service

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A figure has one name, in the report of a run and in that of a service.
func TestTheFactsAreNamedAsInAReport(t *testing.T) {
	text, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Facts struct {
				Properties map[string]any `json:"properties"`
			} `json:"facts"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	names := reflect.TypeFor[FactsReport]()
	for i := range names.NumField() {
		name, _, _ := strings.Cut(names.Field(i).Tag.Get("json"), ",")
		if _, known := schema.Defs.Facts.Properties[name]; !known {
			t.Errorf("%s is %q, which no report.json has", names.Field(i).Name, name)
		}
	}
}

// What is added up over the windows is told, each figure as its own.
func TestTheFactsAreAllTold(t *testing.T) {
	var f check.Facts
	sum := reflect.ValueOf(&f).Elem()
	n := 0
	for i := range sum.NumField() {
		if sum.Field(i).Kind() == reflect.Int {
			n++
			sum.Field(i).SetInt(int64(n))
		}
	}
	summed := reflect.ValueOf(plus(f, check.Facts{}))
	told := reflect.ValueOf(factsReport(f))
	for i := range summed.NumField() {
		name := summed.Type().Field(i).Name
		if summed.Field(i).Kind() != reflect.Int || summed.Field(i).Int() == 0 {
			continue
		}
		if got := told.FieldByName(name); !got.IsValid() || got.Int() != summed.Field(i).Int() {
			t.Errorf("%s is not told", name)
		}
	}
}
