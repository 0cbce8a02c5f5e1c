package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/lock"
)

// How much of what goes on is kept in mind.
const (
	mostSections = 1 << 16
	mostTables   = 1 << 13
	lateWrites   = time.Second      // how long after a release a write of its section may still be told of
	forgotten    = 10 * time.Minute // how long after its lease a section is given up that nobody released
)

// A section is one holding of a lock.
type section struct {
	id        lock.TermID
	name      string // of the lock, as the label has it
	session   uint64
	span      lock.Span
	tx        uint64
	delivered lock.Instant // the grant; 0: it never was
	lease     lock.Interval
	setAt     lock.Instant // when the request that set the lease last had gone on
	fence     int64
	hasFence  bool
	depth     int
	told      bool // the server says how often its holder has it

	written  lock.Instant  // when the last protected write had taken effect
	margin   time.Duration // what was left of the lease then
	tooLate  bool          // a write came when the lease was certainly over
	released lock.Instant
	gone     bool // the release found that the lock was not there
}

// overrun reports whether the section went on when it had no lock any more.
func (s *section) overrun() bool {
	return s.gone || s.tooLate || s.lease.Latest != lock.Never && s.released > s.lease.Latest
}

// A book has the sections that go on, and those that are over and not counted yet.
type book struct {
	open      map[lock.TermID]*section
	line      []lock.TermID            // in the order in which they began; some have ended
	session   map[uint64][]lock.TermID // those that end with it, or with a transaction of it
	ended     []*section               // in the order of their release
	protected map[string]bool          // tables
	fences    map[string]string        // the column of a table that was declared to have the fence
	swept     lock.Instant
}

func newBook(decls []lock.Declaration) book {
	b := book{open: map[lock.TermID]*section{}, session: map[uint64][]lock.TermID{}, protected: map[string]bool{}, fences: map[string]string{}}
	for _, d := range decls {
		if table := lock.TableName(d.Table); table != "" {
			b.protected[table] = true
			b.fences[table] = d.FenceColumn
		}
	}
	return b
}

// follow takes in what an op says of sections.
func (d *Daemon) follow(op *lock.Op) {
	switch op.Kind {
	case lock.Acquire, lock.Store:
		d.granted(op)
	case lock.Renew:
		if s := d.seen.open[op.Term.ID]; s != nil && op.Outcome == lock.Done {
			s.leased(op)
		}
	case lock.Fence:
		if s := d.seen.open[op.Term.ID]; s != nil && op.HasFence && op.Term.Sure() {
			s.fence, s.hasFence = op.Fence, true
		}
	case lock.Release:
		d.seen.release(op)
	case lock.Write:
		d.wrote(op)
	case lock.Commit, lock.Rollback:
		d.finished(op)
	}
}

// granted begins a section, or goes on with the one that its holder has already.
func (d *Daemon) granted(op *lock.Op) {
	if op.Term.ID == 0 || op.Outcome != lock.Granted && (op.Kind != lock.Store || op.Outcome != lock.Done || !op.Term.Sure()) {
		return
	}
	if s := d.seen.open[op.Term.ID]; s != nil {
		s.depth++
		s.told = s.told || op.Depth > 0
		s.leased(op)
		return
	}
	s := &section{id: op.Term.ID, name: d.names.Of(op.Key), session: op.Session, span: op.Span, tx: op.Tx, delivered: op.D,
		fence: op.Fence, hasFence: op.HasFence, depth: 1, told: op.Depth > 0}
	s.leased(op)
	d.seen.begin(s)
	// A series that begins with 1 has not risen, to Prometheus.
	for _, v := range []*prometheus.CounterVec{d.overruns, d.rejections, d.ambiguous} {
		v.WithLabelValues(s.name)
	}
}

// begin keeps a section in mind. The oldest has to go where there are too many: of what is not released at all, as once-markers
// are, there may be any number.
func (b *book) begin(s *section) {
	b.open[s.id] = s
	b.line = append(b.line, s.id)
	if s.span != lock.LeaseSpan {
		b.session[s.session] = append(b.session[s.session], s.id)
	}
	for len(b.open) > mostSections || len(b.line) > 0 && b.open[b.line[0]] == nil {
		if s := b.open[b.line[0]]; s != nil {
			b.forget(s)
		}
		b.line = b.line[1:]
	}
	if len(b.line) > 2*mostSections {
		b.line = slices.DeleteFunc(b.line, func(id lock.TermID) bool { return b.open[id] == nil })
	}
}

// leased notes the lease that an op has set.
func (s *section) leased(op *lock.Op) {
	if op.F < s.setAt || s.span != lock.LeaseSpan {
		s.lease = orNever(s.lease)
		return
	}
	s.lease, s.setAt = lock.Lease(op, op.TTL), op.F
}

// orNever returns a lease, or where there is none one without an end.
func orNever(i lock.Interval) lock.Interval {
	if i == (lock.Interval{}) {
		return lock.Interval{Earliest: lock.Never, Latest: lock.Never}
	}
	return i
}

// release ends the sections of an op.
func (b *book) release(op *lock.Op) {
	if op.Outcome == lock.Failed {
		return
	}
	for _, id := range termsOf(op) {
		s := b.open[id]
		if s == nil {
			continue
		}
		if s.depth--; op.Outcome == lock.Done && (op.Depth > 0 || s.depth > 0 && !s.told && !op.All) {
			continue // a step of a holder that has it several times
		}
		s.gone = op.Outcome == lock.NotHeld
		b.end(s, op.A)
	}
}

func (b *book) end(s *section, at lock.Instant) {
	s.released = at
	b.ended = append(b.ended, s)
	b.forget(s)
}

func (b *book) forget(s *section) {
	delete(b.open, s.id)
	if s.span == lock.LeaseSpan {
		return
	}
	if rest := slices.DeleteFunc(b.session[s.session], func(id lock.TermID) bool { return id == s.id }); len(rest) > 0 {
		b.session[s.session] = rest
	} else {
		delete(b.session, s.session)
	}
}

// termsOf lists the terms of which an op certainly is.
func termsOf(op *lock.Op) []lock.TermID {
	if !op.Term.Sure() {
		return nil
	}
	return append([]lock.TermID{op.Term.ID}, op.Term.Within...)
}

// wrote takes in a statement that wrote, or was refused.
func (d *Daemon) wrote(op *lock.Op) {
	if op.SQL == nil || op.SQL.Lease {
		return
	}
	table := lock.TableName(op.SQL.Table)
	accepted := op.Outcome == lock.Done && op.Rows > 0
	if !op.Term.Sure() {
		if accepted && d.seen.protected[table] {
			d.unowned.Inc()
		}
		return
	}
	if accepted && len(d.seen.protected) < mostTables {
		d.seen.protected[table] = true
	}
	switch {
	case accepted && op.Implicit:
		d.effect(op, max(op.R, op.Z))
	case d.refused(op, table):
		d.rejected(op)
	}
}

// rejected counts a write, or the commit of some, that was refused to a section.
func (d *Daemon) rejected(op *lock.Op) {
	if s := d.seen.of(op.Term.ID); s != nil {
		d.rejections.WithLabelValues(s.name).Inc()
	}
}

// of returns a section that is open, or ended a moment ago.
func (b *book) of(id lock.TermID) *section {
	if s := b.open[id]; s != nil {
		return s
	}
	for _, s := range slices.Backward(b.ended) {
		if s.id == id {
			return s
		}
	}
	return nil
}

// refused reports whether a write was turned away by a guard: by a condition on the fence, or on a column that it would itself
// have changed, or as a key that is there already.
func (d *Daemon) refused(op *lock.Op, table string) bool {
	if op.Outcome == lock.Failed {
		return refusal(op.Err)
	}
	if op.Outcome != lock.Done || op.Rows > 0 {
		return false
	}
	if op.Verb == "INSERT" && !op.SQL.Returning {
		return true
	}
	s := d.seen.of(op.Term.ID)
	return slices.ContainsFunc(op.SQL.Where, func(c lock.Cond) bool {
		return c.Column != "" && c.Column == d.seen.fences[table] ||
			s != nil && s.hasFence && c.Value.IsInt && c.Value.Int == s.fence ||
			slices.ContainsFunc(op.SQL.Set, func(a lock.Assign) bool { return a.Column == c.Column })
	})
}

// refusal reports whether an error says that another was first: a serialization failure, or a key that is not unique.
func refusal(sqlstate string) bool { return sqlstate == "40001" || sqlstate == "23505" }

// effect notes that what a section wrote has taken effect between the request and an instant.
func (d *Daemon) effect(op *lock.Op, at lock.Instant) {
	for _, id := range termsOf(op) {
		s := d.seen.of(id)
		if s == nil {
			continue
		}
		if at > s.written {
			s.written, s.margin = at, s.lease.Earliest.Sub(at)
		}
		switch {
		case op.F > s.lease.Latest:
			s.tooLate = true
		case at > s.lease.Earliest:
			d.ambiguous.WithLabelValues(s.name).Inc()
		}
	}
}

// finished takes in the end of a transaction: what was written in it, and the locks that end with it.
func (d *Daemon) finished(op *lock.Op) {
	if op.Savepoint {
		return
	}
	switch {
	case op.Kind == lock.Commit && op.Outcome == lock.Done && len(op.Tables) > 0:
		d.effect(op, op.R)
	case op.Kind == lock.Commit && op.Outcome == lock.Failed && refusal(op.Err) && op.Term.Sure():
		d.rejected(op)
	}
	for _, id := range slices.Clone(d.seen.session[op.Session]) {
		if s := d.seen.open[id]; s.span == lock.TxSpan && s.tx == op.Tx {
			d.seen.end(s, op.A)
		}
	}
}

// left forgets what a session had that ended without its release.
func (b *book) left(session uint64) {
	for _, id := range slices.Clone(b.session[session]) {
		b.forget(b.open[id])
	}
}

// over takes the sections of which all has been told by an instant.
func (b *book) over(at lock.Instant) []*section {
	n := 0
	for n < len(b.ended) && b.ended[n].released.Add(lateWrites) < at {
		n++
	}
	out := b.ended[:n:n]
	b.ended = b.ended[n:]
	if at.Sub(b.swept) > forgotten {
		b.sweep(at)
	}
	return out
}

// sweep gives up sections whose lease was over long ago, and that nobody released.
func (b *book) sweep(at lock.Instant) {
	b.swept = at
	for _, s := range b.open {
		if s.lease.Latest != lock.Never && s.lease.Latest.Add(forgotten) < at {
			b.forget(s)
		}
	}
}
