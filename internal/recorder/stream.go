package recorder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// blockSize is how finely a difference is located, and how much of a stream's
// start is kept.
const blockSize = 4 << 10

// A Stream is what passed in one direction of a connection.
type Stream struct {
	Bytes int64

	blocks []uint64 // hashes of the complete blocks
	head   []byte   // the first block, as far as it came
	rest   []byte   // the incomplete last block
}

// add takes in the next bytes.
func (s *Stream) add(p []byte) {
	s.Bytes += int64(len(p))
	if room := blockSize - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
	if len(s.rest) > 0 {
		n := min(blockSize-len(s.rest), len(p))
		s.rest = append(s.rest, p[:n]...)
		p = p[n:]
		if len(s.rest) < blockSize {
			return
		}
		s.blocks = append(s.blocks, digest(s.rest))
		s.rest = s.rest[:0]
	}
	for len(p) >= blockSize {
		s.blocks = append(s.blocks, digest(p[:blockSize]))
		p = p[blockSize:]
	}
	s.rest = append(s.rest, p...)
}

func digest(p []byte) uint64 {
	sum := sha256.Sum256(p)
	return binary.LittleEndian.Uint64(sum[:])
}

// key is equal for equal streams.
func (s *Stream) key() string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(s.Bytes))
	for _, h := range s.blocks {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	b = binary.LittleEndian.AppendUint64(b, digest(s.rest))
	sum := sha256.Sum256(b)
	return string(sum[:])
}

// equal says the same as equal keys, and costs less.
func (s *Stream) equal(t *Stream) bool {
	return s.Bytes == t.Bytes && slices.Equal(s.blocks, t.blocks) && bytes.Equal(s.rest, t.rest)
}

// common returns up to where two streams are certainly equal: an offset that is
// exact within their first block, and otherwise the start of a block.
func (s *Stream) common(t *Stream) int64 {
	if n := shared(s.head, t.head); n < blockSize {
		return int64(n)
	}
	n := min(len(s.blocks), len(t.blocks))
	for i := range n {
		if s.blocks[i] != t.blocks[i] {
			return int64(i) * blockSize
		}
	}
	at := int64(n) * blockSize
	if len(s.blocks) == len(t.blocks) {
		at += int64(shared(s.rest, t.rest))
	}
	return at
}

// startOf reports whether the stream may be the start of another, as far as is
// known: of its incomplete last block only what can be compared is.
func (s *Stream) startOf(t *Stream) bool {
	if s.Bytes > t.Bytes {
		return false
	}
	c := s.common(t)
	if c == s.Bytes {
		return true
	}
	complete := int64(len(s.blocks)) * blockSize
	return complete >= blockSize && c == complete && len(t.blocks) > len(s.blocks)
}

func shared(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// show returns the bytes around an offset, if they were kept.
func (s *Stream) show(at int64) string {
	const before, after = 24, 72
	from := max(0, at-before)
	part := s.head
	if complete := int64(len(s.blocks)) * blockSize; at >= blockSize && at >= complete {
		part, from = s.rest, max(0, at-complete-before)
	}
	if from >= int64(len(part)) {
		return fmt.Sprintf("(%d bytes, these not kept)", s.Bytes)
	}
	return fmt.Sprintf("(%d bytes) ...%q", s.Bytes, part[from:min(int64(len(part)), from+before+after)])
}
