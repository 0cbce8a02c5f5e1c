package legs

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
)

// Redis makes the legs of a Redis session: TLS, where there is any, from the
// first byte on.
type Redis struct{ Policy }

// Accept does the TLS handshake of a listener with a certificate. A plaintext
// one refuses whoever begins a handshake, when it reads that.
func (r *Redis) Accept(ctx context.Context, client net.Conn) (net.Conn, error) {
	if r.Client == nil {
		return &unhandshaken{Conn: client, refuse: func() {
			r.Log.Warn("client refused", "proxy", "redis", "client", client.RemoteAddr().String(), "err", errHandshake)
		}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	return accept(ctx, client, r.Client)
}

// Dial connects to the upstream.
func (r *Redis) Dial(ctx context.Context) (net.Conn, error) {
	return r.connect(ctx, func(ctx context.Context, c net.Conn) (net.Conn, error) {
		return handshake(ctx, c, r.Upstream)
	})
}

// Unreachable does nothing: an error would have to wait for the first request,
// and clients try again after a connection that closes, as after one refused.
func (r *Redis) Unreachable(net.Conn, error) {}

var errHandshake = errors.New("it begins with a TLS handshake, expected plaintext")

// unhandshaken is a plaintext connection until its first byte is that of a TLS
// handshake, which no request begins with.
type unhandshaken struct {
	net.Conn
	refuse func()
	known  atomic.Bool // asked by the goroutine that writes, too
}

func (u *unhandshaken) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	if n == 0 || u.known.Load() {
		return n, err
	}
	if u.known.Store(true); p[0] == 0x16 {
		u.refuse()
		return 0, errHandshake
	}
	return n, err
}

// NetConn returns the connection below.
func (u *unhandshaken) NetConn() net.Conn { return u.Conn }

// Plain returns the connection below once it may be read itself.
func (u *unhandshaken) Plain() net.Conn {
	if !u.known.Load() {
		return nil
	}
	return u.Conn
}

// CloseWrite ends the outgoing stream.
func (u *unhandshaken) CloseWrite() error { return closeWrite(u.Conn) }
