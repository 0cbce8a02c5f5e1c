package fault

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Use is what became of one rule.
type Use struct {
	Rule    int    // place in the list, from 0
	Text    string // as typed, flag included
	Name    string
	Seen    int     // events that its anchor matched
	Could   int     // of those, at which it could have fired: the counted ones
	Fired   int     // of those, selected and decided
	Barred  []Count // the others, by reason; most frequent first
	Nearest []Count // when Seen is 0: events that came by, most like the rule's first
}

// A Count is how often something happened.
type Count struct {
	What string // a reason, or an event such as UPDATE(counter)
	N    int
}

// Uses returns a fresh account of every rule, in the order of the list.
func (p *Plan) Uses() []Use {
	uses := make([]Use, 0, len(p.rules))
	for _, r := range p.rules {
		u := Use{Rule: r.index, Text: r.Text, Name: r.Name, Seen: r.seen, Could: r.could, Fired: r.fired}
		for why, n := range r.barred {
			u.Barred = append(u.Barred, Count{why, n})
		}
		slices.SortFunc(u.Barred, frequent)
		if r.seen == 0 && r.Event != tick {
			u.Nearest = p.seen.nearest(r.Rule)
		}
		uses = append(uses, u)
	}
	return uses
}

func frequent(a, b Count) int {
	return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.What, b.What))
}

// seen counts the distinct events that came by. The first mostSeen of each
// protocol are kept.
type seen map[event]int

type event struct {
	proto   lock.Protocol
	verb    string
	name    string
	outside bool // a read or write that belongs to no term for sure
}

const mostSeen = 64

func (s seen) note(op *lock.Op) {
	e := event{proto: op.Proto, verb: op.Verb, name: label(op)}
	e.outside = (op.Kind == lock.Read || op.Kind == lock.Write) && !op.Term.Sure()
	if _, ok := s[e]; ok || s.room(op.Proto) {
		s[e]++
	}
}

func (s seen) room(proto lock.Protocol) bool {
	n := 0
	for e := range s {
		if e.proto == proto {
			n++
		}
	}
	return n < mostSeen
}

func (e event) String() string {
	s := e.verb
	if e.name != "" {
		s += "(" + e.name + ")"
	}
	if e.outside {
		s += " outside a section"
	}
	return s
}

// nearest lists a few events of the rule's protocol, most like its own first.
func (s seen) nearest(r Rule) []Count {
	const most = 5
	var all []Count
	for e, n := range s {
		if r.Proto == "" || e.proto == r.Proto {
			all = append(all, Count{e.String(), n})
		}
	}
	own := strings.ToLower(r.anchor())
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(
			cmp.Compare(distance(own, strings.ToLower(a.What)), distance(own, strings.ToLower(b.What))),
			frequent(a, b))
	})
	return all[:min(len(all), most)]
}
