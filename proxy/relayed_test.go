package proxy_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// Behind a relay each client is who the relay says, and what follows is its own. A connection that does not begin so is
// closed, and no other.
func TestRelayedClients(t *testing.T) {
	s := newStreetBy(t, proxy.Route{Protocol: lock.Redis, Upstream: "server", Relayed: true}, nil)
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.1 192.0.2.2 40000 6379\r\n":                                          "192.0.2.1:40000 to 192.0.2.2:6379",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x9c\x40\x18\xeb": "192.0.2.1:40000 to 192.0.2.2:6379",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00":                                                 "",
	} {
		for _, bad := range []string{"PING\r\n", "PROXY TCP4 x\r\n", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff"} {
			c := dialStreet(t, s)
			if _, err := io.WriteString(c, bad); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(soon))
			if n, err := io.Copy(io.Discard, c); n > 0 || err == nil && n != 0 {
				t.Errorf("%q: read %d bytes, %v", bad, n, err)
			}
		}
		c := dialStreet(t, s)
		// In two parts, of which the second has the first request, too.
		if _, err := io.WriteString(c, header[:9]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if _, err := io.WriteString(c, header[9:]+"PING\r\n"); err != nil {
			t.Fatal(err)
		}
		server := s.server()
		if line, err := bufio.NewReader(server).ReadString('\n'); line != "PING\r\n" {
			t.Errorf("%q: the server heard %q, %v", header, line, err)
		}
		if want == "" {
			want = c.LocalAddr().String() + " to " + s.address
		}
		if got := <-s.looked; got != want {
			t.Errorf("%q: looked for %s, want %s", header, got, want)
		}
		if _, err := io.WriteString(server, "+PONG\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "+PONG\r\n" {
			t.Errorf("%q: the client heard %q, %v", header, line, err)
		}
	}
}

func dialStreet(t *testing.T, s *street) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
