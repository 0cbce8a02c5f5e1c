package pgwire

import (
	"encoding/binary"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

const (
	headSize   = 5       // type byte and length
	maxMessage = 1 << 30 // Postgres itself stops below this
	keepBuffer = 512     // of a buffer between messages: a connection may be idle
)

// A message is one that has been read to its end. Its body is what was kept of
// it and lives only as long as the call that brought its end.
type message struct {
	typ        byte
	start, end int64
	body       []byte
	cut        bool // body is a prefix
}

// keep cuts the body to at most n bytes.
func (m *message) keep(n int) {
	if n < len(m.body) {
		m.body, m.cut = m.body[:n], true
	}
}

type event uint8

const (
	evMore    event = iota // the chunk is used up
	evHead                 // a header is whole: say what to keep
	evKept                 // the kept prefix is whole and the body goes on
	evMessage              // a message has ended
	evBad                  // the length makes no sense
)

// A scanner cuts one direction into messages, incrementally.
type scanner struct {
	pos   int64 // offset of the next byte
	clear int64 // highest offset said to be clear

	start  int64 // offset of the message being read
	head   [headSize]byte
	nhead  int
	size   int64 // of the body
	left   int64 // of the body, not yet seen
	limit  int   // how much of the body to keep
	staged bool  // evKept is wanted when limit is reached
	buf    []byte
	body   []byte // the whole body inside the current chunk
}

// whole cuts the next message off the chunk, if all of it is there: the way of
// nearly all messages.
func (s *scanner) whole(m *message, chunk []byte) (rest []byte, ok bool) {
	if s.nhead != 0 || len(chunk) < headSize {
		return chunk, false
	}
	size := int64(binary.BigEndian.Uint32(chunk[1:])) - 4
	if size < 0 || size > maxMessage || size > int64(len(chunk)-headSize) {
		return chunk, false
	}
	end := headSize + int(size)
	s.start = s.pos
	s.pos += int64(end)
	m.typ, m.cut, m.start, m.end, m.body = chunk[0], false, s.start, s.pos, chunk[headSize:end:end]
	return chunk[end:], true
}

// like moves over whole messages of a type and counts them.
func (s *scanner) like(typ byte, chunk []byte) (rest []byte, n int64) {
	if s.nhead != 0 {
		return chunk, 0
	}
	at := 0
	for len(chunk)-at >= headSize && chunk[at] == typ {
		size := int64(binary.BigEndian.Uint32(chunk[at+1:])) - 4
		if size < 0 || size > maxMessage || size > int64(len(chunk)-at-headSize) {
			break
		}
		at += headSize + int(size)
		n++
	}
	s.pos += int64(at)
	return chunk[at:], n
}

// next consumes bytes up to the next event.
func (s *scanner) next(chunk []byte) ([]byte, event) {
	if s.nhead < headSize {
		return s.header(chunk)
	}
	if n := s.limit - len(s.buf); s.body == nil && n > 0 && s.left > 0 {
		n = min(n, len(chunk), int(s.left))
		s.buf = append(s.buf, chunk[:n]...)
		chunk = s.skip(chunk, n)
		if s.staged && len(s.buf) == s.limit && s.left > 0 {
			return chunk, evKept
		}
	}
	chunk = s.skip(chunk, int(min(s.left, int64(len(chunk)))))
	if s.left > 0 {
		return chunk, evMore
	}
	return chunk, evMessage
}

func (s *scanner) header(chunk []byte) ([]byte, event) {
	if s.nhead == 0 {
		s.start = s.pos
	}
	n := copy(s.head[s.nhead:], chunk)
	s.nhead += n
	s.pos += int64(n)
	if s.nhead < headSize {
		return nil, evMore
	}
	s.size = int64(binary.BigEndian.Uint32(s.head[1:])) - 4
	if s.size < 0 || s.size > maxMessage {
		return chunk[n:], evBad
	}
	s.left, s.limit, s.staged = s.size, 0, false
	return chunk[n:], evHead
}

func (s *scanner) skip(chunk []byte, n int) []byte {
	s.pos += int64(n)
	s.left -= int64(n)
	return chunk[n:]
}

// keep asks for the first n bytes of the body. A body that lies whole in the
// rest of the chunk is lent rather than copied.
func (s *scanner) keep(n int, rest []byte) {
	s.limit = int(min(int64(n), s.size))
	if s.limit > 0 && s.left == s.size && s.size <= int64(len(rest)) {
		s.body = rest[:s.limit:s.limit] // its header came in another chunk
	}
}

// stage is keep, for a body whose first n bytes decide about the others.
func (s *scanner) stage(n, all int, rest []byte) {
	if s.size <= int64(len(rest)) || s.size <= int64(n) {
		s.keep(all, rest)
		return
	}
	s.limit, s.staged = n, true
}

// message returns the message that has ended. done must follow.
func (s *scanner) message(m *message) {
	m.typ, m.start, m.end, m.body = s.head[0], s.start, s.pos, s.body
	if m.body == nil {
		m.body = s.buf
	}
	m.cut = int64(len(m.body)) < s.size
}

// done makes ready for the next message.
func (s *scanner) done() {
	s.nhead, s.body = 0, nil
	s.buf = s.buf[:0]
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	}
}

// partial reports whether a message has begun and not ended.
func (s *scanner) partial() bool { return s.nhead > 0 }

// keeping reports whether the message being read may be withheld: it fits, and
// either its header is not whole or its body is wanted.
func (s *scanner) keeping() bool {
	return s.nhead > 0 && (s.nhead < headSize || s.limit > 0 && s.size+headSize <= wire.MaxHeld)
}

// pass moves over bytes that are not read.
func (s *scanner) pass(chunk []byte) { s.pos += int64(len(chunk)) }

// cleared returns the offset before which all is clear: c, but never less than
// what was said before.
func (s *scanner) cleared(c int64) int64 {
	s.clear = max(s.clear, c)
	return s.clear
}
