package proxy

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// A Freezer finds the process behind a connection, and stops it.
type Freezer interface {
	// Lookup finds the owner of a connection from its two ends as the client
	// sees them. It always answers with an owner: one that cannot be frozen
	// carries the reason.
	Lookup(ctx context.Context, client, server netip.AddrPort) *Owner
	// Freeze returns when the kernel has confirmed that all of it is stopped.
	// Whatever happens to the caller, it runs again after at most max.
	Freeze(ctx context.Context, o *Owner, scope fault.Scope, max time.Duration) (Thawer, error)
}

// A Thawer lets a frozen process go. note says what was odd about the freeze,
// such as a SIGCONT sent by somebody else.
type Thawer interface {
	Thaw() (note string, err error)
}

// A Runner carries out what the engine orders, on workers, and tells it when
// its deadlines have come. All fields from Injected on may be nil.
type Runner struct {
	Engine   *Engine
	Freezer  Freezer
	Clock    func() lock.Instant
	Injected func(history.Injection)                              // told of each injection when it has ended
	Turned   func(history.Turn)                                   // told of each request that has waited behind a held op
	Vain     func(fault.Vain)                                     // told of each wait for what cannot come about
	Diverged func(schedule.Divergence)                            // told, once, that a schedule is not repeated
	Baseline func(ctx context.Context, table string) (again bool) // reads the invariants of a table before its first write
	Hand     Hand                                                 // does to servers what rules assume
	Deed     func(*lock.Op)                                       // told of each key that it removed
	Blocked  Blocked                                              // tells who waits for a row's lock

	workers sync.WaitGroup
	strayed bool // Diverged was told
}

// thawGrace is how long after the planned end the guard lets a process go.
const thawGrace = 2 * time.Second

// Run works until ctx is done; then it lets everything go, waits for its
// workers and returns.
func (r *Runner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r.carryOut(ctx)
		r.sleep(ctx)
		r.Engine.Advance(r.Clock())
	}
	r.drain()
}

// drain ends what is still going on. A freeze that is being confirmed when it
// begins is thawed once its worker has reported it; a reset is told of by its session.
func (r *Runner) drain() {
	ctx := context.Background()
	r.Engine.Disarm(r.Clock())
	for {
		r.carryOut(ctx)
		r.workers.Wait()
		r.carryOut(ctx)
		r.workers.Wait()
		if r.Engine.Idle() {
			return
		}
		<-r.Engine.Wake()
	}
}

func (r *Runner) sleep(ctx context.Context) {
	var due <-chan time.Time
	now := r.Clock()
	if next, ok := r.Engine.NextDeadline(now); ok {
		t := time.NewTimer(next.Sub(now))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
	case <-r.Engine.Wake():
	case <-due:
	}
}

func (r *Runner) carryOut(ctx context.Context) {
	orders, ended := r.Engine.Take()
	for _, o := range orders {
		r.workers.Go(func() { r.work(ctx, o) })
	}
	for _, v := range r.Engine.Vain() {
		if r.Vain != nil {
			r.Vain(v)
		}
	}
	for _, t := range r.Engine.Turns() {
		if r.Turned != nil {
			r.Turned(t)
		}
	}
	if d := r.Engine.Diverged(); d != nil && !r.strayed && r.Diverged != nil {
		r.strayed = true
		r.Diverged(*d)
	}
	for _, op := range r.Engine.Deeds() {
		if r.Deed != nil {
			r.Deed(op)
		}
	}
	for _, in := range ended {
		if r.Injected != nil {
			r.Injected(in)
		}
	}
}

func (r *Runner) work(ctx context.Context, o Order) {
	switch {
	case o.Freeze != nil:
		r.freeze(ctx, o.Freeze)
	case o.Thaw != nil:
		r.explain(ctx, o.Thaw)
		r.Engine.noteGaveUp(o.Thaw)
		note, err := o.Thaw.thaw.Thaw()
		r.Engine.Thawed(o.Thaw, note, err, r.Clock())
	case o.Release != nil:
		r.explain(ctx, o.Release)
		r.Engine.noteGaveUp(o.Release)
		r.Engine.Released(o.Release, o.Release.conn.peer.gone(), r.Clock())
	case o.Deed != nil:
		r.do(ctx, o.Deed)
	case o.Baseline != "":
		r.Engine.BaselineRead(o.Baseline, r.Baseline != nil && r.Baseline(ctx, o.Baseline))
	}
}

// freeze carries out a freeze, for a client that is still there.
func (r *Runner) freeze(ctx context.Context, in *injection) {
	for _, g := range in.behind {
		<-g.Done()
	}
	in.awaitRead(ctx)
	if r.Engine.noteGaveUp(in) {
		r.Engine.Frozen(in, nil, errGone, r.Clock())
		return
	}
	t, err := r.Freezer.Freeze(ctx, in.owner, in.Scope, in.For+thawGrace)
	r.Engine.noteGaveUp(in)
	r.Engine.Frozen(in, t, err, r.Clock())
}
