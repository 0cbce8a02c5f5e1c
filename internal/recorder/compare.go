package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Report says how the connections of two recorders compare.
type Report struct {
	Conns     int   // of the outer recorder
	Equal     int   // the same bytes in both directions
	Cut       int   // broken, and equal as far as both recorders heard
	Silent    int   // not at the inner recorder: a client that came and went without a word
	Racy      int   // of those at both: an end arrived as another, or not, and timing may have decided it
	Up, Down  int64 // bytes to the upstream and to the client, at the outer recorder
	Different []string
}

// Compare matches the connections of the recorder on the clients' side with
// those of the one on the server's side, by content; of several with the same
// content, by their ends.
func Compare(outer, inner []*Conn) Report {
	r := Report{Conns: len(outer)}
	for _, c := range outer {
		r.Up += c.ToUpstream.Bytes
		r.Down += c.ToClient.Bytes
	}
	outer, inner = r.pairEqual(outer, inner, func(c *Conn) string {
		return fmt.Sprint(c.key(), c.Client.End, c.Upstream.End)
	})
	outer, inner = r.pairEqual(outer, inner, (*Conn).key)
	r.Equal = r.Conns - len(outer)
	slices.SortStableFunc(outer, func(a, b *Conn) int { return cmp.Compare(b.bytes(), a.bytes()) })
	for _, o := range outer {
		i := closest(o, inner)
		if i < 0 {
			if o.bytes() == 0 {
				r.Silent++
				continue
			}
			r.Different = append(r.Different, "only at the client's side: "+o.describe())
			continue
		}
		n := inner[i]
		inner[i] = inner[len(inner)-1]
		inner = inner[:len(inner)-1]
		r.ends(o, n)
		if cut(o, n) {
			r.Cut++
			continue
		}
		r.Different = append(r.Different, differences(o, n)...)
	}
	for _, n := range inner {
		r.Different = append(r.Different, "only at the server's side: "+n.describe())
	}
	return r
}

// pairEqual takes out the connections whose keys are equal, looks at their ends,
// and returns the others.
func (r *Report) pairEqual(outer, inner []*Conn, key func(*Conn) string) (restOuter, restInner []*Conn) {
	same := map[string][]*Conn{}
	for _, n := range inner {
		same[key(n)] = append(same[key(n)], n)
	}
	asked := map[string][]*Conn{}
	for _, o := range outer {
		asked[key(o)] = append(asked[key(o)], o)
	}
	taken := map[*Conn]bool{}
	for k, os := range asked {
		for i, n := range pair(os, same[k]) {
			if n != nil {
				taken[os[i]], taken[n] = true, true
				r.ends(os[i], n)
			}
		}
	}
	isTaken := func(c *Conn) bool { return taken[c] }
	return slices.DeleteFunc(slices.Clone(outer), isTaken), slices.DeleteFunc(slices.Clone(inner), isTaken)
}

// ends takes in how the ends of one connection compare.
func (r *Report) ends(o, n *Conn) {
	if endsOf(o, n) == racy {
		r.Racy++
	}
	r.Different = append(r.Different, endDifferences(o, n)...)
}

func (c *Conn) key() string { return c.ToUpstream.key() + c.ToClient.key() }

func (c *Conn) bytes() int64 { return c.ToUpstream.Bytes + c.ToClient.Bytes }

func (c *Conn) describe() string {
	s := fmt.Sprintf("a connection with %d bytes to the upstream and %d back, which began %q", c.ToUpstream.Bytes, c.ToClient.Bytes, c.ToUpstream.head[:min(80, len(c.ToUpstream.head))])
	if c.Broken != "" {
		s += " and broke (" + c.Broken + ")"
	}
	return s
}

// closest returns which connection has the longest equal start in both
// directions; of several the one that is nearest in length.
func closest(o *Conn, inner []*Conn) int {
	best, score, gap := -1, int64(-1), int64(0)
	for i, n := range inner {
		c := o.ToUpstream.common(&n.ToUpstream) + o.ToClient.common(&n.ToClient)
		g := distance(o.ToUpstream.Bytes, n.ToUpstream.Bytes) + distance(o.ToClient.Bytes, n.ToClient.Bytes)
		if c > score || c == score && g < gap {
			best, score, gap = i, c, g
		}
	}
	return best
}

func distance(a, b int64) int64 { return max(a, b) - min(a, b) }

// cut reports whether two sides of one connection differ only by what was lost
// when it broke: the end of a stream, on the side to which it flowed. A client
// that is still there has heard all that the server said.
func cut(o, n *Conn) bool {
	if o.Broken == "" && n.Broken == "" || !n.ToUpstream.startOf(&o.ToUpstream) {
		return false
	}
	if gone := strings.Contains(o.Broken, " client: ") || o.Broken == stopped; !gone {
		return o.ToClient.key() == n.ToClient.key()
	}
	return o.ToClient.startOf(&n.ToClient)
}

func differences(o, n *Conn) []string {
	var out []string
	if o.ToUpstream.key() != n.ToUpstream.key() {
		out = append(out, difference("to the upstream", &o.ToUpstream, &n.ToUpstream, o, n))
	}
	if o.ToClient.key() != n.ToClient.key() {
		out = append(out, difference("to the client", &o.ToClient, &n.ToClient, o, n))
	}
	return out
}

func difference(direction string, o, n *Stream, oc, nc *Conn) string {
	at := o.common(n)
	where := fmt.Sprintf("from byte %d on", at)
	if at >= blockSize {
		where = fmt.Sprintf("from a byte behind %d on, at most %d", at, at+blockSize)
	}
	return fmt.Sprintf("%s, %s:\n\tclient's side %s%s\n\tserver's side %s%s",
		direction, where, o.show(at), ending(oc), n.show(at), ending(nc))
}

func ending(c *Conn) string {
	if c.Broken == "" {
		return ""
	}
	return " (" + c.Broken + ")"
}
