package proxy

import (
	"errors"
	"sync"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// queued is how many lines may wait for the disk before the wire has to.
const queued = 4096

// A Record writes the history from one goroutine, so that a session waits for
// the disk only when the queue is full: the wire is slowed rather than a line
// lost. Its methods may be called concurrently, until Close.
type Record struct {
	lines  chan func(*history.Writer)
	engine *Engine
	writer *history.Writer
	flush  func() error
	ended  sync.WaitGroup
}

// NewRecord starts writing to w, which it owns until Close has returned. flush
// is called when there is nothing more to write for now.
func NewRecord(w *history.Writer, flush func() error, e *Engine) *Record {
	r := &Record{lines: make(chan func(*history.Writer), queued), engine: e, writer: w, flush: flush}
	r.ended.Go(r.write)
	return r
}

func (r *Record) write() {
	_ = r.flush() // so that even a daemon that saw nothing leaves a header
	for line := range r.lines {
		line(r.writer)
		if len(r.lines) == 0 {
			_ = r.flush() // its error sticks, and Close returns it
		}
	}
}

// Op records a finished op, after the actor that it may be the first of, if it
// matters to anybody.
func (r *Record) Op(op *lock.Op) {
	if !r.engine.Minds(op) {
		return
	}
	r.lines <- func(w *history.Writer) {
		r.actors(w)
		w.Op(op)
	}
}

// End records the end of a session.
func (r *Record) End(session uint64, at lock.Instant, seq uint64) {
	r.lines <- func(w *history.Writer) { w.End(session, at, seq) }
}

// Injection records an injection that has ended.
func (r *Record) Injection(in history.Injection) {
	r.lines <- func(w *history.Writer) {
		r.actors(w)
		w.Injection(in)
	}
}

// Invariants records the invariants with the readings that have come since.
func (r *Record) Invariants(list []history.Invariant) {
	r.lines <- func(w *history.Writer) { w.Invariants(list) }
}

func (r *Record) actors(w *history.Writer) {
	for _, a := range r.engine.NewActors() {
		w.Actor(a)
	}
}

// Close writes what is queued, closes the writer and returns its first error.
func (r *Record) Close() error {
	close(r.lines)
	r.ended.Wait()
	return errors.Join(r.writer.Close(), r.flush())
}
