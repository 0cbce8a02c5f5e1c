package resp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// maxDepth is how deep replies may nest; real ones stay below ten. So many
// levels are kept between replies.
const (
	maxDepth   = 128
	keptLevels = 8
)

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
	levels     []level
	pending    bool // an attribute was read: the reply that it belongs to began with it
	aside      bool // the frame at hand is a push
	streams    bool

	want   bool  // an answer is wanted
	pushes bool  // of pushes too
	hold   bool  // the reply is withheld until it is whole
	split  bool  // its elements, if it is an array, are frames of their own
	within bool  // such elements are being read
	total  int64 // elements of the reply, if it is an aggregate; else -1

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
	if len(r.levels) == 0 && r.kind == 0 {
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
	if !r.pending && !r.within {
		r.start, r.streams, r.hold = r.pos, false, false
	}
	r.want, r.split = r.aside && r.pushes, false
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
	if r.storing() {
		r.n += copy(r.text[r.n:], b)
	}
}

func (r *replies) storing() bool { return r.want && len(r.levels) <= 1 && r.n < maxText }

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
	if r.want && len(r.levels) == 0 {
		r.answer = answer{kind: r.kind}
	}
	if r.want && !aside && len(r.levels) == 1 {
		r.answer.kindAt(r.answer.ints+r.answer.others, r.kind)
		r.answer.others++
	}
	if len(r.levels) == 0 {
		r.total = size
	}
	if len(r.levels) == maxDepth {
		return r.malformed(n, fmt.Sprintf("more than %d levels of nesting", maxDepth))
	}
	r.state = atType
	if r.split && r.kind == '*' && !r.pending {
		return header
	}
	if r.kind == '%' || r.kind == '|' {
		size *= 2
	}
	return r.enter(level{left: size, aside: aside})
}

// enter begins to read the values of an aggregate.
func (r *replies) enter(l level) event {
	r.levels = append(r.levels, l)
	if l.left > 0 {
		return more
	}
	return r.resume()
}

// unpack makes the elements of the array whose header was read frames of their
// own, which end with rejoin. All of it is one reply to those who hold it.
func (r *replies) unpack() { r.within, r.kind, r.pending = true, 0, false }

func (r *replies) rejoin() { r.within = false }

// value ends a value that is no aggregate, or a null one. What an attribute or
// a push brings is overwritten by the value that follows it.
func (r *replies) value(null bool) event {
	if r.want {
		switch len(r.levels) {
		case 0:
			r.answer = answer{kind: r.kind, null: null, n: r.n, buf: r.text}
		case 1:
			r.answer.add(r.kind, r.text[:r.n], null)
		}
	}
	r.state = atType
	return r.done()
}

// done counts one value of the innermost aggregate, and ends what that ends.
func (r *replies) done() event {
	if len(r.levels) == 0 {
		return r.close()
	}
	r.levels[len(r.levels)-1].left--
	return r.resume()
}

// resume goes on after a value: it leaves the aggregates that have no values
// to come.
func (r *replies) resume() event {
	for n := len(r.levels) - 1; n >= 0 && r.levels[n].left == 0; n-- {
		aside := r.levels[n].aside
		r.levels = r.levels[:n]
		switch {
		case n == 0 && aside:
			return r.closeAside()
		case n == 0:
			return r.close()
		case aside:
			return more // what surrounds it does not count it
		}
		r.levels[n-1].left--
	}
	return more
}

// close ends a frame. What a deep one has needed is let go.
func (r *replies) close() event {
	r.kind, r.pending = 0, false
	if cap(r.levels) > keptLevels {
		r.levels = nil
	}
	return framed
}

// closeAside ends a push, which is a frame, or an attribute, which begins one.
func (r *replies) closeAside() event {
	if r.aside {
		return r.close()
	}
	r.kind, r.pending = 0, true
	return more
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
func (r *replies) idle() bool { return r.kind == 0 && !r.pending && !r.within }

// span returns where a mark of the reply that has just ended begins and ends.
func (r *replies) span() (start, end int64) {
	if r.pos-r.start > wire.MaxHeld || !r.hold {
		return r.pos, r.pos
	}
	return r.start, r.pos
}

// rest returns how many of the next bytes are of no interest: those of a
// bulk's body but the two that close it.
func (r *replies) rest() int64 {
	if r.state != inBulk || r.storing() || r.hold && !r.streams {
		return 0
	}
	return max(0, r.left-2)
}

func (r *replies) skip(n int64) {
	r.left -= n
	r.pos += n
}
