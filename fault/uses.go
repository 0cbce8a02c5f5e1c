package fault

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Use is what became of one rule.
type Use struct {
	Rule    int    // its number: its place in the first list, from 0; rules that came later count on from there
	Text    string // as typed, flag included
	Name    string // its own; may be empty
	Called  string // Name, or what it is called without one; no other rule of the plan is
	Origin  Origin
	Armed   bool
	Until   lock.Instant // when it is disarmed; 0: at no time
	Left    int          // after how many more injections it is disarmed; 0: after no number of them
	Seen    int          // events that its anchor matched
	Could   int          // of those, at which it could have fired: the counted ones
	Fired   int          // of those, selected and decided
	Barred  []Count      // the others, by reason; most frequent first
	Nearest []Count      // when Seen is 0: events that came by, most like the rule's first; of an account only
}

// A Count is how often something happened.
type Count struct {
	What string // a reason, or an event such as UPDATE(counter)
	N    int    // 0: seen, and not counted
}

// Account is Uses with the events that came by, for rules that nothing matched. It looks at
// every event for every such rule, which takes its time: it is for the end.
func (p *Plan) Account() []Use {
	uses := p.Uses()
	for i, r := range p.rules {
		if r.seen == 0 && r.Event != tick {
			uses[i].Nearest = p.seen.nearest(r.Rule)
		}
	}
	return uses
}

// Uses tells how every rule stands, in the order of the list.
func (p *Plan) Uses() []Use {
	uses := make([]Use, 0, len(p.rules))
	for _, r := range p.rules {
		u := Use{
			Rule: r.index, Text: r.Text, Name: r.Name, Called: r.called, Origin: r.origin, Armed: r.on, Until: r.until, Left: r.left,
			Seen: r.seen, Could: r.could, Fired: r.fired,
		}
		for why, n := range r.barred {
			u.Barred = append(u.Barred, Count{why, n})
		}
		slices.SortFunc(u.Barred, frequent)
		uses = append(uses, u)
	}
	return uses
}

func frequent(a, b Count) int {
	return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.What, b.What))
}

// seen counts the distinct events that came by, the first mostSeen of each
// protocol.
type seen struct {
	counts map[event]int
	kept   map[lock.Protocol]int
}

type event struct {
	proto lock.Protocol
	kind  lock.Kind
	verb  string
	name  string
	term  bool // it certainly belongs to one
}

const mostSeen = 64

func newSeen() seen { return seen{map[event]int{}, map[lock.Protocol]int{}} }

func (s seen) note(op *lock.Op, n int) {
	e := event{op.Proto, op.Kind, called(op), family(op), op.Term.Sure()}
	if _, known := s.counts[e]; !known {
		if s.kept[op.Proto] >= mostSeen {
			return
		}
		s.kept[op.Proto]++
	}
	s.counts[e] += n
}

// called is how a rule names an event: what a statement does to a lock by its class, since
// the verb names the statement itself.
func called(op *lock.Op) string {
	if beside(op.Proto, op.Kind) {
		return string(op.Kind)
	}
	return op.Verb
}

// family is the name of an event as a rule may have it, which is to match in the next run
// too: a row's hash has the key of this one in it.
func family(op *lock.Op) string {
	name := label(op)
	last := strings.LastIndexByte(name, ':')
	if op.Proto == lock.Postgres && last >= 0 && (strings.HasPrefix(op.Key, "lease:") || strings.HasPrefix(op.Key, "row:")) {
		return name[:last+1] + "*"
	}
	return name
}

// Glimpse notes an event that no rule can match and that is not put to Decide.
// It is kept for the account of the rules that never matched, and not counted.
func (p *Plan) Glimpse(op *lock.Op) { p.seen.note(op, 0) }

func (e event) String() string {
	s := e.verb
	if e.name != "" {
		s += "(" + e.name + ")"
	}
	if !e.term && (e.kind == lock.Read || e.kind == lock.Write) {
		s += " outside a section"
	}
	return s
}

// nearest lists a few events of the rule's protocol, most like its own first.
func (s seen) nearest(r Rule) []Count {
	const most = 5
	var events []event
	for e := range s.counts {
		if r.Proto == "" || e.proto == r.Proto {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.unlike(r), b.unlike(r)), cmp.Compare(s.counts[b], s.counts[a]),
			strings.Compare(a.String(), b.String()))
	})
	var near []Count
	for _, e := range events[:min(len(events), most)] {
		near = append(near, Count{e.String(), s.counts[e]})
	}
	return near
}

// unlike is how far an event is from the one that a rule names.
func (e event) unlike(r Rule) int {
	d := nearest.Distance(r.Event, e.verb)
	if string(e.kind) == r.Event || r.Event == "refused" && e.kind == lock.Acquire {
		d = 0
	}
	if r.Glob != "" {
		d += nearest.Distance(r.Glob, e.name)
	}
	return d
}
