package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A call reads from a connection, or writes to it. Where that is a TCP
// connection, the system call is made without telling the scheduler: it never
// waits, and what the runtime does around a call that might costs a tenth of
// what a small message does. Only one goroutine may use it.
type call struct {
	conn  net.Conn
	raw   syscall.RawConn // nil: not known to be TCP, or not yet
	trap  uintptr
	bytes []byte
	n     int
	errno syscall.Errno
	try   func(fd uintptr) bool
}

func reading(c net.Conn) *call { return newCall(c, syscall.SYS_READ) }
func writing(c net.Conn) *call { return newCall(c, syscall.SYS_WRITE) }

func newCall(c net.Conn, trap uintptr) *call {
	k := &call{conn: c, trap: trap}
	k.try = k.once
	return k
}

// once makes the system call, and reports whether it was the last that was
// needed: a read gets something, a write gets rid of everything.
func (k *call) once(fd uintptr) bool {
	for {
		rest := k.bytes[k.n:]
		n, _, errno := syscall.RawSyscall(k.trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)))
		switch errno {
		case 0:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			k.errno = errno
			return true
		}
		k.n += int(n)
		if k.trap == syscall.SYS_READ || k.n == len(k.bytes) {
			return true
		}
	}
}

// direct reports whether the system call may be made here.
func (k *call) direct() bool {
	if k.raw != nil {
		return true
	}
	t, ok := tcp(k.conn)
	if !ok {
		return false
	}
	raw, err := t.SyscallConn()
	if err == nil {
		k.raw = raw
	}
	return err == nil
}

// read is Read of the connection.
func (k *call) read(p []byte) (int, error) {
	if !k.direct() {
		return k.conn.Read(p)
	}
	k.bytes, k.n, k.errno = p, 0, 0
	err := k.raw.Read(k.try)
	k.bytes = nil
	switch {
	case err != nil:
		return 0, err
	case k.errno != 0:
		return 0, os.NewSyscallError("read", k.errno)
	case k.n == 0:
		return 0, io.EOF
	}
	return k.n, nil
}

// write is Write of the connection.
func (k *call) write(p []byte) error {
	if !k.direct() {
		_, err := k.conn.Write(p)
		return err
	}
	k.bytes, k.n, k.errno = p, 0, 0
	err := k.raw.Write(k.try)
	k.bytes = nil
	if err == nil && k.errno != 0 {
		err = os.NewSyscallError("write", k.errno)
	}
	return err
}
