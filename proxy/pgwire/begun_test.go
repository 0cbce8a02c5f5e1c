package pgwire

import (
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// What belongs to something that its session has begun is told from what begins something.
func TestBegun(t *testing.T) {
	write := fe{p("", sqlWrite), b("", "", "1", "1"), e("")}
	for _, tt := range []struct {
		name    string
		script  []any
		begun   []bool // of each op
		working bool   // at the end
	}{
		{"statements by themselves", []any{fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')}, fe{q(sqlUpdate)}}, []bool{false, false}, false},
		{"a transaction", []any{fe{q("begin")}, be{c("BEGIN"), z('T')}, fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')}, fe{q("begin")}}, []bool{false, true, true}, true},
		{"one that is not answered", []any{fe{q("begin"), q(sqlUpdate)}}, []bool{false, true}, true},
		{"one that has ended", []any{fe{q("begin"), q("commit"), q(sqlUpdate)}}, []bool{false, true, false}, false},
		{"one text", []any{fe{q("begin; " + sqlUpdate)}}, []bool{false, false}, true},
		{"what upstream says", []any{fe{q("select 1")}, be{c("SELECT 1"), z('T')}, fe{q(sqlUpdate)}}, []bool{true}, true},
		{"what upstream says has ended", []any{fe{q("begin")}, be{c("BEGIN"), z('T')}, fe{q("select 1")}, be{c("SELECT 1"), z('I')}}, []bool{false}, false},
		{"a pipeline", []any{slices.Concat(write, write)}, []bool{false, true}, true},
		{"a pipeline that began with what is no op", []any{slices.Concat(fe{p("", "select 1"), b("", ""), e("")}, write)}, []bool{true}, true},
		{"what is only prepared begins nothing", []any{slices.Concat(fe{p("s", sqlRead), ds("s")}, write)}, []bool{false}, true},
		{"two pipelines", []any{slices.Concat(write, fe{syn}, write, fe{syn})}, []bool{false, false}, false},
		{"one that cannot be followed", []any{write, []byte("Q\x00\x00\x00\x03abc")}, []bool{false}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], tt.script...)), 0)
			var got []bool
			for _, m := range pl.marks {
				if m.Kind == wire.Request {
					got = append(got, m.Begun)
				}
			}
			if !slices.Equal(got, tt.begun) {
				t.Errorf("begun %v, want %v", got, tt.begun)
			}
			if pl.tracker.Working() != tt.working {
				t.Errorf("working %v", pl.tracker.Working())
			}
		})
	}
}
