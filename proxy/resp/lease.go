package resp

import (
	"bytes"
	"math"
	"time"
)

// A lease is a lifetime that a command asks for.
type lease struct {
	expires bool
	ttl     time.Duration
	until   int64 // Unix milliseconds, where the command tells that and not ttl
}

// ends returns when a key with that lease ends if it is given at the instant ms.
func (l lease) ends(ms int64) int64 {
	switch {
	case !l.expires:
		return 0
	case l.until != 0:
		return l.until
	case l.ttl == 0:
		return UnknownEnd
	}
	return ms + l.ttl.Milliseconds()
}

// A wording is a command's words; 0 is its name. A word that was not kept is nil.
type wording interface {
	arg(i int) []byte
	words() int
}

// list is the words of a command that was kept as a whole.
type list [][]byte

func (l list) arg(i int) []byte {
	if i < len(l) {
		return l[i]
	}
	return nil
}

func (l list) words() int { return len(l) }

func (r *requests) words() int { return len(r.args) }

// options are those of a SET, or of what takes the same.
type options struct {
	lease
	nx, xx, get, keep bool
	eq, ne, digest    bool // IFEQ, IFNE; IFDEQ and IFDNE, which give a digest
	persist           bool
	operand           []byte
}

// readOptions reads the words from the i-th on.
func readOptions(w wording, i int) options {
	var o options
	for ; i < w.words(); i++ {
		switch arg := w.arg(i); {
		case is(arg, "NX"):
			o.nx = true
		case is(arg, "XX"):
			o.xx = true
		case is(arg, "GET"):
			o.get = true
		case is(arg, "KEEPTTL"):
			o.keep = true
		case is(arg, "PERSIST"):
			o.persist = true
		case is(arg, "EX"), is(arg, "PX"), is(arg, "EXAT"), is(arg, "PXAT"):
			i++
			o.lease = readLease(w.arg(i), is(arg, "EX") || is(arg, "EXAT"), len(arg) == 4)
		case is(arg, "IFEQ"), is(arg, "IFNE"), is(arg, "IFDEQ"), is(arg, "IFDNE"):
			i++
			o.eq, o.ne = arg[len(arg)-2]|0x20 == 'e', arg[len(arg)-2]|0x20 == 'n'
			o.digest, o.operand = len(arg) == 5, w.arg(i)
		}
	}
	return o
}

// readLease reads a lifetime, or the instant of its end; what the server will
// not take is none.
func readLease(b []byte, seconds, absolute bool) lease {
	n, ok := parseInt(b)
	if !ok || n <= 0 {
		return lease{expires: true}
	}
	if absolute {
		if seconds && n > math.MaxInt64/1000 {
			return lease{expires: true}
		}
		if seconds {
			n *= 1000
		}
		return lease{expires: true, until: n}
	}
	return lease{expires: true, ttl: lifetime(n, seconds)}
}

// lifetime words a positive number of seconds or milliseconds, as long as it can.
func lifetime(n int64, seconds bool) time.Duration {
	unit := time.Millisecond
	if seconds {
		unit = time.Second
	}
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// An expiry is what an EXPIRE or one of its kin asks for.
type expiry struct {
	lease
	n        int64 // the number as it stands there
	absolute bool
	nx, xx   bool // only if it does not end, or does
	gt, lt   bool // only if it ends later then, or earlier
}

// readExpire reads EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT; false if its number is
// none.
func readExpire(name string, w wording) (expiry, bool) {
	seconds := name[0] == 'E'
	absolute := name[len(name)-1] == 'T'
	n, ok := parseInt(w.arg(2))
	e := expiry{lease: readLease(w.arg(2), seconds, absolute), n: n, absolute: absolute}
	for i := 3; i < w.words(); i++ {
		arg := w.arg(i)
		e.nx, e.xx = e.nx || is(arg, "NX"), e.xx || is(arg, "XX")
		e.gt, e.lt = e.gt || is(arg, "GT"), e.lt || is(arg, "LT")
	}
	return e, ok
}

// allowed reports whether the conditions hold for a key of that state, which is
// there.
func (e expiry) allowed(st State, ms int64) tri {
	if !e.conditional() {
		return yes
	}
	if st.Type == Unseen || st.Ends == UnknownEnd {
		return maybe
	}
	end := e.ends(ms)
	return sure(!(e.nx && st.Ends != 0) && !(e.xx && st.Ends == 0) &&
		!(e.gt && (st.Ends == 0 || end <= st.Ends)) && !(e.lt && st.Ends != 0 && end >= st.Ends))
}

// past reports whether it removes the key, whatever the time is.
func (e expiry) past() bool { return e.n <= 0 || e.absolute && e.until > 0 && e.until < longAgo }

// longAgo is before there was a Redis, in Unix milliseconds.
const longAgo = 1e12

// conditional reports whether it depends on the end that the key has.
func (e expiry) conditional() bool { return e.nx || e.xx || e.gt || e.lt }

// deadline reads a value that tells when a lock ends, as locks without an expiry
// have it: Unix seconds, with or without a fraction, or milliseconds. It returns
// milliseconds; 0 for what is none.
func deadline(b []byte) int64 {
	whole, fraction, _ := bytes.Cut(b, []byte{'.'})
	n, ok := parseInt(whole)
	millis, fine := thousandths(fraction)
	switch {
	case !ok || !fine || whole[0] == '+':
	case len(whole) == 10 && n >= longAgo/1000:
		return n*1000 + millis
	case len(whole) == 13 && n >= longAgo:
		return n
	}
	return 0
}

// thousandths reads the first three of some decimals.
func thousandths(b []byte) (int64, bool) {
	n := int64(0)
	for i := range b {
		if b[i] < '0' || b[i] > '9' || i > 9 {
			return 0, false
		}
	}
	for i := range 3 {
		n *= 10
		if i < len(b) {
			n += int64(b[i] - '0')
		}
	}
	return n, true
}
