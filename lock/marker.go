package lock

import (
	"strconv"
	"strings"
	"time"
)

// markerAfter is how many terms of one shape end without anybody's having
// released or renewed one before they are taken for once-markers.
const markerAfter = 3

// Lifetimes beyond these are no leases: of a probe of what the server can do, and
// of something that is remembered for a day or more (an idempotency key).
const (
	probeTTL  = 5 * time.Millisecond
	markerTTL = 24 * time.Hour
)

// A groupState is what was seen of keys that differ only in the parts that
// look like identifiers: once-markers mostly have a key each.
type groupState struct {
	last     *Term
	lapses   int
	seen     bool // a holder released or renewed one
	isMarker bool

	shared    bool // someone held it beside others
	members   bool // a token is a member of the key
	many      bool // several members were there at once
	twice     bool // a holder had it twice
	queue     bool // what was asked for was any row that is free, and there was none
	handed    bool // a token was used by another process than its holder
	exclusive bool // it is created exclusively
	lone      int  // refusals while there was one member
}

// kept notes that a holder released or renewed a key: it is a lock.
func (g *groupState) kept() { g.seen, g.isMarker, g.lapses = true, false, 0 }

// Kept reports whether somebody is known to have released or renewed a lock of that
// shape: what is taken and always left to expire may be no lock at all.
func (l *Ledger) Kept(id LockID) bool {
	g := l.groups[l.names.of(id)]
	return g == nil || g.seen || l.decls.lock(id.Key)
}

// group returns the shape of a lock's key, with where it is.
func group(id LockID) string {
	return id.Upstream + "/" + strconv.Itoa(id.DB) + "/" + Shape(id.Key)
}

// groupNames are the groups of the keys that were asked for last.
type groupNames map[LockID]string

func (n groupNames) of(id LockID) string {
	name, known := n[id]
	if !known {
		if len(n) >= maxKeys {
			clear(n)
		}
		name = group(id)
		n[id] = name
	}
	return name
}

// Shape returns a key with a star for every run of letters and digits that has a
// digit in it. Keys need not be text: it goes by bytes.
func Shape(key string) string {
	var b strings.Builder
	from := 0
	word := func(to int) {
		w := key[from:to]
		if strings.ContainsAny(w, "0123456789") {
			w = "*"
		}
		b.WriteString(w)
	}
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		word(i)
		b.WriteByte(c)
		from = i + 1
	}
	word(len(key))
	return b.String()
}

func (l *Ledger) groupOf(id LockID) *groupState {
	name := l.names.of(id)
	g := l.groups[name]
	if g == nil {
		g = &groupState{}
		l.groups[name] = g
		l.groupLine = append(l.groupLine, name)
		if len(l.groupLine) > 2*maxKeys && !l.keepAll {
			for _, old := range l.groupLine[:maxKeys] {
				delete(l.groups, old)
			}
			l.groupLine = append([]string(nil), l.groupLine[maxKeys:]...)
		}
	}
	return g
}

// marks reports whether the term is of a once-marker, and counts how the last of
// its shape ended: keys that are taken and never released guard nothing.
func (l *Ledger) marks(k *keyState, t *Term) bool {
	g := k.group
	if t.Span != LeaseSpan || l.decls.lock(t.Lock.Key) {
		return false
	}
	if last := g.last; last != nil && !g.seen {
		gone := last.Lock == t.Lock || last.Dead(t.Grant.F) || last.Session == t.Session
		if last.Release == nil && gone && (last.Lock != t.Lock || !last.Token.Same(t.Token)) {
			g.lapses++
		}
	}
	g.last = t
	g.isMarker = g.isMarker || g.lapses >= markerAfter
	return g.isMarker || !g.seen && (t.TTL > 0 && t.TTL <= probeTTL || t.TTL >= markerTTL || t.setting())
}

// setting reports whether a script added a member of a key that is not made to expire, as
// many do that note a setting which nobody had made.
func (t *Term) setting() bool {
	return t.Member && t.TTL == 0 && t.Grant.Evidence != FromWire
}
