package resp

import "bytes"

// maxText is how much of a value is kept: enough for a status, an error's
// first word and a number.
const maxText = 64

// An answer is what an awaited op needs of its reply.
type answer struct {
	kind   byte // first byte of the reply; 0: nothing was read
	null   bool
	buf    [maxText]byte
	n      int
	first  int64   // the first element, if it is an integer
	last   int64   // the last integer among the elements
	ints   int     // integers among the elements
	others int     // elements that are none
	lead   bool    // the first element is an integer
	above  bool    // one of them is positive
	nulls  uint64  // which of the first 64 elements are null or false
	zeros  uint64  // which of them are 0
	topic  topic   // the first element, if it is what publications begin with
	sum    uint32  // of the second one's text, if the first is such
	kinds  [4]byte // of the first elements
}

func (a *answer) text() []byte { return a.buf[:a.n] }

// isError reports whether the server refused, in either version's spelling.
func (a *answer) isError() bool { return a.kind == '-' || a.kind == '!' }

func (a *answer) is(status string) bool {
	return !a.null && (a.kind == '+' || a.kind == '$') && string(a.text()) == status
}

// word returns the first word of an error, such as NOSCRIPT.
func (a *answer) word() string {
	w, _, _ := bytes.Cut(a.text(), []byte{' '})
	return string(w)
}

// begins reports whether the text of an error, or of another line, begins so.
func (a *answer) begins(prefix string) bool { return bytes.HasPrefix(a.text(), []byte(prefix)) }

// isNull covers the three nulls of the two versions, and a RESP3 false.
func (a *answer) isNull() bool {
	return a.null || a.kind == '_' || a.kind == '#' && a.n > 0 && a.buf[0] == 'f'
}

// isArray reports whether elements were read.
func (a *answer) isArray() bool { return !a.null && (a.kind == '*' || a.kind == '~') }

// integer returns the reply as a number: an integer, a true, or text that is one.
func (a *answer) integer() (int64, bool) {
	switch a.kind {
	case '#':
		return 1, a.n > 0 && a.buf[0] == 't'
	case ':', '$', '+', ',', '(':
		if a.null {
			return 0, false
		}
		return parseInt(a.text())
	}
	return 0, false
}

func (a *answer) kindAt(i int, kind byte) {
	if i < len(a.kinds) {
		a.kinds[i] = kind
	}
}

// add takes in the text of one element of an array.
func (a *answer) add(kind byte, text []byte, null bool) {
	at := a.ints + a.others
	a.kindAt(at, kind)
	switch {
	case at == 0:
		a.topic = topicOf(text)
	case at == 1 && a.topic != noTopic && !null:
		a.sum = sumOf(text)
	}
	if null || kind == '#' && string(text) == "f" {
		a.nulls |= 1 << at
	}
	n, ok := parseInt(text)
	if ok && n == 0 {
		a.zeros |= 1 << at
	}
	if !ok || null {
		a.others++
		return
	}
	if a.ints == 0 && a.others == 0 {
		a.first, a.lead = n, true
	}
	a.last = n
	a.ints++
	a.above = a.above || n > 0
}
