package proxy

import "io"

const (
	minSplice = 64 << 10  // a body with less to come is copied
	maxSplice = 256 << 10 // moved between two looks at the session; more makes the ends wait for each other
)

// splice has the kernel move what comes next of a body that nobody looks at,
// where both ends are TCP connections. It gives up its pipe on a connection that
// has become quiet. A stall that begins meanwhile lets at most maxSplice bytes
// through.
func (d *driver) splice(y *way, w *window) error {
	src, ok := tcp(y.from)
	dst, ok2 := tcp(y.to)
	if !ok || !ok2 || isClosed(y.deaf) {
		return nil
	}
	w.patient()
	for rest := d.session.Rest(y.dir); rest >= minSplice; rest = d.session.Rest(y.dir) {
		n, err := io.CopyN(dst, src, min(rest, maxSplice))
		d.session.Skip(y.dir, n)
		switch {
		case err == nil:
		case w.pastDeadline(err, n > 0):
			if n == 0 {
				return nil
			}
		case err != io.EOF && broken(dst):
			// What was lost on the way to it is not known: nothing behind it can
			// be read.
			y.broke(err)
			return &sinkError{err}
		default:
			return err
		}
	}
	return nil
}
