package pgwire

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// What is large and of no interest is not even fed, but for its last byte.
func TestSkips(t *testing.T) {
	const size = 300_000
	large := strings.Repeat("x", size)
	lead := func(list ...any) []any { return append(started[:2:2], list...) }
	for _, tt := range []struct {
		name   string
		script []any
		least  int64
		most   int64
	}{
		{"a row", lead(fe{q("select 1")}, be{rowd("x", 25), data(large), c("SELECT 1"), z('I')}), size - 2000, size + 10},
		{"a row behind the first", lead(fe{q(sqlRead)}, be{rowd("value", 25), data("1"), data(large)}), 0, 0},
		{"copy data in", lead(fe{q("copy t from stdin")}, be{copyIn}, []byte("d\x00\x04\x93\xe4"+large)), size - 2000, size},
		{"copy data out", lead(fe{q("copy t to stdout")}, be{copyOut, data(large)}), size - 2000, size + 10},
		{"a Bind of no op", lead(fe{p("", "select $1"), b("", "", large)}), size - 2000, size},
		{"a Bind of an op", lead(fe{p("", sqlWrite), b("", "", large)}), 0, 0},
		{"a Query that can be held", lead(fe{q("select '" + large + "'")}), 0, 0},
		{"a Query that can not", lead(fe{q("select '" + strings.Repeat(large, 4) + "'")}), 4*size - keepPrefix - 2000, 4*size - keepPrefix + 10},
		{"a password", []any{started[0], be{}, []byte("p\x00\x04\x93\xe4" + large)}, size - 2000, size},
		{"a connection given up", lead(be{z('I')}, fe{q(large)}), size, size + 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turns := encode(t, tt.script)
			fed := newPlayer(t, newTracker()).play(turns, 1000)
			pl := newPlayer(t, newTracker())
			pl.skips = true
			pl.play(turns, 1000)
			if pl.skipped < tt.least || pl.skipped > tt.most {
				t.Errorf("%d bytes were not fed, want %d to %d", pl.skipped, tt.least, tt.most)
			}
			if pl.text() != fed.text() || pl.clear != fed.clear {
				t.Errorf("got\n%s\nwant\n%s", pl.text(), fed.text())
			}
		})
	}
}

// Rows behind what can be withheld are counted without being fed.
func TestSkipsRowsThatAreCounted(t *testing.T) {
	row := data(strings.Repeat("x", wire.MaxHeld/2))
	turns := encode(t, append(started[:2:2], fe{q("select value from counter")}, be{rowd("value", 25), row, row, row, row, c("SELECT 4"), z('I')}))
	pl := newPlayer(t, newTracker())
	pl.skips = true
	pl.play(turns, 10_000)
	if pl.skipped < wire.MaxHeld/2 || pl.marks[1].Op.Rows != 4 {
		t.Errorf("%d bytes were not fed, %s", pl.skipped, pl.text())
	}
}
