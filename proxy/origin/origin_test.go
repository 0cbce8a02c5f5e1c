package origin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
)

const (
	ip4  = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 6379\r\n"
	ip6  = "PROXY TCP6 2001:db8::1 2001:db8::2 40000 5432\r\n"
	long = "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"
)

func v2(command, family byte, body string) string {
	return signature2 + string([]byte{command, family, byte(len(body) >> 8), byte(len(body))}) + body
}

var (
	body4 = "\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x18\xeb"
	body6 = strings.Repeat("\x20\x01", 16) + "\x9c\x40\x18\xeb"
)

// Whatever follows a header is left.
func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		ip4:  "192.0.2.1:40000 192.0.2.2:6379",
		ip6:  "[2001:db8::1]:40000 [2001:db8::2]:5432",
		long: "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535 [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
		"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 1 2\r\n": "[::ffff:192.0.2.1]:1 [::ffff:192.0.2.2]:2",
		"PROXY UNKNOWN\r\n":                                "none",
		"PROXY UNKNOWN ffff::1 what ever 1 2\r\n":          "none",
		v2(0x21, 0x11, body4):                              "192.0.2.1:40000 192.0.2.2:6379",
		v2(0x21, 0x21, body6):                              "[2001:2001:2001:2001:2001:2001:2001:2001]:40000 [2001:2001:2001:2001:2001:2001:2001:2001]:6379",
		v2(0x21, 0x11, body4+"\x04\x00\x02ab\x05\x00\x00"): "192.0.2.1:40000 192.0.2.2:6379",
		v2(0x20, 0x00, ""):                                 "own",
		v2(0x20, 0x11, body4):                              "own",
		v2(0x21, 0x00, ""):                                 "none",
		v2(0x21, 0x31, strings.Repeat("\x00", 216)):        "none",
	} {
		r := strings.NewReader(text + "*1\r\n")
		o, err := Read(r)
		got := "none"
		switch {
		case err != nil:
			got = err.Error()
		case o.Own:
			got = "own"
		case o.Client.IsValid():
			got = o.Client.String() + " " + o.Server.String()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "*1\r\n" {
			t.Errorf("%q: left %q", text, rest)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"PING\r\n":         `found "PI"`,
		"*1\r\n":           `found "*"`,
		"\x00\x00\x00\x08": `found "\x00"`,
		"\r\n\r\nX":        `found "\r\n\r\nX"`,
		"PROXY TCP4 192.0.2.1 192.0.2.2 40000 6379":  "EOF",
		"PROXY " + strings.Repeat("x", 200):          "more than 107 bytes",
		"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n":     "expected TCP4",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n":       "expected TCP4",
		"PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n":    "expected TCP4",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n":    "expected TCP4",
		"PROXY TCP4 ::1 ::2 1 2\r\n":                 "expected an address of TCP4",
		"PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n":     "expected an address of TCP6",
		"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n":    "expected an address",
		"PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n":    "expected an address",
		"PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n": "expected a port",
		"PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n":    "expected a port",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1 +2\r\n":    "expected a port",
		"PROXY\r\n":                                  `found "PROXY\r"`,
		v2(0x11, 0x11, body4):                        "expected version 2",
		v2(0x22, 0x11, body4):                        "expected version 2",
		v2(0x21, 0x41, body4):                        "unknown family",
		v2(0x21, 0x13, body4):                        "unknown family",
		v2(0x21, 0x12, body4):                        "expected a stream",
		v2(0x21, 0x11, body4[:11]):                   "addresses of 11 bytes, expected 12",
		v2(0x21, 0x21, body4):                        "addresses of 12 bytes, expected 36",
		v2(0x21, 0x31, body4):                        "addresses of 12 bytes, expected 216",
		v2(0x21, 0x11, body4+"\x04\x00"):             "a field goes on",
		v2(0x21, 0x11, body4+"\x04\x00\x02a"):        "a field goes on",
		v2(0x21, 0x11, body4+"\x03\x00\x02ab"):       "checksum of 2 bytes",
		v2(0x21, 0x11, body4+"\x03\x00\x04abcd"):     "the checksum is another",
		signature2 + "\x21\x11\xff\xff":              "PROXY header of 65535 bytes",
		v2(0x21, 0x11, body4)[:20]:                   "EOF",
		signature2:                                   "EOF",
		v2(0x21, 0x11, strings.Repeat("x", most2+1)): "PROXY header of 4097 bytes",
	} {
		if o, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %s", text, o, err, want)
		}
	}
	for text, want := range map[string]bool{"": true, "P": false, signature2: false} {
		if _, err := Read(strings.NewReader(text)); errors.Is(err, ErrEmpty) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(strings.NewReader("GET")); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

// What another implementation writes is read as it was meant, its checksum included.
func TestReadsWhatOthersWrite(t *testing.T) {
	for _, x := range []struct {
		protocol       proxyproto.AddressFamilyAndProtocol
		client, server string
	}{
		{proxyproto.TCPv4, "192.0.2.1:40000", "198.51.100.7:6379"},
		{proxyproto.TCPv6, "[2001:db8::1]:1", "[2001:db8::2]:65535"},
	} {
		for version := range byte(2) {
			h := &proxyproto.Header{
				Version: version + 1, Command: proxyproto.PROXY, TransportProtocol: x.protocol,
				SourceAddr:      net.TCPAddrFromAddrPort(netip.MustParseAddrPort(x.client)),
				DestinationAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(x.server)),
			}
			if version == 1 {
				if err := h.SetTLVs([]proxyproto.TLV{{Type: proxyproto.PP2_TYPE_ALPN, Value: []byte("h2")}, {Type: proxyproto.PP2_TYPE_CRC32C, Value: make([]byte, 4)}}); err != nil {
					t.Fatal(err)
				}
			}
			text, err := h.Format()
			if err != nil {
				t.Fatal(err)
			}
			if version == 1 { // it leaves the sum to the user
				var fixed [4]byte
				copy(fixed[:], text[12:])
				s := sum(fixed, text[16:], len(text)-16-4)
				copy(text[len(text)-4:], []byte{byte(s >> 24), byte(s >> 16), byte(s >> 8), byte(s)})
			}
			o, err := Read(bytes.NewReader(text))
			if err != nil || o.Own || o.Client.String() != x.client || o.Server.String() != x.server {
				t.Errorf("version %d, %q: %+v, %v", version+1, text, o, err)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{ip4, ip6, v2(0x21, 0x11, body4), v2(0x20, 0, ""), "PROXY TCP4 0.0.0.0  0 \r\n", v2(0x21, 0x21, body6+"\x03\x00\x04abcd")} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		o, err := Read(r)
		if err != nil && o != (Origin{}) {
			t.Errorf("%+v beside %v", o, err)
		}
		if err != nil || o.Own || !o.Client.IsValid() {
			return
		}
		// Where both take it, both understand the same.
		h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		a, ok := h.SourceAddr.(*net.TCPAddr)
		if ok && netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), uint16(a.Port)) != netip.AddrPortFrom(o.Client.Addr().Unmap(), o.Client.Port()) {
			t.Errorf("client %s, another reads %s", o.Client, a)
		}
	})
}
