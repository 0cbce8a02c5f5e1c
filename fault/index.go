package fault

import "github.com/lockfaultd/lockfaultd/lock"

// anchors tells quickly whether any armed rule may be about an event, so that a
// hundred rules cost what one does wherever none of them is. It is not changed
// once the plan has it: another takes its place.
type anchors struct {
	epoch uint64
	verbs map[verb]*names
}

// shape is what of an op and a phase decides which events it is.
type shape struct {
	phase Phase
	proto lock.Protocol
	kind  lock.Kind
	verb  string
	nx    bool
}

// names are the globs of the rules about one verb.
type names struct {
	every bool      // one of them takes any name
	first [256]bool // bytes that a name which matches may begin with
	globs []string
}

// anchor has everybody ask about those rules that are armed now.
func (p *Plan) anchor() {
	a := &anchors{verbs: map[verb]*names{}}
	if last := p.anchors.Load(); last != nil {
		a.epoch = last.epoch + 1
	}
	for _, r := range p.rules {
		if r.on {
			a.add(r.Rule)
		}
	}
	p.lists = map[shape][]*armed{}
	p.anchors.Store(a)
}

// Epoch is another number whenever Wants, KeysOf and CouldTable may say other
// things than before. It is safe for concurrent use.
func (p *Plan) Epoch() uint64 { return p.anchors.Load().epoch }

func (a *anchors) add(r Rule) {
	v := verb{r.Proto, r.Event}
	n := a.verbs[v]
	if n == nil {
		n = &names{}
		a.verbs[v] = n
	}
	n.add(r.Glob)
}

func (n *names) add(glob string) {
	width, b := unit(glob)
	switch {
	case width == 0:
		n.every = true
	case b == anything:
		for i := range n.first {
			n.first[i] = true
		}
	default:
		n.first[b] = true
	}
	n.globs = append(n.globs, glob)
}

func (n *names) match(name []byte) bool {
	if n.every || len(name) == 0 {
		return true
	}
	if !n.first[name[0]] {
		return false
	}
	for _, g := range n.globs {
		if globMatch(g, name) {
			return true
		}
	}
	return false
}

// about returns the armed rules whose event the op may be, in their order.
func (p *Plan) about(phase Phase, op *lock.Op) []*armed {
	s := shape{phase, op.Proto, op.Kind, op.Verb, op.NX}
	list, known := p.lists[s]
	if known {
		return list
	}
	for _, r := range p.rules {
		if r.on && r.concerns(s) {
			list = append(list, r)
		}
	}
	p.lists[s] = list
	return list
}

// concerns reports whether an op of the shape may be the rule's event.
func (r *Rule) concerns(s shape) bool {
	if r.side() != s.phase || r.Event == tick || r.Proto != "" && r.Proto != s.proto {
		return false
	}
	switch r.Event {
	case "acquire":
		return s.kind == lock.Acquire || s.kind == lock.Store
	case "refused":
		return s.kind == lock.Acquire
	case "SETNX":
		return s.verb == "SETNX" || s.verb == "SET" && s.nx
	}
	return r.Event == string(s.kind) || r.Event == s.verb && !beside(s.proto, s.kind)
}

// KeysOf returns what reports whether an armed rule about this Redis verb may
// match a key, whichever are armed by then. Both are safe for concurrent use.
func (p *Plan) KeysOf(name string) func(key []byte) bool {
	v := verb{lock.Redis, name}
	return func(key []byte) bool {
		n := p.anchors.Load().verbs[v]
		return n != nil && n.match(key)
	}
}

// CouldTable reports whether an armed rule about this Postgres verb may match a
// table, named as in a statement. It is safe for concurrent use.
func (p *Plan) CouldTable(name, table string) bool {
	n := p.anchors.Load().verbs[verb{lock.Postgres, name}]
	if n == nil {
		return false
	}
	for _, g := range n.globs {
		if (&Rule{Glob: g}).matchesTable(table) {
			return true
		}
	}
	return false
}
