package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A shape is what the processes of a made-up history do.
type shape struct {
	locks  int
	nx     bool
	late   float64       // how often one is paused for longer than its lease before it writes
	retry  time.Duration // after a refusal
	rest   time.Duration // after a release
	inside time.Duration // between the steps of a section
}

var shapes = map[string]*shape{
	"mixed":  {locks: 4, nx: true, late: 0.0005, retry: 2 * time.Millisecond, rest: time.Millisecond, inside: time.Millisecond},
	"one":    {locks: 1, nx: true, late: 0.0002, retry: 500 * time.Microsecond, rest: 0, inside: time.Millisecond},
	"broken": {locks: 1, nx: false, retry: time.Millisecond, rest: 100 * time.Microsecond, inside: 3 * time.Millisecond},
}

const tapeLease = 500 * time.Millisecond

// A tape makes up a history of three processes that count under locks, op by op:
// the same one each time.
type tape struct {
	*shape
	ops     int
	rand    *rand.Rand
	hash    *lock.Hasher
	seq     uint64
	now     lock.Instant
	fences  int64
	held    []holding
	rows    []tapeRow
	workers []*worker
	take    func(history.Entry) error
}

type holding struct {
	token string
	until lock.Instant
}

type tapeRow struct{ value, fence int64 }

// A worker is a process. It has asked for op, or will ask for its next at the instant.
type worker struct {
	name    string
	session uint64
	at      lock.Instant
	op      *lock.Op
	step    int
	lock    int
	n       int
	token   string
	fence   int64
	base    int64
}

func newTape(name string, ops int) *tape {
	t := &tape{shape: shapes[name], ops: ops, rand: rand.New(rand.NewPCG(1, 2)), hash: lock.NewHasher([]byte("bench")), now: 1}
	t.held, t.rows = make([]holding, t.locks), make([]tapeRow, t.locks)
	for i := range 3 {
		t.workers = append(t.workers, &worker{name: string(rune('A' + i)), session: uint64(10 * (i + 1)), at: lock.Instant(1000 * (i + 1))})
	}
	return t
}

func (t *tape) play(take func(history.Entry) error) error {
	t.take = take
	inv := history.Invariant{Kind: "counter", Query: "SELECT value FROM counter WHERE id = 1", Table: "counter", Column: "value", HasStart: true}
	if err := take(history.Entry{Header: &history.Header{Schema: history.Schema, Invariants: []history.Invariant{inv}}}); err != nil {
		return err
	}
	for done := 0; done < t.ops; {
		w := t.workers[0]
		for _, o := range t.workers {
			if o.at < w.at {
				w = o
			}
		}
		t.now = max(t.now+1, w.at)
		if w.op == nil {
			t.ask(w)
			continue
		}
		done++
		if err := t.answer(w); err != nil {
			return err
		}
	}
	inv.End, inv.HasEnd = t.rows[0].value, true
	return take(history.Entry{Invariants: &[]history.Invariant{inv}})
}

func (t *tape) some(d time.Duration) time.Duration {
	return d/2 + time.Duration(t.rand.Int64N(int64(d)+1))
}

func (t *tape) ask(w *worker) {
	t.seq++
	w.op = t.next(w)
	w.op.Seq, w.op.Actor, w.op.A, w.op.F = t.seq, w.name, t.now, t.now.Add(10*time.Microsecond)
	w.at = t.now.Add(t.some(200 * time.Microsecond))
}

func (t *tape) answer(w *worker) error {
	t.seq++
	op := w.op
	op.ReplySeq, op.R, op.D, op.Outcome = t.seq, t.now, t.now.Add(5*time.Microsecond), lock.Done
	if op.Proto == lock.Postgres {
		op.Z = op.R
	}
	w.op, w.at = nil, t.now.Add(t.some(t.inside))
	t.effect(w, op)
	return t.take(history.Entry{Op: op})
}

func (t *tape) v(n int64) lock.Value { return t.hash.Of(strconv.AppendInt(nil, n, 10)) }

func (t *tape) next(w *worker) *lock.Op {
	redis := lock.Op{Session: w.session, Proto: lock.Redis, Key: "lock:" + strconv.Itoa(w.lock+1)}
	one := []lock.Cond{{Column: "id", Op: "=", Value: t.v(int64(w.lock + 1))}}
	pg := lock.Op{Session: w.session + 1, Proto: lock.Postgres, Tx: t.seq, Implicit: true}
	op := redis
	switch w.step {
	case 0:
		w.n++
		w.lock, w.token = t.rand.IntN(t.locks), fmt.Sprintf("%s-%d", w.name, w.n)
		op.Key, op.Kind, op.Verb, op.NX, op.TTL, op.Token = "lock:"+strconv.Itoa(w.lock+1), lock.Acquire, "SET", true, tapeLease, t.hash.Of([]byte(w.token))
		if !t.nx {
			op.Kind, op.NX = lock.Store, false
		}
	case 1:
		op.Kind, op.Verb, op.Key, op.FenceKey = lock.Fence, "INCR", "fence", "fence"
	case 2:
		op = pg
		op.Kind, op.Verb, op.SQL = lock.Read, "SELECT", &lock.Statement{Table: "counter", Where: one, Columns: []string{"value"}}
	case 3:
		op = pg
		where := append(one, lock.Cond{Column: "fence", Op: "<", Value: t.v(w.fence)})
		op.Kind, op.Verb, op.SQL = lock.Write, "UPDATE", &lock.Statement{Table: "counter", Where: where,
			Set: []lock.Assign{{Column: "value", Value: t.v(w.base + 1)}, {Column: "fence", Value: t.v(w.fence)}}}
	case 4:
		op.Kind, op.Verb, op.Guarded, op.Token = lock.Release, "EVAL", true, t.hash.Of([]byte(w.token))
	}
	return &op
}

// effect is what the servers do, when they answer.
func (t *tape) effect(w *worker, op *lock.Op) {
	h, r := &t.held[w.lock], &t.rows[w.lock]
	step := w.step
	w.step++
	switch step {
	case 0:
		if t.nx && t.now < h.until {
			op.Outcome, w.step, w.at = lock.Refused, 0, t.now.Add(t.some(t.retry))
			return
		}
		*h = holding{w.token, t.now.Add(tapeLease)}
		if t.nx {
			op.Outcome = lock.Granted
		}
	case 1:
		t.fences++
		w.fence = t.fences
		op.Fence, op.HasFence = w.fence, true
	case 2:
		w.base = r.value
		op.Rows, op.Row = 1, []lock.Cell{{Column: "value", Value: t.v(w.base)}}
		if t.rand.Float64() < t.late {
			w.at = t.now.Add(tapeLease + t.some(100*time.Millisecond))
		}
	case 3:
		if r.fence < w.fence {
			op.Rows, *r = 1, tapeRow{w.base + 1, w.fence}
		}
	case 4:
		if op.Outcome = lock.NotHeld; h.token == w.token && t.now < h.until {
			op.Outcome, *h = lock.Done, holding{}
		}
		w.step, w.at = 0, t.now.Add(t.some(t.rest))
	}
}
