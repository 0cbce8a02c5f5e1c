package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Picture is what a verdict is about, for those who show it: who held the lock, until
// when, and what they did. It is drawn when the verdict is found, while the ops are in
// view, and only if that was asked for.
type Picture struct {
	Holdings []Holding // of the verdict's terms, in their order; of one that is alone, the next one's too
	Ops      []lock.Op // what the proof cites, and more of those terms, by Seq; Op.Term as the judge has it
	Left     int       // ops of those terms for which there was no room
}

// A Holding is one term as a picture shows it.
type Holding struct {
	ID       lock.TermID
	Lock     string
	Actor    string
	Session  uint64
	Grant    uint64       // Seq of what granted it
	Granted  lock.Instant // the server had answered so
	From     lock.Instant // that was delivered, or answered if nobody was there to take it
	LeaseEnd lock.Interval
	Leased   bool         // it had a lifetime: else LeaseEnd is nothing
	Asked    lock.Instant // its owner's first release request; 0: none
	End      lock.Instant // of its section; 0: it was open
	Fence    int64        // see HasFence
	HasFence bool
}

// Bounds of what is drawn: pictures of one code, level and class, and of one picture
// the ops that the proof cites, and more of each term.
const (
	mostPictures = 60
	mostCited    = 40
	mostPainted  = 24
)

// A gallery is the pictures so far; nil draws none.
type gallery struct {
	hung     map[string]int       // pictures by code, level and class
	seen     map[string]bool      // of those, the locks' shapes and tables that have one
	blamed   map[lock.TermID]bool // terms that harm is put down to
	sketches int                  // made for verdicts that may come later
}

func newGallery() *gallery {
	return &gallery{hung: map[string]int{}, seen: map[string]bool{}, blamed: map[lock.TermID]bool{}}
}

// Draw judges as [Stream] does, and gives verdicts a Picture: one of each code and level
// for the locks whose keys are alike, and of those the first sixty.
func Draw(src Source, more []lock.Declaration, amend func([]Invariant) []Invariant) (Result, error) {
	return stream{src: src, more: more, amend: amend, pictures: newGallery()}.judge()
}

// room reports whether a verdict is to have a picture, which it then counts as having.
// What only goes with harm by the same term has none of its own: that has one.
func (g *gallery) room(f *finding) bool {
	if len(f.Terms) > 0 && f.Class == Hazard && g.blamed[f.Terms[0]] {
		return false
	}
	if len(f.Terms) > 0 && f.Class == Harm && len(g.blamed) < mostFound {
		g.blamed[f.Terms[0]] = true
	}
	kind := f.Code + string(f.Level) + string(f.Class)
	same := kind + "\x00" + lock.Shape(f.Lock) + "\x00" + f.Table
	if f.Name == "" || f.into != nil || g.hung[kind] >= mostPictures || g.seen[same] {
		return false
	}
	g.hung[kind]++
	g.seen[same] = true
	return true
}

// draw gives a finding its picture, if there is to be one.
func (c *kase) draw(f *finding, cited []*lock.Op) {
	if c.pictures != nil && len(f.Terms) > 0 && c.pictures.room(f) {
		f.Picture = c.picture(f.Terms, cited)
	}
}

func (c *kase) picture(ids []lock.TermID, cited []*lock.Op) *Picture {
	terms := c.depicted(ids)
	p := &Picture{}
	for _, t := range terms {
		p.Holdings = append(p.Holdings, holdingOf(t))
	}
	p.paint(cited, mostCited)
	for _, t := range terms {
		p.paint(c.ofPicture(t), mostPainted)
	}
	slices.SortFunc(p.Ops, func(a, b lock.Op) int { return cmp.Compare(a.Seq, b.Seq) })
	return p
}

// depicted returns the terms of a picture. Who was granted the lock next is among them.
func (c *kase) depicted(ids []lock.TermID) (terms []*lock.Term) {
	for _, id := range ids {
		if t := cmp.Or(c.byID[id], c.ledger.Term(id)); t != nil {
			terms = append(terms, t)
		}
	}
	if len(terms) != 1 {
		return terms
	}
	t := terms[0]
	of := c.terms[t.Lock]
	at := slices.IndexFunc(of, func(n *lock.Term) bool { return n.ID > t.ID && n.Grant.F > t.Grant.F })
	if at >= 0 {
		terms = append(terms, of[at])
	}
	return terms
}

// ofPicture lists the ops of a term that a picture may show, what matters most first.
func (c *kase) ofPicture(t *lock.Term) []*lock.Op {
	ops := []*lock.Op{t.Grant, t.FenceOp, t.Release, t.Released, t.Lost, t.Gone}
	if d := c.ofTerm[t.ID]; d != nil {
		ops = append(ops, d.acts()...)
	}
	return append(ops, c.renewals()[t.ID]...)
}

// paint adds those ops that are not in the picture, as many as there is room for.
func (p *Picture) paint(ops []*lock.Op, room int) {
	for _, op := range ops {
		switch {
		case op == nil || slices.ContainsFunc(p.Ops, func(have lock.Op) bool { return have.Seq == op.Seq }):
		case room == 0:
			p.Left++
		default:
			p.Ops = append(p.Ops, *op)
			room--
		}
	}
}

func holdingOf(t *lock.Term) Holding {
	clock := t.Clock()
	end := lock.Interval{Earliest: min(clock.Earliest, t.LeaseEnd.Latest), Latest: t.LeaseEnd.Latest}
	return Holding{
		ID: t.ID, Lock: t.Lock.String(), Actor: t.Actor, Session: t.Session, Grant: t.Grant.Seq, Granted: t.Grant.R, From: cmp.Or(t.Grant.D, t.Grant.R),
		LeaseEnd: end, Leased: t.TTL > 0 || t.Lasts() > 0, Asked: t.ReleaseAt, End: t.End, Fence: t.Fence, HasFence: t.HasFence,
	}
}
