package main

import (
	"os"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// record is `record WHAT FILE END`: it writes a history of two holders of one
// lock around a counter that began at 7, and whose query answers END.
//
//	clean   one after the other, and nobody is late
//	ended   the same, and the counter was read as 9 at the end of the run
//	paused  the same, with an injection that ended no lease
//	lost    the first is frozen past its lease and overwrites the second's work
func record(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: record clean|ended|paused|lost FILE END")
	}
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	t := &tape{hash: lock.NewHasher([]byte("key")), now: lock.Instant(time.Second)}
	if args[0] == "lost" {
		t.lost()
	} else {
		t.section("A1", 7)
		t.section("A2", 8)
	}
	counter := history.Invariant{Name: "counter", Kind: "counter", Query: "SELECT " + args[2],
		Table: "counter", Column: "value", Start: 7, HasStart: true}
	if args[0] == "ended" {
		counter.End, counter.HasEnd = 9, true
	}
	w := history.NewWriter(f, history.Header{
		Seed: 42, Started: time.Unix(1700000000, 0), Invariants: []history.Invariant{counter},
	}, func(table, column string) bool { return table == "counter" && column == "value" })
	for _, op := range t.ops {
		w.Op(op)
	}
	if args[0] == "paused" || args[0] == "lost" {
		w.Injection(history.Injection{ID: 1, Rule: "--freeze-before UPDATE(counter)#1=800ms", Effect: "freeze",
			Phase: "before", Matched: "counter", Actor: "A1", Scope: "process", For: 800 * time.Millisecond,
			At: t.ops[1].R, Outcome: "landed", Section: true})
	}
	ts.Check(w.Close())
}

// A tape plays ops one after the other, a millisecond from each request to its reply.
type tape struct {
	hash *lock.Hasher
	now  lock.Instant
	seq  uint64
	ops  []*lock.Op
}

// sessions of an actor: the first is its Redis connection, the next its Postgres one.
var sessions = map[string]uint64{"A1": 1, "A2": 3}

func (t *tape) play(actor string, op lock.Op) {
	op.Actor, op.Session = actor, sessions[actor]
	if op.Proto == lock.Postgres {
		op.Session++
		op.Tx, op.Implicit, op.Rows = t.seq+1, true, 1
	}
	op.Seq, op.ReplySeq = t.seq+1, t.seq+2
	op.A, op.F = t.now, t.now
	op.R = t.now.Add(time.Millisecond)
	op.D, op.Z = op.R, op.R
	t.seq, t.now = t.seq+2, op.R.Add(time.Millisecond)
	t.ops = append(t.ops, &op)
}

func (t *tape) section(actor string, base int64) {
	t.acquire(actor)
	t.read(actor, base)
	t.write(actor, base+1)
	t.release(actor, lock.Done)
}

func (t *tape) lost() {
	t.acquire("A1")
	t.read("A1", 7)
	t.now = t.now.Add(800 * time.Millisecond)
	t.section("A2", 7)
	t.write("A1", 8)
	t.release("A1", lock.NotHeld)
}

func (t *tape) acquire(actor string) {
	t.play(actor, lock.Op{Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "lock:counter", NX: true,
		Token: t.hash.Of([]byte(actor)), TTL: 500 * time.Millisecond, Outcome: lock.Granted})
}

func (t *tape) release(actor string, outcome lock.Outcome) {
	t.play(actor, lock.Op{Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: "lock:counter", Guarded: true,
		Token: t.hash.Of([]byte(actor)), Outcome: outcome})
}

func (t *tape) read(actor string, value int64) {
	t.play(actor, lock.Op{Proto: lock.Postgres, Kind: lock.Read, Verb: "SELECT", Outcome: lock.Done,
		SQL: &lock.Statement{Table: "counter", Columns: []string{"value"}, Where: t.row()},
		Row: []lock.Cell{{Column: "value", Value: t.number(value)}}})
}

func (t *tape) write(actor string, value int64) {
	t.play(actor, lock.Op{Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Outcome: lock.Done,
		SQL: &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: "value", Value: t.number(value)}}, Where: t.row()}})
}

func (t *tape) row() []lock.Cond {
	return []lock.Cond{{Column: "id", Op: "=", Value: t.number(1)}}
}

func (t *tape) number(n int64) lock.Value { return t.hash.Of([]byte(strconv.FormatInt(n, 10))) }
