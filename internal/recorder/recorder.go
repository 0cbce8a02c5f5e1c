package recorder

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Conn is one connection that passed through a recorder.
type Conn struct {
	ToUpstream Stream
	ToClient   Stream
	Client     Peer
	Upstream   Peer
	Broken     string // why it did not end in an orderly way on both sides; "" if it did
}

// A Recorder copies between clients and one upstream, and remembers. Whoever
// started it must call Stop.
type Recorder struct {
	ln       net.Listener
	upstream string

	mu    sync.Mutex
	conns []*Conn
	live  map[net.Conn]bool // both ends of what is open
	open  int
	over  bool
	ended *sync.Cond // open has changed
	all   sync.WaitGroup
}

// Start listens on a free port of 127.0.0.1.
func Start(upstream string) (*Recorder, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start recorder: %w", err)
	}
	r := &Recorder{ln: ln, upstream: upstream, live: map[net.Conn]bool{}}
	r.ended = sync.NewCond(&r.mu)
	r.all.Go(r.accept)
	return r, nil
}

// Addr returns where the recorder listens.
func (r *Recorder) Addr() string { return r.ln.Addr().String() }

// Drain waits until no connection is open, or the time is over, and reports
// whether all have ended.
func (r *Recorder) Drain(limit time.Duration) bool {
	late := false
	t := time.AfterFunc(limit, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		late = true
		r.ended.Broadcast()
	})
	defer t.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.open > 0 && !late {
		r.ended.Wait()
	}
	return r.open == 0
}

// Stop ends what is still open and returns every connection, in the order in
// which they came.
func (r *Recorder) Stop() []*Conn {
	r.ln.Close()
	r.mu.Lock()
	r.over = true
	for c := range r.live {
		c.Close()
	}
	r.mu.Unlock()
	r.all.Wait()
	return r.conns
}

func (r *Recorder) accept() {
	for {
		c, err := r.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come back
			continue
		}
		r.begin(c)
	}
}

func (r *Recorder) begin(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		c.Close()
		return
	}
	conn := &Conn{}
	r.conns = append(r.conns, conn)
	r.live[c] = true
	r.open++
	r.all.Go(func() { r.serve(conn, c) })
}

func (r *Recorder) serve(conn *Conn, client net.Conn) {
	l := &link{conn: conn, client: client}
	defer r.done(l)
	upstream, err := net.Dial("tcp", r.upstream)
	if err != nil {
		l.broke("no upstream: " + err.Error())
		return
	}
	l.upstream = upstream
	if !r.track(upstream) {
		l.broke(stopped)
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.copy(&conn.ToClient, end{upstream, &conn.Upstream, "upstream"}, end{client, &conn.Client, "client"})
	}()
	l.copy(&conn.ToUpstream, end{client, &conn.Client, "client"}, end{upstream, &conn.Upstream, "upstream"})
	<-back
}

// track remembers what Stop has to close, unless that has happened already.
func (r *Recorder) track(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[c] = true
	return !r.over
}

func (r *Recorder) done(l *link) {
	l.client.Close()
	if l.upstream != nil {
		l.upstream.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, l.client)
	delete(r.live, l.upstream)
	r.open--
	r.ended.Broadcast()
}

const stopped = "stopped with the recorder"

// A link is a connection while it is open.
type link struct {
	conn             *Conn
	client, upstream net.Conn
	once             sync.Once
}

// An end is one peer of a link.
type end struct {
	net.Conn
	peer *Peer
	name string
}

// copy moves and records one direction until it ends.
func (l *link) copy(s *Stream, from, to end) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		s.add(buf[:n])
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				// What the sink said before it went is still to be passed on; the
				// other direction ends with it.
				to.peer.Gone = !errors.Is(err, net.ErrClosed)
				l.broke("write to " + to.name + ": " + reason(err))
				return
			}
		}
		if err != nil {
			from.peer.End = endOf(err)
		}
		if err == io.EOF {
			_ = to.Conn.(*net.TCPConn).CloseWrite() // if it has gone, the other direction says so
			return
		}
		if err != nil {
			l.reset("read from " + from.name + ": " + reason(err))
			return
		}
	}
}

func reason(err error) string {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		return no.Error()
	case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrClosed):
		return stopped
	}
	return err.Error()
}

func (l *link) broke(why string) { l.once.Do(func() { l.conn.Broken = why }) }

// reset takes both ends down as hard as one of them went.
func (l *link) reset(why string) {
	l.broke(why)
	for _, c := range []net.Conn{l.client, l.upstream} {
		_ = c.(*net.TCPConn).SetLinger(0) // it may be closed already
		c.Close()
	}
}
