package proxy

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// An Engine decides. It holds the ledger, the plan, the actors and the order of
// everything that the sessions see. All methods may be called concurrently;
// none does I/O or waits for anything but the engine's own mutex.
type Engine struct {
	mu     sync.Mutex
	seq    uint64
	ledger *lock.Ledger
	plan   *fault.Plan
	rules  bool // there are some, or may be: the plan is asked
	alters bool // rules may come and go, and somebody looks on
	over   bool // Disarm was called

	conns  map[uint64]*conn
	actors map[string]*Actor
	labels map[string]bool // names that clients gave themselves, and that are taken
	names  int             // the last n of A1, A2 ...
	untold []history.Actor // labelled and not recorded

	active    []*injection
	settlings []*settling
	turned    []history.Turn
	gated     atomic.Bool     // an injection has had a gate
	signals   map[string]bool // given, and no gate has waited for them yet

	delivering atomic.Int32 // freezes that wait until a grant was handed over
	holding    atomic.Int32 // how many are active
	finished   []history.Injection
	vain       []fault.Vain
	orders     []Order
	deeds      []*lock.Op // of a Hand, ended and not recorded
	baselines  map[string]*Gate
	wake       chan struct{}

	margins map[lock.LockID]time.Duration // of the last protected write under each lock

	locks  atomic.Uint64
	clocks clocks

	tables map[string]bool // those whose every statement matters
	busy   atomic.Bool     // a lock was granted: statements may belong to a section

	glances *glances

	book    *schedule.Book // nil: none is kept
	strayed bool           // its divergence has been told of
}

// A conn is what the engine knows of one session.
type conn struct {
	id    uint64
	actor *Actor
	stall atomic.Pointer[Gate]    // both directions wait here
	later atomic.Pointer[Gate]    // requests wait here
	held  atomic.Pointer[[]byte]  // the request that waits at a gate
	void  atomic.Pointer[lock.Op] // was sent again before it had its answer
	// stalled is until when; behind the engine's mutex.
	stalled lock.Instant
	urgent  bool // the request at hand waits for no other's: see [Session.urgent]
	peer    Peer

	wants *lock.Op // the lock that it has asked for and has no answer about; behind the engine's mutex
}

// A Peer is the client's end of a session.
type Peer struct {
	Owner *Owner
	Name  func() string // what the client calls itself by now; may be nil
	Gone  func() bool   // whether it has closed its end; may be nil

	Protocol lock.Protocol
	Upstream string         // where its session leads to, as routes have it
	Local    netip.AddrPort // from where it leads there
	Opened   lock.Instant   // when
	Backend  func() int32   // the number of the Postgres backend, 0 if it is not known yet; nil: it is none

	// Unread tells whether something that was sent to it has not been read; may be nil.
	Unread func() (bool, error)
	// Waiting returns what it has sent and nobody has read; may be nil.
	Waiting func() []byte

	// Working tells whether it has begun what it has not ended, such as a transaction; may be nil.
	Working func() bool
}

func (p Peer) gone() bool { return p.Gone != nil && p.Gone() }

// NewEngine returns an engine over an empty ledger. It owns both arguments
// from then on. tables are those that invariants and declarations name: what
// reads them matters even outside of a section.
func NewEngine(l *lock.Ledger, p *fault.Plan, tables ...string) *Engine {
	named := map[string]bool{}
	for _, t := range tables {
		named[lock.TableName(t)] = true
	}
	return &Engine{
		tables: named,
		ledger: l, plan: p, rules: len(p.Uses()) > 0,
		conns:     map[uint64]*conn{},
		actors:    map[string]*Actor{},
		labels:    map[string]bool{handLabel: true},
		baselines: map[string]*Gate{},
		signals:   map[string]bool{},
		wake:      make(chan struct{}, 1),
		glances:   newGlances(),
		margins:   map[lock.LockID]time.Duration{},
	}
}

// Open registers a session, whose id must be new, with its client's end.
func (e *Engine) Open(id uint64, p Peer) *conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &conn{id: id, peer: p}
	c.actor = e.actorOf(p.Owner)
	c.actor.conns[id] = c
	e.conns[id] = c
	for _, in := range e.active {
		if in.Act == fault.Stall && in.Scope != fault.ScopeConn && in.actor == c.actor {
			c.stall.Store(in.gate)
			c.stalled = in.ends
		}
		if in.later != nil && in.actor == c.actor {
			c.later.Store(in.later)
		}
	}
	return c
}

// Closed tells that a session has ended, at the instant now, and returns the
// place of that in the engine's order.
func (e *Engine) Closed(c *conn, now lock.Instant) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	e.ledger.Closed(c.id, now)
	e.left(c, now)
	e.forgetWrites(c)
	e.uncut(c, now)
	delete(e.conns, c.id)
	delete(c.actor.conns, c.id)
	e.forgetActor(c.actor)
	e.unturn(c, now)
	return e.seq
}

// Request takes an op whose request has been read and decides the moment before
// it. A gate means that the op's bytes wait until it opens; with again, Before
// has to be asked then, since something had to be known, or to be done, first.
// holdable is false when the bytes have gone already.
func (e *Engine) Request(c *conn, op *lock.Op, holdable bool, now lock.Instant) (g *Gate, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	if op.Kind != lock.Other {
		e.locks.Add(1)
	}
	op.Seq, op.Actor = e.seq, e.label(c)
	e.clocks.place(op)
	e.ledger.Request(op)
	c.asks(op)
	if !holdable {
		return nil, false
	}
	if g := e.baseline(op); g != nil {
		return g, true
	}
	return e.before(c, op, now)
}

// Before decides the moment before an op that Request, or Before, has put off.
func (e *Engine) Before(c *conn, op *lock.Op, now lock.Instant) (g *Gate, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.before(c, op, now)
}

func (e *Engine) before(c *conn, op *lock.Op, now lock.Instant) (g *Gate, again bool) {
	if g := e.orderly(c, op, now); g != nil {
		return g, true
	}
	return e.moment(c, fault.Before, op, now), false
}

// Reply takes an op whose reply has been read, applies it to the ledger and
// decides the moment after it. A gate means that the reply waits.
func (e *Engine) Reply(c *conn, op *lock.Op, holdable bool, now lock.Instant) *Gate {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	op.ReplySeq = e.seq
	e.clocks.place(op) // of a script the end may be known only now
	e.ledger.Reply(op)
	e.answered(c, op)
	e.heard(c, op, now)
	if op.Outcome == lock.Granted || op.Kind == lock.Store {
		e.busy.Store(true)
	}
	if !holdable {
		return nil
	}
	return e.moment(c, fault.After, op, now)
}

// Reserve keeps a place for n ops of a session that may come to be known later:
// n numbers for their requests and, behind these, n for their replies. It returns the first, and whose the session is.
func (e *Engine) Reserve(c *conn, n int) (first uint64, actor string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first = e.seq + 1
	e.seq += 2 * uint64(n)
	return first, e.label(c)
}

// Amended takes an op of which more has come to be known than when it was shown,
// or which comes to be known at all. For most it is too late in the ledger, which is
// told of things in their order.
func (e *Engine) Amended(op *lock.Op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clocks.place(op)
	e.ledger.Told(op)
	e.heardLate(op)
	if op.Outcome == lock.Granted || op.Kind == lock.Store {
		e.busy.Store(true)
	}
}

func (e *Engine) moment(c *conn, phase fault.Phase, op *lock.Op, now lock.Instant) *Gate {
	if !e.rules || e.book == nil && !e.plan.Armed() {
		return nil
	}
	meant := e.meant(op)
	place, due := e.place(c, phase, meant)
	m := e.momentOf(c, phase, op, now)
	m.Op, m.Due = meant, due
	d := e.plan.Decide(m, now)
	e.vainly()
	if d.Act == fault.Pass {
		e.passed(place)
		return nil
	}
	in := &injection{Decision: d, conn: c, op: op, kind: meant.Kind, phase: phase, at: now, section: e.inSection(c.actor, d, c)}
	e.entered(in, place)
	return e.inject(in, now)
}

// meant returns the op as rules and gates are to see it: on a key that is declared to be no
// lock it is a command and no more, and a plain SET that stores a lock's token anew a renewal.
func (e *Engine) meant(op *lock.Op) *lock.Op {
	kind := op.Kind
	switch {
	case e.ledger.Ignores(op):
		kind = lock.Other
	case e.ledger.Renews(op):
		kind = lock.Renew
	}
	if kind == op.Kind {
		return op
	}
	own := *op
	own.Kind = kind
	return &own
}

// inSection reports whether the process that a fault hits is in a section. A stall of
// one connection hits no transaction of another.
func (e *Engine) inSection(a *Actor, d fault.Decision, c *conn) bool {
	if d.Act == fault.Stall && d.Scope == fault.ScopeConn {
		return e.ledger.HasOpen(a.Label) || e.ledger.InTransaction(a.Label, c.id)
	}
	return e.ledger.HasOpen(a.Label) || e.ledger.InTransaction(a.Label, 0)
}

// Locks counts the ops that were shown so far, those of other commands left
// out. It takes no mutex.
func (e *Engine) Locks() uint64 { return e.locks.Load() }

// Protects reports whether a table is one whose writes a lock guards, or whose
// value an invariant is about.
func (e *Engine) Protects(table string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tables[lock.TableName(table)] || e.ledger.Protected(table)
}

// Uses is the account of what became of each rule, and of what was done by hand. It is for
// the end of a run: see [fault.Plan.Account].
func (e *Engine) Uses() []fault.Use {
	e.mu.Lock()
	defer e.mu.Unlock()
	uses := e.plan.Account()
	if u, some := e.plan.Hands(); some {
		uses = append(uses, u)
	}
	return uses
}

// Rules lists the rules, those that are not armed too, in the order in which they are asked.
func (e *Engine) Rules() []fault.Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.plan.Rules()
}

// Cares reports, without the mutex, whether an op has to be shown to the engine.
func (e *Engine) Cares(op *lock.Op) bool {
	return op.Kind != lock.Read || e.Reads(lock.TableName(op.SQL.Table))
}

// Minds reports whether a finished op belongs into the record: every one but a
// SELECT outside of all sections from a table that nothing protects.
func (e *Engine) Minds(op *lock.Op) bool {
	if op.Kind != lock.Read || op.Term.ID != 0 || e.selects() || e.tables[lock.TableName(op.SQL.Table)] {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ledger.Protected(op.SQL.Table)
}
