package history

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A quick reads the line of an op as a [Writer] writes it, several times as fast as
// encoding/json does: without white space and with few escapes, each field in its place. It
// gives up on everything else, which is then left to encoding/json, so that it
// accepts no line and reads no value that this does not.
type quick struct {
	b    []byte
	i    int
	bad  bool
	last int // the field that was met last, by its place
	same names
}

// names are texts that occur again and again, each kept once.
type names map[string]string

// mostNames is how many texts are kept, and longName how long they may be.
const (
	mostNames = 1 << 12
	longName  = 64
)

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(b) <= longName && len(n) < mostNames {
		n[s] = s
	}
	return s
}

var opStart = []byte(`{"type":"op",`)

// quickOp reads an op, or reports that it cannot.
func quickOp(line []byte, same names) (*lock.Op, bool) {
	line = bytes.TrimRight(line, "\n")
	if !bytes.HasPrefix(line, opStart) {
		return nil, false
	}
	q := &quick{b: line, i: len(opStart), same: same}
	op := &lock.Op{}
	q.fields(func(key []byte) { q.op(op, key) })
	return op, !q.bad && q.i == len(q.b)
}

// fields reads what is left of an object whose opening, and first fields, were read.
func (q *quick) fields(field func(key []byte)) {
	for !q.bad {
		key := q.text()
		if q.want(':'); q.bad {
			return
		}
		field(key)
		if q.next() != ',' {
			q.i--
			q.want('}')
			return
		}
	}
}

// at gives up on a field that does not come after the one before it, as one that
// comes twice does not.
func (q *quick) at(place int) {
	q.bad = q.bad || place <= q.last
	q.last = place
}

func (q *quick) object(field func(key []byte)) {
	if q.want('{'); q.bad {
		return
	}
	if q.i < len(q.b) && q.b[q.i] == '}' {
		q.i++
		return
	}
	outer := q.last
	q.last = 0
	q.fields(field)
	q.last = outer
}

// list reads an array that is not empty.
func (q *quick) list(element func()) {
	for q.want('['); !q.bad; {
		element()
		switch q.next() {
		case ',':
		case ']':
			return
		default:
			q.bad = true
		}
	}
}

func (q *quick) next() byte {
	if q.i >= len(q.b) {
		q.bad = true
		return 0
	}
	q.i++
	return q.b[q.i-1]
}

func (q *quick) want(c byte) {
	if q.next() != c {
		q.bad = true
	}
}

// text reads a string. It knows no escapes but those of <, > and &.
func (q *quick) text() []byte {
	if q.want('"'); q.bad {
		return nil
	}
	var before []byte // what stands before the last escape
	from := q.i
	for plain := true; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; {
		case c == '"':
			s := q.b[from:q.i]
			if q.i++; before != nil {
				s = append(before, s...)
			}
			q.bad = q.bad || !plain && !utf8.Valid(s)
			return s
		case c == '\\':
			r, ok := escaped(q.b[q.i:])
			if !ok {
				q.bad = true
				return nil
			}
			before = append(append(before, q.b[from:q.i]...), r)
			q.i += len(`\u003c`) - 1
			from = q.i + 1
		case c < ' ':
			q.bad = true
			return nil
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	q.bad = true
	return nil
}

// escaped returns the character that an escape at the beginning stands for.
func escaped(b []byte) (byte, bool) {
	switch {
	case bytes.HasPrefix(b, []byte(`\u003c`)):
		return '<', true
	case bytes.HasPrefix(b, []byte(`\u003e`)):
		return '>', true
	case bytes.HasPrefix(b, []byte(`\u0026`)):
		return '&', true
	}
	return 0, false
}

func (q *quick) name() string { return q.same.of(q.text()) }

func (q *quick) names() (out []string) {
	q.list(func() { out = append(out, q.name()) })
	return out
}

// integer reads a number without a fraction.
func (q *quick) integer() int64 {
	from := q.i
	if q.i < len(q.b) && q.b[q.i] == '-' {
		q.i++
	}
	digits := q.i
	var n int64
	for ; q.i < len(q.b) && q.b[q.i] >= '0' && q.b[q.i] <= '9'; q.i++ {
		n = 10*n + int64(q.b[q.i]-'0')
	}
	switch size := q.i - digits; {
	case size == 0, q.b[digits] == '0' && q.i-from > 1:
		q.bad = true
	case size > 18:
		var err error
		if n, err = strconv.ParseInt(string(q.b[from:q.i]), 10, 64); err != nil {
			q.bad = true
		}
		return n
	}
	if digits > from {
		return -n
	}
	return n
}

// count is an integer that is not negative. Those that need 64 bits are left to others.
func (q *quick) count() uint64 {
	n := q.integer()
	q.bad = q.bad || n < 0
	return uint64(n)
}

func (q *quick) instant() lock.Instant { return lock.Instant(q.integer()) }

func (q *quick) size() int {
	n := q.integer()
	q.bad = q.bad || int64(int(n)) != n
	return int(n)
}

// yes reads true, which is all that is written of a bool.
func (q *quick) yes() bool {
	if !bytes.HasPrefix(q.b[q.i:], []byte("true")) {
		q.bad = true
		return false
	}
	q.i += len("true")
	return true
}

func (q *quick) fraction() float64 {
	from := q.i
	for ; q.i < len(q.b) && (q.b[q.i] >= '0' && q.b[q.i] <= '9' || q.b[q.i] == '.'); q.i++ {
	}
	s := q.b[from:q.i]
	if len(s) == 0 || s[0] == '.' || s[len(s)-1] == '.' || len(s) > 1 && s[0] == '0' && s[1] != '.' {
		q.bad = true
		return 0
	}
	f, err := strconv.ParseFloat(string(s), 64)
	q.bad = q.bad || err != nil
	return f
}

func (q *quick) hex() string {
	b, err := hex.DecodeString(string(q.text()))
	q.bad = q.bad || err != nil || len(b) == 0
	return string(b)
}
