package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/proxy/origin"
)

// originTime bounds how long a relay may take to say whose connection it passes on.
const originTime = 5 * time.Second

// readOrigin reads what a relay says of a connection, before anything else of it is read.
func readOrigin(ctx context.Context, socket net.Conn) (origin.Origin, error) {
	ctx, cancel := context.WithTimeout(ctx, originTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	return origin.Read(socket)
}

// weight is how much a connection without a header matters: one that says nothing only looks whether the port is open.
func weight(err error) slog.Level {
	if errors.Is(err, origin.ErrEmpty) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// A Finder is a Freezer that finds clients of whom their connection does not tell enough.
type Finder interface {
	// LookupPeer finds the client of a Unix socket, which has no address.
	LookupPeer(ctx context.Context, c syscall.Conn) *Owner
	// LookupRelayed finds whose connection from client to server a relay on this host passes on.
	LookupRelayed(ctx context.Context, client, server netip.AddrPort) *Owner
}

// ownerOf finds whose a connection is, of which from is what its relay says. Without one that is nothing.
func (s *Server) ownerOf(ctx context.Context, c net.Conn, from origin.Origin) *Owner {
	f, finds := s.Freezer.(Finder)
	u, isUnix := c.(*net.UnixConn)
	switch {
	case !from.Own && !from.Client.IsValid():
		return &Owner{Address: addressOf(c), Reason: "its relay does not say whose connection it passes on, so its process cannot be found"}
	case !from.Own && finds:
		return f.LookupRelayed(ctx, from.Client, from.Server)
	case !from.Own:
		return s.Freezer.Lookup(ctx, from.Client, from.Server)
	case isUnix && finds:
		return f.LookupPeer(ctx, u)
	}
	return s.Freezer.Lookup(ctx, addrPort(c.RemoteAddr()), addrPort(c.LocalAddr()))
}

func addressOf(c net.Conn) string {
	if a := addrPort(c.RemoteAddr()); a.IsValid() {
		return a.Addr().Unmap().String()
	}
	return c.RemoteAddr().Network()
}
