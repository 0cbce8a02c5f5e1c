package pgwire

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	tooLarge  = `; create function pg_temp.refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'`
	copySetup = "create temp table t (a int)"
	copyWrong = copySetup + tooLarge + "; create trigger r before insert on t execute function pg_temp.refuse()"
	copied    = `
		got COPY done rows=2 [C]
		end COPY done [Z]`
)

func cd(text string) *pgproto3.CopyData { return &pgproto3.CopyData{Data: []byte(text)} }

// inSync runs something afterwards, which must be what it is.
func (w *tap) inSync() {
	w.Helper()
	w.quiet("create temp table if not exists counter (id int, value int); delete from counter; insert into counter values (1, 7)")
	w.seen = len(w.pl.marks)
	w.send(segments(ext(sqlWrite, "8", "1"), fe{syn, q("select value from counter where id = 1")})...)
	w.want("1 2 C:UPDATE_1 Z:I T D C:SELECT_1 Z:I")
	var out []string
	for _, m := range w.pl.marks[w.seen:] {
		out = append(out, strings.Fields(w.pl.describe(m))[0]+" "+m.Op.Verb)
	}
	if got := strings.Join(out, ", "); got != "ask UPDATE, ask SELECT, got UPDATE, end UPDATE, got SELECT, end SELECT" || w.pl.tracker.asked.len() > 0 {
		w.Errorf("out of step: %s, %d outstanding", got, w.pl.tracker.asked.len())
	}
}

func TestC062CopyIn(t *testing.T) {
	both(t, copySetup, func(w *tap) {
		w.send(q("copy t from stdin"))
		w.want("G")
		w.send(cd("1\n"), cd("2\n"), copyDone)
		w.want("C:COPY_2 Z:I")
		w.marks("ask COPY t write tx1i [Q]" + copied)
		w.send(q("copy t from stdin"))
		w.want("G")
		w.send(cd("1\n"), copyFail)
		w.want("E:57014 Z:I")
		w.marks(`ask COPY t write tx2i [Q]
			got COPY failed rows=0 err=57014 [E]
			end COPY failed [Z]`)
		w.inSync()
	})
}

func TestC063CopyDataBeforeTheAnswer(t *testing.T) {
	both(t, copySetup, func(w *tap) {
		w.send(q("copy t from stdin"), cd("1\n"), cd("2\n"), copyDone)
		w.want("G C:COPY_2 Z:I")
		w.marks("ask COPY t write tx1i [Q]" + copied)
		w.send(q("copy none from stdin"), cd("1\n"), cd("2\n"), copyDone)
		w.want("E:42P01 Z:I")
		w.marks(`ask COPY none write tx2i [Q]
			got COPY failed rows=0 err=42P01 [E]
			end COPY failed [Z]`)
		w.inSync()
	})
	for _, version := range []int{15, 18} {
		server := sharedServer(t, version)
		r := newRelay(t, server.Addr(), 1<<12)
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, r.url(t, server.URL()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "create temp table t (a int)"); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"t", "none", "t"} {
			source := pgx.CopyFromSlice(20_000, func(i int) ([]any, error) { return []any{int32(i)}, nil })
			_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, []string{"a"}, source)
			if (err == nil) != (table == "t") {
				t.Fatal(err)
			}
		}
		conn.Close(ctx)
		if got := trimmed(outcomes(r.stop())); got != "COPY done 20000\nCOPY done 20000" && got != "COPY done 20000\nCOPY failed 0 42P01\nCOPY done 20000" {
			t.Error(got)
		}
	}
}

// The same bytes of the client get one ReadyForQuery or two.
func TestC064CopyInWithASyncBeforeTheData(t *testing.T) {
	for _, tt := range []struct {
		name, setup, sql, data, want, outcome string
	}{
		{"done", copySetup, "copy t from stdin", "1\n", "1 2 G C:COPY_1 Z:I", "done rows=1"},
		{"a bad row", copySetup, "copy t from stdin", "x\n", "1 2 G E:22P02 Z:I", "failed rows=0 err=22P02"},
		{"refused before the Sync is read", copyWrong, "copy t from stdin", "1\n", "1 2 G E:P0001 Z:I Z:I", "failed rows=0 err=P0001"},
		{"refused up front", copySetup, "copy none from stdin", "1\n", "1 2 E:42P01 Z:I Z:I", "failed rows=0 err=42P01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, tt.setup, func(w *tap) {
				w.send(append(ext(tt.sql), syn)...)
				w.send(cd(tt.data), copyDone, syn)
				want := tt.want
				w.want(want)
				if got := w.pl.text(); !strings.Contains(got, "got COPY "+tt.outcome) {
					t.Errorf("want %s in\n%s", tt.outcome, got)
				}
				w.inSync()
			})
		})
	}
	both(t, copySetup, func(w *tap) { // no Sync before the data
		w.send(append(ext("copy t from stdin"), cd("1\n"), copyDone, syn)...)
		w.want("1 2 G C:COPY_1 Z:I")
		w.inSync()
	})
	both(t, copySetup, func(w *tap) { // an error of the next segment, with a Sync that may be owed
		w.send(append(ext("copy t from stdin"), syn)...)
		w.send(cd("x\n"), copyDone, syn)
		w.want("1 2 G E:22P02 Z:I")
		w.send(append(ext("no sql"), syn)...)
		w.want("E:42601 Z:I")
		w.inSync()
	})
}

func TestC065ErrorWhileTheClientSends(t *testing.T) {
	both(t, copySetup, func(w *tap) {
		w.send(q("copy t from stdin"))
		w.want("G")
		w.send(cd("x\n"))
		for range 10_000 {
			w.send(cd("1\n"))
		}
		w.send(copyDone)
		w.want("E:22P02 Z:I")
		w.inSync()
		w.send(cd("late\n"), copyDone, copyFail) // when idle they are ignored
		w.inSync()
	})
}

func TestC066CopyDataInAnyPieces(t *testing.T) {
	both(t, copySetup, func(w *tap) {
		w.send(q("copy t from stdin; copy t from stdin"), cd("1"), cd(""), cd("2\n3"), cd("\n"), copyDone)
		w.want("G C:COPY_2 G")
		w.send(cd(strings.Repeat("7\n", 4<<10)), cd(strings.Repeat("7\n", 32<<10)), copyDone)
		w.want(fmt.Sprintf("C:COPY_%d Z:I", 36<<10))
		w.marks(fmt.Sprintf(`ask COPY t write tx1i [Q]
			ask COPY t write tx1i [Q]
			got COPY done rows=2 [C]
			got COPY done rows=%d [C]
			end COPY done [Z]
			end COPY done [Z]`, 36<<10))
		w.inSync()
	})
}

// Rows that go by cost no memory, whatever there is of them.
func TestC067LargeCopyOut(t *testing.T) {
	rows := 500_000
	if testing.Short() {
		rows = 100_000
	}
	for _, version := range []int{15, 18} {
		w := dial(t, version)
		w.startup(196608, "user", "postgres")
		w.until('Z')
		sql := fmt.Sprintf("copy (select repeat('x', 100) from generate_series(1, %d)) to stdout", rows)
		msgs := enc(t, fe{q(sql)})
		w.pl.tracker.Client(msgs, nil)
		if _, err := w.conn.Write(msgs); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		chunk := make([]byte, 64<<10)
		var seen, last int64
		for end := false; !end; {
			n, err := w.in.Read(chunk)
			if err != nil {
				t.Fatal(err)
			}
			marks, clear := w.pl.tracker.Upstream(chunk[:n], nil)
			seen += int64(n)
			last = clear
			if len(marks) > 0 {
				t.Fatalf("marks %+v", marks)
			}
			end = bytes.HasSuffix(chunk[:n], []byte("Z\x00\x00\x00\x05I"))
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 || seen < int64(rows)*101 || last == 0 {
			t.Errorf("%d bytes allocated for %d", used, seen)
		}
	}
}

func TestC068QueriesDuringCopyIn(t *testing.T) {
	for _, during := range []pgproto3.FrontendMessage{q("select 1"), p("", "select 1")} {
		both(t, copySetup, func(w *tap) {
			w.send(q("copy t from stdin"))
			w.want("G")
			w.send(during)
			if got := w.until('x'); got != "E:08P01 E:08P01 EOF" {
				t.Error(got)
			}
			w.marks(`ask COPY t write tx1i [Q]
				got COPY failed rows=0 err=08P01 [E]`)
		})
	}
}

func TestC072Replication(t *testing.T) {
	for _, mode := range []string{"database", "true"} {
		t.Run(mode, func(t *testing.T) {
			onEach(t, func(w *tap) {
				w.startup(196608, "user", "postgres", "database", "postgres", "replication", mode)
				w.until('Z')
				w.send(q("IDENTIFY_SYSTEM"))
				w.want("T D C:IDENTIFY_SYSTEM Z:I")
				slot := fmt.Sprintf("c072_%s_%d", mode, w.version)
				w.send(q("CREATE_REPLICATION_SLOT " + slot + " TEMPORARY PHYSICAL RESERVE_WAL"))
				w.want("T D C:CREATE_REPLICATION_SLOT Z:I")
				w.send(q("START_REPLICATION SLOT " + slot + " PHYSICAL 0/1000000"))
				if got := w.until('W'); got != "W" {
					t.Fatal(got)
				}
				if got := w.next(); got != "d" {
					t.Fatalf("got %s, want a part of the log", got)
				}
				w.send(&pgproto3.CopyData{Data: append([]byte{'r'}, make([]byte, 33)...)})
				w.send(copyDone)
				got := w.until('Z')
				if !strings.HasSuffix(got, "c C:START_STREAMING C:START_REPLICATION Z:I") { // two for one Query
					t.Errorf("it ends with %s", got[max(0, len(got)-80):])
				}
				w.send(p("", "select 1"), syn) // no extended protocol here
				if got := w.until('Z'); !strings.HasPrefix(got, "E:08P01") {
					t.Error(got)
				}
				if w.pl.tracker.phase != running || w.pl.tracker.asked.len() > 0 {
					t.Errorf("%d outstanding, %s", w.pl.tracker.asked.len(), w.pl.text())
				}
				w.marks("")
			})
		})
	}
}
