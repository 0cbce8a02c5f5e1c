package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A street is a proxy over real sockets, with a server of the test's own.
type street struct {
	t       *testing.T
	address string // of the proxy
	engine  *proxy.Engine
	server  func() net.Conn       // the server's end of the next connection
	frozen  chan struct{}         // receives when a freeze begins
	confirm chan struct{}         // closed: a freeze is confirmed
	watch   func(server net.Conn) // sees the proxy's own connections
	looked  chan string           // the addresses by which owners were looked for
}

func newStreet(t *testing.T, watch func(net.Conn), rules ...string) *street {
	t.Helper()
	return newStreetBy(t, proxy.Route{Protocol: lock.Redis, Upstream: "server"}, watch, rules...)
}

func newStreetBy(t *testing.T, route proxy.Route, watch func(net.Conn), rules ...string) *street {
	t.Helper()
	s := &street{t: t, frozen: make(chan struct{}, 10), confirm: make(chan struct{}), watch: watch, looked: make(chan string, 1000)}
	front, back := listenTCP(t), listenTCP(t)
	s.address = front.Addr().String()
	s.server = func() net.Conn {
		c, err := back.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	plan := proxy.PlanOf(t, rules...)
	start := time.Now()
	clock := func() lock.Instant { return lock.Instant(time.Since(start)) + 1 }
	plan.Start(clock())
	e := proxy.NewEngine(lock.NewLedger(nil), plan)
	s.engine = e
	hash, scripts := lock.NewHasher([]byte("test")), resp.NewScripts()
	server := &proxy.Server{
		Engine: e, Freezer: s, Clock: clock, Log: slog.New(slog.DiscardHandler),
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", back.Addr().String())
			if err == nil && watch != nil {
				watch(c)
			}
			return c, err
		},
		Track: func(_ proxy.Route, session uint64) proxy.Tracker {
			return proxy.Tracker{Tracker: resp.NewTracker(resp.Options{Session: session, Hash: hash, Scripts: scripts, Wants: func(verb string) bool { return plan.Wants(lock.Redis, verb) }})}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { (&proxy.Runner{Engine: e, Freezer: s, Clock: clock}).Run(ctx) })
	running.Go(func() {
		_ = server.Serve(ctx, watched{front, watch}, route)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

func listenTCP(t *testing.T) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// watched shows each accepted connection.
type watched struct {
	net.Listener
	watch func(net.Conn)
}

func (w watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err == nil && w.watch != nil {
		w.watch(c)
	}
	return c, err
}

func (s *street) Lookup(_ context.Context, client, server netip.AddrPort) *proxy.Owner {
	select {
	case s.looked <- client.String() + " to " + server.String():
	default:
	}
	return &proxy.Owner{Key: client.String(), PID: 1, Address: client.Addr().String()}
}

// Freeze waits for the test.
func (s *street) Freeze(context.Context, *proxy.Owner, fault.Scope, time.Duration) (proxy.Thawer, error) {
	s.frozen <- struct{}{}
	<-s.confirm
	return s, nil
}

func (s *street) Thaw() (string, error) { return "", nil }

// connect returns both ends of a connection through the proxy.
func (s *street) connect() (client, server *net.TCPConn) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), s.server().(*net.TCPConn)
}

// A pipeline that nobody reads the replies of reaches the server whole, and
// what it costs meanwhile does not grow with it.
func TestC003PipelineWithoutReading(t *testing.T) {
	const requests, reply = 100_000, "+0123456789012345678901234567890123456789\r\n"
	client, server := newStreet(t, nil).connect()
	heard := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, server, requests*int64(len("PING\r\n")))
		heard <- err
	}()
	go func() {
		out := bufio.NewWriter(server)
		for range requests {
			if _, err := out.WriteString(reply); err != nil {
				return
			}
		}
		_ = out.Flush()
	}()
	before := heap()
	if _, err := io.WriteString(client, strings.Repeat("PING\r\n", requests)); err != nil {
		t.Fatal(err)
	}
	if err := <-heard; err != nil {
		t.Fatal(err)
	}
	if after := heap(); after > before+16<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, after>>20)
	}
	got := make([]byte, requests*len(reply))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, bytes.Repeat([]byte(reply), requests)) {
		t.Errorf("the replies differ, %v", err)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The end of one side's stream comes behind all of its data, and leaves the
// other direction open; an abort stays one.
func TestC007EndsAndAborts(t *testing.T) {
	const size = 8 << 20
	data := "$" + fmt.Sprint(size) + "\r\n" + strings.Repeat("x", size) + "\r\n"
	s := newStreet(t, nil)
	t.Run("client ends", func(t *testing.T) {
		client, server := s.connect()
		go func() {
			_, _ = io.WriteString(client, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n"+data)
			_ = client.CloseWrite()
		}()
		got, err := io.ReadAll(server)
		if err != nil || len(got) != len("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n"+data) {
			t.Fatalf("the server got %d bytes, %v", len(got), err)
		}
		if _, err := io.WriteString(server, "+OK\r\n"); err != nil {
			t.Fatal(err)
		}
		server.Close()
		if got, err := io.ReadAll(client); err != nil || string(got) != "+OK\r\n" {
			t.Errorf("the client got %q, %v", got, err)
		}
	})
	t.Run("server ends", func(t *testing.T) {
		client, server := s.connect()
		if _, err := io.WriteString(client, "GET k\r\n"); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(server, data)
			_ = server.CloseWrite()
		}()
		if got, err := io.ReadAll(client); err != nil || len(got) != len(data) {
			t.Fatalf("the client got %d bytes, %v", len(got), err)
		}
		if _, err := io.WriteString(client, "QUIT\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = client.CloseWrite()
		if got, err := io.ReadAll(server); err != nil || string(got) != "GET k\r\nQUIT\r\n" {
			t.Errorf("the server got %q, %v", got, err)
		}
	})
	for name, ends := range map[string]func(client, server *net.TCPConn) (from, to *net.TCPConn){
		"client aborts": func(client, server *net.TCPConn) (from, to *net.TCPConn) { return client, server },
		"server aborts": func(client, server *net.TCPConn) (from, to *net.TCPConn) { return server, client },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := ends(s.connect())
			if _, err := io.WriteString(from, "+OK\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(to, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			_ = from.SetLinger(0)
			from.Close()
			if _, err := to.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the other side sees %v, want a reset", err)
			}
		})
	}
}

// Neither side's connection waits to fill a packet.
func TestC013NoDelayOnSockets(t *testing.T) {
	var seen atomic.Int32
	s := newStreet(t, func(c net.Conn) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		_ = raw.Control(func(fd uintptr) {
			if n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY); err != nil || n == 0 {
				t.Errorf("TCP_NODELAY is %d, %v", n, err)
			}
		})
		seen.Add(1)
	})
	client, server := s.connect()
	if _, err := io.WriteString(client, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if seen.Load() != 2 {
		t.Errorf("%d connections seen, want 2", seen.Load())
	}
}

// While a reply is held the server may publish as it likes: it is soon made to
// wait, nothing is set aside for it, and all is there afterwards, in order.
func TestC105FirehoseBehindAHeldReply(t *testing.T) {
	s := newStreet(t, nil, "freeze-after", "SETNX=1ms")
	client, server := s.connect()
	if _, err := io.WriteString(client, "SET job token NX PX 1000\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, len("SET job token NX PX 1000\r\n"))); err != nil {
		t.Fatal(err)
	}
	before := heap()
	if _, err := io.WriteString(server, "+OK\r\n"); err != nil {
		t.Fatal(err)
	}
	<-s.frozen
	sent := int64(0)
	message := []byte(">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1000\r\n" + strings.Repeat("n", 1000) + "\r\n")
	for { // until a write does not end
		_ = server.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := server.Write(message)
		sent += int64(n)
		if err != nil {
			break
		}
		if sent > 256<<20 {
			t.Fatal("the server was never made to wait")
		}
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, after>>20)
	}
	close(s.confirm)
	got, err := io.ReadAll(io.LimitReader(client, 5+sent))
	if err != nil || !bytes.HasPrefix(got, []byte("+OK\r\n>3\r\n$7\r\nmessage\r\n")) || int64(len(got)) != 5+sent {
		t.Fatalf("%d bytes came of %d, %v: %.40q", len(got), 5+sent, err, got)
	}
	for rest := got[5:]; len(rest) > 0; rest = rest[min(len(rest), len(message)):] {
		if !bytes.HasPrefix(message, rest[:min(len(rest), len(message))]) {
			t.Fatalf("out of order: %.60q", rest)
		}
	}
}
