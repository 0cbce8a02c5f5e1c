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

// waiting returns what the other end of a connection has sent and nobody has read yet, up to a bound. Of
// one with TLS that is not known.
func waiting(c net.Conn) []byte {
	if p, ok := c.(interface{ Peek() []byte }); ok {
		return p.Peek()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	buf := make([]byte, 2*mostKept)
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _, _ = unix.Recvfrom(int(fd), buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	if err != nil {
		return nil
	}
	return buf[:max(n, 0)]
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

// told reports whether a connection was reset and somebody has been told so,
// which happens once. A Unix socket that was closed reads like that, and there are no resets of one.
func told(c net.Conn) bool {
	if _, ok := transport(c).(*net.UnixConn); ok {
		return false
	}
	sc, ok := transport(c).(syscall.Conn)
	return ok && polled(sc, unix.POLLHUP) && !polled(sc, unix.POLLERR)
}

// unheard reports whether the other end of a connection has yet to hear of
// something that was written to it, and still can.
func unheard(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	found := false
	err = raw.Control(func(fd uintptr) {
		waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
		info, err2 := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		isTCP := err2 != unix.EOPNOTSUPP // as of a Unix socket
		found = err == nil && waiting > 0 && (!isTCP || err2 == nil && info.State != tcpClosed)
	})
	return found && err == nil
}

const tcpClosed = 7 // TCP_CLOSE of include/net/tcp_states.h
