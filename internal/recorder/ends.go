package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// An End is how a peer ended what it sends.
type End string

// The ends that a recorder can tell apart.
const (
	Unheard End = ""    // the recorder ended the connection before the peer did
	FIN     End = "FIN" // an orderly end
	RST     End = "RST" // an abort
)

// A Peer is one of the two that a recorder is between.
type Peer struct {
	End  End  // what was heard first
	Gone bool // a write to it failed: it had closed or aborted, whatever was heard
}

func endOf(err error) End {
	switch {
	case err == io.EOF:
		return FIN
	case errors.Is(err, syscall.ECONNRESET):
		return RST
	}
	return Unheard
}

func (p Peer) aborted() bool { return p.End == RST || p.Gone }

// A fate is what became of an end on its way.
type fate int

const (
	kept    fate = iota
	racy         // timing decides what arrives
	changed      // it arrived as another one
)

// A way is one direction of a connection: from whom an end came, to whom it
// went, and whether bytes of the other direction were lost.
type way struct {
	name         string
	sent         Peer // as heard from its sender
	arrived      Peer // as heard from the proxy
	receiver     Peer // to whom it is passed on
	counterBytes bool // what was sent against it did not all arrive
}

func ways(o, n *Conn) [2]way {
	return [2]way{
		{"the client", o.Client, n.Client, n.Upstream, !o.ToClient.equal(&n.ToClient)},
		{"the server", n.Upstream, o.Upstream, o.Client, !o.ToUpstream.equal(&n.ToUpstream)},
	}
}

// fate compares an end at its sender with what arrived.
func (w way) fate() fate {
	switch {
	case w.sent.End == w.arrived.End:
		return kept
	case w.arrived.End == Unheard:
		return racy // its receiver went first
	case w.sent.End == Unheard && (w.sent.Gone || w.receiver.aborted()):
		return racy // the receiver's abort met what the proxy made of it
	case w.sent.End == FIN && (w.sent.Gone || w.receiver.aborted()):
		return racy // an abort came behind it, or towards it
	case w.sent.End == RST && (w.counterBytes || w.receiver.aborted()):
		return racy // a write of the proxy's may have met the abort, and its read an end
	case w.sent.End == RST && w.arrived.Gone:
		return racy // so may a write of the recorder's
	}
	return changed
}

// endsOf is the worst fate of the two ends of a connection.
func endsOf(o, n *Conn) fate {
	w := ways(o, n)
	return max(w[0].fate(), w[1].fate())
}

func endDifferences(o, n *Conn) []string {
	var out []string
	for _, w := range ways(o, n) {
		if w.fate() == changed {
			out = append(out, fmt.Sprintf("%s of %s arrived as %s: %s", cmp.Or(w.sent.End, "no end"), w.name, w.arrived.End, o.describe()))
		}
	}
	return out
}

// pair matches connections of equal bytes, so that as few as can be have an
// end that changed; result[i] is the partner of outer[i], nil for none.
func pair(outer, inner []*Conn) []*Conn {
	p := pairing{outer: outer, inner: inner, of: make([]int, len(inner))}
	for j := range p.of {
		p.of[j] = -1
	}
	tried := make([]bool, len(inner))
	for i := range outer {
		if p.place(i, tried) {
			clear(tried) // what led nowhere may lead somewhere now
		}
	}
	out := make([]*Conn, len(outer))
	var free []*Conn
	for j, i := range p.of {
		if i >= 0 {
			out[i] = inner[j]
		} else {
			free = append(free, inner[j])
		}
	}
	for i := range out {
		if out[i] == nil && len(free) > 0 {
			out[i], free = free[0], free[1:]
		}
	}
	return out
}

type pairing struct {
	outer, inner []*Conn
	of           []int // by inner: its outer one
}

// place finds a partner for an outer connection: a free one, or else one that has
// a partner already which can take another.
func (p *pairing) place(i int, tried []bool) bool {
	for j, n := range p.inner {
		if p.of[j] < 0 && endsOf(p.outer[i], n) != changed {
			p.of[j] = i
			return true
		}
	}
	for j, n := range p.inner {
		if tried[j] || p.of[j] < 0 || endsOf(p.outer[i], n) == changed {
			continue
		}
		tried[j] = true
		if p.place(p.of[j], tried) {
			p.of[j] = i
			return true
		}
	}
	return false
}
