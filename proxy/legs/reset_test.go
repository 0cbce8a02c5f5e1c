package legs_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/lockfaultd/lockfaultd/fault"
)

// A rule's reset is one at both ends, whatever of the session is in TLS, and no word announces it there. The client's next
// connection, as of a pool, is a whole one.
func TestResetsOverTLS(t *testing.T) {
	a := authority(t)
	own, up := shown(t, a, "proxy"), trusting(t, a)
	for _, flag := range []string{"drop-reply", "reset-before", "reset-after"} {
		for leg, upstream := range map[string]*tls.Config{"plain": nil, "TLS": up} {
			t.Run(flag+", upstream "+leg, func(t *testing.T) {
				rule, err := fault.Parse(flag, "DEL#1")
				if err != nil {
					t.Fatal(err)
				}
				ln := listen(t)
				at := newHouse(t, rule).redis(ln.Addr().String(), own, upstream)
				meet := func() (*counting, net.Conn, net.Conn) {
					heard := &counting{Conn: dial(t, at)}
					client := tls.Client(heard, trusting(t, a))
					go client.Handshake()
					server, err := ln.Accept()
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { server.Close() })
					if upstream != nil {
						server = tls.Server(server, shown(t, a, "localhost"))
					}
					send(t, client, "PING\r\n")
					expect(t, server, "PING\r\n")
					send(t, server, "+PONG\r\n")
					expect(t, client, "+PONG\r\n")
					return heard, client, server
				}
				heard, client, server := meet()
				before := heard.n
				send(t, client, "DEL job\r\n")
				if flag != "reset-before" {
					expect(t, server, "DEL job\r\n")
				}
				if flag == "drop-reply" {
					send(t, server, ":1\r\n")
				}
				for who, c := range map[string]io.Reader{"client": client, "server": server} {
					if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("the %s reads %d bytes, %v", who, n, err)
					}
				}
				if heard.n != before {
					t.Errorf("the client was sent %d bytes", heard.n-before)
				}
				_, client, server = meet()
				send(t, client, "DEL job\r\n")
				expect(t, server, "DEL job\r\n")
				send(t, server, ":0\r\n")
				expect(t, client, ":0\r\n")
			})
		}
	}
}
