package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/proxy/origin"
)

// A relay that says nothing is not waited for.
func TestOriginIsWaitedForSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay, accepted := net.Pipe()
		begun := time.Now()
		if o, err := readOrigin(t.Context(), accepted); err == nil {
			t.Errorf("%+v of silence", o)
		}
		if took := time.Since(begun); took != originTime {
			t.Errorf("waited %v", took)
		}
		if _, err := relay.Write([]byte("PROXY")); err == nil {
			t.Error("the connection is open")
		}
	})
}

// The end of the daemon ends that wait, too; a header that came is none of it.
func TestOriginAndTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		relay, accepted := net.Pipe()
		go func() { _, _ = io.WriteString(relay, "PROXY UNKNOWN\r\n") }()
		if _, err := readOrigin(ctx, accepted); err != nil {
			t.Error(err)
		}
		begun := time.Now()
		time.AfterFunc(time.Second, cancel)
		if _, err := readOrigin(ctx, accepted); err == nil || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// finder says by which way it was asked.
type finder struct{ Freezer }

func (finder) Lookup(_ context.Context, client, server netip.AddrPort) *Owner {
	return &Owner{Address: "plain " + client.Addr().String()}
}

func (finder) LookupPeer(context.Context, syscall.Conn) *Owner { return &Owner{Address: "peer"} }

func (finder) LookupRelayed(_ context.Context, client, server netip.AddrPort) *Owner {
	return &Owner{Address: "relayed " + client.String() + " " + server.String()}
}

// plainOnly finds by addresses alone.
type plainOnly struct{ Freezer }

func (plainOnly) Lookup(ctx context.Context, client, server netip.AddrPort) *Owner {
	return finder{}.Lookup(ctx, client, server)
}

func TestWhoseAConnectionIs(t *testing.T) {
	_, accepted := connected(t)
	_, local := connectedUnix(t)
	own := origin.Origin{Own: true}
	from := origin.Origin{Client: netip.MustParseAddrPort("10.0.0.1:1"), Server: netip.MustParseAddrPort("10.0.0.2:2")}
	for _, x := range []struct {
		freezer Freezer
		conn    net.Conn
		from    origin.Origin
		want    string
	}{
		{finder{}, accepted, own, "plain 127.0.0.1"},
		{finder{}, local, own, "peer"},
		{finder{}, accepted, from, "relayed 10.0.0.1:1 10.0.0.2:2"},
		{finder{}, local, from, "relayed 10.0.0.1:1 10.0.0.2:2"},
		{plainOnly{}, accepted, from, "plain 10.0.0.1"},
		{finder{}, accepted, origin.Origin{}, "127.0.0.1"},
		{finder{}, local, origin.Origin{}, "unix"},
	} {
		s := &Server{Freezer: x.freezer}
		o := s.ownerOf(t.Context(), x.conn, x.from)
		if o.Address != x.want {
			t.Errorf("%T, %+v: %s, want %s", x.conn, x.from, o.Address, x.want)
		}
		if silent := x.from == (origin.Origin{}); silent != strings.Contains(o.Reason, "relay does not say") {
			t.Errorf("%+v: reason %q", x.from, o.Reason)
		}
	}
}

// A plain check of a port is no client that was refused.
func TestWeightOfNoHeader(t *testing.T) {
	for text, want := range map[string]slog.Level{"": slog.LevelDebug, "PING\r\n": slog.LevelWarn, "PROXY ": slog.LevelWarn} {
		if _, err := origin.Read(strings.NewReader(text)); weight(err) != want {
			t.Errorf("%q: %s for %v", text, weight(err), err)
		}
	}
}
