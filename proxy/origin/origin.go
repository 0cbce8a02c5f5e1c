// Package origin reads the header of the PROXY protocol, versions 1 and 2, with which a relay says whose connection it
// passes on. It takes no byte from behind the header, so that the connection itself goes on to be used.
package origin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// An Origin is what a relay says of a connection.
type Origin struct {
	// Client and Server are the addresses of the connection to the relay. They are not valid where it does not say.
	Client, Server netip.AddrPort
	// Own: the connection is the relay's own, such as a health check, and passed on for nobody.
	Own bool
}

const (
	signature1 = "PROXY "
	signature2 = "\r\n\r\n\x00\r\nQUIT\n"
	most1      = 107     // bytes of a line of version 1, its end included
	most2      = 4 << 10 // bytes of a header of version 2 behind its fixed part
)

// ErrNone: what came is no such header.
var ErrNone = errors.New("expected a header of the PROXY protocol")

// ErrEmpty: the connection ended in order before its first byte, as a load balancer's plain check of a port does.
var ErrEmpty = errors.New("nothing was sent")

// Read reads one header and nothing behind it. It reads in small pieces, and waits for no more than it needs: what is
// no header is an error at its first byte that shows it.
func Read(r io.Reader) (Origin, error) {
	head := make([]byte, 0, most1)
	for {
		var one [1]byte
		if _, err := io.ReadFull(r, one[:]); err == io.EOF && len(head) == 0 {
			return Origin{}, ErrEmpty
		} else if err != nil {
			return Origin{}, fmt.Errorf("read the PROXY header: %w", err)
		}
		head = append(head, one[0])
		switch {
		case string(head) == signature2:
			return read2(r)
		case strings.HasPrefix(signature2, string(head)), strings.HasPrefix(signature1, string(head)):
		case !bytes.HasPrefix(head, []byte(signature1)):
			return Origin{}, fmt.Errorf("%w, found %q", ErrNone, head)
		case bytes.HasSuffix(head, []byte("\r\n")):
			return parse1(string(head[len(signature1) : len(head)-2]))
		case len(head) == most1:
			return Origin{}, fmt.Errorf("PROXY header of more than %d bytes", most1)
		}
	}
}

// parse1 reads what stands behind PROXY in a line of version 1.
func parse1(line string) (Origin, error) {
	kind, rest, _ := strings.Cut(line, " ")
	if kind == "UNKNOWN" {
		return Origin{}, nil // what follows it says nothing
	}
	f := strings.Split(rest, " ")
	if kind != "TCP4" && kind != "TCP6" || len(f) != 4 {
		return Origin{}, fmt.Errorf("PROXY header: expected TCP4, TCP6 or UNKNOWN, and two addresses and two ports, found %q", line)
	}
	client, err := address1(kind, f[0], f[2])
	if err != nil {
		return Origin{}, err
	}
	server, err := address1(kind, f[1], f[3])
	if err != nil {
		return Origin{}, err
	}
	return Origin{Client: client, Server: server}, nil
}

func address1(kind, host, port string) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" || a.Is4() != (kind == "TCP4") {
		return netip.AddrPort{}, fmt.Errorf("PROXY header: expected an address of %s, found %q", kind, host)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != port {
		return netip.AddrPort{}, fmt.Errorf("PROXY header: expected a port, found %q", port)
	}
	return netip.AddrPortFrom(a, uint16(n)), nil
}

// The parts of version 2 that are told apart.
const (
	version2 = 0x20
	local    = 0x0
	proxied  = 0x1
	unspec   = 0x0
	inet     = 0x1
	inet6    = 0x2
	unix     = 0x3
	stream   = 0x1
	checksum = 0x03 // the type of the field that has one
)

// lengths of the addresses, by family.
var lengths = [...]int{unspec: 0, inet: 12, inet6: 36, unix: 216}

// read2 reads what stands behind the signature of version 2.
func read2(r io.Reader) (Origin, error) {
	var fixed [4]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Origin{}, fmt.Errorf("read the PROXY header: %w", err)
	}
	size := int(binary.BigEndian.Uint16(fixed[2:]))
	if size > most2 {
		return Origin{}, fmt.Errorf("PROXY header of %d bytes, expected at most %d", size, most2)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return Origin{}, fmt.Errorf("read the PROXY header: %w", err)
	}
	return parse2(fixed, body)
}

func parse2(fixed [4]byte, body []byte) (Origin, error) {
	command, family, transport := fixed[0]&0x0f, fixed[1]>>4, fixed[1]&0x0f
	switch {
	case fixed[0]&0xf0 != version2 || command > proxied:
		return Origin{}, fmt.Errorf("PROXY header: expected version 2 and a known command, found %#02x", fixed[0])
	case int(family) >= len(lengths) || transport > 2:
		return Origin{}, fmt.Errorf("PROXY header: unknown family and transport %#02x", fixed[1])
	case command == local:
		return Origin{Own: true}, nil // what follows it says nothing
	case family == unspec || transport == 0:
		return Origin{}, nil
	case transport != stream:
		return Origin{}, fmt.Errorf("PROXY header: expected a stream, found transport %d", transport)
	case len(body) < lengths[family]:
		return Origin{}, fmt.Errorf("PROXY header: addresses of %d bytes, expected %d", len(body), lengths[family])
	}
	if err := verify(fixed, body, lengths[family]); err != nil {
		return Origin{}, err
	}
	switch family {
	case inet:
		return addresses2(body[:12], 4), nil
	case inet6:
		return addresses2(body[:36], 16), nil
	}
	return Origin{}, nil // of a Unix socket there is no address
}

func addresses2(b []byte, n int) Origin {
	client, _ := netip.AddrFromSlice(b[:n])
	server, _ := netip.AddrFromSlice(b[n : 2*n])
	return Origin{
		Client: netip.AddrPortFrom(client, binary.BigEndian.Uint16(b[2*n:])),
		Server: netip.AddrPortFrom(server, binary.BigEndian.Uint16(b[2*n+2:])),
	}
}

// verify goes through the fields that stand behind the addresses, and checks the checksum if there is one.
func verify(fixed [4]byte, body []byte, at int) error {
	for at < len(body) {
		if at+3 > len(body) || at+3+int(binary.BigEndian.Uint16(body[at+1:])) > len(body) {
			return errors.New("PROXY header: a field goes on behind its end")
		}
		value := body[at+3 : at+3+int(binary.BigEndian.Uint16(body[at+1:]))]
		if body[at] == checksum {
			if len(value) != 4 {
				return fmt.Errorf("PROXY header: checksum of %d bytes, expected 4", len(value))
			}
			if want := binary.BigEndian.Uint32(value); sum(fixed, body, at+3) != want {
				return errors.New("PROXY header: the checksum is another")
			}
		}
		at += 3 + len(value)
	}
	return nil
}

// sum is the checksum of a header whose own one, at an offset of the body, counts as zero.
func sum(fixed [4]byte, body []byte, at int) uint32 {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, part := range [][]byte{[]byte(signature2), fixed[:], body[:at], make([]byte, 4), body[at+4:]} {
		h.Write(part)
	}
	return h.Sum32()
}
