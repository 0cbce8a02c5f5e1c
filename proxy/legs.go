package proxy

import (
	"context"
	"net"
)

// Legs make the two connections of a session: how they are secured, and what a
// client says before its session begins.
type Legs interface {
	// Accept brings a client that has connected to where its session begins.
	// It returns the connection to use from there on, nil and no error where
	// the client wanted no session, or the reason to refuse it, perhaps with
	// the connection to close. The caller closes client in any case.
	Accept(ctx context.Context, client net.Conn) (net.Conn, error)
	// Dial connects to the upstream.
	Dial(ctx context.Context) (net.Conn, error)
	// Unreachable tells a client, before its connection is closed, why Dial
	// failed.
	Unreachable(client net.Conn, why error)
}

// bare are legs that are used as they are.
type bare struct {
	dial     func(ctx context.Context, address string) (net.Conn, error)
	upstream string
}

func (b bare) Accept(_ context.Context, client net.Conn) (net.Conn, error) { return client, nil }
func (b bare) Dial(ctx context.Context) (net.Conn, error)                  { return b.dial(ctx, b.upstream) }
func (b bare) Unreachable(net.Conn, error)                                 {}

// transport returns the connection that carries c, such as the TCP one below
// TLS.
func transport(c net.Conn) net.Conn {
	for {
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = over.NetConn()
	}
}

// tcp returns the TCP connection whose bytes are those of c, if there is one.
func tcp(c net.Conn) (*net.TCPConn, bool) {
	if p, ok := c.(interface{ Plain() net.Conn }); ok {
		c = p.Plain()
	}
	t, ok := c.(*net.TCPConn)
	return t, ok
}
