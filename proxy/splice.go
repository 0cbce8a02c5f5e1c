package proxy

import (
	"io"
	"net"
)

const (
	minSplice = 64 << 10 // a body with less to come is copied
	maxSplice = 1 << 20  // moved between two looks at the session
)

// splice has the kernel move what comes next of a body that nobody looks at,
// where both ends are TCP connections.
func (d *driver) splice(dir Direction, w *window, to net.Conn) error {
	src, ok := tcp(w.from)
	dst, ok2 := tcp(to)
	if !ok || !ok2 {
		return nil
	}
	for rest := d.session.Rest(dir); rest >= minSplice; rest = d.session.Rest(dir) {
		n, err := io.CopyN(dst, src, min(rest, maxSplice))
		d.session.Skip(dir, n)
		if err == nil || w.pastDeadline(err) {
			continue
		}
		if err != io.EOF && broken(dst) {
			return unwritten(err)
		}
		return err
	}
	return nil
}
