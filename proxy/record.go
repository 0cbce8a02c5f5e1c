package proxy

import (
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
	ended  sync.WaitGroup
}

// NewRecord starts writing to w, which it owns until Close has returned.
func NewRecord(w *history.Writer, e *Engine) *Record {
	r := &Record{lines: make(chan func(*history.Writer), queued), engine: e, writer: w}
	r.ended.Go(r.write)
	return r
}

func (r *Record) write() {
	for line := range r.lines {
		line(r.writer)
	}
}

// Op records a finished op, after the actor that it may be the first of.
func (r *Record) Op(op *lock.Op) {
	r.lines <- func(w *history.Writer) {
		r.actors(w)
		w.Op(op)
	}
}

// End records the end of a session.
func (r *Record) End(session uint64, at lock.Instant) {
	r.lines <- func(w *history.Writer) { w.End(session, at) }
}

// Injection records an injection that has ended.
func (r *Record) Injection(in history.Injection) {
	r.lines <- func(w *history.Writer) {
		r.actors(w)
		w.Injection(in)
	}
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
	return r.writer.Close()
}
