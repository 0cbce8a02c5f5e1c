package pgwire

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	tables = `create temp table counter (id int primary key, value int, fence int default 0); insert into counter values (1, 7), (2, 8);
		create temp table parent (id int primary key); create temp table child (id int references parent deferrable initially deferred)`
	sqlChild = "INSERT INTO child (id) VALUES ($1)"
	wrote1   = `
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`
)

func TestC033ParseBindDescribeExecute(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("s", sqlRead), ds("s"), b("", "s", "1"), dp(""), e(""), p("", sqlWrite), b("", "", "8", "1"), dp(""), e(""), cs("s"), syn)
		w.want("1 t T 2 T D C:SELECT_1 1 2 n C:UPDATE_1 3 Z:I")
		w.marks(`ask SELECT counter read tx1i [PDBDE]
			ask UPDATE counter write tx1i [PBDE]
			got SELECT done rows=1 value=7 [1tT2TDC]
			got UPDATE done rows=1 [12nC]
			end SELECT done [Z]
			end UPDATE done [Z]`)
	})
}

func TestC034ErrorAtEachStage(t *testing.T) {
	next := segments(ext(sqlWrite, "9", "2"), fe{syn})
	for _, tt := range []struct {
		name  string
		fails fe
		want  string
	}{
		{"Parse", fe{p("", "no sql")}, "E:42601"},
		{"Bind", fe{p("", sqlRead), b("", "")}, "1 E:08P01"},
		{"Describe", fe{ds("unknown")}, "E:26000"},
		{"Execute", ext("select 1 / (x - x) from generate_series(1, $1::int) x", "3"), "1 2 E:22012"},
		{"Close", fe{&pgproto3.Close{ObjectType: 'X'}}, "E:08P01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, tables, func(w *tap) {
				w.send(segments(tt.fails, ext(sqlWrite, "8", "1"), fe{dp(""), cs("s"), p("s", sqlRead), syn}, next)...)
				w.want(tt.want + " Z:I 1 2 C:UPDATE_1 Z:I")
				w.send(b("", "s", "1"), syn)
				w.want("E:26000 Z:I") // the Parse was passed over too
				w.marks(`ask UPDATE counter write tx1i [PBE]
					ask UPDATE counter write tx2i [PBE]
					got UPDATE failed rows=0 err=skipped [Z]
					end UPDATE failed [Z]` + wrote1)
			})
		})
	}
}

func TestC035QueryAndFunctionCallWhileSkipping(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("", "no sql"), flush)
		w.want("E:42601")
		w.send(q(sqlUpdate), &pgproto3.FunctionCall{Function: 1}, syn)
		w.want("Z:I")
		w.send(q(sqlUpdate))
		w.want("C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [Q]
			got UPDATE failed rows=0 err=skipped [Z]
			end UPDATE failed [Z]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
	})
}

func TestC036ErrorOfTheSyncItself(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(segments(ext(sqlWrite, "8", "1"), ext(sqlChild, "5"), fe{syn})...)
		w.want("1 2 C:UPDATE_1 1 2 C:INSERT_0_1 E:23503 Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			ask INSERT child write tx1i [PBE]
			got UPDATE rolled-back rows=1 [12C]
			got INSERT rolled-back rows=1 [12C]
			end UPDATE rolled-back [Z]
			end INSERT rolled-back [Z]`)
		w.send(q("INSERT INTO child (id) VALUES (5)")) // an error without a CommandComplete
		w.want("E:23503 Z:I")
		w.marks(`ask INSERT child write tx2i [Q]
			got INSERT failed rows=0 err=23503 [E]
			end INSERT failed [Z]`)
	})
}

func TestC037FlushWithoutSync(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("s", sqlWrite), ds("s"), flush)
		w.want("1 t n")
		w.send(b("", "s", "8", "1"), e(""), flush)
		w.want("2 C:UPDATE_1") // and want holds that nothing is withheld
		w.send(syn)
		w.want("Z:I")
		w.marks(`ask UPDATE counter write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)
	})
}

// What a Flush brings of a reply that goes on later waits for the rest of it,
// which the client has asked for already.
func TestC037FlushInsideAGroup(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("", sqlWrite), flush)
		w.want("1")
		w.send(b("", "", "8", "1"), flush)
		w.want("2")
		w.send(dp(""), flush)
		w.want("n")
		w.send(e(""), flush)
		w.want("C:UPDATE_1")
		w.send(syn)
		w.want("Z:I")
		w.marks(`ask UPDATE counter write tx1i [E]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
	})
}

func TestC038ErrorWithoutFlushOrSync(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(ext("UPDATE counter SET value = value / (value - value) WHERE id = $1", "1")...)
		w.want("1 2 E:22012")
		w.send(syn)
		w.want("Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			got UPDATE failed rows=0 err=22012 [12E]
			end UPDATE failed [Z]`)
	})
}

func TestC039SyncsAlone(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(syn, syn, flush, syn, flush)
		w.want("Z:I Z:I Z:I")
		w.send(q(sqlUpdate))
		w.want("C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
	})
}

// On 18 the query runs inside the pipeline's transaction, which only the Sync
// commits: what its Z says is no BEGIN. (18.4 then fails whatever comes next, as
// internal error.)
func TestC040QueryBeforeTheSync(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(segments(ext(sqlWrite, "9", "1"), fe{q("select value from counter where id = 1"), syn})...)
		w.want("1 2 C:UPDATE_1 T D C:SELECT_1 " + w.by("Z:I", "Z:T") + " Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx1i [Q]
			got UPDATE done rows=1 [12C]
			got SELECT done rows=1 value=9 [TDC]
			end UPDATE done [Z]
			end SELECT done [Z]`)
	})
	both(t, tables, func(w *tap) {
		w.send(segments(ext(sqlWrite, "3", "1"), fe{q("select 1 / 0"), syn})...)
		w.want("1 2 C:UPDATE_1 E:22012 Z:I Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			got UPDATE rolled-back rows=1 [12C]
			end UPDATE rolled-back [Z]`)
		w.send(q("select value from counter where id = 1"))
		w.want("T D C:SELECT_1 Z:I")
		w.marks(`ask SELECT counter read tx2i [Q]
			got SELECT done rows=1 value=7 [TDC]
			end SELECT done [Z]`)
	})
}

func TestC041PipelineAcrossSyncs(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(segments(ext(sqlWrite, "9", "1"), fe{syn}, ext("bad"), fe{syn}, ext(sqlRead, "1"), fe{syn}, ext(sqlChild, "5"), fe{syn}, ext(sqlWrite, "4", "1"), fe{syn})...)
		w.want("1 2 C:UPDATE_1 Z:I E:42601 Z:I 1 2 D C:SELECT_1 Z:I 1 2 C:INSERT_0_1 E:23503 Z:I 1 2 C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx2i [PBE]
			ask INSERT child write tx3i [PBE]
			ask UPDATE counter write tx4i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]
			got SELECT done rows=1 value=9 [12DC]
			end SELECT done [Z]
			got INSERT rolled-back rows=1 [12C]
			end INSERT rolled-back [Z]` + wrote1)
	})
}
