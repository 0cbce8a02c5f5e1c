package history

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Writer appends to a history. Its first error sticks: nothing is written
// after it, and [Writer.Err] and [Writer.Close] return it. It is not safe for
// concurrent use, does not buffer, and does not close what it writes to.
type Writer struct {
	w    io.Writer
	keep *keeper
	err  error
}

// NewWriter writes the header and returns a writer. Integers are kept in the
// columns for which ints says so (with a nil ints, in none), in those by which
// an invariant of the header chooses its row, and where a process guards a
// statement with a fence that it was issued.
func NewWriter(w io.Writer, h Header, ints func(table, column string) bool) *Writer {
	if ints == nil {
		ints = func(string, string) bool { return false }
	}
	h.Schema = Schema
	out := &Writer{w: w, keep: newKeeper(ints, h.Invariants)}
	out.put(line{"header", &h})
	return out
}

// Op appends a finished op. It reads op and keeps nothing of it.
func (w *Writer) Op(op *lock.Op) {
	w.keep.issued(op)
	w.put(encode(op, w.keep.of(op)))
}

// Injection appends an injection.
func (w *Writer) Injection(i Injection) {
	w.put(struct {
		Type string `json:"type"`
		Injection
	}{"injection", i})
}

// Turn appends a request that waited behind an injection's op.
func (w *Writer) Turn(t Turn) {
	w.put(struct {
		Type string `json:"type"`
		Turn
	}{"turn", t})
}

// Vain appends that a rule waits in vain.
func (w *Writer) Vain(v Vain) {
	w.put(struct {
		Type string `json:"type"`
		Vain
	}{"vain", v})
}

// Actor appends what is known of a process.
func (w *Writer) Actor(a Actor) {
	w.put(struct {
		Type string `json:"type"`
		Actor
	}{"actor", a})
}

// Invariants appends the invariants again, with the readings that were not
// known when the header was written. The last such line counts.
func (w *Writer) Invariants(list []Invariant) {
	w.put(struct {
		Type       string      `json:"type"`
		Invariants []Invariant `json:"invariants"`
	}{"invariants", list})
}

// End appends the end of a session. seq is its place in the order of requests
// and replies, 0 where that is not known.
func (w *Writer) End(session uint64, at lock.Instant, seq uint64) {
	w.put(struct {
		Type string `json:"type"`
		End
	}{"end", End{session, at, seq}})
}

// Gap appends that the record lacks lost entries at this place, none of which
// came later than at, and why.
func (w *Writer) Gap(at lock.Instant, lost int, why string) {
	w.put(struct {
		Type string `json:"type"`
		Gap
	}{"gap", Gap{at, lost, why}})
}

// Clock appends a look at an upstream's clock.
func (w *Writer) Clock(c Clock) {
	w.put(struct {
		Type string `json:"type"`
		Clock
	}{"clock", c})
}

// Tally appends what a server counted of a table.
func (w *Writer) Tally(t Tally) {
	w.put(struct {
		Type string `json:"type"`
		Tally
	}{"tally", t})
}

// Bypass appends that somebody uses a lock's key past the proxies.
func (w *Writer) Bypass(b Bypass) {
	if !utf8.ValidString(b.Key) {
		b.Key, b.KeyHex = "", hex.EncodeToString([]byte(b.Key))
	}
	w.put(struct {
		Type string `json:"type"`
		Bypass
	}{"bypass", b})
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// Close ends the history and returns the first error.
func (w *Writer) Close() error { return w.err }

func (w *Writer) put(v any) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.w.Write(append(b, '\n'))
	}
	if err != nil {
		w.err = fmt.Errorf("write history: %w", err)
	}
}
