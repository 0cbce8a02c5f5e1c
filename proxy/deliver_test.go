package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// granted has a connection take a lock, for which a rule freezes it once it has the grant.
func granted(t *testing.T, e *Engine, c *conn, now lock.Instant) *lock.Op {
	t.Helper()
	op := grant(c.id, "job")
	_, _ = e.Request(c, op, true, now)
	if e.Reply(c, op, true, now) != nil {
		t.Fatal("the grant waits for its freeze")
	}
	return op
}

func theFreeze(t *testing.T, e *Engine) *injection {
	t.Helper()
	orders, _ := e.Take()
	if len(orders) != 1 || orders[0].Freeze == nil {
		t.Fatalf("orders %+v, want the freeze", orders)
	}
	return orders[0].Freeze
}

func theEnd(t *testing.T, e *Engine) history.Injection {
	t.Helper()
	_, ended := e.Take()
	if len(ended) != 1 {
		t.Fatalf("ended %+v, want the injection", ended)
	}
	return ended[0]
}

// Only a long freeze after a grant has that be read first.
func TestWhatIsDeliveredFirst(t *testing.T) {
	op := func(k lock.Kind) *lock.Op { return &lock.Op{Kind: k} }
	freeze := func(p fault.Phase, of *lock.Op, d fault.Decision) bool {
		d.Act = fault.Freeze
		in := &injection{Decision: d, phase: p, op: of}
		if of != nil {
			in.kind = of.Kind
		}
		return in.delivers()
	}
	long, short, gate := fault.Decision{For: 2 * time.Second}, fault.Decision{For: time.Second}, fault.Decision{Until: "next-write", For: time.Second}
	for _, x := range []struct {
		what string
		got  bool
		want bool
	}{
		{"a long freeze after a grant", freeze(fault.After, op(lock.Acquire), long), true},
		{"after what may be a grant", freeze(fault.After, op(lock.Store), long), true},
		{"a gate after a grant", freeze(fault.After, op(lock.Acquire), gate), true},
		{"a short freeze after a grant", freeze(fault.After, op(lock.Acquire), short), false},
		{"a long freeze before an acquire", freeze(fault.Before, op(lock.Acquire), long), false},
		{"after a renewal", freeze(fault.After, op(lock.Renew), long), false},
		{"after a write", freeze(fault.After, op(lock.Write), long), false},
		{"by the clock", freeze(fault.After, nil, long), false},
		{"a stall", (&injection{Decision: fault.Decision{Act: fault.Stall, For: 2 * time.Second}, phase: fault.After, op: op(lock.Acquire), kind: lock.Acquire}).delivers(), false},
	} {
		if x.got != x.want {
			t.Errorf("%s: delivered first %v", x.what, x.got)
		}
	}
}

// Until the process is frozen whatever its connections send waits, and neither what is delivered to others
// nor their ends have to do with it.
func TestOnlyItsOwnGrantIsWaitedFor(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX#1=3s")
	a, b, other := e.Open(1, owner("a")), e.Open(2, owner("a")), e.Open(3, owner("b"))
	op := granted(t, e, a, 10)
	select {
	case <-e.Wake():
	default:
		t.Error("nobody is told of the deadline")
	}
	late := e.Open(4, owner("a"))
	for _, c := range []*conn{a, b, late} {
		if g := c.later.Load(); g == nil || g.Opened() {
			t.Errorf("what connection %d sends does not wait", c.id)
		}
	}
	if other.later.Load() != nil {
		t.Error("what another process sends waits")
	}
	e.Delivered(&lock.Op{D: 20}, 20)
	e.Closed(b, 20)
	if orders, ended := e.Take(); len(orders)+len(ended) != 0 {
		t.Fatalf("orders %+v, ended %+v", orders, ended)
	}
	op.D = 20
	e.Delivered(op, 20)
	theFreeze(t, e)
}

// A client whose connection ends has no use for its grant.
func TestEndBeforeTheGrant(t *testing.T) {
	for _, how := range []func(*Engine, *conn, *lock.Op){
		func(e *Engine, c *conn, _ *lock.Op) { e.Closed(c, 20) },
		func(e *Engine, _ *conn, op *lock.Op) { e.Delivered(op, 20) }, // D is 0
	} {
		e := engine(t, "freeze-after", "SETNX=3s")
		c := e.Open(1, owner("a"))
		how(e, c, granted(t, e, c, 10))
		if got := theEnd(t, e); got.Outcome != clientGaveUp || got.Reason != "the client closed the connection before it had its grant" {
			t.Errorf("%s: %s", got.Outcome, got.Reason)
		}
		if e.delivering.Load() != 0 || !c.actor.freezable() {
			t.Error("it is still waited for")
		}
	}
}

// A client that reads nothing holds its freeze up for a bounded time, and the record says so.
func TestGrantThatIsNotTaken(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=3s")
	c := e.Open(1, owner("a"))
	op := granted(t, e, c, 10)
	due := lock.Instant(10).Add(readWithin)
	if next, ok := e.NextDeadline(20); !ok || next != due {
		t.Fatalf("next deadline %v, %v; want %v", next, ok, due)
	}
	e.Advance(due - 1)
	if orders, _ := e.Take(); len(orders) != 0 {
		t.Fatalf("orders %+v before it is due", orders)
	}
	e.Advance(due)
	in := theFreeze(t, e)
	op.D = due + 1
	e.Delivered(op, due+1)
	if orders, _ := e.Take(); len(orders) != 0 {
		t.Fatalf("orders %+v: it is frozen already", orders)
	}
	if got := e.delivering.Load(); got != 0 {
		t.Errorf("%d are waited for", got)
	}
	e.Frozen(in, nil, nil, due)
	end := due.Add(3 * time.Second)
	e.Advance(end)
	e.Take()
	e.Thawed(in, "", nil, end)
	got := theEnd(t, e)
	if got.Outcome != "landed" || got.Reason != "its grant could not be handed over within 1s, and it was frozen all the same" {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
}

// Who asks again before the grant has come has given up on it: nobody is frozen.
func TestAskedAgainBeforeTheGrant(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=3s")
	a, b := e.Open(1, owner("a")), e.Open(2, owner("a"))
	op := granted(t, e, a, 10)
	e.Again(b, grant(2, "job"))
	if got := theEnd(t, e); got.Outcome != clientGaveUp || got.Reason != "the client sent the request again before it had its grant" {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
	if a.later.Load() == nil || !a.later.Load().Opened() {
		t.Error("what it sends still waits")
	}
	if a.void.Load() != op || e.delivering.Load() != 0 {
		t.Error("its grant counts as heard")
	}
}

// What is asked for once the grant is there is no repetition.
func TestAskedAgainAfterTheGrant(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=3s")
	c := e.Open(1, owner("a"))
	op := granted(t, e, c, 10)
	op.D = 20
	e.Delivered(op, 20)
	theFreeze(t, e)
	e.Again(c, grant(1, "job"))
	if _, ended := e.Take(); len(ended) != 0 || c.void.Load() != nil {
		t.Errorf("ended %+v", ended)
	}
}

// Between the order to thaw and its report a process runs, and may do the same once more.
func TestAskedAgainAfterTheThaw(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=1s")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	_, _ = e.Request(c, op, true, 10)
	e.Reply(c, op, true, 10)
	in := theFreeze(t, e)
	e.Frozen(in, nil, nil, 10)
	end := lock.Instant(10).Add(time.Second)
	e.Advance(end)
	e.Again(c, grant(1, "job"))
	e.Take()
	e.Thawed(in, "", nil, end)
	if got := theEnd(t, e); got.Outcome != "landed" {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
}

// The reading of a grant, from the view of who waits for it.
func TestAwaitRead(t *testing.T) {
	broken := errors.New("no netlink")
	for _, x := range []struct {
		name   string
		unread func(asked int) (bool, error)
		gone   bool
		took   time.Duration
		said   string
	}{
		{"read", func(int) (bool, error) { return false, nil }, false, 0, ""},
		{"read late", func(n int) (bool, error) { return n < 10, nil }, false, 9 * time.Millisecond, ""},
		{"told late", func(n int) (bool, error) {
			if n < 10 {
				return false, broken
			}
			return false, nil
		}, false, 9 * time.Millisecond, ""},
		{"not read", func(int) (bool, error) { return true, nil }, false, readWithin + time.Millisecond, "it had not read its grant within 1s, and was frozen all the same"},
		{"not told", func(int) (bool, error) { return false, broken }, false, readWithin + time.Millisecond,
			"whether it had read its grant could not be told, and it was frozen all the same: no netlink"},
		{"gone", func(int) (bool, error) { return true, nil }, true, 0, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				peer := Peer{Gone: func() bool { return x.gone }, Unread: func() (bool, error) { asked++; return x.unread(asked) }}
				in := &injection{conn: &conn{peer: peer}, later: newGate()}
				began := time.Now()
				in.awaitRead(t.Context())
				if took := time.Since(began); took != x.took || in.unread != x.said {
					t.Errorf("after %v: %q; want %v: %q", took, in.unread, x.took, x.said)
				}
			})
		})
	}
}

// The end of the run is not waited for.
func TestAwaitReadAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := Peer{Unread: func() (bool, error) { t.Error("asked"); return false, nil }}
	(&injection{conn: &conn{peer: ask}, later: newGate()}).awaitRead(ctx)
}

// A freeze whose reply waits for it has nothing to be read, and one whose grant was not taken has been waited for.
func TestAwaitReadOfNobody(t *testing.T) {
	ask := Peer{Unread: func() (bool, error) { t.Error("asked"); return false, nil }}
	(&injection{conn: &conn{peer: ask}}).awaitRead(t.Context())
	(&injection{conn: &conn{peer: ask}, later: newGate(), unread: "so"}).awaitRead(t.Context())
}

// looker is a Freezer that says what a client has not read.
type looker struct {
	Freezer
	unread int
	err    error
}

func (l looker) Unread(*Owner) (int, error) { return l.unread, l.err }

// What is still on its way to the client's queue has not been read either.
func TestUnreadOnTheWay(t *testing.T) {
	client, accepted := connected(t)
	_ = accepted.SetWriteBuffer(1 << 20)
	s := &Server{Freezer: looker{}}
	unread := s.unread(accepted, nil)
	if is, err := unread(); is || err != nil {
		t.Fatalf("unread %v, %v of nothing that was sent", is, err)
	}
	sent := fill(t, accepted)
	if is, err := unread(); !is || err != nil {
		t.Errorf("unread %v, %v with bytes on the way", is, err)
	}
	drain(t, client, sent)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		is, err := unread()
		if err == nil && !is {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("unread %v, %v after all was read", is, err)
		}
	}
	s.Freezer = looker{unread: 3}
	if is, err := s.unread(accepted, nil)(); !is || err != nil {
		t.Errorf("unread %v, %v with bytes in the client's queue", is, err)
	}
	s.Freezer = looker{err: errors.New("no netlink")}
	if _, err := s.unread(accepted, nil)(); err == nil {
		t.Error("a failed look counts as read")
	}
}

// fill writes until the connection takes no more, and returns how much it took.
func fill(t *testing.T, c net.Conn) (sent int) {
	t.Helper()
	for buf := make([]byte, 64<<10); ; {
		_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := c.Write(buf)
		if sent += n; err != nil {
			return sent
		}
	}
}

func drain(t *testing.T, c net.Conn, n int) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	for buf := make([]byte, 1<<20); n > 0; {
		got, err := c.Read(buf)
		if n -= got; err != nil {
			t.Fatal(err)
		}
	}
}

// A request that is behind what is held, in the kernel, is seen without being read.
func TestWaitingIsNotRead(t *testing.T) {
	client, accepted := connected(t)
	if _, err := client.Write([]byte("again")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(waiting(accepted)) < 5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
		}
	}
	if got := string(waiting(accepted)); got != "again" {
		t.Errorf("%q waits", got)
	}
	buf := make([]byte, 9)
	if n, err := accepted.Read(buf); err != nil || !strings.HasPrefix(string(buf[:n]), "again") {
		t.Errorf("then read %q, %v", buf[:n], err)
	}
	if got := waiting(accepted); len(got) != 0 {
		t.Errorf("%q waits where nothing does", got)
	}
}

// What many do alike is no repetition.
func TestTelling(t *testing.T) {
	token, value := lock.Value{Hash: "t"}, lock.Value{Int: 8, IsInt: true}
	set, row := []lock.Assign{{Column: "value", Value: value}}, []lock.Cond{{Column: "id", Op: "=", Value: value}}
	write := func(s *lock.Statement) *lock.Op { return &lock.Op{Kind: lock.Write, SQL: s} }
	for what, x := range map[string]struct {
		op   *lock.Op
		want bool
	}{
		"a token":               {&lock.Op{Kind: lock.Acquire, Token: token}, true},
		"a command":             {&lock.Op{Kind: lock.Other, Key: "k"}, false},
		"a commit":              {&lock.Op{Kind: lock.Commit}, false},
		"values for a row":      {write(&lock.Statement{Set: set, Where: row}), true},
		"values for all rows":   {write(&lock.Statement{Set: set}), false},
		"a row that is deleted": {write(&lock.Statement{Where: row}), false},
		"one more":              {write(&lock.Statement{Set: []lock.Assign{set[0], {Column: "n", Delta: 1, HasDelta: true}}, Where: row}), false},
		"a write of nothing":    {write(nil), false},
	} {
		if got := telling(x.op); got != x.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// What waits behind a request says something of that request only while it is held itself.
func TestSentAgainBehindWhatIsHeld(t *testing.T) {
	request := []byte("request")
	for _, x := range []struct {
		name  string
		phase fault.Phase
		op    *lock.Op
		held  *[]byte
		want  string
	}{
		{"again", fault.Before, grant(1, "job"), &request, sentIt},
		{"its reply is held", fault.After, grant(1, "job"), &request, ""},
		{"a commit", fault.Before, &lock.Op{Kind: lock.Commit}, &request, ""},
		{"not known", fault.Before, grant(1, "job"), nil, ""},
		{"by the clock", fault.After, nil, nil, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			e := engine(t)
			c := e.Open(1, owner("a"))
			c.peer.Waiting = func() []byte { return []byte("more, and the request") }
			c.held.Store(x.held)
			in := &injection{conn: c, op: x.op, phase: x.phase}
			if got := e.noteGaveUp(in); got != (x.want != "") || in.gaveUp != x.want {
				t.Errorf("%v: %q, want %q", got, in.gaveUp, x.want)
			}
		})
	}
}

// Whom a freeze cannot find since he has gone has given up, and is not refused.
func TestGoneBeforeTheFreeze(t *testing.T) {
	for gone, want := range map[bool]string{true: clientGaveUp, false: "refused"} {
		e := engine(t, "freeze-after", "SETNX=1s")
		p := owner("a")
		p.Gone = func() bool { return gone }
		c := e.Open(1, p)
		op := grant(1, "job")
		_, _ = e.Request(c, op, true, 10)
		e.Reply(c, op, true, 10)
		r := &Runner{Engine: e, Freezer: nobodyThere{t, gone}, Clock: func() lock.Instant { return 20 }}
		r.freeze(t.Context(), theFreeze(t, e))
		if got := theEnd(t, e); got.Outcome != want {
			t.Errorf("%s: %s", got.Outcome, got.Reason)
		}
	}
}

// nobodyThere is a Freezer that finds no process, and is not to be asked for one that is known to have gone.
type nobodyThere struct {
	t    *testing.T
	gone bool
}

func (nobodyThere) Lookup(context.Context, netip.AddrPort, netip.AddrPort) *Owner { return nil }

func (n nobodyThere) Freeze(context.Context, *Owner, fault.Scope, time.Duration) (Thawer, error) {
	if n.gone {
		n.t.Error("asked for a client that has gone")
	}
	return nil, errors.New("no such connection")
}

// A client may go while it is being frozen, too.
func TestGoneDuringTheFreeze(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=1s")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	_, _ = e.Request(c, op, true, 10)
	e.Reply(c, op, true, 10)
	in := theFreeze(t, e)
	in.gaveUp = closedIt
	e.Frozen(in, nil, errors.New("no such connection"), 20)
	if got := theEnd(t, e); got.Outcome != clientGaveUp || got.Reason != closedIt {
		t.Errorf("%s: %s", got.Outcome, got.Reason)
	}
}

// A process is frozen only after the wait for its reading.
func TestFreezeAwaitsTheReading(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=3s")
	p := owner("a")
	asked := false
	p.Unread = func() (bool, error) { asked = true; return false, nil }
	c := e.Open(1, p)
	op := granted(t, e, c, 10)
	op.D = 10
	e.Delivered(op, 10)
	r := &Runner{Engine: e, Freezer: nobodyThere{t, false}, Clock: func() lock.Instant { return 20 }}
	r.freeze(t.Context(), theFreeze(t, e))
	if !asked {
		t.Error("nobody looked whether the grant was read")
	}
}
