package lock

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is told, in whatever order, the ledger's lists agree with each other,
// and nothing is remembered for ever.
func TestTheLedgersListsAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newTape(Declaration{Key: "quorum", Quorum: 3}, Declaration{Key: "declared", Table: "counter"})
		var asked []*Op
		closed := map[uint64]bool{}
		for at := Instant(1); at < 120; at++ {
			switch n := rapid.IntRange(0, 9).Draw(r, "what"); {
			case n < 5:
				if op := anyOp(r, l); !closed[op.Session] {
					asked = append(asked, l.ask(at*20, op))
				}
			case n < 9 && len(asked) > 0:
				i := rapid.IntRange(0, len(asked)-1).Draw(r, "which")
				op := asked[i]
				asked = slices.Delete(asked, i, i+1)
				op.Depth = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(r, "depth")
				l.answer(at*20, op, rapid.SampledFrom([]Outcome{Granted, Granted, Done, Done, NotHeld, Refused, Failed}).Draw(r, "out"))
			case n == 9:
				session := rapid.Uint64Range(1, 6).Draw(r, "session")
				closed[session] = true
				asked = slices.DeleteFunc(asked, func(op *Op) bool { return op.Session == session })
				l.Closed(session, at*20*ms)
			}
			agree(r, l)
		}
		for session := range uint64(7) {
			l.Closed(session, 5000*ms)
		}
		for _, term := range l.Terms() {
			if term.pins != 0 || term.lease.inflight != 0 && term.Grant.F == 0 {
				r.Fatalf("term %d is needed by %d", term.ID, term.pins)
			}
			if !term.Open() && !term.retired {
				r.Fatalf("term %d is never forgotten", term.ID)
			}
		}
		if len(l.actors) != 0 || len(l.conns) != 0 {
			r.Fatalf("%d processes, %d connections", len(l.actors), len(l.conns))
		}
	})
}

func anyOp(r *rapid.T, l *tape) *Op {
	session := rapid.Uint64Range(1, 6).Draw(r, "session")
	op := &Op{Session: session, Actor: string(rune('A' + session%2)), Proto: Redis, TTL: 100 * time.Millisecond,
		Kind:    rapid.SampledFrom([]Kind{Acquire, Acquire, Release, Release, Renew, Store, Write, Read, Commit, Rollback, Fence, Begin}).Draw(r, "kind"),
		Key:     rapid.SampledFrom([]string{"a", "b", "sem", "quorum", "declared", "f:0:x", "f:1:x", "advisory:1", "row:t:1", "lease:t:1"}).Draw(r, "key"),
		Token:   l.v(rapid.SampledFrom([]string{"t", "u", "v"}).Draw(r, "token")),
		Guarded: rapid.Bool().Draw(r, "guarded"), NX: rapid.Bool().Draw(r, "nx"), Tx: rapid.Uint64Range(0, 2).Draw(r, "tx")}
	op.Upstream = rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(r, "upstream")
	op.Member, op.Savepoint = op.Key == "sem", rapid.IntRange(0, 3).Draw(r, "savepoint") == 0
	switch {
	case op.Kind == Write || op.Kind == Read:
		op.Proto, op.SQL = Postgres, &Statement{Table: "counter", Trace: rapid.SampledFrom([]string{"", "x"}).Draw(r, "trace")}
	case op.Key[0] == 'l' || op.Key[0] == 'r' || op.Key == "advisory:1" || op.Kind == Commit || op.Kind == Rollback || op.Kind == Begin:
		op.Proto, op.Token = Postgres, Value{}
		op.Span = map[byte]Span{'r': TxSpan, 'a': SessionSpan}[op.Key[0]]
		op.All = op.Kind == Release && op.Span == SessionSpan && op.Savepoint
	}
	return op
}

func agree(r *rapid.T, l *tape) {
	for i, term := range l.open {
		if term.at != i || !term.Open() || l.terms[term.ID] != term {
			r.Fatalf("term %d is not at its place among the open ones", term.ID)
		}
	}
	open := 0
	for _, term := range l.terms {
		if !term.Open() {
			continue
		}
		open++
		if !slices.Contains(l.keys[term.Lock].terms, term) {
			r.Fatalf("open term %d is not one of its key", term.ID)
		}
		if mine := l.actors[term.Actor]; term.Span != TxSpan && !term.Marker && (mine == nil || !slices.Contains(mine.open, term)) {
			r.Fatalf("open term %d is not one of its process", term.ID)
		}
	}
	if open != len(l.open) {
		r.Fatalf("%d are open, and %d listed", open, len(l.open))
	}
	for name, a := range l.actors {
		for _, term := range a.open {
			if !term.Open() || term.Marker || term.Actor != name {
				r.Fatalf("term %d of %s is closed, a marker or another's", term.ID, name)
			}
		}
		if !slices.IsSortedFunc(a.open, func(a, b *Term) int { return int(a.ID) - int(b.ID) }) {
			r.Fatal("not in the order of grants")
		}
	}
}
