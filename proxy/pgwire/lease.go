package pgwire

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// leased returns what an execution does to a lease, if it does anything.
func (t *Tracker) leased(tm *template, from binding) (held, bool) {
	if tm.kind != lock.Write || tm.table == "" {
		return held{}, false
	}
	tables := &t.opt.Statements.leases
	l := tm.lease
	if l == nil || l.kind != lock.Acquire {
		k := tables.of(tm.table)
		if k == nil && l == nil {
			return held{}, false
		}
		if k != nil {
			l = tm.leaseOf(k, from)
		}
	}
	if l == nil || !l.holds(from) {
		return held{}, false
	}
	if l.kind == lock.Acquire {
		tables.learn(tm.table, l, from)
	}
	h := l.hold(tm)
	op := &lock.Op{
		Session: t.opt.Session, Upstream: t.opt.Upstream, Proto: lock.Postgres, Kind: l.kind, Verb: tm.verb,
		Key: h.key(t.opt.Hash, from), NX: l.kind == lock.Acquire && !tm.again(l, from), Guarded: l.guarded, Token: l.token.of(from),
	}
	op.TTL, op.Until = l.ends(from)
	op.Coarse = l.coarse()
	t.tx.assign(op, tm)
	out := held{hold: h, op: op}
	if l.echo != nil {
		out.sent = l.echo.of(from)
	}
	return out, true
}

// again reports whether who has the lease may take it once more: the conditions
// let the owner through that is set.
func (t *template) again(l *lease, from binding) bool {
	if l.owner == "" {
		return false
	}
	token := l.token.of(from)
	return slices.ContainsFunc(t.guards, func(g guard) bool {
		return g.column == l.owner && g.op == "=" && g.plain() && (g.value == l.token || token.Known() && g.of(from).Same(token))
	})
}

// hold makes what is done to the lock of a row.
func (l *lease) hold(tm *template) *hold {
	h := &hold{kind: l.kind, verb: tm.verb, tells: bySkip, cell: none, class: "lease:" + tm.table, lease: l}
	switch {
	case l.claim || tm.deeps && l.kind == lock.Acquire:
	case len(l.key) > 0:
		h.args = l.key
	default:
		h.class, h.named = h.class+":*", true
	}
	if tm.indirect {
		h.tells = byFilter
	}
	return h
}

// holds reports whether the values are those of a lease: where only they can tell,
// its end is a time, and not that which must have passed.
func (l *lease) holds(from binding) bool {
	if l.until == nil {
		return true
	}
	if l.since.plain() && l.until.plain() && l.since.of(from).Same(l.until.of(from)) {
		return false // the last one wins
	}
	if !l.doubtful {
		return true
	}
	_, ok := l.until.moment(from).unix()
	return ok
}

// ends returns for how long a lease is asked for, or else when it ends. Where a
// column tells since when somebody has it, the conditions tell for how long.
func (l *lease) ends(from binding) (time.Duration, int64) {
	s := l.until
	if s == nil {
		return 0, 0
	}
	back, known := l.back(from)
	starts := timeName(s.column) && !endName(s.column)
	if s.now != nil {
		d, ok := s.now.length(from)
		switch {
		case ok && d > 0:
			return d, 0
		case starts && known:
			return max(0, back), 0
		}
		return 0, 0
	}
	at, ok := s.moment(from).unix()
	switch {
	case !ok:
		return 0, 0
	case !starts:
		return 0, at
	case known:
		return 0, at + back.Milliseconds()
	}
	return 0, 0
}

// coarse reports whether the end is reckoned in whole seconds, where it is set or where
// it is asked for.
func (l *lease) coarse() bool {
	return l.until != nil && l.until.now != nil && l.until.now.whole || l.since.now != nil && l.since.now.whole
}

// back returns how long ago a holder must have been heard of for another to take
// the lease.
func (l *lease) back(from binding) (time.Duration, bool) {
	if l.since.now != nil {
		d, ok := l.since.now.length(from)
		return -d, ok && d < 0
	}
	at, ok := l.since.moment(from).unix()
	set, known := l.until.moment(from).unix()
	return time.Duration(set-at) * time.Millisecond, ok && known && set > at
}

// told takes what the row that a statement returned says of a lock: which one it
// is, who has it, and its fence.
func (l *held) told(hash *lock.Hasher, row []lock.Cell, rows, returned int64) {
	op := l.op
	if rows > 1 && op.Kind == lock.Acquire && l.lease != nil {
		op.Key = "lease:" + strings.TrimSuffix(strings.TrimPrefix(l.class, "lease:"), ":*") + ":" + unresolved
	}
	if returned != 1 || len(row) == 0 {
		return
	}
	if id := cellOf(row, "id"); id.Known() && strings.HasSuffix(op.Key, ":"+unresolved) && l.class != "advisory" {
		op.Key = l.class + ":" + cellsKey(hash, []lock.Cell{{Column: "id", Value: id}})
	}
	if l.lease != nil && op.Outcome == lock.Granted {
		l.granted(row)
	}
}

func (l *held) granted(row []lock.Cell) {
	op, by := l.op, l.lease
	if e := by.echo; e != nil {
		if v := cellOf(row, e.column); v.Known() && !v.Same(l.sent) {
			op.Outcome = lock.Refused
			return
		}
	} else if v := cellOf(row, by.owner); v.Known() && op.Token.Known() && !v.Same(op.Token) {
		op.Outcome = lock.Refused
		return
	}
	if v := cellOf(row, by.fence); v.IsInt {
		op.Fence, op.HasFence, op.FenceKey = v.Int, true, strings.TrimPrefix(l.class, "lease:")+"."+by.fence
		if !op.Token.Known() && !by.version {
			op.Token = v
		}
	}
	if by.until != nil && !op.Token.Known() && !by.version {
		op.Token = cellOf(row, by.until.column)
	}
}

func cellOf(row []lock.Cell, column string) lock.Value {
	for _, c := range row {
		if c.Column == column && column != "" {
			return c.Value
		}
	}
	return lock.Value{}
}
