package check

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
)

// keyShapeOf draws good and broken services in turn.
func keyShapeOf(seed uint64) orders.KeyShape {
	return orders.KeyShape{Clients: 2 + int(seed%2), Rounds: 1 + int(seed/2%2), Lease: []time.Duration{12, 25, 60}[seed/4%3] * orders.Tick,
		Lag: 1 + int(seed/12%4), Haste: []int{0, 70, 90}[seed%3],
		NoNX: seed/3%4 == 1, BlindDelete: seed/5%3 == 1, BlindRenew: seed/7%3 == 1, Cuts: []int{0, 2}[seed/11%2], Uneven: seed/13%2 == 1}
}

func inputOfKey(ops []*lock.Op) Input {
	return Input{Ops: ops, Declarations: []lock.Declaration{{Key: "lock:c", Declared: true}}}
}

func judgeKey(ops []*lock.Op) Result { return Judge(inputOfKey(ops)) }

// A score counts how often something is so in the orders of a history, and what the
// judge said of it: of each code, by the one and the other.
type score map[[3]string]int

func (s score) add(code, want, got string) { s[[3]string{code, want, got}]++ }

// share returns in how many percent of the histories in which a code is so in every
// order the judge proved it.
func (s score) share(code string) int {
	proven, all := 0, 0
	for k, n := range s {
		if k[0] == code && k[1] == "every" {
			all += n
			if k[2] == "every" {
				proven += n
			}
		}
	}
	if all == 0 {
		return 100
	}
	return 100 * proven / all
}

// tooHigh reports whether the judge says more than the orders do.
func tooHigh(want, got string) bool {
	return got == "every" && want != "every" || got != "none" && want == "none"
}

// TestTheOrdersOfAKey compares the judge's word on the lock service with every order
// of a key's commands: it never says more. But when a grant happened, what others were
// answered may tell more closely than its own reply does, so that a lease which may
// have ended by the clock (LF101, POSSIBLE) may be known to have run: seldom.
func TestTheOrdersOfAKey(t *testing.T) {
	s, nx, given := score{}, score{}, 0
	n := histories(6000)
	for seed := range n {
		shape := keyShapeOf(seed)
		ops := orders.DrawKey(seed, shape)
		want := orders.Key(ops, 50000)
		if want.Enough {
			given++
			continue
		}
		if want.Orders == 0 {
			t.Fatalf("seed %d: no order explains what happened:\n%s", seed, orders.KeyString(ops))
		}
		r := judgeKey(ops)
		for _, c := range []struct {
			code string
			want orders.Tally
		}{{"LF101", want.Overrun}, {"LF301", want.Removed}, {"LF302", want.Extended}, {"LF305", want.Double}} {
			w, got := levelOf(c.want), level(r, c.code)
			s.add(c.code, w, got)
			if !shape.NoNX {
				nx.add(c.code, w, got)
			}
			if got == "every" && w != "every" || c.code != "LF101" && tooHigh(w, got) {
				t.Errorf("seed %d: %s in %s of the orders, judged in %s:\n%s", seed, c.code, w, got, orders.KeyString(ops))
			}
		}
	}
	t.Logf("%d histories, %d given up: %v", n, given, s)
	if off := s[[3]string{"LF101", "none", "some"}]; 200*off > int(n) {
		t.Errorf("LF101 is called possible in %d histories of which no order has it", off)
	}
	for _, code := range []string{"LF101", "LF301", "LF302", "LF305"} {
		t.Logf("%s: proven in %d %% of those in which every order has it, and in %d %% where the lock excludes", code, s.share(code), nx.share(code))
	}
}

// A held is who has the lease in the model, and which of the ops set it.
type held struct {
	client string
	set    int
}

// A step is an op of the model: a command, or the end of the lease that one set.
type step struct {
	op   *lock.Op
	n    int // of the command, from 1
	ends bool
}

// leaseMutex is a lock with a lease that keeps its promise: it is granted to one
// client at a time, and only that one renews and releases it.
func leaseMutex() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return held{} },
		Step: func(state, input, _ any) (bool, any) { return leaseStep(state.(held), input.(step)) },
	}
}

func leaseStep(h held, in step) (bool, any) {
	op, known, mine := in.op, answered(in.op), h.client == in.op.Actor
	did := op.Outcome == lock.Done || op.Outcome == lock.Granted
	switch {
	case in.ends && h.set == in.n:
		return true, held{}
	case in.ends:
		return true, h
	case op.Kind == lock.Acquire || op.Kind == lock.Store:
		if known && did != (h.client == "") {
			return false, h
		}
		if h.client != "" {
			return true, h
		}
		return true, held{op.Actor, in.n}
	case known && did != mine:
		return false, h
	case !mine:
		return true, h
	case op.Kind == lock.Renew:
		return true, held{op.Actor, in.n}
	}
	return true, held{}
}

// linearizable reports whether the commands are those of a lock that works, their
// leases ending where the clock admits. That an unanswered command never happened
// is the same as that it came last.
func linearizable(ops []*lock.Op) bool {
	var list []porcupine.Operation
	for i, op := range ops {
		to, end := int64(op.R), lock.Lease(op, op.TTL)
		if !answered(op) {
			to, end.Latest = math.MaxInt64, lock.Never
		}
		list = append(list, porcupine.Operation{ClientId: i, Input: step{op, i + 1, false}, Call: int64(op.F), Return: to})
		if op.TTL != 0 && op.Outcome != lock.Refused && op.Outcome != lock.NotHeld {
			list = append(list, porcupine.Operation{ClientId: len(ops) + i, Input: step{op, i + 1, true}, Call: int64(end.Earliest), Return: int64(end.Latest)})
		}
	}
	return porcupine.CheckOperationsTimeout(leaseMutex(), list, 0) == porcupine.Ok
}

// provenByOrders reports whether the lock did not work in any order. To porcupine a
// lease may end right after it was set late; to the orders it lasts as long as it was
// asked to.
func provenByOrders(ops []*lock.Op) bool {
	r := orders.Key(ops, 1<<20)
	return r.Removed.Every() || r.Extended.Every() || r.Double.Every()
}

// TestPorcupineAgrees compares the judge's word on the lock service with that of a
// checker of linearizability, on good services and broken ones.
func TestPorcupineAgrees(t *testing.T) {
	var illegal, proven int
	n := histories(6000)
	for seed := range n {
		shape := keyShapeOf(seed)
		ops := orders.DrawKey(seed, shape)
		r := judgeKey(ops)
		guilty := level(r, "LF301") == "every" || level(r, "LF302") == "every" || level(r, "LF305") == "every"
		ok := linearizable(ops)
		switch {
		case ok && guilty && !provenByOrders(ops):
			t.Errorf("seed %d: a lock that works explains what is called proven:\n%s", seed, orders.KeyString(ops))
		case !ok && !shape.NoNX && !shape.BlindDelete && !shape.BlindRenew:
			t.Errorf("seed %d: no order of a lock that works:\n%s", seed, orders.KeyString(ops))
		case !ok:
			illegal++
			if guilty {
				proven++
			}
		}
	}
	t.Logf("%d histories, %d of them not of a lock that works; proven in %d", n, illegal, proven)
}

func keyTalliesOf(want orders.KeyResult) map[string]orders.Tally {
	return map[string]orders.Tally{"LF101": want.Overrun, "LF301": want.Removed, "LF302": want.Extended, "LF305": want.Double}
}
