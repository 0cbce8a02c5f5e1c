package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// No client has the name under which lockfaultd acts, so that nobody is taken for it.
func TestHandsLabelIsNobodys(t *testing.T) {
	e := engine(t)
	p := owner("a")
	p.Name = func() string { return handLabel }
	c := e.Open(1, p)
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	if op.Actor != "A1" {
		t.Errorf("a client that calls itself %s is %s", handLabel, op.Actor)
	}
}

// A removal that ends when all was called off is recorded all the same: the server may have done it.
func TestDeedThatIsCalledOff(t *testing.T) {
	e := engine(t, "lose-key", "acquire")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	g := e.Reply(c, op, true, 2)
	orders, _ := e.Take()
	if g == nil || len(orders) != 1 || orders[0].Deed == nil {
		t.Fatalf("gate %v, orders %+v", g, orders)
	}
	e.Disarm(3)
	if !g.Opened() {
		t.Error("the reply waits for ever")
	}
	e.Did(orders[0].Deed, lock.Done, nil, 4)
	if e.Idle() {
		t.Error("idle, and the removal is not recorded")
	}
	_, ended := e.Take()
	deeds := e.Deeds()
	if term := e.ledger.Term(op.Term.ID); term == nil || term.Released != deeds[0] {
		t.Errorf("the ledger has not heard of it: %+v", term)
	}
	if len(ended) != 1 || ended[0].Outcome != "cut short" || ended[0].Reason != tooSoon+"; it was done" || len(deeds) != 1 || deeds[0].Outcome != lock.Done || deeds[0].R != 4 || !e.Idle() {
		t.Errorf("%+v, %+v", ended, deeds)
	}
}

// One that nobody has begun when all is called off is not done, and the record says so of both.
func TestDeedThatWasNotBegun(t *testing.T) {
	for rule, recorded := range map[string]int{"lose-key": 1, "kill-backend": 0} {
		e := engine(t, rule, "acquire")
		p := owner("a")
		p.Backend = func() int32 { return 7 }
		c := e.Open(1, p)
		op := grant(1, "job")
		if rule == "kill-backend" {
			op.Proto, op.Verb, op.TTL, op.Span = lock.Postgres, "PG_ADVISORY_LOCK", 0, lock.SessionSpan
		}
		e.Request(c, op, true, 1)
		g := e.Reply(c, op, true, 2)
		e.Disarm(3)
		orders, ended := e.Take()
		if g == nil || !g.Opened() || len(orders) != 0 {
			t.Errorf("%s: opened %v, orders %+v", rule, g != nil && g.Opened(), orders)
		}
		if len(ended) != 1 || ended[0].Outcome != "cut short" || ended[0].Reason != tooSoon || ended[0].Ended != 3 {
			t.Errorf("%s: %+v", rule, ended)
		}
		deeds := e.Deeds()
		if len(deeds) != recorded || recorded == 1 && (deeds[0].Outcome != lock.Failed || deeds[0].Err != NotSent || deeds[0].F != 0) || !e.Idle() {
			t.Errorf("%s: %+v, idle %v", rule, deeds, e.Idle())
		}
	}
}

// What was refused was refused, whether it was called off or not.
func TestRefusedDeedThatIsCalledOff(t *testing.T) {
	e := engine(t, "lose-key", "acquire")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	e.Reply(c, op, true, 2)
	orders, _ := e.Take()
	e.Disarm(3)
	e.Did(orders[0].Deed, lock.Failed, errNoHand, 4)
	if _, ended := e.Take(); len(ended) != 1 || ended[0].Outcome != "refused" {
		t.Errorf("%+v", ended)
	}
}

// A client that asks again while the server is seen to does not hear the answer to what it asked first.
func TestAskedAgainDuringADeed(t *testing.T) {
	e := engine(t, "lose-key", "acquire")
	c, other := e.Open(1, owner("a")), e.Open(2, owner("a"))
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	if g := e.Reply(c, op, true, 2); g == nil || e.holding.Load() != 1 {
		t.Fatalf("gate %v, %d held", g, e.holding.Load())
	}
	e.Again(other, grant(2, "job"))
	if c.void.Load() != op {
		t.Error("its answer counts as heard")
	}
}

// A row that is a lease is there whether the connection is or not.
func TestLeaseRowIsNoBackends(t *testing.T) {
	e := engine(t, "kill-backend", "acquire")
	p := owner("a")
	p.Backend = func() int32 { return 7 }
	c := e.Open(1, p)
	lease := grant(1, "lease:jobs:1")
	lease.Proto, lease.Verb = lock.Postgres, "INSERT"
	e.Request(c, lease, true, 1)
	if g := e.Reply(c, lease, true, 2); g != nil {
		t.Error("its backend is to be ended")
	}
	advisory := grant(1, "advisory:1")
	advisory.Proto, advisory.Verb, advisory.TTL, advisory.Span = lock.Postgres, "PG_ADVISORY_LOCK", 0, lock.SessionSpan
	e.Request(c, advisory, true, 3)
	if g := e.Reply(c, advisory, true, 4); g == nil {
		t.Errorf("barred: %+v", e.Uses()[0].Barred)
	}
}
