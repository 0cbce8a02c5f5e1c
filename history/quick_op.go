package history

import (
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// op reads one field of an op, whose places are those of opLine.
func (q *quick) op(op *lock.Op, key []byte) {
	switch string(key) {
	case "seq":
		q.at(1)
		op.Seq = q.count()
	case "reply_seq":
		q.at(2)
		op.ReplySeq = q.count()
	case "session":
		q.at(3)
		op.Session = q.count()
	case "actor":
		q.at(4)
		op.Actor = q.name()
	case "upstream":
		q.at(5)
		op.Upstream = q.name()
	case "proto":
		q.at(6)
		op.Proto = lock.Protocol(q.name())
	case "kind":
		q.at(7)
		op.Kind = lock.Kind(q.name())
	case "verb":
		q.at(8)
		op.Verb = q.name()
	case "outcome":
		q.at(50)
		op.Outcome = lock.Outcome(q.name())
	case "a":
		q.at(51)
		op.A = q.instant()
	case "f":
		q.at(52)
		op.F = q.instant()
	case "r":
		q.at(53)
		op.R = q.instant()
	case "d":
		q.at(54)
		op.D = q.instant()
	case "z":
		q.at(55)
		op.Z = q.instant()
	case "term":
		q.at(56)
		q.object(func(key []byte) { q.term(&op.Term, key) })
	default:
		if !q.lock(op, key) && !q.statementOf(op, key) {
			q.bad = true
		}
	}
}

// lock reads a field of what is done to a lock.
func (q *quick) lock(op *lock.Op, key []byte) bool {
	switch string(key) {
	case "db":
		q.at(10)
		op.DB = q.size()
	case "key":
		q.at(11)
		op.Key = q.name()
	case "nx":
		q.at(12)
		op.NX = q.yes()
	case "guarded":
		q.at(13)
		op.Guarded = q.yes()
	case "guessed":
		q.at(14)
		op.Guessed = q.yes()
	case "key_hex":
		q.at(15)
		op.Key = q.hex()
	case "token":
		q.at(16)
		op.Token.Hash = string(q.text())
	case "token_number":
		q.at(17)
		op.Token.IsInt = q.yes()
	case "ttl_ns":
		q.at(18)
		op.TTL = time.Duration(q.integer())
	case "until_ms":
		q.at(19)
		op.Until = q.integer()
	case "evidence":
		q.at(20)
		op.Evidence = lock.Evidence(q.name())
	case "shared":
		q.at(21)
		op.Shared = q.yes()
	case "member":
		q.at(22)
		op.Member = q.yes()
	case "depth":
		q.at(23)
		op.Depth = q.size()
	case "all":
		q.at(24)
		op.All = q.yes()
	case "span":
		q.at(25)
		op.Span = lock.Span(q.name())
	case "fence_key":
		q.at(26)
		op.FenceKey = q.name()
	case "fence":
		q.at(27)
		op.Fence, op.HasFence = q.integer(), true
	case "racy":
		q.at(28)
		op.Racy = q.yes()
	case "coarse":
		q.at(29)
		op.Coarse = q.yes()
	default:
		return false
	}
	return true
}

// statementOf reads a field of a statement and of its transaction.
func (q *quick) statementOf(op *lock.Op, key []byte) bool {
	switch string(key) {
	case "sql":
		q.at(30)
		op.SQL = &lock.Statement{}
		q.object(func(key []byte) { q.statement(op.SQL, key) })
	case "path":
		q.at(31)
		op.Path = q.name()
	case "tx":
		q.at(32)
		op.Tx = q.count()
	case "snapshot":
		q.at(33)
		op.Snapshot = q.yes()
	case "implicit":
		q.at(34)
		op.Implicit = q.yes()
	case "savepoint":
		q.at(35)
		op.Savepoint = q.yes()
	case "since":
		q.at(36)
		op.Since = q.count()
	case "tables":
		q.at(37)
		op.Tables = q.names()
	case "rows":
		q.at(38)
		op.Rows = q.integer()
	case "row":
		q.at(39)
		q.list(func() { op.Row = append(op.Row, q.cell()) })
	case "err":
		q.at(40)
		op.Err = q.name()
	default:
		return false
	}
	return true
}

func (q *quick) statement(s *lock.Statement, key []byte) {
	switch string(key) {
	case "table":
		q.at(1)
		s.Table = q.name()
	case "also":
		q.at(2)
		s.Also = q.names()
	case "cascade":
		q.at(3)
		s.Cascade = q.yes()
	case "set":
		q.at(4)
		q.list(func() { s.Set = append(s.Set, q.assign()) })
	case "where":
		q.at(5)
		q.list(func() { s.Where = append(s.Where, q.cond()) })
	case "columns":
		q.at(6)
		s.Columns = q.names()
	case "returning":
		q.at(7)
		s.Returning = q.yes()
	case "for_update":
		q.at(8)
		s.ForUpdate = q.yes()
	case "upsert":
		q.at(9)
		s.Upsert = q.yes()
	case "trace":
		q.at(10)
		s.Trace = string(q.text())
	case "opaque":
		q.at(11)
		s.Opaque = q.yes()
	case "aside":
		q.at(12)
		s.Aside = q.names()
	case "lease":
		q.at(13)
		s.Lease = q.yes()
	default:
		q.bad = true
	}
}

func (q *quick) assign() (a lock.Assign) {
	q.object(func(key []byte) {
		switch string(key) {
		case "column":
			q.at(1)
			a.Column = q.name()
		case "value":
			q.at(2)
			a.Value = q.value()
		case "delta":
			q.at(3)
			a.Delta, a.HasDelta = q.integer(), true
		default:
			q.bad = true
		}
	})
	return a
}

func (q *quick) cond() (c lock.Cond) {
	q.object(func(key []byte) {
		switch string(key) {
		case "column":
			q.at(1)
			c.Column = q.name()
		case "op":
			q.at(2)
			c.Op = q.name()
		case "value":
			q.at(3)
			c.Value = q.value()
		default:
			q.bad = true
		}
	})
	return c
}

func (q *quick) cell() (c lock.Cell) {
	q.object(func(key []byte) {
		switch string(key) {
		case "column":
			q.at(1)
			c.Column = q.name()
		case "value":
			q.at(2)
			c.Value = q.value()
		default:
			q.bad = true
		}
	})
	return c
}

func (q *quick) value() (v lock.Value) {
	q.object(func(key []byte) {
		switch string(key) {
		case "h":
			q.at(1)
			v.Hash = string(q.text())
		case "i":
			q.at(2)
			v.Int = q.integer()
		case "n":
			q.at(3)
			v.IsInt = q.yes()
		case "s":
			q.at(4)
			v.Rel = q.integer()
		case "sn":
			q.at(5)
			v.IsRel = q.yes()
		default:
			q.bad = true
		}
	})
	return v
}

func (q *quick) term(t *lock.Attribution, key []byte) {
	switch string(key) {
	case "id":
		q.at(1)
		t.ID = lock.TermID(q.count())
	case "confidence":
		q.at(2)
		t.Confidence = q.fraction()
	case "also":
		q.at(3)
		q.list(func() { t.Also = append(t.Also, lock.TermID(q.count())) })
	case "within":
		q.at(4)
		q.list(func() { t.Within = append(t.Within, lock.TermID(q.count())) })
	default:
		q.bad = true
	}
}
