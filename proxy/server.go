package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/origin"
)

// A Route is one listener and the upstream that it leads to.
type Route struct {
	Name     string // names the upstream in ops; "" where there is only one of its protocol
	Protocol lock.Protocol
	Upstream string // host:port
	Legs     Legs   // nil: both are plain connections
	Relayed  bool   // clients come through a relay that says first who they are, by the PROXY protocol
}

// A Server accepts clients and connects each to its upstream, one to one. All
// fields but Recorder and Witness are needed, and Dial where a route has no legs of its
// own; they are not changed after the first Serve.
type Server struct {
	Engine   *Engine
	Freezer  Freezer
	Clock    func() lock.Instant
	Dial     func(ctx context.Context, address string) (net.Conn, error)
	Track    func(r Route, session uint64) Tracker
	Recorder Recorder
	Witness  Witness // nil: nobody tells what calls do
	Log      *slog.Logger

	sessions atomic.Uint64
	live     atomic.Int64
	desyncs  atomic.Int64

	reached reaches
}

// A Tracker is a wire.Tracker that may know what the client calls itself.
type Tracker struct {
	wire.Tracker
	ClientName func() string // nil: nobody says
	Backend    func() int32  // the number of the Postgres backend; nil: it is none
	Working    func() bool   // whether it has begun what it has not ended; nil: it never has
	Ended      func()        // told when the session has ended; may be nil
}

// Desyncs counts the connections that could not be followed any further, and
// were passed on unread from there.
func (s *Server) Desyncs() int64 { return s.desyncs.Load() }

// Live counts the sessions that are open.
func (s *Server) Live() int64 { return s.live.Load() }

// Sessions counts the clients that were connected to their upstream so far.
func (s *Server) Sessions() int { return int(s.sessions.Load()) }

// Serve accepts on ln until ctx is done, then ends its sessions, waits for them
// and returns nil. A client whose upstream cannot be reached is closed; that
// harms nobody else.
func (s *Server) Serve(ctx context.Context, ln net.Listener, r Route) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", ln.Addr(), err)
		case err != nil:
			s.Log.Warn("accept failed", "listener", ln.Addr().String(), "err", err)
			pause(ctx)
			continue
		}
		sessions.Go(func() { s.session(ctx, c, r) })
	}
}

// pause lets some time pass after a failed accept: descriptors that have run
// out come back with the end of other sessions.
func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *Server) session(ctx context.Context, socket net.Conn, r Route) {
	defer socket.Close()
	// Opening goes deep. Done on a goroutine that ends with it, it leaves the
	// session's own stack small for as long as the session lasts.
	opened := make(chan *driver, 1)
	go func() { opened <- s.open(ctx, socket, r) }()
	if d := <-opened; d != nil {
		d.run(ctx)
		s.end(d)
	}
}

// open makes the session of a client; nil where there is to be none.
func (s *Server) open(ctx context.Context, socket net.Conn, r Route) *driver {
	from := origin.Origin{Own: true}
	if r.Relayed {
		var err error
		if from, err = readOrigin(ctx, socket); err != nil {
			if ctx.Err() == nil {
				s.Log.Log(ctx, weight(err), "client refused", "proxy", r.Protocol, "client", socket.RemoteAddr().String(), "err", err)
			}
			return nil
		}
	}
	found := make(chan *Owner, 1)
	go func() { found <- s.ownerOf(ctx, socket, from) }()
	client, upstream := s.connect(ctx, socket, r)
	owner := <-found
	if upstream == nil {
		owner.close()
		return nil
	}
	s.live.Add(1)
	id := s.sessions.Add(1)
	t := s.Track(r, id)
	c := s.Engine.Open(id, Peer{Owner: owner, Name: t.ClientName, Gone: func() bool { return hungUp(client) }, Unread: s.unread(socket, owner), Waiting: func() []byte { return waiting(client) }, Protocol: r.Protocol, Upstream: r.Upstream, Local: addrPort(transport(upstream).LocalAddr()), Opened: s.Clock(), Backend: t.Backend, Working: t.Working})
	sess := NewSession(s.Engine, c, t.Tracker, func(reason string) {
		s.desyncs.Add(1)
		s.Log.Warn("desync: passed on unread from here on", "session", id, "proxy", r.Protocol, "reason", reason)
	})
	if s.Witness != nil {
		if w := s.Witness.Watch(Watched{Session: id, Route: r, Local: addrPort(transport(upstream).LocalAddr())}); w != nil {
			sess.Watch(w)
		}
	}
	s.Log.Debug("session began", "session", id, "proxy", r.Protocol, "client", client.RemoteAddr().String(), "pid", c.peer.Owner.PID)
	return &driver{session: sess, conn: c, client: client, upstream: upstream, clock: s.Clock, recorder: s.recorder(), ended: t.Ended}
}

// connect makes the two connections of a session; they are nil where there is
// to be none. A failure is logged before the client can hear of it and end the
// run.
func (s *Server) connect(ctx context.Context, socket net.Conn, r Route) (client, upstream net.Conn) {
	legs := r.Legs
	if legs == nil {
		legs = bare{s.Dial, r.Upstream}
	}
	client, err := legs.Accept(ctx, socket)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("client refused", "proxy", r.Protocol, "client", socket.RemoteAddr().String(), "err", err)
	}
	if client == nil {
		return nil, nil
	}
	if err != nil {
		client.Close()
		return nil, nil
	}
	began := s.Clock()
	upstream, err = legs.Dial(ctx)
	if ctx.Err() == nil {
		s.reached.note(r, attempt{began, s.Clock(), err}, s.Log)
	}
	if err == nil {
		return client, upstream
	}
	legs.Unreachable(client, err)
	client.Close()
	return nil, nil
}

func (s *Server) end(d *driver) {
	now := s.Clock()
	d.listen()
	for _, op := range d.session.Close(now) {
		s.recorder().Op(op)
	}
	s.recorder().End(d.conn.id, now, s.Engine.Closed(d.conn, now))
	if d.ended != nil {
		d.ended()
	}
	d.conn.peer.Owner.close()
	s.live.Add(-1)
	s.Log.Debug("session ended", "session", d.conn.id)
}

// A Socketeer is a Freezer that can look into a client's socket.
type Socketeer interface {
	// Unread tells how many bytes wait in the client's end of a connection; an error if that cannot be told.
	Unread(o *Owner) (int, error)
}

// unread tells whether the client of a connection has something left to read, if that can be known: what
// was sent to it and is not acknowledged may have yet to come to its end.
func (s *Server) unread(c net.Conn, o *Owner) func() (bool, error) {
	f, ok := s.Freezer.(Socketeer)
	if !ok {
		return nil
	}
	return func() (bool, error) {
		if sc, ok := c.(syscall.Conn); ok && unheard(sc) {
			return true, nil
		}
		n, err := f.Unread(o)
		return n > 0, err
	}
}

func (s *Server) recorder() Recorder {
	if s.Recorder == nil {
		return nobody{}
	}
	return s.Recorder
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort()
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return ap
}

type nobody struct{}

func (nobody) Op(*lock.Op)                      {}
func (nobody) End(uint64, lock.Instant, uint64) {}
