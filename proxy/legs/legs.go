package legs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	greetingTime = 60 * time.Second // as long as Postgres waits for a client to say who it is
	dialTime     = 10 * time.Second // for an upstream to accept, TLS included
)

// A Policy says how the two legs of a listener are secured.
type Policy struct {
	Client   *tls.Config // as the server of clients; nil: plaintext
	Upstream *tls.Config // as the client of the upstream; nil: plaintext
	Address  string      // of the upstream, host:port
	Connect  func(ctx context.Context, address string) (net.Conn, error)
	Log      *slog.Logger
}

// Stripped reports whether a client must not be offered SCRAM-SHA-256-PLUS:
// where upstream offers it for its TLS leg and the client has none to bind to.
func (p *Policy) Stripped() bool { return p.Client == nil && p.Upstream != nil }

// accept does the server's part of a handshake.
func accept(ctx context.Context, c net.Conn, conf *tls.Config) (net.Conn, error) {
	t := tls.Server(c, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, handshakeError(err)
	}
	return secured{t}, nil
}

// handshakeError is nil where a client left without having sent anything.
func handshakeError(err error) error {
	var plain tls.RecordHeaderError
	var own *net.OpError
	switch {
	case left(err):
		return nil
	case errors.As(err, &plain):
		return fmt.Errorf("it begins with %q, expected a TLS handshake", plain.RecordHeader[:])
	case errors.As(err, &own) && own.Op == "local error" && own.Err.Error() == "tls: bad record MAC":
		// OpenSSL sends the alert of its refusal in plaintext, where TLS 1.3 has keys.
		return fmt.Errorf("TLS handshake: %w (most often a client that does not trust the certificate shown to it)", err)
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// left reports whether a peer has gone between two messages.
func left(err error) bool {
	return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// connect dials the upstream, within the time that dialling and a handshake
// may take.
func (p *Policy) connect(ctx context.Context, secure func(ctx context.Context, c net.Conn) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c, err := p.Connect(ctx, p.Address)
	if err != nil || p.Upstream == nil {
		return c, err
	}
	s, err := secure(ctx, c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// handshake does the client's part of a handshake.
func handshake(ctx context.Context, c net.Conn, conf *tls.Config) (net.Conn, error) {
	t := tls.Client(c, conf)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", unanswered(ctx, err, "TLS"))
	}
	return secured{t}, nil
}

// unanswered is err, or what is more likely to be wrong where the time was up.
func unanswered(ctx context.Context, err error, language string) error {
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v; does it speak %s?", dialTime, language)
	case ended != nil:
		return ended
	}
	return err
}

// closing closes c when ctx ends, unless it is stopped before.
func closing(ctx context.Context, c net.Conn) (stop func()) {
	done := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(done)
		c.Close()
	})
	return func() {
		if !release() {
			<-done
		}
	}
}

// secured is a TLS connection.
type secured struct{ *tls.Conn }

// CloseWrite ends the outgoing stream and, so that a peer that does not know
// half-closed TLS hears of it too, that of the connection below.
func (s secured) CloseWrite() error {
	err := s.Conn.CloseWrite()
	return errors.Join(err, closeWrite(s.NetConn()))
}

// read is a connection of which some bytes were read before.
type read struct {
	net.Conn
	head  []byte
	again atomic.Bool // all of head was read again; asked by the goroutine that writes, too
}

func (r *read) Read(p []byte) (int, error) {
	if n := copy(p, r.head); n > 0 {
		r.head = r.head[n:]
		return n, nil
	}
	if !r.again.Load() {
		r.head = nil
		r.again.Store(true)
	}
	return r.Conn.Read(p)
}

// NetConn returns the connection below.
func (r *read) NetConn() net.Conn { return r.Conn }

// Plain returns the connection below once its next byte is this one's.
func (r *read) Plain() net.Conn {
	if !r.again.Load() {
		return nil
	}
	return r.Conn
}

// CloseWrite ends the outgoing stream.
func (r *read) CloseWrite() error { return closeWrite(r.Conn) }

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// same reports whether both legs show the same certificate.
func (p *Policy) same(upstream *tls.Conn) bool {
	shown := upstream.ConnectionState().PeerCertificates
	if len(shown) == 0 || len(p.Client.Certificates) == 0 {
		return false
	}
	return bytes.Equal(shown[0].Raw, p.Client.Certificates[0].Certificate[0])
}
