package history

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// slowOp reads an op as everything but the quick reader does.
func slowOp(line []byte) (*lock.Op, error) {
	l, err := decode[opLine](line)
	if err != nil {
		return nil, err
	}
	return l.op(), nil
}

// filled is an op line with something in every field.
func filled(t testing.TB) []byte {
	var l opLine
	fill(reflect.ValueOf(&l).Elem(), 1)
	l.Type, l.KeyHex = "op", ""
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.String:
		v.SetString(strings.Repeat("ä", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-n))
	case reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(0.75)
	}
}

// A field that the writer has and the quick reader does not know would make it
// slow, and one whose place is wrong as well.
func TestTheQuickReaderKnowsEveryField(t *testing.T) {
	line := filled(t)
	got, ok := quickOp(line, names{})
	if !ok {
		t.Fatalf("it cannot read %s", line)
	}
	if want, err := slowOp(line); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v\n%v", got, want, err)
	}
}

// What a guard compares by is escaped by the writer.
func TestTheQuickReaderKnowsComparisons(t *testing.T) {
	for _, by := range []string{"=", "<", "<=", ">", ">=", "<>", "&"} {
		line, err := json.Marshal(opLine{Type: "op", Seq: 1, SQL: &statement{Table: "t", Where: []cond{{Column: "c", Op: by}}}})
		if err != nil {
			t.Fatal(err)
		}
		if op, ok := quickOp(line, names{}); !ok || op.SQL.Where[0].Op != by {
			t.Errorf("it cannot read %s", line)
		}
	}
}

func FuzzQuickOp(f *testing.F) {
	f.Add(filled(f))
	for _, s := range []string{
		`{"type":"op","seq":1,"session":-0,"proto":"pg","kind":"read","verb":"SELECT"}`,
		`{"type":"op","seq":1,"session":1,"proto":"redis","kind":"acquire","verb":"SET","key_hex":"ff00","a":9223372036854775807}`,
		`{"type":"op","seq":18446744073709551615,"session":1,"sql":{"table":"t","set":[{"column":"c","value":{"i":-1,"n":true},"delta":0}]}}`,
		`{"type":"op","seq":1,"session":1,"sql":{"table":"a\u003cb\u003e\u0026","where":[{"column":"c","op":"\u003c="}]}}`,
		`{"type":"op","seq":1,"seq":2}`, `{"type":"op","sql":{},"row":[{}]}`, `{"type":"op","term":{"id":1,"confidence":1e0}}`, `{"type":"op","seq":01}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, ok := quickOp(line, names{})
		if !ok {
			return
		}
		if want, err := slowOp(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("of %s\ngot  %+v\nwant %+v\n%v", line, got, want, err)
		}
	})
}
