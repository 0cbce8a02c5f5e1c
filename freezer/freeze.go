package freezer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Scope is how much of an owner is frozen.
type Scope string

// The scopes.
const (
	ScopeProcess Scope = "process" // every thread of the process that holds the connection; of several, of the one that uses it, or of a whole family
	ScopeTree    Scope = "tree"    // these processes and all that descends from them
	ScopeCgroup  Scope = "cgroup"  // the cgroup of the processes that hold it, and all below
)

// guardGrace is how long after its maximum a freeze is left to the daemon to end.
const guardGrace = 250 * time.Millisecond

// Frozen is something that is stopped, until Thaw or its maximum. It is safe
// for concurrent use.
type Frozen struct {
	f         *Freezer
	owner     *Owner
	id        uint64
	scope     Scope
	holders   []Process // who has the connection
	processes []Process // those of them whom the freeze is about
	kin       []Process // those that descend from processes, and are stopped with them
	target    target
	guard     *guardian
	journal   string
	keys      []string

	mu      sync.Mutex // held from the first step to the confirmed freeze, and while it ends
	timer   *time.Timer
	over    bool
	stopped bool
	broken  string
	done    chan struct{}
}

// Freeze stops what o names and returns after the kernel has confirmed that
// all of it is stopped. It ends by Thaw, or by itself after max, which must be
// positive. ctx bounds the freezing, not the time frozen. On an error nothing
// is left stopped, unless the error names it.
//
// Errors: [*Refusal] and nothing was touched; [ErrNoConnection], [*NoHolder]
// or [ErrGone] where the client has gone meanwhile; [ErrGuard]; [ErrClosed];
// or which thread did not stop within two seconds, and its state.
func (f *Freezer) Freeze(ctx context.Context, o *Owner, scope Scope, max time.Duration) (*Frozen, error) {
	if max <= 0 {
		return nil, fmt.Errorf("freeze: maximum of %s, expected more than none", max)
	}
	ps, err := o.holders()
	if err != nil {
		return nil, err
	}
	z, err := f.freeze(ctx, o, o.Inode, ps, scope, max)
	if errors.Is(err, errChanged) || errors.Is(err, ErrGone) {
		// Somebody else holds the connection than at the look-up: once more.
		var now *Owner
		if now, err = f.lookup(ctx, o.of, true); err != nil {
			return nil, err
		}
		defer now.Close()
		if ps, err = now.holders(); err != nil {
			return nil, err
		}
		others, err := o.strangers(ps, now.Inode)
		if err != nil {
			closeAll(ps)
			return nil, err
		}
		return f.freeze(ctx, o, now.Inode, append(ps, others...), scope, max)
	}
	return z, err
}

// errChanged: the connection is held by others than it was.
var errChanged = errors.New("the holders of the connection have changed")

// Check says whether a freeze would be refused now, without touching anything:
// nil, a [*Refusal], or why that could not be found out. Which of several holders
// would be meant shows only then, so all of them have to be ones that may be frozen.
func (f *Freezer) Check(o *Owner, scope Scope) error {
	ps, err := o.holders()
	if err != nil {
		return err
	}
	defer closeAll(ps)
	t, err := f.judge(ps, scope)
	if err == nil && t.group != nil {
		t.group.close()
	}
	return err
}

// freeze owns ps.
func (f *Freezer) freeze(ctx context.Context, o *Owner, inode uint32, ps []Process, scope Scope, max time.Duration) (*Frozen, error) {
	z := &Frozen{f: f, owner: o, scope: scope, holders: ps, done: make(chan struct{})}
	err := z.begin(ctx, inode, max)
	if err == nil {
		return z, nil
	}
	if left := z.end(""); left != nil {
		return nil, fmt.Errorf("freeze %s of %s: %v: %w", scope, o.of, err, left)
	}
	return nil, fmt.Errorf("freeze %s of %s: %w", scope, o.of, err)
}

// begin takes every step to the confirmed freeze. Whoever wants to end it
// meanwhile waits: half a freeze cannot be ended.
func (z *Frozen) begin(ctx context.Context, inode uint32, max time.Duration) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if err := z.prepare(inode, max); err != nil {
		return err
	}
	return z.stop(ctx, inode, max)
}

// prepare does all that comes before the freeze itself: policy, handles,
// journal, guard.
func (z *Frozen) prepare(inode uint32, max time.Duration) (err error) {
	f := z.f
	if err := stillHeld(z.holders, inode); err != nil {
		return err
	}
	if z.processes, err = whose(z.holders, inode, z.scope); err != nil {
		return err
	}
	keys := keysOf(z.processes)
	if r := f.take(keys); r != nil {
		return r
	}
	z.keys = keys
	if z.target, err = f.judge(z.processes, z.scope); err != nil {
		return err
	}
	if z.target.group != nil {
		dir := []string{z.target.group.dir}
		if r := f.take(dir); r != nil {
			return r
		}
		z.keys = append(z.keys, dir...)
	}
	if z.guard, err = f.liveGuard(); err != nil {
		return err
	}
	if err := f.register(z); err != nil {
		return err
	}
	if z.scope == ScopeTree {
		kin, err := z.descended()
		if err == nil {
			err = z.join(kin)
		}
		if err != nil {
			return err
		}
	}
	return z.armAll(max)
}

// arm writes down what is about to be stopped, and gives the guard handles to it.
func (z *Frozen) arm(op string, handles []int, max time.Duration) (err error) {
	limit := confirmWithin + max + guardGrace
	z.journal, err = z.f.journal.write(z.id, z.target.note(), time.Now().Add(limit))
	if err != nil {
		return err
	}
	o := order{Op: op, ID: z.id, Deadline: monotonic() + int64(limit), Journal: z.journal, Target: z.target.note()}
	_, err = z.guard.order(o, handles)
	return err
}

func keysOf(ps []Process) []string {
	keys := make([]string, len(ps))
	for i, p := range ps {
		keys[i] = "pid " + strconv.Itoa(p.PID)
	}
	return keys
}

// register makes the freeze known to Close and to a guard's death.
func (f *Freezer) register(z *Frozen) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	f.nextID++
	z.id = f.nextID
	f.active[z.id] = z
	return nil
}

// stop freezes the target and makes sure that it was worth it.
func (z *Frozen) stop(ctx context.Context, inode uint32, max time.Duration) error {
	limit := monotonic() + int64(confirmWithin+max+guardGrace)
	z.stopped = true
	if err := z.halt(ctx, max); err != nil {
		return err
	}
	if err := z.recheck(inode); err != nil {
		return err
	}
	// The guard may have been sleeping on a later deadline, or the daemon may
	// itself have been stopped for longer than it.
	a, err := z.guard.order(order{Op: opMove, ID: z.id, Deadline: monotonic() + int64(max+guardGrace)}, nil)
	if err != nil {
		return err
	}
	if a.Expired || monotonic() > limit || !z.guard.alive() {
		return fmt.Errorf("%w: the freeze was over before it was confirmed", ErrGuard)
	}
	z.timer = time.AfterFunc(max, func() { _ = z.end("") })
	z.seekStrangers(inode)
	return nil
}

// recheck looks once more at what a moving target may have changed between
// the policy's word and the kernel's.
func (z *Frozen) recheck(inode uint32) error {
	if z.target.group == nil {
		return stillHeld(z.processes, inode)
	}
	return z.f.recheckGroup(z.holders, z.target.group)
}

// Thaw ends the freeze and returns when everything runs again. It is
// idempotent: after the first that succeeded it does nothing. Its error names
// each process that a human has to send SIGCONT; it may be called again.
func (z *Frozen) Thaw() error { return z.end("") }

// Done is closed when the freeze is over, whoever ended it.
func (z *Frozen) Done() <-chan struct{} { return z.done }

// Broken says how the freeze ended before Thaw or its maximum: somebody else
// resumed the process, it ended, the guard died; or that another process has the
// connection, too, and ran on. It is "" if it held, and is known once the freeze
// is over.
func (z *Frozen) Broken() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.broken
}

// Processes returns those holders of the connection whom the freeze is about. They are
// for reading: the handles in them belong to the freeze.
func (z *Frozen) Processes() []Process { return append([]Process(nil), z.processes...) }

// end thaws, verifies, and then forgets the freeze, in the order that leaves a
// record of it as long as anything may be stopped.
func (z *Frozen) end(why string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.over {
		return nil
	}
	if z.timer != nil {
		z.timer.Stop()
	}
	if z.stopped {
		if z.broken == "" {
			z.broken = z.target.broken()
		}
		if err := z.target.thaw(); err != nil {
			return err
		}
		z.stopped = false
	}
	z.over = true
	if z.broken == "" {
		z.broken = why
	}
	err := z.forget()
	close(z.done)
	return err
}

// guardThawed is how a freeze was broken of which the daemon was late.
const guardThawed = "the guard thawed it at its deadline"

// forget leaves the guard for last: a daemon that is killed in here has at most
// a running process thawed once more, and no record left behind.
func (z *Frozen) forget() (err error) {
	if z.journal != "" {
		err = erase(z.journal)
	}
	if z.guard != nil && z.guard.alive() {
		if a, err := z.guard.order(order{Op: opDisarm, ID: z.id}, nil); err == nil && a.Expired {
			z.broken = guardThawed
		}
	}
	z.f.mu.Lock()
	delete(z.f.active, z.id)
	z.f.mu.Unlock()
	z.f.give(z.keys)
	if z.target.group != nil {
		z.target.group.close()
	}
	closeAll(z.holders)
	closeAll(z.kin)
	return err
}
