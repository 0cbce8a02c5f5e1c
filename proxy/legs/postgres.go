package legs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

// Postgres makes the legs of a Postgres session.
type Postgres struct {
	Policy
	Direct  bool     // upstream takes TLS at once, without an SSLRequest
	Cancels *Cancels // of all listeners

	compared sync.Once
}

// Accept deals with what a client says before its StartupMessage, and with its
// CancelRequest.
func (p *Postgres) Accept(ctx context.Context, client net.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	stop := closing(ctx, client)
	defer stop()
	g := &greeting{postgres: p, greeter: pgwire.Greeter{TLS: p.Client != nil}, conn: client, buf: make([]byte, 0, 512)}
	for {
		if c, more, err := g.step(ctx); !more {
			return c, err
		}
	}
}

// A greeting is a client whose session has not begun.
type greeting struct {
	postgres *Postgres
	greeter  pgwire.Greeter
	conn     net.Conn
	buf      []byte // read and not dealt with
}

// step deals with one thing, and says whether there is more to come.
func (g *greeting) step(ctx context.Context) (c net.Conn, more bool, err error) {
	next := g.greeter.Next(g.buf)
	packet := g.buf[:min(next.Size, len(g.buf))]
	switch next.Kind {
	case pgwire.Incomplete:
		more, err = g.read(next.Size)
		return nil, more, err
	case pgwire.Direct:
		return g.secure(ctx, true)
	case pgwire.Cancel:
		g.postgres.cancel(ctx, packet)
		return nil, false, nil
	case pgwire.Startup:
		return &read{Conn: g.conn, head: g.buf}, false, nil
	}
	if _, err := g.conn.Write(next.Reply); err != nil && next.Kind != pgwire.Refused {
		return nil, false, nil
	}
	g.buf = g.buf[len(packet):]
	switch next.Kind {
	case pgwire.Negotiated:
		return g.secure(ctx, false)
	case pgwire.Refused:
		return g.conn, false, errors.New(next.Reason)
	}
	return nil, true, nil
}

// read waits for more bytes, size in all. That a client leaves without having
// begun a packet is nobody's concern.
func (g *greeting) read(size int) (more bool, err error) {
	if size > cap(g.buf) {
		g.buf = append(make([]byte, 0, size), g.buf...)
	}
	n, err := g.conn.Read(g.buf[len(g.buf):cap(g.buf)])
	g.buf = g.buf[:len(g.buf)+n]
	switch {
	case n > 0:
		return true, nil
	case len(g.buf) > 0:
		return false, fmt.Errorf("it left in the middle of its startup packet: %w", err)
	case left(err):
		return false, nil
	}
	return false, fmt.Errorf("read startup packet: %w", err)
}

// secure goes on inside TLS. What has been read already is a part of the
// handshake only where that came at once.
func (g *greeting) secure(ctx context.Context, direct bool) (net.Conn, bool, error) {
	conf := named(g.postgres.Client)
	from := g.conn
	if direct {
		from = &read{Conn: g.conn, head: g.buf}
	}
	c, err := accept(ctx, from, conf)
	if err != nil || c == nil {
		return nil, false, err
	}
	if direct && c.(secured).ConnectionState().NegotiatedProtocol != pgwire.ALPN {
		return c, false, fmt.Errorf("TLS without an SSLRequest, and without ALPN %q", pgwire.ALPN)
	}
	g.conn, g.buf = c, make([]byte, 0, 512)
	g.greeter.Secured()
	return nil, true, nil
}

// named makes a configuration name the protocol. Like Postgres it gives out no
// session tickets.
func named(conf *tls.Config) *tls.Config {
	conf = conf.Clone()
	conf.NextProtos, conf.SessionTicketsDisabled = []string{pgwire.ALPN}, true
	return conf
}

// Dial connects to the upstream and, if it is to be TLS, asks for that.
func (p *Postgres) Dial(ctx context.Context) (net.Conn, error) {
	return p.connect(ctx, p.negotiate)
}

func (p *Postgres) negotiate(ctx context.Context, c net.Conn) (net.Conn, error) {
	if !p.Direct {
		if err := request(ctx, c); err != nil {
			return nil, err
		}
	}
	s, err := handshake(ctx, c, named(p.Upstream))
	if err != nil {
		return nil, err
	}
	if state := s.(secured).ConnectionState(); p.Direct && state.NegotiatedProtocol != pgwire.ALPN {
		return nil, fmt.Errorf("the server did not agree on ALPN %q", pgwire.ALPN)
	}
	p.compare(s.(secured).Conn)
	return s, nil
}

// request asks for TLS. One byte is read and no more: what follows it is TLS.
func request(ctx context.Context, c net.Conn) error {
	stop := closing(ctx, c)
	defer stop()
	if _, err := io.WriteString(c, pgwire.SSLRequest); err != nil {
		return fmt.Errorf("write SSLRequest: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return fmt.Errorf("read the answer to SSLRequest: %w", unanswered(ctx, err, "Postgres"))
	}
	if answer[0] != 'S' {
		return errors.New("the server does not offer TLS")
	}
	return nil
}

// compare warns, once, of certificates that break SCRAM's channel binding.
func (p *Postgres) compare(upstream *tls.Conn) {
	if p.Client == nil || p.same(upstream) {
		return
	}
	p.compared.Do(func() {
		p.Log.Warn("the client leg shows another certificate than the upstream: a client that binds SCRAM to its channel cannot log in", "upstream", p.Address, "remedy", remedy)
	})
}

// Unreachable tells the client as a server does that cannot take it, which is
// what makes libpq try its next host and pg_isready say no.
func (p *Postgres) Unreachable(client net.Conn, why error) {
	_, _ = client.Write(pgwire.Fatal("57P03", fmt.Sprintf("lockfaultd: upstream %s cannot be reached: %v", p.Address, why)))
}
