package legs_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

func packet(code uint32, rest string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return string(binary.BigEndian.AppendUint32(b, code)) + rest
}

var (
	ssl        = pgwire.SSLRequest
	gssRequest = packet(80877104, "")
	startup    = packet(196608, "user\x00u\x00\x00")
)

// authority makes certificates for a test, with the system's files of none.
func authority(t *testing.T) *testbed.Authority { return testbed.NewAuthority(t, t.TempDir()) }

// shown is what a server shows that has a certificate of a's for 127.0.0.1.
func shown(t *testing.T, a *testbed.Authority, name string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Issue(t, name, "127.0.0.1", "localhost"))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// trusting is a client that trusts a's certificates for 127.0.0.1.
func trusting(t *testing.T, a *testbed.Authority) *tls.Config {
	t.Helper()
	b, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b)
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// An echo is an upstream that sends back what it gets, until the client ends.
func echo(t *testing.T, conf *tls.Config) (address string, accepted chan net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	accepted = make(chan net.Conn, 16)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			accepted <- c
			go func() {
				defer c.Close()
				if conf != nil {
					c = tls.Server(c, conf)
				}
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return ln.Addr().String(), accepted
}

func TestC016SSLRequestIsOurs(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, _ := echo(t, nil)
	c := dial(t, h.postgres(upstream, nil, nil))
	send(t, c, pgwire.SSLRequest)
	expect(t, c, "N")
	send(t, c, startup)
	expect(t, c, startup) // and no N, nor the SSLRequest, came before it
	c = dial(t, h.postgres(upstream, shown(t, a, "proxy"), nil))
	send(t, c, pgwire.SSLRequest)
	expect(t, c, "S")
	s := tls.Client(c, trusting(t, a))
	send(t, s, startup)
	expect(t, s, startup)
	h.silent()
}

func TestC017GSSENCRequestIsDeclined(t *testing.T) {
	h := newHouse(t)
	upstream, _ := echo(t, nil)
	address := h.postgres(upstream, nil, nil)
	for _, then := range []string{"", pgwire.SSLRequest} {
		c := dial(t, address)
		send(t, c, gssRequest)
		expect(t, c, "N")
		if then != "" {
			send(t, c, then)
			expect(t, c, "N")
		}
		send(t, c, startup)
		expect(t, c, startup)
	}
	h.silent()
}

func TestC018SSLRequestInTwoSegments(t *testing.T) {
	h := newHouse(t)
	upstream, accepted := echo(t, nil)
	c := dial(t, h.postgres(upstream, nil, nil))
	send(t, c, pgwire.SSLRequest[:4])
	time.Sleep(20 * time.Millisecond) // so that it is one, as a rule
	send(t, c, pgwire.SSLRequest[4:])
	expect(t, c, "N")
	if len(accepted) > 0 {
		t.Error("the upstream was dialled for half an SSLRequest")
	}
	send(t, c, startup)
	expect(t, c, startup)
}

// What came before the answer to an SSLRequest never becomes a part of the
// session: not the startup message that was smuggled in, nor any TLS.
func TestC019PlaintextBeforeTheAnswer(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, accepted := echo(t, nil)
	for _, address := range []string{h.postgres(upstream, nil, nil), h.postgres(upstream, shown(t, a, "proxy"), nil)} {
		c := dial(t, address)
		send(t, c, pgwire.SSLRequest+startup)
		if got := strings.TrimPrefix(rest(t, c), "N"); !strings.Contains(got, "C08P01\x00Mreceived unencrypted data after SSL request") {
			t.Errorf("read %q", got)
		}
	}
	if len(accepted) > 0 {
		t.Error("the upstream was dialled")
	}
	h.says("received unencrypted data after SSL request")
}

func TestC020DirectTLS(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, _ := echo(t, nil)
	address := h.postgres(upstream, shown(t, a, "proxy"), nil)
	with := func(alpn ...string) *tls.Conn {
		conf := trusting(t, a)
		conf.NextProtos = alpn
		return tls.Client(dial(t, address), conf)
	}
	s := with(pgwire.ALPN)
	send(t, s, startup)
	expect(t, s, startup)
	s = with(pgwire.ALPN)
	send(t, s, pgwire.SSLRequest)
	expect(t, s, "N")
	send(t, s, startup)
	expect(t, s, startup)
	h.silent()
	s = with()
	send(t, s, startup)
	if got := rest(t, s); got != "" {
		t.Errorf("without ALPN, read %q", got)
	}
	h.says(`without ALPN`)
	if err := with("http/1.1").Handshake(); err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Errorf("another ALPN: %v", err)
	}
	plain := tls.Client(dial(t, h.postgres(upstream, nil, nil)), trusting(t, a))
	if err := plain.Handshake(); err == nil {
		t.Error("a plaintext listener did a handshake")
	}
	h.says("a TLS handshake), expected a startup packet")
}

// A listener with a certificate begins no session without it.
func TestStartupWithoutTLS(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, _ := echo(t, nil)
	c := dial(t, h.postgres(upstream, shown(t, a, "proxy"), nil))
	send(t, c, startup)
	if got := rest(t, c); !strings.Contains(got, "C28000\x00Mlockfaultd: this address takes TLS connections only") {
		t.Errorf("read %q", got)
	}
	h.says("a startup packet without TLS")
}

func TestC030Garbage(t *testing.T) {
	h := newHouse(t)
	upstream, accepted := echo(t, nil)
	address := h.postgres(upstream, nil, nil)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x27\x15\x00\x03\x00\x00", "\x00\x00\x00\x00", "\xff\xff\xff\xff\xff", strings.Repeat("x", 1<<16)} {
		c := dial(t, address)
		send(t, c, text)
		if got, err := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%.20q: read %q, %v", text, got, err)
		}
	}
	if n := strings.Count(h.log.String(), "expected a startup packet\"\n"); n != 5 {
		t.Errorf("%d lines for 5 clients", n)
	}
	if len(accepted) > 0 {
		t.Error("the upstream was dialled")
	}
	c := dial(t, address)
	send(t, c, startup)
	expect(t, c, startup)
}

// What protocol a client wants is the server's to accept or refuse, and what
// comes before that is answered as the server would.
func TestC031OtherProtocols(t *testing.T) {
	t.Run("15 without TLS", func(t *testing.T) { asItself(t, testbed.Postgres(t), nil) })
	t.Run("15", func(t *testing.T) { asItself(t, postgres15(t).Server, postgres15(t).own) })
	t.Run("18", func(t *testing.T) { asItself(t, postgres18(t).Server, postgres18(t).own) })
}

// asItself compares what a server and a proxy before it answer. A list of
// writes is sent one by one, each after a byte of answer to the one before.
func asItself(t *testing.T, s *testbed.Server, conf *tls.Config) {
	h, withTLS := newHouse(t), conf != nil
	address := h.postgres(s.Addr(), conf, nil)
	user := "user\x00postgres\x00\x00"
	for name, writes := range map[string][]string{
		"2.0":                       {packet(131072, user)},
		"4.0":                       {packet(262144, user)},
		"3.9999":                    {packet(206607, "_pq_.grease\x001\x00"+user) + "X\x00\x00\x00\x04"},
		"3.0":                       {packet(196608, user) + "X\x00\x00\x00\x04"},
		"SSLRequest and startup":    {ssl + startup},
		"SSLRequest twice":          {ssl, ssl},
		"SSLRequest twice, and 4.0": {ssl, ssl + packet(262144, user)},
		"a cancel for nobody":       {packet(80877102, "\xff\xff\xff\xff\x00\x00\x00\x00")},
		"a cancel without a key":    {packet(80877102, "")},
		"HTTP":                      {"GET / HTTP/1.1\r\n\r\n"},
		"too long":                  {"\x00\x00\x27\x15\x00\x03\x00\x00"},
		"too short":                 {"\x00\x00\x00\x07\x00\x03\x00"},
		"nothing":                   {"\x00\x00\x00\x08\x00\x03\x00\x00"},
	} {
		if withTLS && strings.HasPrefix(name, "3.") || withTLS && strings.HasPrefix(writes[0], ssl) || withTLS && name == "nothing" {
			continue // a listener with TLS wants it, and S begins a handshake
		}
		if direct, through := answers(t, s.Addr(), writes), answers(t, address, writes); direct != through {
			if withTLS && strings.Contains(through, "28000") {
				continue
			}
			t.Errorf("%s: the server says %q, through the proxy %q", name, direct, through)
		}
	}
}

// answers returns the types of the messages that come back, with the codes of
// errors, and anything else as it is.
func answers(t *testing.T, address string, writes []string) string {
	t.Helper()
	c := dial(t, address)
	out := ""
	for i, w := range writes {
		send(t, c, w)
		if i < len(writes)-1 {
			b := make([]byte, 1)
			if _, err := io.ReadFull(c, b); err != nil {
				return out + err.Error()
			}
			out += string(b)
		}
	}
	b, _ := io.ReadAll(c) // a reset is an end too
	for len(b) > 0 {
		if b[0] == 'N' && (len(b) == 1 || b[1] == 'E') {
			out, b = out+"N", b[1:]
			continue
		}
		n := 1 + int(binary.BigEndian.Uint32(append(b[1:min(5, len(b)):min(5, len(b))], 0, 0, 0, 0)))
		n = max(5, min(n, len(b)))
		out += string(b[0])
		if _, code, ok := strings.Cut(string(b[5:n]), "\x00C"); ok && b[0] == 'E' {
			out += code[:5]
		}
		b = b[n:]
	}
	return out
}

// A health probe is no error, and does not reach the upstream.
func TestC032ProbesAreQuiet(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, accepted := echo(t, nil)
	plain, secured := h.postgres(upstream, nil, nil), h.postgres(upstream, shown(t, a, "proxy"), nil)
	redis := h.redis(upstream, shown(t, a, "redis"), nil)
	for _, address := range []string{plain, secured, redis} {
		c := dial(t, address)
		c.Close()
	}
	for address, answer := range map[string]string{plain: "N", secured: "S"} {
		c := dial(t, address)
		send(t, c, pgwire.SSLRequest)
		expect(t, c, answer)
		c.Close()
	}
	c := tls.Client(dial(t, redis), trusting(t, a))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c2 := dial(t, plain)
	send(t, c2, startup)
	expect(t, c2, startup)
	if n := len(accepted); n > 2 { // the last, and the Redis client that did speak TLS
		t.Errorf("the upstream was dialled %d times", n)
	}
	h.silent()
}

func TestC014Unreachable(t *testing.T) {
	h, a := newHouse(t), authority(t)
	const upstream = "127.0.0.1:1" // a port that was free may be another's by now
	address := h.postgres(upstream, nil, nil)
	for range 2 {
		c := dial(t, address)
		send(t, c, startup)
		if got := rest(t, c); !strings.Contains(got, "C57P03\x00Mlockfaultd: upstream "+upstream+" cannot be reached: ") {
			t.Errorf("read %q", got)
		}
	}
	h.says("upstream cannot be reached")
	if got := rest(t, dial(t, h.redis(upstream, nil, nil))); got != "" {
		t.Errorf("Redis: read %q", got)
	}
	// Nor may a client hang whose upstream speaks no TLS, or shows what is not trusted.
	plain, _ := echo(t, nil)
	c := dial(t, h.postgres(plain, nil, trusting(t, a)))
	send(t, c, startup)
	if got := rest(t, c); !strings.Contains(got, "the server does not offer TLS") {
		t.Errorf("read %q", got)
	}
	stranger, _ := echo(t, shown(t, authority(t), "stranger"))
	if got := rest(t, dial(t, h.redis(stranger, nil, trusting(t, a)))); got != "" {
		t.Errorf("Redis: read %q", got)
	}
	h.says("certificate signed by unknown authority")
}

// TLS that is sent to a plaintext port ends cleanly, and so does the reverse.
func TestC107WrongPort(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, _ := echo(t, nil)
	c := dial(t, h.redis(upstream, shown(t, a, "proxy"), nil))
	send(t, c, "*1\r\n$4\r\nPING\r\n")
	if got := rest(t, c); got != "" {
		t.Errorf("read %q", got)
	}
	h.says(`it begins with \"*1\\r\\n$\", expected a TLS handshake`)
	err := tls.Client(dial(t, h.redis(upstream, nil, nil)), trusting(t, a)).Handshake()
	if err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a handshake with a plaintext port: %v", err)
	}
	h.says("it begins with a TLS handshake, expected plaintext")
}

// The end of a stream goes through TLS on either leg, and what is still under
// way the other way arrives.
func TestHalfCloseOverTLS(t *testing.T) {
	h, a := newHouse(t), authority(t)
	conf := shown(t, a, "proxy")
	plain, _ := echo(t, nil)
	secured, _ := echo(t, conf)
	for name, address := range map[string]string{
		"client leg": h.redis(plain, conf, nil), "both legs": h.redis(secured, conf, trusting(t, a)), "upstream leg": h.redis(secured, nil, trusting(t, a)),
	} {
		c := dial(t, address)
		if name != "upstream leg" {
			c = tls.Client(c, trusting(t, a))
		}
		send(t, c, "PING\r\n")
		expect(t, c, "PING\r\n")
		send(t, c, strings.Repeat("PING\r\n", 50000))
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := rest(t, c); len(got) != 300000 {
			t.Errorf("%s: %d bytes came back", name, len(got))
		}
	}
}
