package resp

import "strconv"

// maxDigits is more than any length needs and less than an int64 can hold.
const maxDigits = 18

// A number is a decimal length being read from a header line, which may come
// in pieces. It ends with CR and the byte after it, which servers do not check.
type number struct {
	value  int64
	digits uint8
	minus  bool
	ended  bool // CR was read
	bad    byte // the byte that could not be part of it
}

type progress uint8

const (
	partial progress = iota
	whole
	wrong
)

// read takes what belongs to the number from the front of b.
func (n *number) read(b []byte) (int, progress) {
	for i, c := range b {
		switch {
		case n.ended:
			return i + 1, whole
		case c >= '0' && c <= '9' && n.digits < maxDigits:
			n.value = n.value*10 + int64(c-'0')
			n.digits++
		case c == '\r' && n.digits > 0:
			n.ended = true
		case c == '-' && n.digits == 0 && !n.minus:
			n.minus = true
		default:
			n.bad = c
			return i, wrong
		}
	}
	return len(b), partial
}

func (n *number) signed() int64 {
	if n.minus {
		return -n.value
	}
	return n.value
}

// seen tells what was read, for an error; it never shows more than a number
// and one byte.
func (n *number) seen() string {
	s := ""
	if n.minus {
		s = "-"
	}
	if n.digits > 0 {
		s += strconv.FormatInt(n.value, 10)
	}
	if n.ended {
		return s
	}
	return s + string(rune(n.bad))
}

// parseInt reads a whole decimal integer without allocating.
func parseInt(b []byte) (int64, bool) {
	minus := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		minus, b = b[0] == '-', b[1:]
	}
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case minus && n <= 1<<63:
		return -int64(n), true
	case !minus && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}
