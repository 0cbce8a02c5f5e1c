package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	smallRead = 2 << 10          // what one read asks for on a quiet connection, in bytes
	largeRead = 32 << 10         // and on one whose chunks have filled that
	calm      = 10 * time.Second // after that long without a read, a connection is quiet
)

// large holds the buffers of the connections that are busy.
var large = sync.Pool{New: func() any { return new([largeRead]byte) }}

// A window is the part of a stream that has been read and not yet forwarded.
// Its buffer is small while the stream is quiet, since most connections mostly
// are, and borrowed from a pool while it is not.
type window struct {
	from  net.Conn
	in    *call
	buf   []byte // what is withheld
	small []byte
	lent  *[largeRead]byte // behind buf, unless it is small or had to grow
	full  bool             // the last read left no room
	timed bool             // a deadline tells when it is quiet
	quiet bool             // no read since it was set
}

func newWindow(from net.Conn) *window {
	w := &window{from: from, in: reading(from), small: make([]byte, 0, smallRead)}
	w.buf = w.small
	return w
}

// read waits for the next bytes and returns them; they stay at hand until
// dropped. The chunk may be empty without an error.
func (w *window) read() ([]byte, error) {
	w.makeRoom()
	at := len(w.buf)
	n, err := w.in.read(w.buf[at:cap(w.buf)])
	w.buf = w.buf[:at+n]
	w.full = at+n == cap(w.buf)
	if n > 0 {
		w.quiet = false
	}
	if w.pastDeadline(err, n > 0) {
		err = nil
	}
	return w.buf[at:], err
}

// pastDeadline reports whether a reader was woken for the window's sake; its
// buffer was looked after then. moved says whether the reader got anything.
func (w *window) pastDeadline(err error, moved bool) bool {
	if !w.timed || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if moved {
		w.quiet = false
	}
	w.settle()
	return true
}

// held returns all bytes at hand.
func (w *window) held() []byte { return w.buf }

// filled reports whether the last read left no room: there may be much more.
func (w *window) filled() bool { return w.full }

// drop forgets the first n bytes at hand.
func (w *window) drop(n int) {
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
}

// makeRoom sees to it that a read finds a fair space behind what is withheld.
func (w *window) makeRoom() {
	switch {
	case cap(w.buf) > largeRead && len(w.buf) <= largeRead/2:
		w.borrow()
	case !w.full && cap(w.buf)-len(w.buf) >= smallRead/2:
	case len(w.buf) <= largeRead/2:
		w.borrow()
	case cap(w.buf)-len(w.buf) < largeRead/2:
		w.move(make([]byte, 0, 2*cap(w.buf)))
	}
}

// borrow moves what is withheld into a large buffer of the pool, if it is not
// in one.
func (w *window) borrow() {
	if w.lent != nil {
		return
	}
	lent := large.Get().(*[largeRead]byte)
	w.move(lent[:0])
	w.lent = lent
	w.watch()
}

// move changes the buffer.
func (w *window) move(to []byte) {
	w.buf = append(to, w.buf...)
	w.giveBack()
}

func (w *window) giveBack() {
	if w.lent != nil {
		large.Put(w.lent)
		w.lent = nil
	}
}

// watch asks to be woken when the stream may have become quiet. A connection
// without deadlines keeps its large buffer.
func (w *window) watch() {
	w.quiet = true
	w.timed = w.from.SetReadDeadline(time.Now().Add(calm)) == nil
}

// patient sees to it that a reader is woken when the stream has become quiet.
func (w *window) patient() {
	if !w.timed {
		w.watch()
	}
}

// settle goes back to the small buffer, if nothing came since the last look.
func (w *window) settle() {
	if !w.quiet || len(w.buf) > smallRead/2 {
		w.watch()
		return
	}
	w.move(w.small[:0])
	w.full = false
	w.timed = w.from.SetReadDeadline(time.Time{}) != nil
}

func (w *window) close() {
	if w.timed {
		_ = w.from.SetReadDeadline(time.Time{})
	}
	w.giveBack()
	w.buf, w.small = nil, nil
}
