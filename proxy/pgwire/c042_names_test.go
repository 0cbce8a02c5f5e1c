package pgwire

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

func TestC042UnnamedStatementReplaced(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("", sqlWrite), b("x", "", "8", "1"), p("", sqlRead), e("x"), b("y", "", "1"), e("y"), syn)
		w.want("1 2 1 C:UPDATE_1 2 D C:SELECT_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [E]
			ask SELECT counter read tx1i [BE]
			got UPDATE done rows=1 [C]
			got SELECT done rows=1 value=8 [2DC]
			end UPDATE done [Z]
			end SELECT done [Z]`)
		w.send(p("", sqlRead), syn, q("select 1"), b("", "", "1"), e(""), syn)
		w.want("1 Z:I T D C:SELECT_1 Z:I E:26000 Z:I")
		w.marks("")
	})
}

func TestC043NamesTwiceAndUnknown(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("s", sqlRead), syn)
		w.want("1 Z:I")
		w.send(p("s", sqlWrite), syn, cs("unknown"), cp("unknown"), syn, b("", "s", "1"), e(""), syn)
		w.want("E:42P05 Z:I 3 3 Z:I 2 D C:SELECT_1 Z:I")
		w.marks(`ask SELECT counter read tx1i [BE]
			got SELECT done rows=1 value=7 [2DC]
			end SELECT done [Z]`)
		w.send(cs("s"), p("s", sqlWrite), b("", "s", "8", "1"), e(""), syn)
		w.want("3 1 2 C:UPDATE_1 Z:I")
		w.marks("ask UPDATE counter write tx2i [PBE]" + wrote1)
	})
}

func TestC044FailedParse(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("s", sqlRead), syn)
		w.want("1 Z:I")
		w.send(p("s", "no sql"), syn, p("n", "no sql"), syn, b("", "n"), syn, b("", "s", "1"), e(""), syn)
		w.want("E:42601 Z:I E:42601 Z:I E:26000 Z:I 2 D C:SELECT_1 Z:I")
		w.marks(`ask SELECT counter read tx1i [BE]
			got SELECT done rows=1 value=7 [2DC]
			end SELECT done [Z]`)
	})
}

func TestC045OneNamespace(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(q("prepare x1 as update counter set value = $1 where id = $2"))
		w.want("C:PREPARE Z:I")
		w.send(b("", "x1", "8", "1"), e(""), syn)
		w.want("2 C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)
		w.send(p("x2", "insert into counter (id, value) values ($1, $2)"), syn, q("execute x2(3, 9)"))
		w.want("1 Z:I C:INSERT_0_1 Z:I")
		w.marks(`ask INSERT counter write tx2i [Q]
			got INSERT done rows=1 [C]
			end INSERT done [Z]`)
		w.send(q("deallocate x1"), b("", "x1", "8", "1"), e(""), syn, q("execute x2(4)"), q("execute x1(1, 2)"))
		w.want("C:DEALLOCATE Z:I E:26000 Z:I E:42601 Z:I E:26000 Z:I")
		w.marks(`ask INSERT counter write tx3i [Q]
			got INSERT failed rows=0 err=42601 [E]
			end INSERT failed [Z]`)
	})
}

func TestC046DeallocateAllBeforeANewParse(t *testing.T) {
	for _, sql := range []string{"deallocate all", "discard all"} {
		both(t, tables, func(w *tap) {
			w.send(p("old", sqlRead), syn)
			w.want("1 Z:I")
			if sql == "discard all" {
				w.send(q(sql), p("new", sqlWrite), syn)
				w.want("C:DISCARD_ALL Z:I E:42P01 Z:I") // its temporary tables too
				w.marks("")
				return
			}
			w.send(segments(ext(sql), fe{p("new", sqlWrite), b("", "new", "8", "1"), e(""), syn})...)
			w.want("1 2 C:DEALLOCATE_ALL 1 2 C:UPDATE_1 Z:I")
			w.marks("ask UPDATE counter write tx1i [PBE]" + wrote1)
			w.send(b("", "new", "8", "1"), e(""), syn, b("", "old", "1"), e(""), syn)
			w.want("2 C:UPDATE_1 Z:I E:26000 Z:I")
			w.marks(`ask UPDATE counter write tx2i [BE]
				got UPDATE done rows=1 [2C]
				end UPDATE done [Z]`)
		})
	}
}

func TestC047PortalsSuspended(t *testing.T) {
	few := func(n uint32) pgproto3.FrontendMessage { return &pgproto3.Execute{Portal: "p", MaxRows: n} }
	both(t, tables, func(w *tap) {
		w.send(q("begin"))
		w.want("C:BEGIN Z:T")
		w.send(p("", "select value from counter order by id"), b("p", ""), few(1), few(1), few(1), few(5), cp("p"), syn)
		w.want("1 2 D s D s C:SELECT_0 C:SELECT_0 3 Z:T")
		w.send(p("", "select value from counter order by id"), b("p", ""), few(2), cp("p"), e("p"), syn)
		w.want("1 2 D D s 3 E:34000 Z:E")
		w.marks(`ask BEGIN begin tx1 [Q]
			got BEGIN done rows=0 [C]
			ask SELECT counter read tx1 [PBE]
			got SELECT done rows=1 value=7 [12Ds]
			ask SELECT counter read tx1 [PBE]
			got SELECT done rows=2 [12DDs]`)
	})
}

func TestC048PortalsEndWithTheTransaction(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(p("", sqlWrite), b("x", "", "8", "1"), syn, e("x"), syn)
		w.want("1 2 Z:I E:34000 Z:I")
		w.send(segments(ext("begin"), fe{p("", sqlWrite), b("x", "", "8", "1")}, ext("commit"), fe{e("x"), syn})...)
		w.want("1 2 C:BEGIN 1 2 1 2 C:COMMIT E:34000 Z:I")
		w.send(b("", "", "8", "1"), e(""), syn) // nor does the unnamed statement run what it was
		w.until('Z')
		if got := trimmed(outcomes(w.pl.marks)); !strings.Contains(got, "UPDATE failed 0 value:8+0 34000\nBEGIN done 0\nCOMMIT done 0\nUPDATE failed 0 value:8+0 34000") {
			t.Error(got)
		}
	})
}

func TestC049PortalsInterleaved(t *testing.T) {
	few := func(name string) pgproto3.FrontendMessage { return &pgproto3.Execute{Portal: name, MaxRows: 1} }
	both(t, tables, func(w *tap) {
		w.send(segments(ext("begin"), fe{p("a", "select value from counter order by id"), p("b", "select id from counter order by id desc"),
			b("x", "a"), b("y", "b"), few("x"), few("y"), few("x"), few("y"), e("y"), e("x"), syn})...)
		w.want("1 2 C:BEGIN 1 1 2 2 D s D s D s D s C:SELECT_0 C:SELECT_0 Z:T")
		w.marks(`ask BEGIN begin tx1 [PBE]
			ask SELECT counter read tx1 [E]
			ask SELECT counter read tx1 [E]
			got BEGIN done rows=0 [12C]
			got SELECT done rows=1 value=7 [Ds]
			got SELECT done rows=1 id=2 [Ds]`)
	})
}

func TestC050BeginInASegment(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(segments(ext("BEGIN"), ext(sqlWrite, "8", "1"), fe{syn})...)
		w.want("1 2 C:BEGIN 1 2 C:UPDATE_1 Z:T")
		w.send(p("c", "commit"), ds("c"), flush)
		w.want("1 t n")
		w.send(b("", "c"), e(""), syn, p("r", "ROLLBACK"), syn)
		w.want("2 C:COMMIT Z:I 1 Z:I")
		w.send(segments(ext("BEGIN"), ext(sqlWrite, "8", "1"), fe{b("", "r"), e(""), syn})...)
		w.want("1 2 C:BEGIN 1 2 C:UPDATE_1 2 C:ROLLBACK Z:I")
		w.marks(`ask BEGIN begin tx1 [PBE]
			ask UPDATE counter write tx1 [PBE]
			got BEGIN done rows=0 [12C]
			got UPDATE done rows=1 [12C]
			ask COMMIT commit tx1 tables=counter [BE]
			got COMMIT done rows=0 [2C]
			ask BEGIN begin tx2 [PBE]
			ask UPDATE counter write tx2 [PBE]
			ask ROLLBACK rollback tx2 [BE]
			got BEGIN done rows=0 [12C]
			got UPDATE done rows=1 [12C]
			got ROLLBACK done rows=0 [2C]`)
	})
}

func TestC051CommitInASegmentThenAnError(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(segments(ext("begin"), ext(sqlWrite, "8", "1"), ext("commit"), ext(sqlWrite, "9", "1"), ext("no sql"), fe{syn})...)
		w.want("1 2 C:BEGIN 1 2 C:UPDATE_1 1 2 C:COMMIT 1 2 C:UPDATE_1 E:42601 Z:I")
		w.send(q("select value from counter where id = 1"))
		w.want("T D C:SELECT_1 Z:I")
		w.marks(`ask BEGIN begin tx1 [PBE]
			ask UPDATE counter write tx1 [PBE]
			ask COMMIT commit tx1 tables=counter [PBE]
			ask UPDATE counter write tx2i [PBE]
			got BEGIN done rows=0 [12C]
			got UPDATE done rows=1 [12C]
			got COMMIT done rows=0 [12C]
			got UPDATE rolled-back rows=1 [12C]
			end UPDATE rolled-back [Z]
			ask SELECT counter read tx3i [Q]
			got SELECT done rows=1 value=8 [TDC]
			end SELECT done [Z]`)
	})
}

func TestC052BatchOfAThousandWithAnError(t *testing.T) {
	const size, wrong = 1000, 417
	both(t, tables, func(w *tap) {
		batch := fe{p("w", "INSERT INTO counter (id, value) VALUES ($1, $2)"), p("r", sqlRead)}
		for i := range size {
			id := fmt.Sprint(100 + i)
			if i == wrong {
				id = "1"
			}
			batch = append(batch, b("", "w", id, "0"), e(""), b("", "r", id), e(""))
		}
		w.send(append(batch, syn, q(sqlUpdate))...)
		w.until('Z')
		w.want("C:UPDATE_1 Z:I")
		counts := map[string]int{}
		for _, m := range w.pl.marks {
			if s := w.pl.describe(m); strings.HasPrefix(s, "got ") {
				counts[s[:strings.IndexByte(s, '[')]]++
			}
		}
		for s, n := range map[string]int{
			"got INSERT rolled-back rows=1 ":            wrong,
			"got INSERT failed rows=0 err=23505 ":       1,
			"got INSERT failed rows=0 err=skipped ":     size - wrong - 1,
			"got SELECT failed rows=0 err=skipped ":     size - wrong,
			"got SELECT done rows=1 value=0 ":           wrong,
			"got UPDATE done rows=1 ":                   1,
			"got SELECT failed rows=0 err=23505 ":       0,
			"got INSERT done rows=1 ":                   0,
			"got UPDATE failed rows=0 err=skipped ":     0,
			"got UPDATE rolled-back rows=1 ":            0,
			"got SELECT done rows=0 ":                   0,
			"got INSERT rolled-back rows=0 ":            0,
			"got UPDATE failed rows=0 err=unexpected  ": 0,
		} {
			if counts[s] != n {
				t.Errorf("%s: %d, want %d of %v", s, counts[s], n, counts)
			}
		}
	})
}

func TestC054ParametersAreLeftAlone(t *testing.T) {
	both(t, tables, func(w *tap) {
		null := &pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{nil, []byte(four[:3] + "\x01")}, ParameterFormatCodes: []int16{0, 1}, ResultFormatCodes: []int16{1}}
		w.send(p("s", sqlWrite+" returning value, id"), ds("s"), null, e(""), syn)
		w.want("1 t T 2 D C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [PDBE]
			got UPDATE done rows=1 value=? id=1 [1tT2DC]
			end UPDATE done [Z]`)
		if op := w.pl.marks[0].Op; op.SQL.Set[0].Value.Known() || op.SQL.Where[0].Value.Int != 1 {
			t.Errorf("%+v", op.SQL)
		}
		const most = 65535
		var list strings.Builder
		for i := range most {
			fmt.Fprintf(&list, ",$%d", i+1)
		}
		m := b("", "", slices.Repeat([]string{"1"}, most)...)
		w.send(p("", "UPDATE counter SET value = 9 WHERE id IN ("+list.String()[1:]+")"), m, e(""), syn)
		w.want("1 2 C:UPDATE_1 Z:I")
		w.marks("ask UPDATE counter write tx2i [PBE]" + wrote1)
	})
}

func TestC055MalformedBodies(t *testing.T) {
	for _, body := range []string{
		"P\x00\x00\x00\x06ab", "P\x00\x00\x00\x0b\x00select", "B\x00\x00\x00\x04",
		"D\x00\x00\x00\x05S", "D\x00\x00\x00\x04", "E\x00\x00\x00\x04", "E\x00\x00\x00\x06\x00\x00", "C\x00\x00\x00\x04", "C\x00\x00\x00\x07Xab",
	} {
		t.Run(fmt.Sprintf("%q", body), func(t *testing.T) {
			both(t, tables, func(w *tap) {
				w.raw([]byte(body))
				w.send(syn)
				w.want("E:08P01 Z:I")
				w.send(q(sqlUpdate))
				w.want("C:UPDATE_1 Z:I")
				w.marks(`ask UPDATE counter write tx1i [Q]
					got UPDATE done rows=1 [C]
					end UPDATE done [Z]`)
			})
		})
	}
	both(t, tables, func(w *tap) {
		w.raw([]byte("Q\x00\x00\x00\x04"))
		w.want("E:08P01 Z:I")
		w.raw([]byte("Q\x00\x00\x00\x08abcd"))
		w.want("E:08P01 Z:I")
		w.marks("")
	})
}

// A Bind of a statement whose name is too long to be known replaces its portal,
// whether or not it comes in one piece.
func TestBindOfALongNameReplacesThePortal(t *testing.T) {
	long := strings.Repeat("n", 600)
	turns := encode(t, append(started[:2:2],
		fe{p("w", sqlWrite), p(long, sqlRead), b("", "w", "1", "1"), syn}, be{parsed, parsed, boundOK, z('T')},
		fe{b("", long, "1"), e(""), syn}, be{boundOK, c("SELECT 0"), z('T')}))
	for _, n := range []int{0, 1, 100} {
		if pl := newPlayer(t, newTracker()).play(turns, n); pl.text() != "" {
			t.Errorf("in pieces of %d: %s", n, pl.text())
		}
	}
}
