package history

import (
	"bytes"
	"sync"

	"github.com/lockfaultd/lockfaultd/lock"
)

// RingSize is how many bytes of lines a ring keeps where nothing else is said.
const RingSize = 32 << 20

// A Ring keeps the last lines of a history that is being written, and its header
// for as long as it is. Lines are counted from the header, which is 0. The writer
// never waits for those that read: who falls behind is told how many lines are
// gone. All methods may be called concurrently.
type Ring struct {
	size  int
	clock func() lock.Instant // nil: nobody asks when a line was written

	mu     sync.Mutex
	header []byte
	kept   []stamped // those behind the header that are left, in order
	first  uint64    // the number of the first of them
	bytes  int       // their sum
	more   chan struct{}
	closed bool
}

// A stamped line is one with the instant at which it was written.
type stamped struct {
	line []byte
	at   lock.Instant
}

// NewRing returns a ring for so many bytes of lines behind the header; of longer
// lines than that it keeps one. clock may be nil.
func NewRing(size int, clock func() lock.Instant) *Ring {
	return &Ring{size: size, clock: clock, first: 1}
}

// Write takes one line, which it copies. It never fails.
func (r *Ring) Write(line []byte) (int, error) {
	s := stamped{line: bytes.Clone(line)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock != nil {
		s.at = r.clock()
	}
	if r.header == nil {
		r.header = s.line
	} else {
		r.keep(s)
	}
	r.tell()
	return len(line), nil
}

// keep appends a line, and drops the oldest for which there is no room then.
func (r *Ring) keep(s stamped) {
	r.kept = append(r.kept, s)
	r.bytes += len(s.line)
	for r.bytes > r.size && len(r.kept) > 1 {
		r.bytes -= len(r.kept[0].line)
		r.kept[0] = stamped{} // the array goes on, its line does not
		r.kept = r.kept[1:]
		r.first++
	}
}

func (r *Ring) tell() {
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// Close tells readers that no line comes any more.
func (r *Ring) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.tell()
}

// Read returns the lines from number from on, at most max, and the number of the
// line behind them. Of those asked for, lost are gone: lines begins behind these.
// Where there is none yet, more is closed once there is, or once the ring is; it is nil
// where none will come. Lines may not be changed.
func (r *Ring) Read(from uint64, max int) (lines [][]byte, next uint64, lost uint64, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from == 0 && r.header != nil {
		return [][]byte{r.header}, 1, 0, nil
	}
	if from < r.first && from > 0 {
		lost = r.first - from
		from = r.first
	}
	if from > 0 && from < r.end() {
		rest := r.kept[from-r.first:]
		for _, s := range rest[:min(max, len(rest))] {
			lines = append(lines, s.line)
		}
	}
	if len(lines) == 0 && !r.closed {
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more = r.more
	}
	return lines, from + uint64(len(lines)), lost, more
}

// At returns an instant by which line n, and with it all before it, had been
// written.
func (r *Ring) At(n uint64) lock.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == 0 {
		return 0
	}
	n = min(max(n, r.first), r.end()-1)
	return r.kept[n-r.first].at
}

// End returns the number that the next line will have.
func (r *Ring) End() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.header == nil {
		return 0
	}
	return r.end()
}

func (r *Ring) end() uint64 { return r.first + uint64(len(r.kept)) }
