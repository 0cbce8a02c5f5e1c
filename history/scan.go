package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Scan reads a history and hands over each line, the header first, in the order in
// which they stand there. What [Read] says of a last line that was cut off holds
// here too. Of a part of a history a gap stands behind the header for those before it. Errors name the line, but for those of take, which end the reading.
//
// The lines are read ahead of take, in a goroutine of their own, which has ended
// when Scan returns: after an error of take that is once the read under way has.
func Scan(r io.Reader, take func(Entry) error) error {
	a := ahead{batches: make(chan batch, 2), enough: make(chan struct{})}
	go a.read(r)
	defer a.end()
	for b := range a.batches {
		for _, e := range b.entries {
			if err := take(e); err != nil {
				return err
			}
		}
		if b.err != nil {
			return fmt.Errorf("read history: %w", b.err)
		}
	}
	return nil
}

// An ahead reads lines before they are asked for.
type ahead struct {
	batches chan batch
	enough  chan struct{} // closed when no more is wanted
}

// A batch is lines in a row, and the error that came after them.
type batch struct {
	entries []Entry
	err     error
}

// How many lines go from one goroutine to the other at a time.
const batchSize = 256

func (a *ahead) read(r io.Reader) {
	defer close(a.batches)
	l := lines{in: bufio.NewReaderSize(r, 1<<16), s: scanner{same: names{}}}
	for more := true; more; {
		var b batch
		b, more = l.batch()
		select {
		case a.batches <- b:
		case <-a.enough:
			return
		}
	}
}

// end waits until nothing is read any more.
func (a *ahead) end() {
	close(a.enough)
	for range a.batches {
	}
}

// lines are what is left of a history.
type lines struct {
	in *bufio.Reader
	s  scanner
	n  int // of the last line
}

// batch reads the lines that are there without waiting for more, and one at least.
func (l *lines) batch() (b batch, more bool) {
	b.entries = make([]Entry, 0, batchSize)
	for len(b.entries) < batchSize {
		e, err := l.next()
		if e != (Entry{}) {
			b.entries = append(b.entries, e)
		}
		if e.Header != nil && e.Header.before() != nil {
			b.entries = append(b.entries, Entry{Gap: e.Header.before()})
		}
		if err == io.EOF {
			return b, false
		}
		if err != nil {
			b.err = err
			return b, false
		}
		if l.in.Buffered() == 0 && len(b.entries) > 0 {
			break
		}
	}
	return b, true
}

// next reads a line. Its error is io.EOF where it was the last.
func (l *lines) next() (Entry, error) {
	l.n++
	b, err := l.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		long := slices.Clone(b)
		b, err = l.in.ReadBytes('\n')
		b = append(long, b...)
	}
	if err != nil && err != io.EOF {
		return Entry{}, fmt.Errorf("line %d: %w", l.n, err)
	}
	e, failed := l.s.line(b, l.n, err == nil)
	if failed != nil {
		return Entry{}, failed
	}
	return e, err
}

// A scanner reads lines.
type scanner struct {
	same names
	last lock.Instant // the latest of the ops
}

// line reads one line, which may be empty, or the last one and cut off.
func (s *scanner) line(b []byte, n int, whole bool) (Entry, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		if n == 1 {
			return Entry{}, errors.New("line 1: it is empty; expected a header")
		}
		return Entry{}, nil
	}
	e, err := s.entry(b, n)
	switch {
	case err != nil && (whole || n == 1):
		return Entry{}, fmt.Errorf("line %d: %w", n, err)
	case err != nil:
		return Entry{Gap: &Gap{At: s.last, Lost: 1, Why: "the last line is cut off"}}, nil
	case e.Op != nil:
		s.last = max(s.last, e.Op.A, e.Op.R, e.Op.D, e.Op.Z)
	}
	return e, nil
}

// A Decoder decodes the lines of histories one by one, wherever they come from. The
// first of a run has to be its header. It is for one goroutine.
type Decoder struct{ same names }

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return &Decoder{same: names{}} }

// Line decodes a line, of which it keeps nothing. An entry of which nothing is set is of a
// type that is not known.
func (d *Decoder) Line(line []byte) (Entry, error) {
	s := scanner{same: d.same}
	e, err := s.entry(line, anyLine)
	if err != nil {
		return Entry{}, fmt.Errorf("read line of history: %w", err)
	}
	return e, nil
}

// anyLine is the number of a line that may be a header, and need not.
const anyLine = 2
