package freezer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The parts of linux/unix_diag.h that the package uses.
const (
	unixRequestSize = 24
	unixAnswerSize  = 16
	showPeer        = 0x04
	showQueues      = 0x10
	attrPeer        = 2
	attrQueues      = 4
)

// A peering is an accepted connection of a Unix socket. The kernel knows it by the inode of the accepted end, in the
// network namespace of whoever has connected.
type peering struct {
	inode  uint32
	cookie uint64 // tells it from a later one of the same inode
	maker  int
}

// peeringOf describes an accepted connection.
func peeringOf(c syscall.Conn) (peering, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peering{}, err
	}
	var (
		st     unix.Stat_t
		cred   *unix.Ucred
		cookie uint64
		errs   [3]error
	)
	err = raw.Control(func(fd uintptr) {
		errs[0] = unix.Fstat(int(fd), &st)
		cred, errs[1] = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		cookie, errs[2] = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
	})
	if err = errors.Join(err, errs[0], errs[1], errs[2]); err != nil {
		return peering{}, err
	}
	return peering{inode: uint32(st.Ino), cookie: cookie, maker: int(cred.Pid)}, nil
}

func (p peering) String() string { return fmt.Sprintf("the client of Unix socket %d", p.inode) }

// find returns the client's end, while there is one.
func (p peering) find(f *Freezer) (socket, error) {
	s, err := p.in(&f.diag)
	if !errors.Is(err, ErrNoConnection) {
		return s, err
	}
	f.spaces.mu.Lock()
	defer f.spaces.mu.Unlock()
	others, _ := f.spaces.all()
	for _, d := range others {
		if s, err := p.in(d); !errors.Is(err, ErrNoConnection) {
			return s, err
		}
	}
	return socket{}, err
}

// in asks one network namespace.
func (p peering) in(d *diag) (socket, error) {
	answer, err := d.put(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, p.request())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESTALE):
		return socket{}, ErrNoConnection
	case err != nil:
		return socket{}, fmt.Errorf("ask the kernel for a Unix socket: %w", err)
	}
	s, err := parseUnixAnswer(answer)
	if err == nil && s.inode == 0 {
		err = ErrNoConnection
	}
	s.maker, s.again = p.maker, func() (socket, error) { return p.in(d) }
	return s, err
}

// request builds a struct unix_diag_req.
func (p peering) request() []byte {
	b := make([]byte, unixRequestSize)
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0))
	binary.NativeEndian.PutUint32(b[8:], p.inode)
	binary.NativeEndian.PutUint32(b[12:], showPeer|showQueues)
	binary.NativeEndian.PutUint32(b[16:], uint32(p.cookie))
	binary.NativeEndian.PutUint32(b[20:], uint32(p.cookie>>32))
	return b
}

// parseUnixAnswer reads the attributes behind a struct unix_diag_msg: which socket the other end is, if it is open, and
// how much of what was sent that has not read.
func parseUnixAnswer(b []byte) (s socket, err error) {
	if len(b) < unixAnswerSize {
		return s, fmt.Errorf("answer of %d bytes, expected %d", len(b), unixAnswerSize)
	}
	attrs, err := netlink.UnmarshalAttributes(b[unixAnswerSize:])
	if err != nil {
		return s, fmt.Errorf("read the kernel's answer: %w", err)
	}
	for _, a := range attrs {
		switch {
		case a.Type == attrPeer && len(a.Data) == 4:
			s.inode = binary.NativeEndian.Uint32(a.Data)
		case a.Type == attrQueues && len(a.Data) == 8:
			s.unread = binary.NativeEndian.Uint32(a.Data[4:])
		}
	}
	return s, nil
}

// LookupPeer finds the processes that hold the client's end of a connection that was accepted on a Unix socket. It is
// not enough to ask who has connected: that one may have ended, and another have the connection.
// The caller closes the Owner. Errors are those of [Freezer.Lookup].
func (f *Freezer) LookupPeer(ctx context.Context, c syscall.Conn) (*Owner, error) {
	p, err := peeringOf(c)
	if err != nil {
		return nil, fmt.Errorf("look up a client of a Unix socket: %w", err)
	}
	return f.lookup(ctx, p, false)
}
