package freezer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The parts of linux/netfilter/nfnetlink_conntrack.h that the package uses.
const (
	getTrack    = 1<<8 | 1 // IPCTNL_MSG_CT_GET of NFNL_SUBSYS_CTNETLINK
	trackHeader = 4        // struct nfgenmsg

	tupleOriginal = 1
	tupleReply    = 2
	tupleIP       = 1
	tupleProto    = 2
	ip4Source     = 1
	ip4Target     = 2
	ip6Source     = 3
	ip6Target     = 4
	protoNumber   = 1
	portSource    = 2
	portTarget    = 3
)

// mostTranslations bounds how often the addresses of one connection are followed back.
const mostTranslations = 4

// untranslated returns the addresses that a connection had before, if one of the network namespaces has translated
// them; else they are not valid.
func (f *Freezer) untranslated(a addresses) (addresses, error) {
	before := make(map[addresses]bool)
	var denied, err error
	ask := func(d *diag) {
		was, derr := d.original(a.client, a.server)
		switch {
		case errors.Is(derr, fs.ErrPermission):
			denied = derr
		case derr != nil:
			err = derr
		case was.client.IsValid() && was != (addresses{client: plain(a.client), server: plain(a.server)}):
			before[was] = true
		}
	}
	ask(&f.diag)
	f.spaces.mu.Lock()
	others, _ := f.spaces.all()
	for _, d := range others {
		ask(d)
	}
	f.spaces.mu.Unlock()
	switch {
	case err != nil:
		return addresses{}, err
	case len(before) > 1:
		return addresses{}, ErrAmbiguous
	}
	for was := range before {
		was.relayed = true // its addresses mean what they mean on that side
		return was, nil
	}
	return addresses{}, denied
}

// original asks which addresses a connection that arrived by these began with. They are not valid where the
// namespace knows nothing of it.
func (d *diag) original(client, server netip.AddrPort) (addresses, error) {
	request, err := trackRequest(plain(server), plain(client))
	if err != nil {
		return addresses{}, err
	}
	answer, err := d.put(unix.NETLINK_NETFILTER, getTrack, request)
	switch {
	case errors.Is(err, fs.ErrNotExist), noTracking(err):
		return addresses{}, nil
	case err != nil:
		return addresses{}, fmt.Errorf("ask the kernel for a translated connection: %w", err)
	}
	original, reply, err := parseTrack(answer)
	if err != nil || reply != (addresses{client: plain(server), server: plain(client)}) {
		return addresses{}, err
	}
	return original, nil
}

// answerWithin bounds how long the kernel may take to answer.
const answerWithin = time.Second

// one asks a question and takes the one answer. The kernel marks that as the first of many, and no others follow.
func one(c *netlink.Conn, m netlink.Message) ([]netlink.Message, error) {
	sent, err := c.Send(m)
	if err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(answerWithin)); err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	buf, n := make([]byte, 8<<10), 0
	rerr := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), buf, 0)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	if err := errors.Join(rerr, err); err != nil {
		return nil, err
	}
	return parseOne(buf[:n], sent.Header.Sequence)
}

// parseOne reads a datagram of one message, or an error.
func parseOne(b []byte, sequence uint32) ([]netlink.Message, error) {
	const header = 16
	if len(b) < header || int(binary.NativeEndian.Uint32(b)) < header || int(binary.NativeEndian.Uint32(b)) > len(b) {
		return nil, fmt.Errorf("answer of %d bytes, expected a message", len(b))
	}
	m := netlink.Message{Data: b[header:binary.NativeEndian.Uint32(b)]}
	m.Header.Type = netlink.HeaderType(binary.NativeEndian.Uint16(b[4:]))
	switch {
	case binary.NativeEndian.Uint32(b[8:]) != sequence:
		return nil, errors.New("the answer is to another question")
	case m.Header.Type == netlink.Error && len(m.Data) >= 4:
		return nil, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
	}
	return []netlink.Message{m}, nil
}

// noTracking reports whether a kernel tracks no connections.
func noTracking(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EAFNOSUPPORT)
}

// trackRequest asks for the connection whose replies go from source to target.
func trackRequest(source, target netip.AddrPort) ([]byte, error) {
	header := make([]byte, trackHeader)
	header[0] = unix.AF_INET
	from, to := uint16(ip4Source), uint16(ip4Target)
	if source.Addr().Is6() {
		header[0], from, to = unix.AF_INET6, ip6Source, ip6Target
	}
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.Nested(tupleReply, func(e *netlink.AttributeEncoder) error {
		e.Nested(tupleIP, func(e *netlink.AttributeEncoder) error {
			e.Bytes(from, source.Addr().AsSlice())
			e.Bytes(to, target.Addr().AsSlice())
			return nil
		})
		e.Nested(tupleProto, func(e *netlink.AttributeEncoder) error {
			e.Uint8(protoNumber, unix.IPPROTO_TCP)
			e.Uint16(portSource, source.Port())
			e.Uint16(portTarget, target.Port())
			return nil
		})
		return nil
	})
	attrs, err := e.Encode()
	return append(header, attrs...), err
}

// parseTrack reads both directions of a tracked connection, each from who sends.
func parseTrack(b []byte) (original, reply addresses, err error) {
	if len(b) < trackHeader {
		return original, reply, fmt.Errorf("answer of %d bytes, expected %d", len(b), trackHeader)
	}
	d, err := netlink.NewAttributeDecoder(b[trackHeader:])
	if err != nil {
		return original, reply, fmt.Errorf("read the kernel's answer: %w", err)
	}
	for d.Next() {
		switch d.Type() {
		case tupleOriginal:
			d.Nested(original.decode)
		case tupleReply:
			d.Nested(reply.decode)
		}
	}
	if err := d.Err(); err != nil {
		return addresses{}, addresses{}, fmt.Errorf("read the kernel's answer: %w", err)
	}
	return original, reply, nil
}

// decode reads one direction.
func (a *addresses) decode(d *netlink.AttributeDecoder) error {
	d.ByteOrder = binary.BigEndian
	var hosts [2]netip.Addr
	var ports [2]uint16
	for d.Next() {
		switch d.Type() {
		case tupleIP:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					switch d.Type() {
					case ip4Source, ip6Source:
						hosts[0], _ = netip.AddrFromSlice(d.Bytes())
					case ip4Target, ip6Target:
						hosts[1], _ = netip.AddrFromSlice(d.Bytes())
					}
				}
				return nil
			})
		case tupleProto:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				d.ByteOrder = binary.BigEndian
				for d.Next() {
					switch d.Type() {
					case portSource:
						ports[0] = d.Uint16()
					case portTarget:
						ports[1] = d.Uint16()
					}
				}
				return nil
			})
		}
	}
	a.client, a.server = netip.AddrPortFrom(hosts[0], ports[0]), netip.AddrPortFrom(hosts[1], ports[1])
	return nil
}
