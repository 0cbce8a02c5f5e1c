package legs_test

import (
	"context"
	"crypto/tls"
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
