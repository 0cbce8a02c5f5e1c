package check

import (
	"reflect"
	"testing"
)

// What is seen in two stretches is the sum of both, and what is new the difference: of each figure.
func TestNumbersAddUp(t *testing.T) {
	var n Numbers
	v := reflect.ValueOf(&n).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(int64(i + 1))
	}
	sum := reflect.ValueOf(n.Plus(n).Plus(n))
	for i := range v.NumField() {
		if got := sum.Field(i).Int(); got != int64(3*i+3) {
			t.Errorf("%s is %d", v.Type().Field(i).Name, got)
		}
	}
	if got := n.Plus(n).less(n); got != n {
		t.Errorf("%+v", got)
	}
}
