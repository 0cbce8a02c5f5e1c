package pgwire

import "github.com/lockfaultd/lockfaultd/internal/wire"

// endless is more than any stream has left.
const endless = 1 << 62

// Rest says how many of the next bytes will not be looked at. See
// [wire.Skipper]. The last byte of a message is always looked at, since what
// the message means is acted upon there.
func (t *Tracker) Rest(fromClient bool) int64 {
	switch {
	case t.phase == opaque:
		return endless
	case t.phase == starting:
		return 0
	case fromClient:
		return t.client.unread(t.clientClear())
	}
	return t.upstream.unread(t.upstreamClear())
}

// Skip notes bytes that were forwarded unseen. See [wire.Skipper].
func (t *Tracker) Skip(fromClient bool, n int64) {
	s := &t.upstream
	if fromClient {
		s = &t.client
	}
	s.pos += n
	if s.nhead == headSize && t.phase == running {
		s.left -= n
	}
}

// unread returns how much of the message being read is neither kept nor
// withheld, up to its last byte.
func (s *scanner) unread(clear int64) int64 {
	if s.nhead < headSize || s.body != nil || len(s.buf) < s.limit || clear < s.pos {
		return 0
	}
	return max(0, s.left-1)
}

var _ wire.Skipper = (*Tracker)(nil)
