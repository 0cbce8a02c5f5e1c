package orders

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A KeyShape says what is drawn of a key's commands, and what is broken about them.
type KeyShape struct {
	Clients int
	Rounds  int // that each client tries to take the lock
	Lease   time.Duration
	Lag     int // ticks that a micro-step takes, at most
	Haste   int // how often, in a hundred cases, who has begun something goes on with it

	NoNX        bool // taken with a plain SET
	BlindDelete bool // released without comparing
	BlindRenew  bool // renewed likewise
	Uneven      bool // renewed for a shorter time, or a longer one, than it was taken for
	Cuts        int  // chance in a hundred, for each step, that the connection ends
}

type keyWorld struct {
	*Rand
	shape   KeyShape
	hash    *lock.Hasher
	now     lock.Instant
	seq     uint64
	ops     []*lock.Op
	token   string
	expires lock.Instant
}

type keyClient struct {
	w     *keyWorld
	name  string
	id    uint64
	token string
	left  int
	plan  []lock.Kind
	op    *lock.Op
	done  bool
	gone  bool
}

// DrawKey lets clients take, renew and release a lock, and returns what was to be
// seen of it, by request.
func DrawKey(seed uint64, shape KeyShape) []*lock.Op {
	w := &keyWorld{Rand: NewRand(seed), shape: shape, hash: lock.NewHasher([]byte("orders")), now: 1000 * lock.Instant(Tick)}
	var clients []*keyClient
	for i := range shape.Clients {
		clients = append(clients, &keyClient{w: w, name: string(rune('A' + i)), id: uint64(i + 1), left: shape.Rounds})
	}
	var last *keyClient
	for {
		able := slices.DeleteFunc(slices.Clone(clients), (*keyClient).over)
		if len(able) == 0 {
			return w.ops
		}
		if last == nil || last.op == nil || last.over() || !w.Chance(shape.Haste) {
			last = able[w.Below(len(able))]
		}
		w.now += lock.Instant(Tick) * lock.Instant(1+w.Below(shape.Lag))
		last.advance()
	}
}

func (c *keyClient) over() bool { return c.gone || c.op == nil && len(c.plan) == 0 && c.left == 0 }

func (c *keyClient) advance() {
	switch {
	case c.op == nil:
		c.ask()
	case c.w.Chance(c.w.shape.Cuts):
		c.op.Outcome, c.gone = lock.Unknown, true
	case !c.done:
		c.op.Outcome, c.done = c.effect(), true
	default:
		c.answer()
	}
}

// ask sends the next of the plan: a grant, and what is to follow it.
func (c *keyClient) ask() {
	if len(c.plan) == 0 {
		c.left--
		c.token = fmt.Sprintf("t-%s-%d", c.name, c.left)
		c.plan = []lock.Kind{lock.Acquire}
		for range c.w.Below(3) {
			c.plan = append(c.plan, lock.Renew)
		}
		c.plan = append(c.plan, lock.Release)
	}
	c.op = c.command(c.plan[0])
	c.plan = c.plan[1:]
	c.done = false
	c.w.seq++
	c.op.Seq, c.op.A, c.op.F, c.op.Outcome = c.w.seq, c.w.now, c.w.now, lock.Unknown
	c.w.ops = append(c.w.ops, c.op)
}

func (c *keyClient) command(kind lock.Kind) *lock.Op {
	op := &lock.Op{Session: c.id, Actor: c.name, Proto: lock.Redis, Kind: kind, Verb: "EVAL", Key: "lock:c", Token: c.w.hash.Of([]byte(c.token)), Guarded: true}
	switch kind {
	case lock.Acquire:
		op.Verb, op.NX, op.Guarded, op.TTL = "SET", true, false, c.w.shape.Lease
		if c.w.shape.NoNX {
			op.Kind, op.NX = lock.Store, false
		}
	case lock.Renew:
		op.TTL = c.w.shape.Lease
		if c.w.shape.Uneven {
			op.TTL = []time.Duration{c.w.shape.Lease / 3, c.w.shape.Lease, 2 * c.w.shape.Lease}[c.w.Below(3)]
		}
		if c.w.shape.BlindRenew {
			op.Verb, op.Guarded, op.Token = "PEXPIRE", false, lock.Value{}
		}
	default:
		if c.w.shape.BlindDelete {
			op.Verb, op.Guarded, op.Token = "DEL", false, lock.Value{}
		}
	}
	return op
}

// effect is the instant at which the server does it.
func (c *keyClient) effect() lock.Outcome {
	w := c.w
	if w.token != "" && w.now > w.expires {
		w.token = ""
	}
	mine := w.token == c.token || !c.op.Guarded && w.token != ""
	switch {
	case c.op.Kind == lock.Acquire && w.token != "":
		return lock.Refused
	case c.op.Kind == lock.Acquire:
		w.token, w.expires = c.token, w.now.Add(c.op.TTL)
		return lock.Granted
	case c.op.Kind == lock.Store:
		w.token, w.expires = c.token, w.now.Add(c.op.TTL)
		return lock.Done
	case !mine:
		return lock.NotHeld
	case c.op.Kind == lock.Renew:
		w.expires = w.now.Add(c.op.TTL)
	default:
		w.token = ""
	}
	return lock.Done
}

func (c *keyClient) answer() {
	c.w.seq++
	c.op.ReplySeq, c.op.R, c.op.D = c.w.seq, c.w.now, c.w.now
	if c.op.Outcome == lock.Refused {
		c.plan = nil
	}
	c.op = nil
}
