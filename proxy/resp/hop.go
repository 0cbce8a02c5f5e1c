package resp

// Most traffic is small and matters to nobody. Requests and replies of that
// kind which lie whole in a chunk are hopped over here, length by length; what
// is longer, cut, or of any interest goes through the scanners.

// maxHop is the longest length that is hopped over: no chunk holds more.
const maxHop = 1 << 20

// hopRequests returns how many bytes at the front of b are whole plain requests,
// and counts those.
func (t *Tracker) hopRequests(b []byte) int {
	if t.req.state != atStart || t.careful || t.subs.waiting > 0 {
		return 0
	}
	done := 0
	for {
		n := t.hopRequest(b[done:])
		if n == 0 {
			t.req.pos += int64(done)
			return done
		}
		t.queue.plain()
		done += n
	}
}

// hopRequest returns the length of the request at the front of b, 0 if it is
// not a plain one, or not whole.
func (t *Tracker) hopRequest(b []byte) int {
	argc, at := hopLength(b, '*')
	if at == 0 || argc == 0 {
		return 0
	}
	for i := range argc {
		size, n := hopLength(b[at:], '$')
		at += n
		if n == 0 || at+size+2 > len(b) || !t.passes(i, argc, b[at:at+size]) {
			return 0
		}
		at += size + 2
	}
	return at
}

// hopLength reads a length behind its sign. n is 0 if it is not whole, or not
// of the usual form.
func hopLength(b []byte, sign byte) (v, n int) {
	if len(b) < 4 || b[0] != sign {
		return 0, 0
	}
	for i := 1; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			if i == 1 || i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
				return 0, 0
			}
			return v, i + 2
		}
		if v = 10*v + int(c); v > maxHop || v < 10 && i > 1 {
			return 0, 0
		}
	}
	return 0, 0
}

// passes reports whether the i-th argument leaves a request with so many of no
// interest. It remembers the name that it was asked about last.
func (t *Tracker) passes(i, argc int, arg []byte) bool {
	l := &t.last
	switch i {
	case 0:
		return t.know(arg) && argc <= l.most && argc > l.key
	case l.key:
		return l.could != nil && len(arg) <= l.longest && !l.could(arg) && !(l.reads && t.heeds(arg))
	case 1:
		return !l.reads || !t.heeds(arg)
	}
	return true
}

// A remembered name, and what makes a request of it one of no interest.
type remembered struct {
	name    [maxName]byte
	n       uint8
	key     int                   // the argument that no rule may match; 0: none
	longest int                   // of which the scanner would keep so much
	could   func(key []byte) bool // whether one may
	most    int                   // arguments
	reads   bool                  // it is a GET
	epoch   uint64                // when that was so
}

// know looks a name up, if it is a possible one.
func (t *Tracker) know(name []byte) bool {
	l := &t.last
	if len(name) == 0 || len(name) > maxName {
		return false
	}
	epoch := t.epoch()
	if string(name) == string(l.name[:l.n]) && l.epoch == epoch {
		return true
	}
	var up [maxName]byte
	key := upper(up[:copy(up[:], name)])
	known := lookup(key)
	*l = remembered{most: mostArguments(known.verb), longest: int(known.longest()), reads: known.verb == getVerb, epoch: epoch}
	l.n = uint8(copy(l.name[:], name))
	if l.most == 0 || t.opt.Wants == nil {
		return true
	}
	cmd := t.intern(key)
	if !t.opt.Wants(cmd) {
		return true
	}
	p := placeOf(cmd)
	if l.key = p.at; !p.fixed() {
		l.most = 0
	}
	if t.opt.Could != nil {
		l.could = t.ruling(cmd)
	}
	return true
}

func (t *Tracker) epoch() uint64 {
	if t.opt.Epoch == nil {
		return 0
	}
	return t.opt.Epoch()
}

// mostArguments is up to how many arguments, the name included, a command makes
// no op and changes nothing in the connection.
func mostArguments(v verb) int {
	switch v {
	case plainVerb, getVerb, publishVerb:
		return maxHop
	case setVerb:
		return 3
	}
	return 0
}

// hopReplies returns how many bytes at the front of b are whole replies to
// plain requests, and takes those off the queue.
func (t *Tracker) hopReplies(b []byte) int {
	if !t.rep.idle() || t.tx.active || t.tx.running || t.odd() {
		return 0
	}
	done := 0
	for t.queue.next() == nil && !t.queue.empty() {
		n := hopReply(b[done:])
		if n == 0 {
			break
		}
		t.queue.popPlain()
		done += n
	}
	t.rep.pos += int64(done)
	return done
}

// hopReply returns the length of the reply at the front of b, 0 if it is none
// of the simple ones, or not whole.
func hopReply(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	switch b[0] {
	case '$':
		size, n := hopLength(b, '$')
		if n == 0 || n+size+2 > len(b) || b[n+size] != '\r' || b[n+size+1] != '\n' {
			return 0
		}
		return n + size + 2
	case '+':
		return hopLine(b)
	case ':':
		if _, n := hopLength(b, ':'); n > 0 {
			return n
		}
	}
	return 0
}

// hopLine returns the length of a short line.
func hopLine(b []byte) int {
	for i := 1; i+1 < len(b) && i < maxText; i++ {
		if b[i] == '\r' {
			if b[i+1] != '\n' {
				return 0
			}
			return i + 2
		}
		if b[i] == '\n' {
			return 0
		}
	}
	return 0
}
