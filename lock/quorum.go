package lock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Quorum is the Upstream of a lock that several servers grant together, each its
// own key of the same name, or one server that grants several keys. Who holds the
// majority holds the lock: the grants of one token are one term.
const Quorum = "quorum"

// A Vote is what one server, or one key, granted of a quorum's term.
type Vote struct {
	Lock  LockID // the key there
	Grant *Op
	lease
}

// majority returns the instant up to which enough votes last; maybe more are there
// that last for ever. 0 if there are not enough.
func (t *Term) majority(maybe int, until func(v *Vote) Instant) Instant {
	if maybe >= t.Needed {
		return Never
	}
	if maybe+len(t.Votes) < t.Needed {
		return 0
	}
	ends := make([]Instant, 0, len(t.Votes))
	for _, v := range t.Votes {
		ends = append(ends, until(v))
	}
	slices.Sort(ends)
	return ends[len(ends)-(t.Needed-maybe)]
}

// servers are those of Redis.
type servers struct {
	names []string
	told  int
}

// Servers tells the ledger how many Redis servers the proxies stand before. A
// quorum is a majority of as many as were declared, or else of those, or of as many
// as it, or the survey that it learned from, has seen ops of.
func (l *Ledger) Servers(n int) { l.servers.told = max(l.servers.told, n) }

func (s *servers) meet(op *Op) {
	if op.Proto == Redis && len(s.names) < maxVotes && !slices.Contains(s.names, op.Upstream) {
		s.names = append(s.names, op.Upstream)
	}
}

func (s *servers) count() int { return max(s.told, len(s.names)) }

// How much is kept of quorums.
const (
	maxVotes   = 32   // of one term
	maxBallots = 4096 // acquisitions
)

// A ballot is an acquisition of a quorum's lock by one token.
type ballot struct {
	id      ballotID
	votes   []*Vote
	asked   []LockID // servers that have not answered
	against []LockID
	term    *Term
}

type ballotID struct {
	lock  LockID
	token string
}

type ballots struct {
	all  map[ballotID]*ballot
	line []*ballot // oldest first
}

func (b *ballots) of(id LockID, token Value) *ballot {
	name := ballotID{id, tokenText(token)}
	found := b.all[name]
	if found == nil {
		if b.all == nil {
			b.all = map[ballotID]*ballot{}
		}
		found = &ballot{id: name}
		b.all[name] = found
		if b.line = append(b.line, found); len(b.line) > maxBallots {
			b.drop(b.line[0])
			b.line = b.line[1:]
		}
	}
	return found
}

func (b *ballots) drop(old *ballot) {
	if b.all[old.id] == old {
		delete(b.all, old.id)
	}
}

// quorumOf returns the lock that an op's key is a vote for, and how many there are;
// 0 if it is a lock by itself.
func (l *Ledger) quorumOf(op *Op) (LockID, int) {
	if op.Proto != Redis || op.Kind == Fence {
		return LockID{}, 0
	}
	id := LockID{Quorum, op.DB, op.Key}
	declared := l.decls.quorum(op.Key)
	if n := l.servers.count(); n > 1 && (declared > 1 || len(l.quorums) > 0 && l.quorums[shapeOf(id)]) {
		return id, cmp.Or(declared, n)
	}
	for name := range familiesOf(op) {
		if declared > 1 {
			return name, declared
		}
		if n := l.families[shapeOf(name)]; n > 1 {
			return name, n
		}
	}
	return LockID{}, 0
}

// shapeOf returns a lock's key as others of its kind have it too.
func shapeOf(id LockID) LockID { return LockID{id.Upstream, id.DB, group(id)} }

// familiesOf goes through the names that a key of a quorum on one server would have
// in common with the others: a number between two colons, which counts from 0, is
// left out.
func familiesOf(op *Op) func(yield func(LockID, int) bool) {
	return func(yield func(LockID, int) bool) {
		from := strings.IndexByte(op.Key, ':') + 1
		for from > 0 {
			size := strings.IndexByte(op.Key[from:], ':')
			if size < 0 {
				return
			}
			part := op.Key[from : from+size]
			if n, err := strconv.Atoi(part); err == nil && n >= 0 && n < maxVotes && strconv.Itoa(n) == part {
				if !yield(LockID{Quorum, op.DB, op.Key[:from] + "*" + op.Key[from+size:]}, n) {
					return
				}
			}
			from += size + 1
		}
	}
}

// LockOf returns the lock that an op speaks of: of a quorum's the common one.
func (l *Ledger) LockOf(op *Op) LockID {
	if id, n := l.quorumOf(op); n > 1 {
		return id
	}
	return IDOf(op)
}

// votes notes that a server was asked for a vote.
func (l *Ledger) votes(op *Op) {
	id, n := l.quorumOf(op)
	if n <= 1 || !op.Token.Known() {
		return
	}
	b := l.ballots.of(id, op.Token)
	if len(b.asked) < maxVotes {
		b.asked = append(b.asked, IDOf(op))
		b.settle()
	}
}

func (b *ballot) settle() {
	if b.term != nil {
		b.term.maybe = len(b.asked)
		b.term.settle()
	}
}

func (b *ballot) answered(node LockID) {
	if i := slices.Index(b.asked, node); i >= 0 {
		b.asked = slices.Delete(b.asked, i, i+1)
	}
}

// vote takes a grant for a vote, and reports whether it is one: the term is opened
// by the vote that makes a majority.
func (l *Ledger) vote(k *keyState, op *Op) bool {
	if op.Proto != Redis || op.Kind != Acquire && op.Kind != Store || !op.Token.Known() {
		return false
	}
	id, n := l.quorumOf(op)
	if n <= 1 {
		if id, n = l.discover(op); n <= 1 {
			return false
		}
	}
	b := l.ballots.of(id, op.Token)
	b.answered(k.id)
	b.lapse(op)
	b.votes = slices.DeleteFunc(b.votes, func(v *Vote) bool { return v.Lock == k.id })
	if len(b.votes) < maxVotes {
		b.votes = append(b.votes, &Vote{Lock: k.id, Grant: op, lease: leaseBy(op, op.TTL)})
	}
	if b.term == nil && len(b.votes) > n/2 {
		l.elect(id, b, op, n)
	}
	if t := b.term; t != nil {
		t.Votes = slices.Clone(b.votes)
		b.settle()
		op.Term = Attribution{ID: t.ID, Confidence: 1}
		l.voteOf(k, t)
	}
	return true
}

// lapse forgets the votes and refusals of an earlier acquisition with the same
// token.
func (b *ballot) lapse(op *Op) {
	if t := b.term; t != nil && (!t.Open() || t.Dead(op.F)) {
		b.term, b.votes, b.against = nil, nil, nil
	}
	b.votes = slices.DeleteFunc(b.votes, func(v *Vote) bool { return op.F > v.end(v.Grant).Latest })
}

// elect opens the term of a majority.
func (l *Ledger) elect(id LockID, b *ballot, op *Op, n int) {
	k := l.key(id)
	k.lock = true
	k.group.exclusive = true
	l.supersede(k, op)
	delete(l.actor(op.Actor).refused, id)
	t := l.newTerm(k, op)
	t.Votes, t.Needed, t.ballot, b.term = slices.Clone(b.votes), n/2+1, b, t
	t.maybe = len(b.asked)
	t.settle()
	l.index(k, t)
	for _, v := range t.Votes {
		l.voteOf(l.key(v.Lock), t)
	}
	l.opened(t)
}

// voteOf makes a quorum's term findable by a key that it has.
func (l *Ledger) voteOf(k *keyState, t *Term) {
	k.current = t
	text := tokenText(t.Token)
	if slices.Contains(k.byToken[text], t) {
		return
	}
	if k.byToken == nil {
		k.byToken = map[string][]*Term{}
	}
	k.byToken[text] = append(k.byToken[text], t)
}

// voteAgainst takes a refusal for a vote against an acquisition, and reports
// whether it is one: that fails once no majority can come of it.
func (l *Ledger) voteAgainst(op *Op) bool {
	id, n := l.quorumOf(op)
	if n <= 1 {
		return false
	}
	b := l.ballots.of(id, op.Token)
	b.answered(IDOf(op))
	b.settle()
	if !op.astray() && !slices.Contains(b.against, IDOf(op)) && len(b.against) < maxVotes {
		b.against = append(b.against, IDOf(op))
	}
	if b.term == nil && len(b.against) >= n-n/2 {
		l.actor(op.Actor).refuse(id, op, l.keepAll)
	}
	return true
}

// giveUp forgets what was voted for an acquisition that did not get its majority.
func (l *Ledger) giveUp(op *Op) {
	if id, n := l.quorumOf(op); n > 1 {
		if b := l.ballots.all[ballotID{id, tokenText(op.Token)}]; b != nil && b.term == nil {
			b.votes, b.against = nil, nil
		}
	}
}

// unvote notes that a release took one vote away, or what was there if it was not
// guarded.
func (l *Ledger) unvote(k *keyState, op *Op, own *Term) {
	t := own
	if !op.names() {
		t = k.current
	}
	if t == nil || t.Votes == nil {
		return
	}
	left := 0
	for _, v := range t.Votes {
		if v.Lock == k.id {
			v.known = Interval{min(v.known.Earliest, op.F), min(v.known.Latest, op.R)}
		}
		if v.known.Latest > op.R {
			left++
		}
	}
	t.settle()
	if left < t.Needed {
		t.lose(op)
	}
	if k.current == t {
		k.current = nil
	}
}

// window is how far apart the requests of one acquisition are on one server.
const window = Instant(1e9)

// discover finds that a grant is a vote of a quorum's lock: the same key was granted
// with the same token by another server, or those of a family by the same one. What
// was taken for a term was the first vote.
func (l *Ledger) discover(op *Op) (LockID, int) {
	if op.Token.IsInt || op.Token.Hash == "" {
		return LockID{}, 0
	}
	same := l.tokens[op.Token.Hash]
	if len(same) > maxVotes {
		return LockID{}, 0
	}
	for _, t := range same {
		if t.Lock.Key == op.Key && t.Lock.DB == op.DB && t.Lock.Upstream != op.Upstream && l.early(t, op) {
			id := LockID{Quorum, op.DB, op.Key}
			l.quorums.add(shapeOf(id))
			l.demote(id, t)
			return l.quorumOf(op)
		}
	}
	for name, i := range familiesOf(op) {
		members, zero := []*Term{}, i == 0
		top := i
		for _, t := range same {
			j, ok := memberIn(name, t.Lock)
			if !ok || !l.early(t, op) {
				members = nil
				break
			}
			members, zero, top = append(members, t), zero || j == 0, max(top, j)
		}
		if len(members) == 0 || !zero || top > len(members) {
			continue
		}
		l.grow(name, top)
		for _, t := range members {
			l.demote(name, t)
		}
		return l.quorumOf(op)
	}
	return LockID{}, 0
}

// grow notes that a family has keys up to that number.
func (l *Ledger) grow(name LockID, top int) {
	if len(l.families) < maxKeys {
		l.families[shapeOf(name)] = max(l.families[shapeOf(name)], familySize(top))
	}
}

// familySize returns how many keys there are where the highest number seen is top:
// an odd number, three at least.
func familySize(top int) int { return max((top+1)|1, 3) }

// early reports whether a term may be the first vote of an acquisition.
func (l *Ledger) early(t *Term, op *Op) bool {
	return t.Open() && t.Votes == nil && !t.Dead(op.F) && t.Span == LeaseSpan && !t.Member && t.Again == nil &&
		t.Grant.A <= op.A+window && op.A <= max(t.Grant.A, t.Grant.R)+window &&
		sameLife(t.Grant, op) && sameClient(t.Session, t.Actor, op)
}

// sameLife reports whether two acquires ask for the same lifetime: the votes of one
// acquisition do.
func sameLife(a, b *Op) bool {
	return a.Until == b.Until && (a.Until != 0 || a.TTL == b.TTL)
}

// demote makes a vote of what was taken for a term.
func (l *Ledger) demote(id LockID, t *Term) {
	l.end(t, t.Grant.R, Superseded)
	t.Marker = true
	remove(l.tokens, t.Token.Hash, t)
	b := l.ballots.of(id, t.Token)
	b.votes = append(b.votes, &Vote{Lock: t.Lock, Grant: t.Grant, lease: t.lease})
	if k := l.known(t.Lock); k != nil {
		remove(k.byToken, tokenText(t.Token), t)
		delete(l.actor(t.Actor).refused, t.Lock)
	}
}
