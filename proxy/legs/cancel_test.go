package legs_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

// cancelOf is the CancelRequest for a connection.
func cancelOf(c *pgx.Conn) string {
	return packet(80877102, pgwire.BackendKey(int32(c.PgConn().PID()), c.PgConn().SecretKey()))
}

// hold begins a statement that takes long, and returns how it ended.
func hold(t *testing.T, s *testbed.Server, c *pgx.Conn) chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_sleep(300)")
		ended <- err
	}()
	awaitSleep(t, s, 1)
	return ended
}

// awaitSleep waits until so many statements take long.
func awaitSleep(t *testing.T, s *testbed.Server, want int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for n := 0; n < want; time.Sleep(5 * time.Millisecond) {
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

func canceled(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "57014"
}

// A way is how a CancelRequest reaches a listener.
type way struct {
	name string
	open func(t *testing.T, address string) net.Conn
}

func ways(conf *tls.Config) []way {
	negotiated := func(t *testing.T, address string) net.Conn {
		c := dial(t, address)
		send(t, c, pgwire.SSLRequest)
		expect(t, c, "S")
		return tls.Client(c, conf)
	}
	return []way{
		{"plain", dial},
		{"after GSSENCRequest", func(t *testing.T, address string) net.Conn {
			c := dial(t, address)
			send(t, c, gssRequest)
			expect(t, c, "N")
			return c
		}},
		{"over TLS", negotiated},
		{"over direct TLS", func(t *testing.T, address string) net.Conn {
			d := conf.Clone()
			d.NextProtos = []string{pgwire.ALPN}
			return tls.Client(dial(t, address), d)
		}},
	}
}

// A cancel request, long or short, ends the statement of the session whose key
// it names, in whatever way and at whichever listener it comes.
func TestC024CancelRequests(t *testing.T) {
	old, newer := postgres15(t), postgres18(t)
	for name, s := range map[string]*secureServer{"16 bytes, 15": old, "long, 18": newer} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			other := old
			if s == old {
				other = newer
			}
			home := h.postgres(s.Addr(), s.own, trusting(t, s.authority))
			away := h.postgres(other.Addr(), s.own, nil)
			c, err := pgx.Connect(t.Context(), settings(home, "postgres", "sslmode=require max_protocol_version=latest"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(context.Background())
			if long := len(c.PgConn().SecretKey()) > 4; long != (s == newer) {
				t.Fatalf("a key of %d bytes", len(c.PgConn().SecretKey()))
			}
			for _, address := range []string{home, away} {
				for _, w := range ways(trusting(t, s.authority)) {
					ended := hold(t, s.Server, c)
					to := w.open(t, address)
					send(t, to, cancelOf(c))
					if got := rest(t, to); got != "" {
						t.Errorf("%s: read %q", w.name, got)
					}
					if err := <-ended; !canceled(err) {
						t.Errorf("%s: the statement ended with %v", w.name, err)
					}
				}
			}
			h.silent()
		})
	}
}

// The client's end is closed when the upstream has closed its own, which tells
// libpq that the request was dealt with, and not before.
func TestC024CancelWaitsForTheUpstream(t *testing.T) {
	h := newHouse(t)
	upstream, accepted := echoless(t)
	c := dial(t, h.postgres(upstream, nil, nil))
	cancel := packet(80877102, "\x00\x00\x00\x01key!")
	send(t, c, cancel)
	u := <-accepted
	expect(t, u, cancel)
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("before the upstream closes: %v", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	u.Close()
	if got := rest(t, c); got != "" {
		t.Errorf("read %q", got)
	}
}

// A key that nobody issued goes to the listener's own upstream, as does one
// whose session has ended.
func TestC025UnknownKey(t *testing.T) {
	s := postgres15(t)
	h := newHouse(t)
	own, accepted := echoless(t)
	at, session := h.postgres(own, nil, nil), h.postgres(s.Addr(), nil, nil)
	c, err := pgx.Connect(t.Context(), settings(session, "postgres", plainLeg))
	if err != nil {
		t.Fatal(err)
	}
	stale := cancelOf(c)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for h.server.Live() > 0 {
		time.Sleep(time.Millisecond)
	}
	for _, request := range []string{packet(80877102, "\xff\xff\xff\xff\x00\x00\x00\x00"), stale, packet(80877102, "")} {
		c := dial(t, at)
		send(t, c, request)
		u := <-accepted
		expect(t, u, request)
		u.Close()
		if got := rest(t, c); got != "" {
			t.Errorf("read %q", got)
		}
	}
	h.silent()
}

// echoless is an upstream that does what the test does with what it accepts.
func echoless(t *testing.T) (string, chan net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	accepted := make(chan net.Conn, 16)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return ln.Addr().String(), accepted
}

// A cancel request is not held by what holds its session, and the error that
// comes of it waits behind the reply that is held.
func TestC026CancelOfAHeldSession(t *testing.T) {
	s := postgres15(t)
	rule, err := fault.Parse("stall-after", "INSERT=10m")
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, rule)
	address := h.postgres(s.Addr(), nil, nil)
	c, err := pgx.Connect(t.Context(), settings(address, "postgres", plainLeg))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS held (n int)"); err != nil {
		t.Fatal(err)
	}
	request := cancelOf(c)
	hijacked, err := c.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer hijacked.Conn.Close()
	front := hijacked.Frontend
	front.Send(&pgproto3.Query{String: "INSERT INTO held VALUES (1)"})
	front.Send(&pgproto3.Query{String: "SELECT pg_sleep(300)"})
	if err := front.Flush(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 64)
	go receive(front, seen)
	awaitSleep(t, s.Server, 1)
	to := dial(t, address)
	send(t, to, request)
	if got := rest(t, to); got != "" {
		t.Errorf("read %q", got)
	}
	if len(seen) > 0 {
		t.Errorf("while its session is stalled, the client read %s", <-seen)
	}
	h.server.Engine.Disarm(h.server.Clock())
	var all []string
	for m := range seen {
		all = append(all, m)
	}
	if got, want := strings.Join(all, " "), "INSERT 0 1 Z 57014 Z"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

// receive names what is read, up to the second ReadyForQuery.
func receive(front *pgproto3.Frontend, seen chan<- string) {
	defer close(seen)
	for ready := 0; ready < 2; {
		m, err := front.Receive()
		switch m := m.(type) {
		case *pgproto3.CommandComplete:
			seen <- string(m.CommandTag)
		case *pgproto3.ErrorResponse:
			seen <- m.Code
		case *pgproto3.ReadyForQuery:
			ready++
			seen <- "Z"
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				seen <- err.Error()
			}
			return
		}
	}
}
