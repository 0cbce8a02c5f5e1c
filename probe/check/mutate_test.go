package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A mutant is a change of a history that makes a good one bad, or a bad one good.
type mutant struct {
	name string
	base string // a script
	do   func(*Input)
	want string // the code that it must then get; of a change towards innocence, which it must lose
	sure bool   // at level PROVEN
}

// nth returns the n-th op of an actor (any for "") that is as described, from 1.
func nth(in *Input, n int, is func(*lock.Op) bool) *lock.Op {
	for _, op := range in.Ops {
		if is(op) {
			if n--; n == 0 {
				return op
			}
		}
	}
	return nil
}

func of(actor string, kind lock.Kind) func(*lock.Op) bool {
	return func(op *lock.Op) bool { return op.Actor == actor && op.Kind == kind }
}

func without(in *Input, op *lock.Op) {
	in.Ops = slices.DeleteFunc(in.Ops, func(o *lock.Op) bool { return o == op })
}

// later moves an op by d, and with from its request too; every op of the actor that
// follows moves with it.
func later(in *Input, op *lock.Op, d time.Duration, request bool) {
	after := op.A
	for _, o := range in.Ops {
		if o.Actor != op.Actor || o.A < after || o.A == after && o != op {
			continue
		}
		move := []*lock.Instant{&o.A, &o.F, &o.R, &o.D, &o.Z}
		if o == op && !request {
			move = move[2:]
		}
		for _, at := range move {
			if *at != 0 {
				*at = at.Add(d)
			}
		}
	}
}

// unanswered makes of an op one whose connection ended before its reply.
func unanswered(op *lock.Op) {
	op.R, op.D, op.Z, op.Outcome, op.ReplySeq, op.Rows, op.Row = 0, 0, 0, lock.Unknown, 0, 0, nil
}

// unnumbered lets the instants say in which order everything was seen.
func unnumbered(in *Input) {
	for _, op := range in.Ops {
		op.Seq, op.ReplySeq = 0, 0
	}
}

const sound = `
declare lock:c counter.fence
counter counter.value
A acquire lock:c=ta 10-11
A incr fence=1 12-13
B acquire lock:c=tb 14-15 refused
A select counter[id=1] value=7 20-21
A update counter[id=1,fence<1] value:=8 fence:=1 30-31
A release lock:c=ta 40-41
B acquire lock:c=tb 50-51
B incr fence=2 52-53
B select counter[id=1] value=8 60-61
B update counter[id=1,fence<2] value:=9 fence:=2 70-71
B release lock:c=tb 80-81
`

const renewed = `
declare lock:c counter
A acquire lock:c=ta 10-11
A select counter[id=1] value=7 20-21
A renew lock:c=ta 400-401
A update counter[id=1] value:=8 700-701
A release lock:c=ta 710-711
B acquire lock:c=tb 720-721
B release lock:c=tb 730-731
`

// guilty are the changes for the worse.
func guilty() []mutant {
	return []mutant{
		{"no NX", sound, func(in *Input) {
			op := nth(in, 1, of("B", lock.Acquire))
			op.Kind, op.NX, op.Outcome, op.Verb = lock.Store, false, lock.Done, "SET"
		}, "LF305", true},
		{"two replies swapped", sound, func(in *Input) {
			a, b := nth(in, 1, of("A", lock.Acquire)), nth(in, 1, of("B", lock.Acquire))
			a.Outcome, b.Outcome = b.Outcome, a.Outcome
		}, "LF308", true},
		{"a reply past the lease", sound, func(in *Input) {
			later(in, nth(in, 1, of("B", lock.Read)), 600*time.Millisecond, false)
		}, "LF101", true},
		{"a grant's reply past the lease, and the next holder inside", sound, func(in *Input) {
			later(in, nth(in, 2, of("B", lock.Acquire)), 600*time.Millisecond, false)
			add(in, "C acquire lock:c=tc 590-591", "C release lock:c=tc 670-671")
			nth(in, 1, of("B", lock.Release)).Outcome = lock.NotHeld
		}, "LF102", true},
		{"no release", sound, func(in *Input) {
			without(in, nth(in, 1, of("A", lock.Release)))
		}, "LF305", false},
		{"a release that compares nothing, late", sound, func(in *Input) {
			op := nth(in, 1, of("A", lock.Release))
			op.Guarded, op.Token, op.Verb = false, lock.Value{}, "DEL"
			early := *op
			early.Session, early.Actor, early.Guarded, early.Token = 900, "C", true, nth(in, 1, of("A", lock.Acquire)).Token
			in.Ops = append(in.Ops, &early)
			later(in, op, 25*time.Millisecond, true)
		}, "LF301", true},
		{"a lower fence", sound, func(in *Input) { fence(in, "0") }, "LF105", true},
		{"the same fence", sound, func(in *Input) {
			nth(in, 1, of("B", lock.Fence)).Fence = 1
			fence(in, "1")
		}, "LF105", true},
		{"a renewal not sent", renewed, func(in *Input) {
			without(in, nth(in, 1, of("A", lock.Renew)))
		}, "LF101", true},
		{"a renewal's reply lost, and the next grant before the write", renewed, func(in *Input) {
			unanswered(nth(in, 1, of("A", lock.Renew)))
			later(in, nth(in, 1, of("B", lock.Acquire)), -120*time.Millisecond, true)
			nth(in, 1, of("A", lock.Release)).Outcome = lock.NotHeld
		}, "LF103", true},
		{"a write held past the next one's read", sound, func(in *Input) {
			later(in, nth(in, 1, of("A", lock.Write)), 600*time.Millisecond, true)
			later(in, nth(in, 2, of("B", lock.Acquire)), 540*time.Millisecond, true)
			nth(in, 1, of("A", lock.Release)).Outcome = lock.NotHeld
			w := nth(in, 1, of("A", lock.Write))
			w.SQL.Set, w.SQL.Where = w.SQL.Set[:1], w.SQL.Where[:1]
			nth(in, 1, of("B", lock.Read)).Row[0].Value = value("7")
			nth(in, 1, of("B", lock.Write)).SQL.Set[0].Value = value("8")
		}, "LF104", true},
	}
}

// add puts in what another client did.
func add(in *Input, lines ...string) {
	more, err := scripted(strings.Join(lines, "\n"))
	if err != nil {
		panic(err)
	}
	for _, op := range more.Ops {
		op.Session += 500
		in.Ops = append(in.Ops, op)
	}
}

func value(text string) lock.Value { return lock.NewHasher([]byte("script")).Of([]byte(text)) }

const lost = `
declare lock:c counter
counter counter.value
A acquire lock:c=ta 10-11
A select counter[id=1] value=7 20-21
B acquire lock:c=tb 600-601
B select counter[id=1] value=7 610-611
B update counter[id=1] value:=8 620-621
B release lock:c=tb 630-631
A update counter[id=1] value:=8 800-801
A release lock:c=ta 810-811 not-held
`

const anothers = `
declare lock:c counter
A acquire lock:c=ta 10-11
A select counter[id=1] value=7 20-21
B acquire lock:c=tb 30-31 refused
B update counter[id=1] value:=8 40-41
A release lock:c=ta 50-51
`

const passed = `
A acquire lock:c=ta 10-11
A select counter[id=1] value=7 20-21
A update counter[id=1] value:=8 24-25
B acquire lock:c=tb 30-31 refused
B update counter[id=1] value:=9 40-41
A release lock:c=ta 50-51
`

const blind = `
declare lock:c counter
A acquire lock:c=ta 10-11
B acquire lock:c=tb 600-601
A release lock:c 620-621
B release lock:c=tb 640-641 not-held
`

// innocent are the changes for the better.
func innocent() []mutant {
	late := func(in *Input) *lock.Op { return nth(in, 1, of("A", lock.Write)) }
	guard := func(in *Input, column, v string) {
		op := late(in)
		op.SQL.Where = append(op.SQL.Where, lock.Cond{Column: column, Op: "=", Value: value(v)})
		op.Rows = 0
	}
	return []mutant{
		{"compare and set", lost, func(in *Input) { guard(in, "value", "7") }, "LF104", true},
		{"compare a version", lost, func(in *Input) {
			nth(in, 1, of("B", lock.Write)).SQL.Set = append(nth(in, 1, of("B", lock.Write)).SQL.Set, lock.Assign{Column: "version", Value: value("2")})
			late(in).SQL.Set = append(late(in).SQL.Set, lock.Assign{Column: "version", Value: value("2")})
			guard(in, "version", "1")
		}, "LF104", true},
		{"add in SQL", lost, func(in *Input) { late(in).SQL.Set[0] = lock.Assign{Column: "value", Delta: 1, HasDelta: true} }, "LF104", true},
		{"read again", lost, func(in *Input) {
			add(in, "A select counter[id=1] value=8 790-791")
			op := in.Ops[len(in.Ops)-1]
			op.Session -= 500
			late(in).SQL.Set[0].Value = value("9")
		}, "LF104", true},
		{"a lock of the row", lost, func(in *Input) {
			rowLock(in, "A", 18, 802)
			rowLock(in, "B", 608, 830)
			r, w := nth(in, 1, of("B", lock.Read)), nth(in, 1, of("B", lock.Write))
			r.R, r.D, r.Row[0].Value = 806e6, 806e6, value("8")
			w.A, w.F, w.R, w.D, w.SQL.Set[0].Value = 820e6, 820e6, 821e6, 821e6, value("9")
			later(in, nth(in, 1, of("B", lock.Release)), 300*time.Millisecond, true)
		}, "LF104", true},
		{"a transaction that must be serialisable", lost, func(in *Input) {
			rowLock(in, "A", 18, 802)
			for _, op := range in.Ops {
				op.Snapshot = op.Actor == "A" && op.Tx != 0
			}
			w, end := late(in), nth(in, 1, of("A", lock.Commit))
			w.Outcome, w.Err, w.Rows = lock.Failed, "40001", 0
			end.Kind, end.Verb = lock.Rollback, "ROLLBACK"
		}, "LF104", true},
		{"a hand-over of the token", anothers, func(in *Input) {
			op := nth(in, 1, of("B", lock.Write))
			op.SQL.Set = append(op.SQL.Set, lock.Assign{Column: "owner", Value: nth(in, 1, of("A", lock.Acquire)).Token})
		}, "LF308", true},
		{"a key that is only ever left to expire", passed, func(in *Input) {
			without(in, nth(in, 1, of("A", lock.Release)))
		}, "LF308", true},
		{"an answer to its acquire that cannot be read", anothers, func(in *Input) {
			nth(in, 1, of("B", lock.Acquire)).Outcome = lock.Unknown
		}, "LF308", true},
		{"a release that compares its token", blind, func(in *Input) {
			op := nth(in, 1, of("A", lock.Release))
			op.Guarded, op.Token, op.Outcome = true, nth(in, 1, of("A", lock.Acquire)).Token, lock.NotHeld
			nth(in, 1, of("B", lock.Release)).Outcome = lock.Done
		}, "LF301", true},
	}
}

// rowLock makes one transaction of what an actor read, for update, and wrote.
func rowLock(in *Input, actor string, begin, commit int) {
	add(in, fmt.Sprintf("%s begin tx9 %d-%d", actor, begin, begin+1), fmt.Sprintf("%s commit tx9 %d-%d", actor, commit, commit+1))
	r, w := nth(in, 1, of(actor, lock.Read)), nth(in, 1, of(actor, lock.Write))
	r.SQL.ForUpdate = true
	for _, op := range in.Ops {
		if op.Actor == actor && op.Proto == lock.Postgres {
			op.Session, op.Tx, op.Implicit = r.Session, 9, false
		}
	}
	w.Z = 0
}

// fence makes B's write one with another fence, which nothing refuses.
func fence(in *Input, n string) {
	op := nth(in, 1, of("B", lock.Write))
	op.SQL.Set[1].Value, op.SQL.Where[1].Value = value(n), value(n)
}

func scripted(text string) (Input, error) {
	s := &script{hash: lock.NewHasher([]byte("script")), lease: 500 * time.Millisecond, label: map[string]uint64{}}
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		if err := s.line(strings.Fields(l)); err != nil {
			return s.in, err
		}
	}
	return s.in, nil
}

// mutate judges a script before a change of it and after.
func mutate(t *testing.T, m mutant) (before, after Result) {
	in, err := scripted(m.base)
	if err != nil {
		t.Fatal(err)
	}
	before = Judge(in)
	m.do(&in)
	unnumbered(&in)
	return before, Judge(in)
}

func TestMutationsTowardsGuiltAreCaught(t *testing.T) {
	for _, m := range guilty() {
		before, r := mutate(t, m)
		if len(before.Verdicts) > 0 {
			t.Errorf("%s: before: %q", m.name, summary(before))
		}
		if got := level(r, m.want); got == "none" || m.sure && got != "every" {
			t.Errorf("%s survives: %s in %s, %q", m.name, m.want, got, summary(r))
		}
	}
}

func TestMutationsTowardsInnocenceClear(t *testing.T) {
	for _, m := range innocent() {
		before, r := mutate(t, m)
		if level(before, m.want) != "every" {
			t.Errorf("%s: before: %q", m.name, summary(before))
		}
		harm := slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Harm })
		if got := level(r, m.want); got != "none" || harm {
			t.Errorf("%s survives: %s in %s, %q", m.name, m.want, got, summary(r))
		}
	}
}
