package legs_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"testing"

	"github.com/lockfaultd/lockfaultd/proxy"
)

// onlooker is a freezer that notes who is looked up.
type onlooker struct {
	nobody
	asked chan netip.AddrPort
}

func (o onlooker) Lookup(ctx context.Context, client, server netip.AddrPort) *proxy.Owner {
	o.asked <- client
	return o.nobody.Lookup(ctx, client, server)
}

// Whose connection it is does not depend on what is spoken on it.
func TestOwnerOverTLS(t *testing.T) {
	h, a := newHouse(t), authority(t)
	o := onlooker{asked: make(chan netip.AddrPort, 4)}
	h.server.Freezer = o
	upstream, _ := echo(t, nil)
	for address, text := range map[string]string{h.redis(upstream, shown(t, a, "a"), nil): "PING\r\n", h.postgres(upstream, shown(t, a, "b"), nil): startup} {
		conf := trusting(t, a)
		conf.NextProtos = []string{"postgresql"}
		c := tls.Client(dial(t, address), conf)
		send(t, c, text)
		expect(t, c, text)
		if got, want := <-o.asked, c.LocalAddr().String(); got.String() != want {
			t.Errorf("the owner of %s was looked up, want that of %s", got, want)
		}
	}
}

// A client that ends its stream without TLS's close_notify still gets the
// replies to what it has sent.
func TestEndWithoutCloseNotify(t *testing.T) {
	h, a := newHouse(t), authority(t)
	upstream, accepted := echoless(t)
	c := dial(t, h.redis(upstream, shown(t, a, "proxy"), nil))
	s := tls.Client(c, trusting(t, a))
	send(t, s, "PING\r\n")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	u := <-accepted
	if got := rest(t, u); got != "PING\r\n" {
		t.Errorf("the upstream read %q", got)
	}
	send(t, u, "+PONG\r\n")
	u.Close()
	if got := rest(t, s); got != "+PONG\r\n" {
		t.Errorf("the client read %q", got)
	}
}
