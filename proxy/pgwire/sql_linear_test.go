package pgwire

import (
	"runtime"
	"strings"
	"testing"
)

// A text four times as long is not copied more than four times as often.
func TestReadingCopiesLinearly(t *testing.T) {
	const n = 8 << 10
	for _, tt := range []struct{ lead, unit string }{
		{"SELECT 1 FROM a", ".a"},
		{"SELECT 1 FROM t WHERE x = 1::a", ".a"},
		{"UPDATE a", ".a"},
		{"SELECT a", ".a"},
		{"INSERT INTO a", ".a"},
		{"SELECT ", "a&"},
		{"SELECT ", "u&"},
		{"SELECT ", "a::b.c,"},
	} {
		for _, cut := range []bool{false, true} {
			short, long := tt.lead+strings.Repeat(tt.unit, n/len(tt.unit)), tt.lead+strings.Repeat(tt.unit, 4*n/len(tt.unit))
			if a, b := allocated(short, cut), allocated(long, cut); b > 8*a+64<<10 {
				t.Errorf("%s(%s)*, cut %v: %d bytes for %d, %d for %d", tt.lead, tt.unit, cut, a, len(short), b, len(long))
			}
		}
	}
}

// allocated returns how many bytes are allocated while a text is read.
func allocated(text string, cut bool) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	readSQL(text, cut)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A table's name is bounded, however it is written.
func TestTableNamesAreBounded(t *testing.T) {
	for _, lead := range []string{"SELECT 1 FROM a", "UPDATE a", "INSERT INTO a", "DELETE FROM a"} {
		for _, unit := range []string{".a", "." + strings.Repeat("b", 1000), `."` + strings.Repeat("c", 1000) + `"`} {
			tm := readSQL(lead+strings.Repeat(unit, 100), false)[0]
			if n := len(tm.shape.Table); n == 0 || n > maxParts*(maxIdentifier+1) {
				t.Errorf("%s(%.8s)*: a name of %d bytes", lead, unit, n)
			}
		}
	}
}
