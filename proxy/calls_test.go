package proxy

import (
	"cmp"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// lettered is a tracker of a protocol of letters: c is a call, r a request of
// its own, and each is answered by its letter, in order.
type lettered struct {
	at      [2]int64
	waiting []any
	calls   []*letter
}

// A letter is a call. Its ops are one release of the key that it was told, or
// of "text" without.
type letter struct {
	told    string
	replied bool
	ops     []*lock.Op
}

func (c *letter) Resolve(replied bool) []*lock.Op {
	key := "text"
	if c.told != "" {
		key = c.told
	}
	c.replied = replied
	if key == "nothing" {
		return nil
	}
	c.ops = append(c.ops, &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Verb: "EVAL", Key: key})
	if replied {
		c.ops[0].Outcome = lock.Done
	}
	return c.ops
}

// Later implements wire.Call: of a call of which a witness tells late, there is one op.
func (c *letter) Later(unheard bool) wire.Later {
	if !unheard {
		return nil
	}
	return c
}

func (c *letter) Ops() []*lock.Op { return c.ops }
func (c *letter) Known() bool     { return c.told != "" }

func (c *letter) Amend(copies []*lock.Op) []*lock.Op {
	if c.told == "more" {
		return []*lock.Op{{Session: 1, Proto: lock.Redis, Kind: lock.Acquire, Verb: "EVAL", Key: "more", Outcome: lock.Granted}}
	}
	for _, op := range copies {
		op.Key = cmp.Or(c.told, op.Key)
	}
	return nil
}

func (l *lettered) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	for _, b := range chunk {
		m := wire.Mark{Start: l.at[0], End: l.at[0] + 1}
		l.at[0]++
		switch b {
		case 'c':
			c := &letter{}
			m.Kind, m.Call = wire.Called, c
			l.calls = append(l.calls, c)
			l.waiting = append(l.waiting, c)
		case 'r':
			m.Kind, m.Op = wire.Request, &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "direct", NX: true}
			l.waiting = append(l.waiting, m.Op)
		}
		marks = append(marks, m)
	}
	return marks, l.at[0]
}

func (l *lettered) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	for range chunk {
		m := wire.Mark{Start: l.at[1], End: l.at[1] + 1}
		l.at[1]++
		switch x := l.waiting[0].(type) {
		case *letter:
			m.Kind, m.Call = wire.Answered, x
		case *lock.Op:
			m.Kind, m.Op, x.Outcome = wire.Reply, x, lock.Granted
		}
		l.waiting = l.waiting[1:]
		marks = append(marks, m)
	}
	return marks, l.at[1]
}

// sighted is a witness that gives its looks after a while, or never.
type sighted struct {
	before, after time.Duration // 0: there is none; below 0: never given
	key           string
	passed        []string
	missed        int
	closed        int
}

func (w *sighted) Before(wire.Call) *Look { return w.look(w.before, nil) }

func (w *sighted) After(c wire.Call) *Look {
	return w.look(w.after, func() { c.(*letter).told = w.key })
}

func (w *sighted) Missed(wire.Call)      { w.missed++ }
func (w *sighted) Passed(op *lock.Op)    { w.passed = append(w.passed, op.Key) }
func (w *sighted) Replied(*lock.Op)      {}
func (w *sighted) Closed()               { w.closed++ }
func (w *sighted) Watch(Watched) Watcher { return w }

func (w *sighted) look(d time.Duration, tell func()) *Look {
	if d == 0 {
		return nil
	}
	l := NewLook()
	switch {
	case d == 1:
		l.Give(tell)
	case d > 0:
		time.AfterFunc(d, func() { l.Give(tell) })
	}
	return l
}

// A witnessed session, in virtual time over an in-memory network.
type witnessed struct {
	client, server net.Conn
	mu             sync.Mutex // either direction may record what has come to be known
	ops            []*lock.Op
	begun          time.Time
	tracker        *lettered
	session        *Session
	ended          chan struct{}
}

func (w *witnessed) Op(op *lock.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops = append(w.ops, op)
}

func (w *witnessed) End(uint64, lock.Instant, uint64) {}

// said returns what the other end of a connection has said in a while.
func said(c net.Conn) string {
	buf := make([]byte, 64)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

func watched(t *testing.T, e *Engine, w Watcher) *witnessed {
	var network testbed.Network
	out := &witnessed{begun: time.Now(), tracker: &lettered{}, ended: make(chan struct{})}
	pair := func(name string) (near, far net.Conn) {
		ln, err := network.Listen(name)
		if err != nil {
			t.Fatal(err)
		}
		if near, err = network.Dial(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if far, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	client, accepted := pair("proxy")
	dialled, server := pair("server")
	out.client, out.server = client, server
	c := e.Open(1, owner("a"))
	s := NewSession(e, c, out.tracker, nil)
	s.Watch(w)
	out.session = s
	clock := func() lock.Instant { return lock.Instant(time.Since(out.begun)) + 1 }
	d := &driver{session: s, conn: c, client: accepted, upstream: dialled, clock: clock, recorder: out}
	go func() {
		defer close(out.ended)
		d.run(t.Context())
		for _, op := range s.Close(clock()) {
			out.Op(op)
		}
	}()
	return out
}

func (w *witnessed) write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// close ends the session and waits for it.
func (w *witnessed) close() {
	w.client.Close()
	w.server.Close()
	<-w.ended
}

func (w *witnessed) keys() []string {
	var out []string
	for _, op := range w.ops {
		out = append(out, op.Key)
	}
	return out
}

// A reply waits for the witness, no longer than it may, and the op is what the
// witness told, if need be late, or else what the text suggests.
func TestReplyWaitsForItsWitness(t *testing.T) {
	const never = -1
	for _, tt := range []struct {
		name           string
		before, after  time.Duration
		request, reply time.Duration // when they reach their ends
		key            string
		missed         int
	}{
		{"no answer", 0, 0, 0, 0, "text", 0},
		{"at once", 0, 1, 0, 0, "seen", 0},
		{"in time", 0, 4 * time.Millisecond, 0, 4 * time.Millisecond, "seen", 0},
		{"too late", 0, 6 * time.Millisecond, 0, Patience, "seen", 1},
		{"never", 0, never, 0, Patience, "text", 1},
		{"both looks", 2 * time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, "seen", 0},
		{"both together too long", 4 * time.Millisecond, 4 * time.Millisecond, 4 * time.Millisecond, Patience, "seen", 1},
		{"not before", never, 1, Patience, Patience, "seen", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eye := &sighted{before: tt.before, after: tt.after, key: "seen"}
				w := watched(t, engine(t), eye)
				w.write(t, w.client, "c")
				said(w.server)
				if at := time.Since(w.begun); at != tt.request {
					t.Errorf("the request arrives at %v, want %v", at, tt.request)
				}
				w.write(t, w.server, "C")
				said(w.client)
				if at := time.Since(w.begun); at != tt.reply {
					t.Errorf("the reply arrives at %v, want %v", at, tt.reply)
				}
				time.Sleep(time.Second)
				w.close()
				if !slices.Equal(w.keys(), []string{tt.key}) || eye.missed != tt.missed || eye.closed != 1 {
					t.Fatalf("ops %v, missed %d, closed %d; want %s, %d, 1", w.keys(), eye.missed, eye.closed, tt.key, tt.missed)
				}
				op := w.ops[0]
				if op.A != 1 || op.F != lock.Instant(tt.request)+1 || op.R != op.F || op.D != lock.Instant(tt.reply)+1 {
					t.Errorf("instants a=%d f=%d r=%d d=%d", op.A, op.F, op.R, op.D)
				}
				if op.Seq == 0 || op.ReplySeq <= op.Seq {
					t.Errorf("places %d and %d", op.Seq, op.ReplySeq)
				}
			})
		})
	}
}

// What comes before a call's reply goes on while that waits, and what comes
// behind it waits with it.
func TestOrderAroundAWaitingReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eye := &sighted{after: 3 * time.Millisecond, key: "seen"}
		w := watched(t, engine(t), eye)
		w.write(t, w.client, "rcr")
		if got := said(w.server); got != "rcr" {
			t.Fatalf("upstream reads %q", got)
		}
		w.write(t, w.server, "RCR")
		if got := said(w.client); got != "R" || time.Since(w.begun) != 0 {
			t.Errorf("the client reads %q at %v", got, time.Since(w.begun))
		}
		if got := said(w.client); got != "CR" || time.Since(w.begun) != 3*time.Millisecond {
			t.Errorf("then the client reads %q at %v", got, time.Since(w.begun))
		}
		w.close()
		if want := []string{"direct", "seen", "direct"}; !slices.Equal(w.keys(), want) || !slices.Equal(eye.passed, []string{"direct", "direct"}) {
			t.Errorf("ops %v, passed %v", w.keys(), eye.passed)
		}
	})
}

// A rule acts on the reply that the witness has told about.
func TestRuleOnWhatAWitnessTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, "stall-after", "release(seen)=1s")
		w := watched(t, e, &sighted{after: 3 * time.Millisecond, key: "seen"})
		stop := time.AfterFunc(time.Second+3*time.Millisecond, func() {
			now := lock.Instant(time.Since(w.begun)) + 1
			e.Advance(now)
			orders, _ := e.Take()
			for _, o := range orders {
				e.Released(o.Release, false, now)
			}
		})
		defer stop.Stop()
		w.write(t, w.client, "c")
		said(w.server)
		w.write(t, w.server, "C")
		said(w.client)
		if at := time.Since(w.begun); at != time.Second+3*time.Millisecond {
			t.Errorf("the reply arrives at %v", at)
		}
		w.close()
	})
}

// A client that has said all it has to say is still heard while its call waits.
func TestHalfClosedClientWhoseCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watched(t, engine(t), &sighted{before: 2 * time.Millisecond})
		w.write(t, w.client, "c")
		if err := w.client.(*testbed.Conn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := said(w.server); got != "c" {
			t.Errorf("upstream reads %q", got)
		}
		w.close()
	})
}

// A call without a reply has ops of unknown outcome, told by a witness that
// knows by then; one whose reply waits has the reply's.
func TestSessionEndsWithItsCallsUnanswered(t *testing.T) {
	for _, tt := range []struct {
		after   time.Duration
		reply   string
		key     string
		outcome lock.Outcome
	}{
		{0, "", "text", lock.Unknown},
		{1, "", "seen", lock.Unknown},
		{-1, "", "text", lock.Unknown},
		{-1, "C", "text", lock.Done},
	} {
		synctest.Test(t, func(t *testing.T) {
			eye := &sighted{after: tt.after, key: "seen"}
			w := watched(t, engine(t), eye)
			w.write(t, w.client, "c")
			said(w.server)
			w.write(t, w.server, tt.reply)
			synctest.Wait()
			w.close()
			if len(w.ops) != 1 || w.ops[0].Key != tt.key || w.ops[0].Outcome != tt.outcome || w.tracker.calls[0].replied != (tt.reply != "") {
				t.Errorf("%v, reply %q: ops %v", tt.after, tt.reply, w.ops)
			}
		})
	}
}
