package history

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

var all = func(string, string) bool { return true }

func anyValue() *rapid.Generator[lock.Value] {
	return rapid.Custom(func(t *rapid.T) lock.Value {
		v := lock.Value{Hash: rapid.StringMatching(`[0-9a-f]{16}|`).Draw(t, "hash")}
		if v.IsInt = rapid.Bool().Draw(t, "number"); v.IsInt {
			v.Int = rapid.Int64().Draw(t, "int")
		}
		return v
	})
}

func name(t *rapid.T, label string) string {
	return rapid.StringMatching(`[a-z"é]{0,6}`).Draw(t, label)
}

func anyStatement() *rapid.Generator[*lock.Statement] {
	return rapid.Custom(func(t *rapid.T) *lock.Statement {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		s := &lock.Statement{Table: name(t, "table"), Returning: rapid.Bool().Draw(t, "returning"), ForUpdate: rapid.Bool().Draw(t, "for update"),
			Upsert: rapid.Bool().Draw(t, "upsert"), Opaque: rapid.Bool().Draw(t, "opaque"), Cascade: rapid.Bool().Draw(t, "cascade"), Lease: rapid.Bool().Draw(t, "lease")}
		for range rapid.IntRange(0, 2).Draw(t, "also") {
			s.Also = append(s.Also, name(t, "table"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "sets") {
			a := lock.Assign{Column: name(t, "column"), Value: anyValue().Draw(t, "value"), HasDelta: rapid.Bool().Draw(t, "delta?")}
			if a.HasDelta {
				a.Delta = rapid.Int64().Draw(t, "delta")
			}
			s.Set = append(s.Set, a)
		}
		for range rapid.IntRange(0, 3).Draw(t, "conds") {
			s.Where = append(s.Where, lock.Cond{Column: name(t, "column"), Op: rapid.SampledFrom([]string{"=", "<", "<=", "<>"}).Draw(t, "op"), Value: anyValue().Draw(t, "value")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "asides") {
			s.Aside = append(s.Aside, name(t, "table")+"."+name(t, "column"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "columns") {
			s.Columns = append(s.Columns, name(t, "column"))
		}
		return s
	})
}

func anyOp() *rapid.Generator[*lock.Op] {
	return rapid.Custom(func(t *rapid.T) *lock.Op {
		n := func(label string) uint64 { return uint64(rapid.Uint32().Draw(t, label)) }
		at := func(label string) lock.Instant { return lock.Instant(rapid.Int64Range(0, 1<<50).Draw(t, label)) }
		op := &lock.Op{
			Seq: n("seq"), ReplySeq: n("reply"), Session: n("session"), Actor: name(t, "actor"), Upstream: name(t, "upstream"),
			Proto: lock.Redis, Kind: rapid.SampledFrom([]lock.Kind{lock.Acquire, lock.Write, lock.Commit}).Draw(t, "kind"), Verb: name(t, "verb"),
			DB: rapid.IntRange(0, 15).Draw(t, "db"), Key: string(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "key")),
			NX: rapid.Bool().Draw(t, "nx"), Guarded: rapid.Bool().Draw(t, "guarded"), Guessed: rapid.Bool().Draw(t, "guessed"), TTL: time.Duration(at("ttl")), Coarse: rapid.Bool().Draw(t, "coarse"), FenceKey: name(t, "fence key"),
			SQL: anyStatement().Draw(t, "sql"), Path: name(t, "path"), Tx: n("tx"), Implicit: rapid.Bool().Draw(t, "implicit"), Savepoint: rapid.Bool().Draw(t, "savepoint"), Since: n("since"),
			Rows: rapid.Int64().Draw(t, "rows"), Err: name(t, "err"), Outcome: rapid.SampledFrom([]lock.Outcome{lock.Pending, lock.Done, lock.Unknown}).Draw(t, "outcome"),
			A: at("a"), F: at("f"), R: at("r"), D: at("d"), Z: at("z"),
		}
		op.Token = lock.Value{Hash: rapid.StringMatching(`[0-9a-f]{16}|`).Draw(t, "token"), IsInt: rapid.Bool().Draw(t, "number")}
		if op.HasFence = rapid.Bool().Draw(t, "fence?"); op.HasFence {
			op.Fence = rapid.Int64().Draw(t, "fence")
		}
		if rapid.Bool().Draw(t, "attributed") {
			op.Term = lock.Attribution{ID: 7, Confidence: 0.98, Also: rapid.SampledFrom([][]lock.TermID{nil, {8, 9}}).Draw(t, "also")}
		}
		for range rapid.IntRange(0, 2).Draw(t, "tables") {
			op.Tables = append(op.Tables, name(t, "table"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "cells") {
			op.Row = append(op.Row, lock.Cell{Column: name(t, "column"), Value: anyValue().Draw(t, "value")})
		}
		return op
	})
}

func TestOpsSurviveWritingAndReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.SliceOfN(anyOp(), 0, 4).Draw(t, "ops")
		var b bytes.Buffer
		w := NewWriter(&b, Header{Seed: 1}, all)
		for _, op := range ops {
			w.Op(op)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		h, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Ops) != len(ops) {
			t.Fatalf("%d ops became %d", len(ops), len(h.Ops))
		}
		for i := range ops {
			if !reflect.DeepEqual(h.Ops[i], ops[i]) {
				t.Fatalf("wrote %+v\nread  %+v", ops[i], h.Ops[i])
			}
		}
	})
}

func TestEveryLineSurvives(t *testing.T) {
	want := &History{
		Header: Header{Schema: Schema, Started: time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC), Seed: 9, KeyID: "k", Version: "v",
			Declarations: []lock.Declaration{{Key: "lock:*", Table: "counter", FenceColumn: "fence", Declared: true}},
			Invariants:   []Invariant{{Kind: "counter", Query: "q", Start: 1, HasStart: true, End: 7, HasEnd: true}}},
		Actors:     []Actor{{Label: "A1", PID: 3, Start: 4, Exe: "/bin/x", Cgroup: "/c", Address: "127.0.0.1:1"}},
		Turns:      []Turn{{Injection: 1, Op: 5, Session: 3, Actor: "A2", At: 6, Ended: 7, Cut: "lease"}},
		Vains:      []Vain{{At: 6, Rule: "r", Matched: "counter", Why: "no lease"}},
		Injections: []Injection{{ID: 1, Rule: "r", Effect: "freeze", For: 800, Op: 4, At: 5, Confirmed: 6, Ended: 7, Outcome: "landed", Section: true}},
		Ends:       []End{{Session: 2, At: 8, Seq: 5}},
		Gaps:       []Gap{{At: 9, Lost: 3, Why: "queue full"}},
		Clocks:     []Clock{{Upstream: "u", At: 10, Wall: time.Date(2026, 8, 1, 12, 0, 1, 0, time.UTC), Trip: 11, Slept: 12, Run: "r", Data: "d", Role: "master"}},
		Tallies:    []Tally{{Upstream: "u/db", Table: "counter", Inserted: 1, Updated: 2, Deleted: 3}},
		Bypasses:   []Bypass{{Upstream: "u", At: 13, DB: 2, Key: "lock:\xff", Verb: "DEL", Address: "10.0.0.9:5"}, {At: 14, Key: "lock:a", Verb: "SET"}},
	}
	var b bytes.Buffer
	header := want.Header
	header.Invariants = nil
	w := NewWriter(&b, header, nil)
	w.Actor(want.Actors[0])
	w.Injection(want.Injections[0])
	w.Turn(want.Turns[0])
	w.Vain(want.Vains[0])
	w.End(2, 8, 5)
	w.Gap(9, 3, "queue full")
	w.Invariants(want.Header.Invariants)
	w.Clock(want.Clocks[0])
	w.Tally(want.Tallies[0])
	w.Bypass(want.Bypasses[0])
	w.Bypass(want.Bypasses[1])
	got, err := Read(&b)
	if err != nil || w.Err() != nil {
		t.Fatal(err, w.Err())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read  %+v\nwrote %+v", got, want)
	}
}

func TestOnlyAllowedIntegersAreWritten(t *testing.T) {
	v := func(n int64) lock.Value { return lock.Value{Hash: "00", Int: n, IsInt: true} }
	var b bytes.Buffer
	w := NewWriter(&b, Header{Invariants: []Invariant{{Kind: "counter", Query: "SELECT value FROM counter WHERE id = 1", Table: "counter"}}},
		func(_, column string) bool { return column == "value" })
	w.Op(&lock.Op{Actor: "A", Kind: lock.Fence, Fence: 77, HasFence: true})
	w.Op(&lock.Op{Actor: "A", Kind: lock.Write, Token: v(5), SQL: &lock.Statement{Table: "public.counter",
		Set:   []lock.Assign{{Column: "value", Value: v(8)}, {Column: "fence", Value: v(77)}, {Column: "salary", Value: v(4321)}, {Column: "other", Value: v(77)}},
		Where: []lock.Cond{{Column: "id", Op: "=", Value: v(1)}, {Column: "fence", Op: "<", Value: v(77)}, {Column: "secret", Op: "=", Value: v(99)}}},
		Row: []lock.Cell{{Column: "salary", Value: v(1234)}}})
	h, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	op := h.Ops[1]
	want := map[string]bool{"value": true, "fence": true, "id": true}
	for _, s := range op.SQL.Set {
		if s.Value.IsInt != want[s.Column] || s.Value.Hash == "" {
			t.Errorf("set %s is %+v", s.Column, s.Value)
		}
	}
	for _, c := range op.SQL.Where {
		if c.Value.IsInt != want[c.Column] || c.Value.Hash == "" {
			t.Errorf("where %s is %+v", c.Column, c.Value)
		}
	}
	if op.Row[0].Value.IsInt || op.Token.Int != 0 || !op.Token.IsInt {
		t.Errorf("row %+v, token %+v", op.Row, op.Token)
	}
}

// The numbers of a column that may not be told keep their differences, within
// one history, and nothing else.
func TestOtherIntegersAreShifted(t *testing.T) {
	v := func(n int64) lock.Value { return lock.Value{Hash: "00", Int: n, IsInt: true} }
	shifted := func() (salary, age, where lock.Value, text string) {
		var b bytes.Buffer
		w := NewWriter(&b, Header{}, nil)
		w.Op(&lock.Op{Kind: lock.Read, SQL: &lock.Statement{Table: "public.staff", Where: []lock.Cond{{Column: "salary", Op: "=", Value: v(4321987)}}},
			Row: []lock.Cell{{Column: "salary", Value: v(4321987)}, {Column: "age", Value: v(4321987)}}})
		w.Op(&lock.Op{Kind: lock.Write, SQL: &lock.Statement{Table: "staff", Set: []lock.Assign{{Column: "salary", Value: v(4321980)}}}})
		text = b.String()
		h, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		read, put := h.Ops[0].Row[0].Value, h.Ops[1].SQL.Set[0].Value
		if by, ok := put.Minus(read); !ok || by != -7 {
			t.Errorf("%+v less %+v is %d, %v; want -7", put, read, by, ok)
		}
		return read, h.Ops[0].Row[1].Value, h.Ops[0].SQL.Where[0].Value, text
	}
	a, age, where, text := shifted()
	b, _, _, _ := shifted()
	if a.Rel == b.Rel || a.Rel == age.Rel || a.Rel == a.Int || a.IsInt || where.IsRel || where.IsInt {
		t.Errorf("salary %+v and, in another history, %+v; age %+v; compared with %+v", a, b, age, where)
	}
	if strings.Contains(text, "43219") {
		t.Errorf("the number is told: %s", text)
	}
}

// A number that is told beside a shifted one would tell the column.
func TestAGuardedColumnIsShiftedNoMore(t *testing.T) {
	v := func(n int64) lock.Value { return lock.Value{Hash: "00", Int: n, IsInt: true} }
	var b bytes.Buffer
	w := NewWriter(&b, Header{}, nil)
	w.Op(&lock.Op{Actor: "A", Kind: lock.Fence, Fence: 77, HasFence: true})
	w.Op(&lock.Op{Actor: "A", Kind: lock.Write, SQL: &lock.Statement{Table: "t", Where: []lock.Cond{{Column: "fence", Op: "<", Value: v(77)}}}})
	w.Op(&lock.Op{Actor: "A", Kind: lock.Read, SQL: &lock.Statement{Table: "t"}, Row: []lock.Cell{{Column: "fence", Value: v(78)}}})
	h, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Ops[2].Row[0].Value; got.IsRel || got.IsInt {
		t.Errorf("%+v", got)
	}
}

func TestReadIgnoresWhatItDoesNotKnow(t *testing.T) {
	h, err := Read(strings.NewReader(`{"type":"header","schema":"1.7","later":{"x":1}}` + "\n" + `{"type":"lamp","x":1}` + "\n\n" +
		`{"type":"op","seq":1,"kind":"read","colour":"red"}` + "\n"))
	if err != nil || len(h.Ops) != 1 || h.Ops[0].Kind != lock.Read {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1"},
		{`{"type":"op"}`, "expected a header"},
		{`{"type":"header","schema":"x"}`, "expected a version"},
		{`{"type":"header","schema":"2.0"}`, "newer"},
		{`{"type":"header","schema":"1.0"}` + "\n" + `{"type":` + "\n" + `{"type":"op"}`, "line 2"},
		{`{"type":"header","schema":"1.0"}` + "\n" + `{"type":"op","seq":"x"}` + "\n", "line 2"},
	} {
		_, err := Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if (c.want == "newer") != errors.Is(err, ErrNewer) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

func TestALineThatWasCutOffIsAGap(t *testing.T) {
	h, err := Read(strings.NewReader(`{"type":"header","schema":"1.0"}` + "\n" + `{"type":"op","seq":1,"r":50}` + "\n" + `{"type":"op","se`))
	if err != nil || len(h.Ops) != 1 || len(h.Gaps) != 1 || h.Gaps[0].At != 50 {
		t.Errorf("%+v, %v", h, err)
	}
}

type broken struct{ n int }

func (b *broken) Write([]byte) (int, error) { b.n++; return 0, errors.New("disk full") }

func TestTheFirstErrorSticks(t *testing.T) {
	b := &broken{}
	w := NewWriter(b, Header{}, nil)
	w.Op(&lock.Op{})
	if err := w.Close(); err == nil || b.n != 1 || w.Err() != err || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("%v after %d writes", err, b.n)
	}
}

// The column by which an invariant's query chooses its row is found as it may be written.
func TestColumnsThatAQueryNames(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT value FROM counter WHERE ID = 1":                "id",
		`SELECT c.value FROM counter c WHERE public.c."Id" = 1`: "Id",
		`select value from counter where a = 'x' and b=2`:       "b",
	} {
		k := newKeeper(func(_, _ string) bool { return false }, []Invariant{{Query: query, Table: "counter"}})
		if !k.rows[column{"counter", want}] {
			t.Errorf("%s: %v", query, k.rows)
		}
	}
}
