package proxy

import (
	"fmt"
	"sync"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// queued is how many entries may wait for the disk: ten thousand connections may end with
// their server, all at once.
const queued = 1 << 14

// WhenFull says what a [Record] does when its queue is full.
type WhenFull int

// What may be done.
const (
	Wait WhenFull = iota // whoever records waits, and with it the wire: nothing is lost
	Drop                 // what comes is dropped and counted, and a gap says so: the wire does not wait
)

// slow is why a record has a gap.
const slow = "the disk was slower than the traffic"

// A Record writes the history from one goroutine, so that a session has to do
// with the disk only when the queue is full. Its methods may be called
// concurrently, but nothing may be recorded once Close has been called.
type Record struct {
	engine *Engine
	writer *history.Writer
	flush  func() error
	full   WhenFull
	seen   Observer // nil: nobody else is told
	ended  sync.WaitGroup

	mu     sync.Mutex
	room   sync.Cond // the writer has taken the queue
	more   sync.Cond // the queue was empty, or closed is set
	queue  []entry
	lost   int          // since the queue was taken last: later than the ops that are in it
	latest lock.Instant // of what was recorded or lost
	total  int          // lost since the start
	closed bool
}

// An entry is one line of the history: an op, what is rare, or else the end of a session.
type entry struct {
	op        *lock.Op
	end       history.End
	other     func(*history.Writer) // what is rare
	injection *history.Injection    // what other writes, if it is that
}

// An Observer is told of what is written, in the same order and by the goroutine that
// writes: no session waits for it. It keeps nothing that it is given.
type Observer interface {
	Op(op *lock.Op)
	End(session uint64, at lock.Instant)
	Injection(in history.Injection)
}

// NewRecord starts writing to w, which it owns until Close has returned. flush
// is called when there is nothing more to write for now. seen may be nil.
func NewRecord(w *history.Writer, flush func() error, e *Engine, full WhenFull, seen Observer) *Record {
	r := &Record{engine: e, writer: w, flush: flush, full: full, seen: seen}
	r.room.L, r.more.L = &r.mu, &r.mu
	r.ended.Go(r.write)
	return r
}

func (r *Record) write() {
	_ = r.flush() // so that even a daemon that saw nothing leaves a header
	var spare []entry
	for {
		batch, gap, ok := r.take(spare)
		if !ok {
			return
		}
		r.actors()
		for _, e := range batch {
			r.put(e)
		}
		if gap.Lost > 0 {
			r.writer.Gap(gap.At, gap.Lost, gap.Why)
		}
		clear(batch) // the ops are not kept alive by it
		spare = batch[:0]
	}
}

// take waits for entries and returns them, with the gap that follows them. ok is
// false at the end.
func (r *Record) take(spare []entry) (batch []entry, gap history.Gap, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 && !r.closed {
		r.mu.Unlock()
		_ = r.flush() // its error sticks, and Close returns it
		r.mu.Lock()
	}
	for len(r.queue) == 0 && !r.closed {
		r.more.Wait()
	}
	batch, r.queue = r.queue, spare
	gap = history.Gap{At: r.latest, Lost: r.lost, Why: slow}
	r.lost = 0
	r.room.Broadcast()
	return batch, gap, len(batch) > 0
}

// actors writes those that have got their label: an op is recorded after its
// actor has one.
func (r *Record) actors() {
	for _, a := range r.engine.NewActors() {
		r.writer.Actor(a)
	}
}

func (r *Record) put(e entry) {
	switch {
	case e.op != nil:
		r.writer.Op(e.op)
	case e.other != nil:
		e.other(r.writer)
	default:
		r.writer.End(e.end.Session, e.end.At, e.end.Seq)
	}
	if r.seen != nil {
		r.observe(e)
	}
}

func (r *Record) observe(e entry) {
	switch {
	case e.op != nil:
		r.seen.Op(e.op)
	case e.injection != nil:
		r.seen.Injection(*e.injection)
	case e.other == nil:
		r.seen.End(e.end.Session, e.end.At)
	}
}

// add queues an entry, of the instant at. What is rare finds room at once: the
// runner, which thaws, must not wait for a disk.
func (r *Record) add(e entry, at lock.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = max(r.latest, at)
	for len(r.queue) >= queued && e.other == nil {
		if r.full == Drop {
			r.lost++
			r.total++
			return
		}
		r.room.Wait()
	}
	r.queue = append(r.queue, e)
	if len(r.queue) == 1 {
		r.more.Signal()
	}
}

// Op records a finished op, if it matters to anybody.
func (r *Record) Op(op *lock.Op) {
	if r.engine.Minds(op) {
		r.add(entry{op: op}, max(op.A, op.F, op.R, op.D, op.Z))
	}
}

// End records the end of a session.
func (r *Record) End(session uint64, at lock.Instant, seq uint64) {
	r.add(entry{end: history.End{Session: session, At: at, Seq: seq}}, at)
}

// Injection records an injection that has ended.
func (r *Record) Injection(in history.Injection) {
	r.add(entry{other: func(w *history.Writer) { w.Injection(in) }, injection: &in}, in.Ended)
}

// Vain records that a rule waits in vain.
func (r *Record) Vain(v fault.Vain) {
	r.add(entry{other: func(w *history.Writer) { w.Vain(history.Vain{At: v.At, Rule: v.Rule, Matched: v.Name, Why: v.Why}) }}, v.At)
}

// Turn records a request that has waited behind a held op.
func (r *Record) Turn(t history.Turn) {
	r.add(entry{other: func(w *history.Writer) { w.Turn(t) }}, t.Ended)
}

// Clock records a look at an upstream's clock.
func (r *Record) Clock(c history.Clock) {
	r.add(entry{other: func(w *history.Writer) { w.Clock(c) }}, c.At)
}

// Tally records what a server counted of a table.
func (r *Record) Tally(t history.Tally) {
	r.add(entry{other: func(w *history.Writer) { w.Tally(t) }}, 0)
}

// Bypass records that somebody uses a lock's key past the proxies.
func (r *Record) Bypass(b history.Bypass) {
	r.add(entry{other: func(w *history.Writer) { w.Bypass(b) }}, b.At)
}

// Invariants records the invariants with the readings that have come since.
func (r *Record) Invariants(list []history.Invariant) {
	r.add(entry{other: func(w *history.Writer) { w.Invariants(list) }}, 0)
}

// Lost returns how many entries were dropped since the start.
func (r *Record) Lost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Close writes what is queued, closes the writer and returns the first error of
// all, once.
func (r *Record) Close() error {
	r.mu.Lock()
	r.closed = true
	r.more.Signal()
	r.mu.Unlock()
	r.ended.Wait()
	unflushed := r.flush()
	if err := r.writer.Close(); err != nil {
		return err
	}
	if unflushed != nil {
		return fmt.Errorf("write history: %w", unflushed)
	}
	return nil
}
