package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Hand does to a server, on a side connection, what a rule assumes to happen there.
type Hand interface {
	// Forget removes a key of the Redis that ops name so. The outcome is Done, NotHeld where the key was
	// not there, Failed where the server has certainly not done it, or Unknown; an error goes with the last two.
	Forget(ctx context.Context, upstream string, db int, key string) (lock.Outcome, error)
	// Kill ends the Postgres backend of a connection from the address here, and returns when it is gone. The
	// outcomes are the same: Unknown of one that was told to, and may be there still. upstream is a route's.
	Kill(ctx context.Context, upstream string, backend int32, from netip.AddrPort) (lock.Outcome, error)
}

// Hand is the label of what lockfaultd itself does to a lock, since a rule assumes it. No process has it.
const handLabel = "lockfaultd"

var errNoHand = errors.New("no side connection")

// A deed is what a Hand is to do.
type deed struct {
	forget *lock.Op // the removal of a key, as the record has it; nil: kill

	upstream string
	backend  int32
	from     netip.AddrPort
}

// object names what is done away with.
func (d *deed) object() string {
	if d.forget != nil {
		return "the key"
	}
	return "the connection"
}

// do has what an injection assumes be done. The reply at hand waits for it; e.mu is held.
func (e *Engine) do(in *injection, now lock.Instant) *Gate {
	in.gate = newGate()
	if in.Act == fault.Lose {
		in.deed = &deed{forget: e.forgetting(in.op, now)}
	} else {
		c := e.ownerOf(in.op)
		in.deed = &deed{upstream: c.peer.Upstream, backend: c.peer.Backend(), from: c.peer.Local}
	}
	e.hold(in)
	e.order(Order{Deed: in})
	return in.gate
}

// forgetting returns the removal of the key that an op's lock is, at its place in the order.
func (e *Engine) forgetting(op *lock.Op, now lock.Instant) *lock.Op {
	of := e.keyOf(op)
	e.seq++
	del := &lock.Op{
		Seq: e.seq, Actor: handLabel, Upstream: of.Upstream, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL",
		DB: of.DB, Key: of.Key, Evidence: lock.FromRule, A: now, F: now,
	}
	e.ledger.Request(del)
	return del
}

// keyOf returns the op whose key is the lock that an op is about: its own, or that of its term's grant. It
// is nil where the lock is none of Redis, or is not known.
func (e *Engine) keyOf(op *lock.Op) *lock.Op {
	if asksOfLock(op) && !e.ledger.Ignores(op) {
		return op
	}
	if t := e.ledger.Term(op.Term.ID); op.Term.ID != 0 && t != nil && t.Grant.Proto == lock.Redis {
		return t.Grant
	}
	return nil
}

// asksOfLock reports whether the key that an op names is certainly a lock's: a counter's is not, nor that of what
// an op only reads.
func asksOfLock(op *lock.Op) bool {
	switch op.Kind {
	case lock.Acquire, lock.Renew, lock.Release:
		return op.Proto == lock.Redis && op.Key != ""
	case lock.Store:
		return op.Proto == lock.Redis && op.Key != "" && op.Term.ID != 0
	}
	return false
}

// ownerOf returns the connection whose backend has the lock that an op is about; nil where the lock is no
// connection's, or that has ended.
func (e *Engine) ownerOf(op *lock.Op) *conn {
	t := e.ledger.Term(op.Term.ID)
	if op.Term.ID == 0 || t == nil || t.Grant.Proto != lock.Postgres || t.Span == lock.LeaseSpan {
		return nil
	}
	if c := e.conns[t.Session]; c != nil && c.peer.Backend != nil && c.peer.Backend() != 0 {
		return c
	}
	return nil
}

// Did tells what became of a Deed order.
func (e *Engine) Did(in *injection, o lock.Outcome, err error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if del := in.deed.forget; del != nil {
		e.forgotten(del, o, now)
	}
	if !slices.Contains(e.active, in) {
		return
	}
	in.confirmed = now
	outcome, why := in.deed.told(o, err)
	if in.cancelled && outcome == "landed" {
		outcome, why = "cut short", in.early+"; "+cmp.Or(why, "it was done")
	}
	e.end(in, now, outcome, why)
}

// told words what became of it.
func (d *deed) told(o lock.Outcome, err error) (outcome, reason string) {
	switch {
	case o == lock.NotHeld:
		return "landed", d.object() + " was not there any more"
	case o == lock.Unknown:
		return "landed", "whether it was done is not known: " + err.Error()
	case err != nil:
		return "refused", err.Error()
	}
	return "landed", ""
}

// callOff lets go the reply that waits for a deed. One that nobody has begun is not done; of another it is told when it
// has ended.
func (e *Engine) callOff(in *injection, now lock.Instant) {
	in.cancelled = true
	in.gate.Open()
	i := slices.IndexFunc(e.orders, func(o Order) bool { return o.Deed == in })
	if i < 0 {
		return
	}
	e.orders = slices.Delete(e.orders, i, i+1)
	if del := in.deed.forget; del != nil {
		e.forgotten(del, lock.Failed, now)
	}
	e.end(in, now, "cut short", in.early)
}

// forgotten takes in how the removal of a key ended.
func (e *Engine) forgotten(del *lock.Op, o lock.Outcome, now lock.Instant) {
	del.Outcome = o
	switch o {
	case lock.Done, lock.NotHeld:
		del.R, del.D = now, now
		e.seq++
		del.ReplySeq = e.seq
		e.ledger.Reply(del)
	case lock.Failed:
		del.Err, del.F = NotSent, 0
	}
	e.deeds = append(e.deeds, del)
	e.kick()
}

// Deeds returns the removals of keys that have ended since the last call, for the record.
func (e *Engine) Deeds() []*lock.Op {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.deeds
	e.deeds = nil
	return out
}

// do carries a deed out.
func (r *Runner) do(ctx context.Context, in *injection) {
	d := in.deed
	if r.Hand == nil {
		r.Engine.Did(in, lock.Failed, errNoHand, r.Clock())
		return
	}
	if op := d.forget; op != nil {
		o, err := r.Hand.Forget(ctx, op.Upstream, op.DB, op.Key)
		r.Engine.Did(in, o, err, r.Clock())
		return
	}
	o, err := r.Hand.Kill(ctx, d.upstream, d.backend, d.from)
	r.Engine.Did(in, o, err, r.Clock())
}
