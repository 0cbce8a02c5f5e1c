package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Network is an in-memory TCP: buffered, with half-close, fit for a synctest
// bubble, where real sockets would stop the clock. The zero value is ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	port      uint16
}

// Listen announces on an address such as "redis:6379".
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	if n.listeners[address] != nil {
		return nil, fmt.Errorf("listen on %s: address already in use", address)
	}
	l := &listener{network: n, address: address, queue: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// Dial connects to a listener of this network.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.port++
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 40000+n.port)
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	client, server := pipe(net.TCPAddrFromAddrPort(from), name(address))
	select {
	case l.queue <- server:
		return client, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	network *Network
	address string
	queue   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listeners, l.address)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return name(l.address) }

type name string

func (name) Network() string  { return "memory" }
func (n name) String() string { return string(n) }

// A Conn is one end of an in-memory connection. It has no deadlines: setting
// one is an error.
type Conn struct {
	in, out *buffer
	local   net.Addr
	remote  net.Addr
	resets  atomic.Bool
}

var errNoDeadlines = errors.New("set deadline: not supported in memory")

// SetDeadline is not supported.
func (c *Conn) SetDeadline(time.Time) error { return errNoDeadlines }

// SetReadDeadline is not supported.
func (c *Conn) SetReadDeadline(time.Time) error { return errNoDeadlines }

// SetWriteDeadline is not supported.
func (c *Conn) SetWriteDeadline(time.Time) error { return errNoDeadlines }

func pipe(client, server net.Addr) (*Conn, *Conn) {
	a, b := newBuffer(), newBuffer()
	return &Conn{in: a, out: b, local: client, remote: server}, &Conn{in: b, out: a, local: server, remote: client}
}

// Read reads what the other end wrote; io.EOF after its CloseWrite or Close.
func (c *Conn) Read(p []byte) (int, error) { return c.in.read(p) }

// Write never blocks: the buffer grows.
func (c *Conn) Write(p []byte) (int, error) { return c.out.write(p) }

// CloseWrite ends the outgoing stream and leaves the incoming one.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// SetLinger makes Close a reset, with 0 as for a TCP connection. It cannot linger.
func (c *Conn) SetLinger(sec int) error {
	c.resets.Store(sec == 0)
	return nil
}

// Close ends both streams.
func (c *Conn) Close() error {
	if c.resets.Load() {
		c.out.reset()
	}
	c.out.end()
	c.in.drop()
	return nil
}

// Gone reports whether the other end has ended its stream.
func (c *Conn) Gone() bool { return c.in.ended() }

// Peek returns what the other end wrote and nobody has read.
func (c *Conn) Peek() []byte { return c.in.peek() }

// LocalAddr returns this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

var errBroken = errors.New("write: broken pipe")

type buffer struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	eof     bool
	broken  bool // the eof is a reset
	dropped bool
}

func newBuffer() *buffer {
	b := &buffer{}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *buffer) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && !b.eof && !b.dropped {
		b.changed.Wait()
	}
	if b.dropped {
		return 0, net.ErrClosed
	}
	if len(b.data) == 0 && b.broken {
		return 0, syscall.ECONNRESET
	}
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *buffer) write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eof || b.dropped {
		return 0, errBroken
	}
	b.data = append(b.data, p...)
	b.changed.Broadcast()
	return len(p), nil
}

func (b *buffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eof = true
	b.changed.Broadcast()
}

// reset makes the end that follows a reset, unless there was an orderly one.
func (b *buffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = b.broken || !b.eof
}

func (b *buffer) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped = true
	b.changed.Broadcast()
}

func (b *buffer) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eof
}

func (b *buffer) peek() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data)
}
