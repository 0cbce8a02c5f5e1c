package pgwire

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A cell has the name of the table's column that it is of, whatever the server calls
// it, and none if it is of no column.
func TestNamesOfCells(t *testing.T) {
	for _, tt := range []struct{ columns, served, want string }{
		{"a ? b", "x y z", "a - b"},
		{"* ?", "a v v", "a v -"},
		{"a ? *", "v v b v", "a - b v"},
		{"a * * ?", "v b c b c v", "a b c b c -"},
		{"a * ? * b", "v b v b v", "a - - - b"},
		{"a ?* b", "v c d v", "a - - b"},
		{"a ?*", "v", "a"},
		{"", "v w", "- -"},
	} {
		var cells []lock.Cell
		for name := range strings.FieldsSeq(tt.served) {
			cells = append(cells, lock.Cell{Column: name})
		}
		nameCells(cells, strings.Fields(tt.columns))
		var got []string
		for _, c := range cells {
			got = append(got, orNone(c.Column))
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%s, which the server calls %s: got %s, want %s", tt.columns, tt.served, g, tt.want)
		}
	}
}

// Of a row with more columns than are kept, none is known by its place from the end.
func TestNamesOfManyCells(t *testing.T) {
	cells := make([]lock.Cell, maxColumns)
	for i := range cells {
		cells[i].Column = "served"
	}
	if nameCells(cells, []string{"*"}); cells[maxColumns-1].Column != "served" {
		t.Errorf("all of a table: %q", cells[maxColumns-1].Column)
	}
	if nameCells(cells, []string{"a", "*", "b"}); cells[0].Column != "a" || cells[1].Column != "" || cells[maxColumns-1].Column != "" {
		t.Errorf("%q, %q and %q", cells[0].Column, cells[1].Column, cells[maxColumns-1].Column)
	}
}
