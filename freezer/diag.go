package freezer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The parts of linux/inet_diag.h that the package uses.
const (
	requestSize    = 56
	answerSize     = 72
	noCookie       = 0xffffffff
	attrCgroupID   = 21
	tcpEstablished = 1
	tcpCloseWait   = 8
	tcpListen      = 10
)

// socket is what the kernel says of one socket.
type socket struct {
	local, remote netip.AddrPort
	state         uint8
	inode         uint32
	unread        uint32                 // bytes in its receive queue
	cgroup        uint64                 // v2 cgroup at the time of socket(); 0 unknown, 1 the root
	maker         int                    // the process that is known to have connected it, whoever has it now; 0: not known
	again         func() (socket, error) // asks once more where it was found; may be nil
}

// diag asks the kernel for sockets by their exact addresses, and for what it knows of translated ones. Its netlink
// sockets stay open, since opening one costs more than the question.
type diag struct {
	space *os.File // the network namespace that is asked; nil: this one
	there []uint32 // its devices, as they were lately

	mu     sync.Mutex
	conns  map[int]*netlink.Conn // by family
	closed bool                  // its namespace was left: a new socket would be one of this
}

func (d *diag) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, c := range d.conns {
		err = errors.Join(err, c.Close())
	}
	if d.space != nil {
		err = errors.Join(err, d.space.Close())
	}
	d.conns, d.space, d.closed = nil, nil, true
	return err
}

// open opens a netlink socket, which then stays in its namespace.
func (d *diag) open(family int) error {
	config := &netlink.Config{}
	if d.space != nil {
		config.NetNS = int(d.space.Fd())
	}
	c, err := netlink.Dial(family, config)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	if d.conns == nil {
		d.conns = make(map[int]*netlink.Conn)
	}
	d.conns[family] = c
	return nil
}

// A question is what one namespace is asked to find one connection.
type question struct {
	of            *diag
	local, remote netip.AddrPort
	device        uint32
}

// ask returns the socket, which can be asked for again in the same way.
func (q question) ask() (socket, error) {
	s, err := q.of.ask(q.local, q.remote, q.device)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return socket{}, ErrNoConnection
	case err != nil:
		return socket{}, fmt.Errorf("ask the kernel for a socket: %w", err)
	case !s.connects(q.local, q.remote):
		return socket{}, ErrNoConnection
	}
	s.again = q.ask
	return s, nil
}

// connection finds the client's end of a connection. A socket that is bound to
// a device is found only when its device is named, so they are tried in turn.
func (d *diag) connection(local, remote netip.AddrPort) (socket, error) {
	q := question{of: d, local: local, remote: remote}
	if d.space == nil {
		q.device = zoneIndex(local, remote)
	}
	s, err := q.ask()
	if err == nil || !errors.Is(err, ErrNoConnection) {
		return s, err
	}
	for _, dev := range d.devices() {
		q.device = dev
		if s, err := q.ask(); err == nil || !errors.Is(err, ErrNoConnection) {
			return s, err
		}
	}
	return socket{}, err
}

// devices lists the network devices of the namespace.
func (d *diag) devices() []uint32 {
	if d.space != nil {
		return d.there
	}
	all, _ := net.Interfaces()
	out := make([]uint32, len(all))
	for i, dev := range all {
		out[i] = uint32(dev.Index)
	}
	return out
}

// connects reports whether an answer is the connection that was asked for, and
// some process may still have it. The kernel answers with a listener on the
// port when it is gone.
func (s socket) connects(local, remote netip.AddrPort) bool {
	return s.local == plain(local) && s.remote == plain(remote) &&
		(s.state == tcpEstablished || s.state == tcpCloseWait) && s.inode != 0
}

// listener returns the inode of the socket that accepts connections to addr,
// or 0 where there is none on this host.
func (d *diag) listener(addr netip.AddrPort) (uint32, error) {
	none := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if addr.Addr().Unmap().Is6() {
		none = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	s, err := d.ask(addr, none, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && s.state != tcpListen:
		return 0, nil
	case errors.Is(err, unix.EINVAL) && addr.Addr().Unmap().Is6(): // a kernel without IPv6
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("ask the kernel for the server on %s: %w", addr, err)
	}
	return s.inode, nil
}

func (d *diag) ask(local, remote netip.AddrPort, device uint32) (socket, error) {
	answer, err := d.put(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, request(local, remote, device))
	if err != nil {
		return socket{}, err
	}
	return parseAnswer(answer)
}

// put asks one question, which has one answer.
func (d *diag) put(family int, kind netlink.HeaderType, request []byte) (answer []byte, err error) {
	m := netlink.Message{Header: netlink.Header{Type: kind, Flags: netlink.Request}, Data: request}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fs.ErrClosed
	}
	if d.conns[family] == nil {
		if err := d.open(family); err != nil {
			return nil, err
		}
	}
	exchange := (*netlink.Conn).Execute
	if family == unix.NETLINK_NETFILTER {
		exchange = one
	}
	answers, err := exchange(d.conns[family], m)
	if err != nil {
		d.forget(family, err)
		return nil, err
	}
	if len(answers) != 1 {
		return nil, fmt.Errorf("%d answers to one question", len(answers))
	}
	return answers[0].Data, nil
}

// forget drops a netlink socket whose next answer might belong to a question
// that has been given up.
func (d *diag) forget(family int, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	d.conns[family].Close()
	delete(d.conns, family)
}

// plain is the address as it is compared: 4 in 6 unwrapped, without a zone.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

func zoneIndex(addrs ...netip.AddrPort) uint32 {
	for _, a := range addrs {
		if dev, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
			return uint32(dev.Index)
		}
	}
	return 0
}

// request builds a struct inet_diag_req_v2.
func request(local, remote netip.AddrPort, device uint32) []byte {
	local, remote = plain(local), plain(remote)
	b := make([]byte, requestSize)
	b[0] = unix.AF_INET
	if local.Addr().Is6() {
		b[0] = unix.AF_INET6
	}
	b[1] = unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0))
	binary.BigEndian.PutUint16(b[8:], local.Port())
	binary.BigEndian.PutUint16(b[10:], remote.Port())
	copy(b[12:28], local.Addr().AsSlice())
	copy(b[28:44], remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[44:], device)
	binary.NativeEndian.PutUint32(b[48:], noCookie)
	binary.NativeEndian.PutUint32(b[52:], noCookie)
	return b
}

// parseAnswer reads a struct inet_diag_msg and the attributes behind it.
func parseAnswer(b []byte) (socket, error) {
	if len(b) < answerSize {
		return socket{}, fmt.Errorf("answer of %d bytes, expected %d", len(b), answerSize)
	}
	s := socket{
		state:  b[1],
		local:  addrPort(b[0], b[8:24], b[4:6]),
		remote: addrPort(b[0], b[24:40], b[6:8]),
		unread: binary.NativeEndian.Uint32(b[56:]),
		inode:  binary.NativeEndian.Uint32(b[68:]),
	}
	attrs, err := netlink.UnmarshalAttributes(b[answerSize:])
	if err != nil {
		return s, nil // the cgroup is only a hint
	}
	for _, a := range attrs {
		if a.Type == attrCgroupID && len(a.Data) == 8 {
			s.cgroup = binary.NativeEndian.Uint64(a.Data)
		}
	}
	return s, nil
}

func addrPort(family byte, addr, port []byte) netip.AddrPort {
	n := 4
	if family == unix.AF_INET6 {
		n = 16
	}
	a, _ := netip.AddrFromSlice(addr[:n])
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(port))
}
