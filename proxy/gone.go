package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other end of a connection has closed it, without
// reading from it.
func hungUp(c net.Conn) bool {
	c = transport(c)
	if g, ok := c.(interface{ Gone() bool }); ok {
		return g.Gone()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	return polled(sc, unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR)
}

// broken reports whether a connection can carry nothing any more, in either
// direction.
func broken(c syscall.Conn) bool { return polled(c, unix.POLLHUP|unix.POLLERR) }

// polled reports whether one of the events is there, or cannot be asked for.
func polled(c syscall.Conn, events int16) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	found := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: events}}
		n, _ := unix.Poll(p, 0)
		found = n > 0 && p[0].Revents&events != 0
	})
	return found || err != nil
}
