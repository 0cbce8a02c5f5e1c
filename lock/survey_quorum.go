package lock

import (
	"slices"
	"time"
)

// A surveyedToken is where a token was used to acquire.
type surveyedToken struct {
	uses []tokenUse
}

type tokenUse struct {
	id      LockID
	at      Instant
	actor   string
	granted bool
	ttl     time.Duration
	until   int64
}

// A surveyedFamily is what was seen of keys that differ in a number only, and that
// a token was granted together.
type surveyedFamily struct {
	votes int
	top   int
	bad   bool // a token of it was used otherwise
}

// voted looks for grants that are votes of one acquisition: see [Ledger.discover].
func (s *Survey) voted(op *Op) {
	if op.Proto != Redis || op.Token.IsInt || op.Token.Hash == "" || op.Member ||
		op.Outcome != Granted && op.Outcome != Refused && op.Outcome != Done {
		return
	}
	t := s.tokens.get(op.Token.Hash, func() *surveyedToken { return &surveyedToken{} })
	own := tokenUse{IDOf(op), op.A, op.Actor, op.Outcome == Granted || op.Kind == Store && op.Outcome == Done, op.TTL, op.Until}
	for _, o := range t.uses {
		if o.id.Key == own.id.Key && o.id.DB == own.id.DB && o.id.Upstream != own.id.Upstream && o.granted && own.granted && near(o, own) {
			s.quorums[shapeOf(LockID{Quorum, own.id.DB, own.id.Key})] = true
		}
	}
	s.related(op, t, own)
	if len(t.uses) < maxVotes {
		t.uses = append(t.uses, own)
	}
}

func near(a, b tokenUse) bool {
	apart := a.at - b.at
	if a.until != b.until || a.until == 0 && a.ttl != b.ttl {
		return false
	}
	return max(apart, -apart) <= window && (a.actor == b.actor || AddressOnly(a.actor) || AddressOnly(b.actor))
}

func (s *Survey) related(op *Op, t *surveyedToken, own tokenUse) {
	for name, i := range familiesOf(op) {
		votes, top, zero, other := 0, i, i == 0, false
		if own.granted {
			votes++
		}
		seen := []int{i}
		for _, o := range t.uses {
			j, ok := memberIn(name, o.id)
			if !ok || !near(o, own) || slices.Contains(seen, j) {
				other = true
				continue
			}
			seen = append(seen, j)
			if o.granted {
				votes++
			}
			zero, top = zero || j == 0, max(top, j)
		}
		f := s.families[shapeOf(name)]
		if f == nil {
			if len(seen) < 2 || len(s.families) > maxKeys {
				continue
			}
			f = &surveyedFamily{}
			s.families[shapeOf(name)] = f
		}
		f.bad = f.bad || other
		if zero && top < len(seen) {
			f.votes, f.top = max(f.votes, votes), max(f.top, top)
		}
	}
}

// memberIn reports whether a key is of a family, and which.
func memberIn(name, id LockID) (int, bool) {
	for other, i := range familiesOf(&Op{DB: id.DB, Key: id.Key}) {
		if other == name {
			return i, true
		}
	}
	return 0, false
}
