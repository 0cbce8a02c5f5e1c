package resp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// maxDepth is how deep replies may nest; real ones stay below ten.
const maxDepth = 128

type replyState uint8

const (
	atType replyState = iota
	inText
	inSize
	inBulk
)

// A level is one aggregate being read.
type level struct {
	left  int64 // values that are to come
	aside bool  // a push or an attribute: no value of the level below
}

// replies frames what the server sends. Its user says at each opened event
// what is of interest in the reply that begins.
type replies struct {
	pos, start int64
	state      replyState
	kind       byte // of the value at hand
	num        number
	left       int64 // bytes of a bulk that are to come, with the two that close it
	levels     [maxDepth]level
	depth      int
	pending    bool // an attribute was read: the reply that it belongs to began with it
	aside      bool // the frame at hand is a push
	streams    bool

	want  bool  // an answer is wanted
	hold  bool  // the reply is withheld until it is whole
	base  int   // depth of the answers: 1 for the elements of EXEC's array
	total int64 // elements of the reply, if it is an aggregate; else -1

	answer answer
	text   [maxText]byte
	n      int
	fault  string
}

// next scans b up to the next event.
func (r *replies) next(b []byte) (int, event) {
	n := 0
	for n < len(b) {
		k, ev := r.step(b[n:])
		n += k
		r.pos += int64(k)
		if ev != more {
			return n, ev
		}
	}
	return n, more
}

func (r *replies) step(b []byte) (int, event) {
	switch r.state {
	case atType:
		return r.first(b[0])
	case inText:
		return r.line(b)
	case inSize:
		return r.size(b)
	default:
		return r.bulk(b)
	}
}

// first reads a type byte. At a reply's own, it stops before it once, so that
// the user can say what is wanted.
func (r *replies) first(c byte) (int, event) {
	if strings.IndexByte(types, c) < 0 {
		if r.idle() {
			r.start = r.pos
		}
		return 0, r.malformed(0, fmt.Sprintf("type byte %q, expected one of %s", c, types))
	}
	if r.depth == 0 && r.kind == 0 {
		return 0, r.open(c)
	}
	r.kind, r.n, r.state = c, 0, inText
	if !isLine(c) {
		r.num, r.state = number{}, inSize
	}
	return 1, more
}

// types are the type bytes of both versions. The streamed ones of RESP3, which
// no server sends, are not among them.
const types = "+-:_#,($!=*~%>|"

func isLine(c byte) bool {
	switch c {
	case '+', '-', ':', '_', '#', ',', '(':
		return true
	}
	return false
}

func (r *replies) open(c byte) event {
	r.kind = c
	r.aside = c == '>'
	if !r.pending {
		r.start, r.streams = r.pos, false
		r.want, r.hold, r.base = false, false, 0
	}
	r.answer.kind, r.total = 0, -1
	if r.aside {
		return more
	}
	return opened
}

// line reads the rest of a value that is one line.
func (r *replies) line(b []byte) (int, event) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		r.store(b)
		return len(b), more
	}
	r.store(b[:end])
	if r.n > 0 && r.text[r.n-1] == '\r' {
		r.n--
	}
	return end + 1, r.value(r.kind == '_')
}

// store keeps the beginning of a value's text, if someone wants it.
func (r *replies) store(b []byte) {
	if r.want && r.depth <= r.base+1 {
		r.n += copy(r.text[r.n:], b)
	}
}

func (r *replies) size(b []byte) (int, event) {
	n, got := r.num.read(b)
	if got == partial {
		return n, more
	}
	size := r.num.signed()
	limit := int64(maxCount)
	if isBulk(r.kind) {
		limit = maxBulk
	}
	if got == wrong || size < -1 || size > limit {
		return n, r.malformed(n, fmt.Sprintf("length %q after %q, expected -1 to %d", r.num.seen(), r.kind, limit))
	}
	switch {
	case size < 0 && (r.kind == '>' || r.kind == '|'):
		return n, r.malformed(n, fmt.Sprintf("length -1 after %q, expected 0 to %d", r.kind, limit))
	case size < 0:
		return n, r.value(true)
	case isBulk(r.kind):
		r.left, r.state = size+2, inBulk
		r.streams = r.streams || r.pos+int64(n)-r.start+r.left > wire.MaxHeld
		return n, more
	}
	return n, r.aggregate(n, size)
}

func isBulk(kind byte) bool { return kind == '$' || kind == '!' || kind == '=' }

func (r *replies) bulk(b []byte) (int, event) {
	n := min(int64(len(b)), r.left)
	r.store(b[:min(n, max(r.left-2, 0))])
	r.left -= n
	if r.left > 0 {
		return int(n), more
	}
	return int(n), r.value(false)
}

// aggregate enters an array, set, map, push or attribute.
func (r *replies) aggregate(n int, size int64) event {
	aside := r.kind == '>' || r.kind == '|'
	if r.want && !aside && r.depth == r.base {
		r.answer = answer{kind: r.kind}
	}
	if r.want && !aside && r.depth == r.base+1 {
		r.answer.others++
	}
	if r.depth == 0 {
		r.total = size
	}
	if r.kind == '%' || r.kind == '|' {
		size *= 2
	}
	if r.depth == maxDepth {
		return r.malformed(n, fmt.Sprintf("more than %d levels of nesting", maxDepth))
	}
	r.levels[r.depth] = level{left: size, aside: aside}
	r.depth++
	r.state = atType
	if size > 0 {
		return more
	}
	return r.resume()
}

// value ends a value that is no aggregate, or a null one. What an attribute or
// a push brings is overwritten by the value that follows it.
func (r *replies) value(null bool) event {
	if r.want {
		switch r.depth {
		case r.base:
			r.answer = answer{kind: r.kind, null: null, n: r.n, buf: r.text}
		case r.base + 1:
			r.answer.add(r.kind, r.text[:r.n], null)
		}
	}
	r.state = atType
	return r.done()
}

// done counts one value of the innermost aggregate, and ends what that ends.
func (r *replies) done() event {
	if r.depth == 0 {
		r.kind, r.pending = 0, false
		return framed
	}
	r.levels[r.depth-1].left--
	if r.depth == r.base {
		return element
	}
	return r.resume()
}

// resume goes on after a value, or after an element event: it leaves the
// aggregates that have no values to come.
func (r *replies) resume() event {
	for r.depth > 0 && r.levels[r.depth-1].left == 0 {
		r.depth--
		if r.levels[r.depth].aside {
			if r.depth == 0 {
				return r.closeAside()
			}
			return more // what surrounds it does not count it
		}
		if r.depth == 0 {
			r.kind, r.pending = 0, false
			return framed
		}
		r.levels[r.depth-1].left--
		if r.depth == r.base {
			return element
		}
	}
	return more
}

// closeAside ends a push, which is a frame, or an attribute, which begins one.
func (r *replies) closeAside() event {
	r.kind = 0
	r.pending = !r.aside
	if r.pending {
		return more
	}
	return framed
}

// malformed notes what is wrong with the byte n places after pos.
func (r *replies) malformed(n int, what string) event {
	r.fault = fmt.Sprintf("reply at byte %d: %s (byte %d)", r.start, what, r.pos+int64(n))
	return malformed
}

// clear returns the offset before which every byte may go on.
func (r *replies) clear() int64 {
	if r.pos-r.start > wire.MaxHeld {
		r.streams = true
	}
	if r.idle() || r.streams || !r.hold {
		return r.pos
	}
	return r.start
}

// idle reports whether the next byte begins a frame.
func (r *replies) idle() bool { return r.kind == 0 && !r.pending }

// span returns where a mark of the reply that has just ended begins and ends.
func (r *replies) span() (start, end int64) {
	if r.pos-r.start > wire.MaxHeld {
		return r.pos, r.pos
	}
	return r.start, r.pos
}
