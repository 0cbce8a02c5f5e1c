package service

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A claims records sections that claim at the read, each a millisecond long, beginning where the last ended.
type claims struct {
	a   *Acked
	seq uint64
	at  lock.Instant
}

func (c *claims) op(op lock.Op, at lock.Instant) {
	c.seq += 2
	op.Seq, op.ReplySeq, op.Actor = c.seq, c.seq+1, "A1"
	op.A, op.F, op.R, op.D = at, at, at+50_000, at+50_000
	c.a.Entry("run", history.Entry{Op: &op})
}

func (c *claims) section(value int64) {
	token, term := hash("t%d", value), lock.Attribution{ID: lock.TermID(value), Confidence: 1}
	id := lock.Cond{Column: "id", Op: "=", Value: number(1)}
	statement := func(column string, set lock.Value) *lock.Statement {
		return &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: column, Value: set}}, Where: []lock.Cond{id}, Columns: []string{"value"}}
	}
	c.op(lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "lock:counter", NX: true, Token: token, TTL: time.Second, Outcome: lock.Granted, Term: term}, c.at)
	claim := lock.Op{Session: 2, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true, Rows: 1, Outcome: lock.Done, Term: term, SQL: statement("fence", number(value))}
	claim.SQL.Returning, claim.Row = true, []lock.Cell{{Column: "value", Value: number(value - 1)}}
	c.op(claim, c.at+100_000)
	c.op(lock.Op{Session: 2, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true, Rows: 1, Outcome: lock.Done, Term: term, SQL: statement("value", number(value))}, c.at+200_000)
	c.op(lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: "lock:counter", Guarded: true, Token: token, Outcome: lock.Done, Term: term}, c.at+300_000)
	c.at += 1_000_000
}

func (c *claims) look(value int64, from, to lock.Instant) Opinion {
	c.a.latest.Store(&ticked{Tick{Run: "run", At: lock.Never}, time.Now()})
	return c.a.judge(reading{Reading{Value: value, Exists: true}, Tick{Run: "run", At: from}, Tick{Run: "run", At: to}, time.Now()})
}

// Sections that were under way when the counter was read are not taken for one: what each had read at its claim is known.
func TestAckedOfSeveralUnderWay(t *testing.T) {
	c := newClaims()
	c.section(1)
	if o := c.look(1, c.at-100_000, c.at-50_000); o.State != Holds {
		t.Fatalf("%+v", o)
	}
	from := c.at
	for v := int64(2); v <= 5; v++ {
		c.section(v)
	}
	for v := int64(1); v <= 5; v++ {
		if o := c.look(v, from, c.at); o.State != Holds {
			t.Errorf("read as %d: %s %s", v, o.State, o.Text)
		}
	}
	c.look(6, from, c.at)
	if o := c.look(6, from, c.at); o.State != Broken {
		t.Errorf("read as 6: %s %s", o.State, o.Text)
	}
}

// A gap that the sum has begun anew behind is no matter when its line is read once more, and what was told to be lacking
// still lacks behind a new one.
func TestAckedKeepsWhatItTold(t *testing.T) {
	c := newClaims()
	c.section(1)
	c.look(1, c.at-100_000, c.at-50_000)
	c.a.Entry("run", history.Entry{Gap: &history.Gap{At: c.at - 200_000, Lost: 1}})
	if o := c.look(1, c.at-40_000, c.at-30_000); o.Limit != "" {
		t.Errorf("an old gap is told: %s", o.Limit)
	}
	from := c.at
	c.section(2)
	c.look(4, from, c.at)
	if o := c.look(4, from, c.at); o.State != Broken {
		t.Fatalf("read as 4: %s %s", o.State, o.Text)
	}
	c.a.Entry("run", history.Entry{Gap: &history.Gap{At: c.at, Lost: 1}})
	c.section(3)
	if o := c.look(5, c.at-100_000, c.at-50_000); o.State != Broken || o.Limit == "" {
		t.Errorf("behind a gap: %s %s (%s)", o.State, o.Text, o.Limit)
	}
}

// hang is a section whose last write has no answer.
func (c *claims) hang(value int64) {
	n := len(c.a.ops)
	c.section(value)
	for _, op := range c.a.ops[n:] {
		if op.SQL != nil && op.SQL.Set[0].Column == "value" {
			op.R, op.D, op.ReplySeq, op.Outcome, op.Rows = 0, 0, 0, lock.Unknown, 0
		}
	}
}

// after is a look at which nothing is under way.
func (c *claims) after(value int64) Opinion {
	c.at += 1_000_000
	return c.look(value, c.at-100_000, c.at-50_000)
}

func newClaims() *claims {
	return &claims{at: 1_000_000, a: &Acked{Invariant: check.Invariant{Name: "counter", Query: "SELECT value FROM counter WHERE id = 1", Table: "counter", Column: "value"},
		CaughtUp: func(lock.Instant, time.Time) bool { return true }}}
}

// What was put right by hand is whole, though a write without an answer came between, and nothing of it is told again; and
// whether such a write has put right what was lacking nobody knows, then or later.
func TestAckedOfAWriteWithoutAnswer(t *testing.T) {
	for lost, want := range map[int64][]string{5: {Holds, Unknown, Holds}, 1: {Unknown, Unknown, Unknown}} {
		c := newClaims()
		c.section(1)
		c.after(1)
		for v := int64(2); v < 2+lost; v++ {
			c.section(v)
		}
		c.after(1)
		if o := c.after(1); o.State != Broken || o.Breaches[0].Count != int(lost) {
			t.Fatalf("lost %d: %s %s", lost, o.State, o.Text)
		}
		c.hang(2 + lost)
		got := []Opinion{c.after(1 + lost), c.after(1 + lost)} // it was put right
		c.section(2 + lost)
		got = append(got, c.after(2+lost))
		for i, o := range got {
			if o.State != want[i] {
				t.Errorf("lost %d, and put right, look %d: %s %s; want %s", lost, i, o.State, o.Text, want[i])
			}
		}
	}
}

// What has been told stays told while writes are under way at every look.
func TestAckedOfABusyCounter(t *testing.T) {
	c := newClaims()
	c.section(1)
	c.after(1)
	for v := int64(2); v <= 6; v++ {
		c.section(v)
	}
	for i := range int64(6) {
		from := c.at
		c.section(7 + i)
		if o := c.look(1+i, from, c.at); i > 0 && o.State != Broken {
			t.Errorf("look %d: %s %s", i, o.State, o.Text)
		}
	}
}

// What was told to be lacking is not whole again because a write that was under way may make up for it.
func TestAckedIsNotWholeForAWriteUnderWay(t *testing.T) {
	c := newClaims()
	c.section(1)
	c.look(1, c.at-100_000, c.at-50_000)
	c.section(2)
	c.look(1, c.at-100_000, c.at-50_000)
	if o := c.look(1, c.at-100_000, c.at-50_000); o.State != Broken {
		t.Fatalf("read as 1: %s %s", o.State, o.Text)
	}
	from := c.at
	c.section(3)
	if o := c.look(2, from, c.at); o.State != Unknown || o.Figures.Deficit != 1 {
		t.Errorf("read as 2 while 3 was written: %s %s %+v", o.State, o.Text, o.Figures)
	}
	if o := c.look(1, from, c.at); o.State != Broken {
		t.Errorf("read as 1 while 3 was written: %s %s", o.State, o.Text)
	}
	if o := c.look(2, from, c.at); o.State != Unknown || o.Figures.Deficit != 1 {
		t.Errorf("read as 2 while 3 was written, once more: %s %s %+v", o.State, o.Text, o.Figures)
	}
	if o := c.look(3, c.at-100_000, c.at-50_000); o.State != Holds {
		t.Errorf("mended: %s %s", o.State, o.Text)
	}
}
