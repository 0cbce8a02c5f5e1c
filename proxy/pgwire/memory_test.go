package pgwire

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// What waits for answers that do not come is held to what is promised, ops and
// all: as the heap has it, not as the tracker counts it.
func TestHeldMemoryIsBounded(t *testing.T) {
	many := make([]string, 1024)
	const wide = "update t set a = $1024"
	for name, tt := range map[string]struct {
		before []any
		ask    func(i int) fe
		stored int64 // of it in what has names
	}{
		"Queries":              {nil, func(int) fe { return fe{q("delete from t")} }, 0},
		"texts of many":        {nil, func(int) fe { return fe{q(strings.Repeat("begin;", 100))} }, 0},
		"texts of many values": {nil, func(int) fe { return fe{q("update t set " + strings.Repeat("a=1,", 200) + "a=1")} }, 0},
		"texts of many tables": {nil, func(int) fe { return fe{q("truncate a" + strings.Repeat(",b", 200))} }, 0},
		"savepoints":           {nil, func(int) fe { return fe{q("savepoint a")} }, 0},
		"names of texts":       {nil, func(i int) fe { return fe{p(fmt.Sprint(i), "delete from t")} }, 0},
		"names of many texts":  {nil, func(i int) fe { return fe{p(fmt.Sprint(i), fmt.Sprint("delete from t where a=", i))} }, 0},
		"names of wide texts, given": {nil, func(i int) fe {
			return fe{p(fmt.Sprint(i), fmt.Sprintf("update t set %sa=1 where b=%d", strings.Repeat("a=1,", 200), i))}
		}, maxNamed},
		"names in texts":    {nil, func(i int) fe { return fe{q(fmt.Sprintf("prepare a%d as delete from t", i))} }, 0},
		"Closes":            {nil, func(i int) fe { return fe{p("a", "delete from t"), cs("a")} }, 0},
		"forgetting all":    {nil, func(i int) fe { return fe{q("discard all")} }, 0},
		"Executes":          {[]any{fe{p("s", sqlWrite)}}, func(int) fe { return fe{b("", "s", "1", "1"), e("")} }, 0},
		"Executes of wide":  {[]any{fe{p("s", wide)}}, func(int) fe { return fe{b("", "s", many...), e("")} }, 0},
		"Executes of texts": {[]any{fe{q("prepare p as delete from t")}}, func(int) fe { return fe{q("execute p")} }, 0},
		"Describes":         {[]any{fe{p("s", sqlWrite)}}, func(int) fe { return fe{ds("s")} }, 0},
		"portals":           {[]any{fe{p("s", sqlWrite)}}, func(i int) fe { return fe{b(fmt.Sprint(i), "s", "1", "1")} }, maxNamed},
		"wide portals":      {[]any{fe{p("s", wide)}}, func(i int) fe { return fe{b(fmt.Sprint(i), "s", many...)} }, maxNamed},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			newPlayer(t, tr).play(encode(t, append(started[:2:2], tt.before...)), 0)
			marks := make([]wire.Mark, 0, 1<<10)
			from, most := tr.client.pos, 20000
			given := encode(t, []any{be{parsed}})[0].bytes
			switch {
			case strings.Contains(name, "wide"):
				most = 2000
			case strings.Contains(name, "many"):
				most = 1000
			}
			heap := heapNow()
			for i := range most {
				tr.Client(enc(t, tt.ask(i)), marks)
				if strings.Contains(name, "given") {
					tr.Upstream(given, marks)
				}
			}
			clear(marks[:cap(marks)])
			held, received := heapNow()-heap, tr.client.pos-from
			if most := 4*received + 64<<10 + int64(tr.asked.weight)<<10 + tt.stored; held > most || tr.phase == opaque {
				t.Errorf("%d bytes held, want at most %d: received %d, weight %d KiB", held, most, received, tr.asked.weight)
			}
			t.Logf("%d held, received %d, weight %d KiB", held, received, tr.asked.weight)
			runtime.KeepAlive(tr)
		})
	}
}

func heapNow() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
