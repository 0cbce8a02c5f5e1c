package resp

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"hash"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// Limits of what is read and kept, down to maxStrangerArg the server's own.
const (
	maxBulk   = 512 << 20 // proto-max-bulk-len as it comes
	maxCount  = 1<<31 - 1
	maxInline = 64 << 10

	// What the server refuses before it has seen the whole request, from whoever
	// has not authenticated: more arguments, and a longer one.
	maxStrangerArgs = 10
	maxStrangerArg  = 16 << 10

	maxName  = 32       // longest command name that can matter
	maxArg   = 16 << 10 // longest argument that is kept
	maxToken = 2 << 10  // the same where no script is expected
	maxKept  = 64 << 10 // all arguments of a request that are kept
	maxArgs  = 1024     // arguments of which anything is kept

	keptBuf  = 4 << 10 // what of it stays between requests
	keptArgs = 64
)

// An event is why a scanner stopped before the end of its chunk.
type event uint8

const (
	more      event = iota // the chunk is used up
	emptied                // an empty request was read, which has no reply
	named                  // a request's name is read: the plan for it is wanted
	argued                 // an argument of a watched request is read
	framed                 // a request or a reply is whole
	opened                 // a reply begins
	header                 // the header of an array that is to be split was read
	malformed              // see fault
)

// A plan says what a request's arguments are good for, once its name is known.
type plan struct {
	cmd    command
	wanted bool // a rule names the verb
	may    bool // it may become an op, so its bytes are withheld until it is whole
	watch  bool // each kept argument may change may
	keep   int  // arguments 1..keep are kept
	guess  bool // what it is depends on each argument: see guess.go
	sums   bool // of a script that is too long to be kept the sha1 is wanted
}

type requestState uint8

const (
	atStart requestState = iota
	inCount
	atDollar
	inLength
	inBody
	inLine
)

// An argument is one argument of the request at hand.
type argument struct {
	off, len int32
	kept     bool // false: too long, or not wanted
}

// requests frames what a client sends: multibulk and inline requests.
type requests struct {
	pos, start int64 // bytes scanned; offset of the first byte of the frame at hand
	refusable  int64 // the end of what the server may already answer with an error
	state      requestState
	num        number
	argc, argi int64
	left       int64 // bytes of a body that are to come, with the two that close it
	storing    bool
	plan       plan
	chosen     bool // plan is set
	streams    bool // longer than may be withheld
	mute       int  // so many arguments are secrets
	buf        []byte
	args       []argument
	fault      string

	summing bool      // the argument at hand is a script that is too long to be kept
	summed  bool      // there was one in the request at hand
	sum     hash.Hash // of that; nil: none was met
}

// next scans b up to the next event.
func (r *requests) next(b []byte) (int, event) {
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

func (r *requests) step(b []byte) (int, event) {
	switch r.state {
	case atStart:
		return r.first(b[0])
	case inCount:
		return r.count(b)
	case atDollar:
		return r.dollar(b[0])
	case inLength:
		return r.length(b)
	case inBody:
		return r.body(b)
	default:
		return r.line(b)
	}
}

func (r *requests) first(c byte) (int, event) {
	r.start, r.num, r.state = r.pos, number{}, inLine
	r.argc, r.argi, r.mute = 0, 0, 0
	r.chosen, r.streams, r.plan = false, false, plan{may: true}
	r.summing, r.summed = false, false
	r.buf, r.args = r.buf[:0], r.args[:0]
	if c != '*' {
		return 0, more
	}
	r.state = inCount
	return 1, more
}

func (r *requests) count(b []byte) (int, event) {
	n, got := r.num.read(b)
	if got == partial {
		return n, more
	}
	r.argc = r.num.signed()
	if got == wrong || r.argc > maxCount {
		return n, r.malformed(n, fmt.Sprintf("multibulk count %q, expected a number up to %d", r.num.seen(), maxCount))
	}
	if r.argc > maxStrangerArgs {
		r.refusable = r.pos + int64(n)
	}
	r.state = atDollar
	if r.argc <= 0 {
		r.state = atStart
		return n, emptied
	}
	return n, more
}

func (r *requests) dollar(c byte) (int, event) {
	if c != '$' {
		return 0, r.malformed(0, fmt.Sprintf("byte %q before argument %d, expected '$'", c, r.argi))
	}
	r.num, r.state = number{}, inLength
	return 1, more
}

func (r *requests) length(b []byte) (int, event) {
	n, got := r.num.read(b)
	if got == partial {
		return n, more
	}
	size := r.num.signed()
	if got == wrong || size < 0 || size > maxBulk {
		return n, r.malformed(n, fmt.Sprintf("length %q of argument %d, expected 0 to %d", r.num.seen(), r.argi, maxBulk))
	}
	if size > maxStrangerArg {
		r.refusable = r.pos + int64(n)
	}
	r.left, r.state = size+2, inBody
	r.open(size)
	if r.pos+int64(n)-r.start+r.left > wire.MaxHeld {
		r.streams = true
	}
	return n, more
}

// open decides whether the argument whose length has been read is kept.
func (r *requests) open(size int64) {
	r.storing = r.argi == 0 && size <= maxName || r.argi > 0 && r.argi <= int64(r.plan.keep) && size <= r.plan.cmd.longest() && len(r.buf)+int(size) <= maxKept
	if r.argi == 0 && !r.storing {
		r.plan, r.chosen = plan{}, true
	}
	if r.mute > 0 {
		r.mute--
		r.storing = false
	}
	if r.argi <= int64(r.plan.keep) || r.argi == 0 {
		r.args = append(r.args, argument{off: int32(len(r.buf)), kept: r.storing})
	}
	r.summing = false
	if r.plan.sums && !r.storing && r.argi == 1 {
		r.beginSum()
	}
	if !r.storing && r.plan.cmd.verb.brief() {
		r.stop(true)
	}
	if r.plan.guess {
		r.stop(!r.storing || !mayFit(r.argi, size))
	}
}

func (r *requests) beginSum() {
	if r.sum == nil {
		r.sum = sha1.New()
	}
	r.sum.Reset()
	r.summing, r.summed = true, true
}

func (r *requests) body(b []byte) (int, event) {
	n := min(int64(len(b)), r.left)
	if r.storing {
		r.buf = append(r.buf, b[:min(n, max(r.left-2, 0))]...)
	}
	if r.summing {
		_, _ = r.sum.Write(b[:min(n, max(r.left-2, 0))]) // never fails
	}
	r.left -= n
	if r.left > 0 {
		return int(n), more
	}
	return int(n), r.argument()
}

// argument closes the argument whose last byte has been read.
func (r *requests) argument() event {
	kept := r.storing
	if kept {
		a := &r.args[len(r.args)-1]
		a.len = int32(len(r.buf)) - a.off
	}
	r.argi++
	r.state = atDollar
	switch {
	case r.argi == r.argc:
		r.state = atStart
		return framed
	case r.argi == 1 && !r.chosen:
		return named
	case kept && r.plan.watch:
		return argued
	}
	return more
}

func (r *requests) line(b []byte) (int, event) {
	end := bytes.IndexByte(b, '\n')
	n := end + 1
	if end < 0 {
		n = len(b)
	}
	if nul := bytes.IndexByte(b[:min(n, maxInline-len(r.buf))], 0); nul >= 0 {
		return nul, r.malformed(nul, "NUL in an inline request, behind which some servers find no end of the line and others nothing to read")
	}
	if len(r.buf)+n > maxInline {
		over := maxInline - len(r.buf)
		return over, r.malformed(over, fmt.Sprintf("inline request without an end after %d bytes", maxInline))
	}
	r.buf = append(r.buf, b[:n]...)
	if end < 0 {
		return n, more
	}
	return n, r.inline(n)
}

// inline splits the line that has been read; what is kept of it is in buf.
func (r *requests) inline(n int) event {
	r.state = atStart
	args, ok := splitInline(r.buf, r.args)
	r.args, r.argc = args, int64(len(args))
	if !ok {
		return r.malformed(n, "unbalanced quotes in an inline request, expected each to be closed and followed by a space")
	}
	if r.argc == 0 {
		return emptied
	}
	for i := range r.args {
		r.args[i].kept = r.args[i].len <= maxArg
	}
	return framed
}

// shorten leaves of an inline request what would be kept if it were an array.
func (r *requests) shorten() {
	for i := range r.args {
		a := &r.args[i]
		a.kept = a.kept && int64(a.len) <= r.plan.cmd.longest()
	}
}

// malformed notes what is wrong with the byte n places after pos.
func (r *requests) malformed(n int, what string) event {
	r.fault = fmt.Sprintf("request at byte %d: %s (byte %d)", r.start, what, r.pos+int64(n))
	return malformed
}

// arg returns argument i, until the next frame begins; nil if it was not kept.
func (r *requests) arg(i int) []byte {
	if i >= len(r.args) || !r.args[i].kept {
		return nil
	}
	a := r.args[i]
	return r.buf[a.off : a.off+a.len : a.off+a.len]
}

// forget wipes what was kept of the request: some of it, such as the password
// of an inline AUTH, was meant for the server alone.
func (r *requests) forget() {
	clear(r.buf)
	if cap(r.buf) > keptBuf {
		r.buf = nil
	}
	if cap(r.args) > keptArgs {
		r.args = nil
	}
}

// clear returns the offset before which every byte may go on. What the server
// may refuse is not withheld, since its client may wait for that; the rest of
// the frame is, without which nothing is carried out.
func (r *requests) clear() int64 {
	if r.pos-r.start > wire.MaxHeld {
		r.streams = true
	}
	if r.state == atStart || r.streams || !r.plan.may {
		return r.pos
	}
	return max(r.start, r.refusable)
}

// span returns where a mark of the frame that has just ended begins and ends.
func (r *requests) span() (start, end int64) {
	if r.pos-r.start > wire.MaxHeld {
		return r.pos, r.pos
	}
	return max(r.start, r.refusable), r.pos
}

// rest returns how many of the next bytes are of no interest: those of an
// argument that is neither kept nor withheld, but the two that close it.
func (r *requests) rest() int64 {
	if r.state != inBody || r.storing || r.plan.may && !r.streams {
		return 0
	}
	return max(0, r.left-2)
}

func (r *requests) skip(n int64) {
	r.left -= n
	r.pos += n
}
