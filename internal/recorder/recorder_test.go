package recorder

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

func streamOf(p []byte) Stream {
	var s Stream
	s.add(p)
	return s
}

func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	p := make([]byte, n)
	_, _ = r.Read(p) // never fails
	return p
}

func TestHashDoesNotDependOnHowBytesArrive(t *testing.T) {
	for _, size := range []int{0, 1, blockSize - 1, blockSize, blockSize + 1, 5*blockSize + 17} {
		p := noise(size)
		whole := streamOf(p)
		for _, step := range []int{1, 7, 1000, blockSize, 3*blockSize + 5} {
			var s Stream
			for rest := p; len(rest) > 0; rest = rest[min(step, len(rest)):] {
				s.add(rest[:min(step, len(rest))])
			}
			if s.key() != whole.key() || s.Bytes != int64(size) {
				t.Errorf("%d bytes in steps of %d: not the same stream", size, step)
			}
		}
	}
}

func TestCommonFindsTheFirstDifference(t *testing.T) {
	p := noise(3*blockSize + 100)
	for _, tt := range []struct{ flip, want int }{
		{0, 0}, {17, 17}, {blockSize - 1, blockSize - 1},
		{blockSize + 5, blockSize}, {2*blockSize + 5, 2 * blockSize}, {3*blockSize + 5, 3*blockSize + 5},
	} {
		q := bytes.Clone(p)
		q[tt.flip] ^= 1
		a, b := streamOf(p), streamOf(q)
		if got := a.common(&b); got != int64(tt.want) {
			t.Errorf("byte %d flipped: equal up to %d, want %d", tt.flip, got, tt.want)
		}
		if a.key() == b.key() {
			t.Errorf("byte %d flipped: same key", tt.flip)
		}
	}
}

func conn(up, down []byte, broken string) *Conn {
	return &Conn{ToUpstream: streamOf(up), ToClient: streamOf(down), Broken: broken}
}

func TestCompare(t *testing.T) {
	up, down := noise(10000), noise(20000)
	flipped := bytes.Clone(down)
	flipped[11000] ^= 1
	for _, tt := range []struct {
		name         string
		outer, inner []*Conn
		equal, cut   int
		different    string
	}{
		{"equal in another order", []*Conn{conn(up, down, ""), conn(down, up, "")}, []*Conn{conn(down, up, ""), conn(up, down, "")}, 2, 0, ""},
		{"one twice, one missing", []*Conn{conn(up, down, ""), conn(up, down, "")}, []*Conn{conn(up, down, "")}, 1, 0, "only at the client's side"},
		{"one too many", []*Conn{conn(up, down, "")}, []*Conn{conn(up, down, ""), conn(up, down, "")}, 1, 0, "only at the server's side"},
		{"a byte changed", []*Conn{conn(up, flipped, "")}, []*Conn{conn(up, down, "")}, 0, 0, "to the client, from a byte behind 8192 on, at most 12288"},
		{"a byte changed on a broken one", []*Conn{conn(up, flipped, "reset")}, []*Conn{conn(up, down, "reset")}, 0, 0, "to the client, from a byte behind 8192 on, at most 12288"},
		{"the end is missing", []*Conn{conn(up, down[:15000], "")}, []*Conn{conn(up, down, "")}, 0, 0, "to the client"},
		{"the end is missing of a broken one", []*Conn{conn(up, down[:15000], "write to client: reset")}, []*Conn{conn(up, down, "")}, 0, 1, ""},
		{"a short one that broke", []*Conn{conn(up[:100], down[:50], "read from client: reset")}, []*Conn{conn(up[:90], down[:60], "")}, 0, 1, ""},
		{"a short one that broke and differs", []*Conn{conn(up[:100], down[:50], "reset")}, []*Conn{conn(down[5:95], down[:60], "")}, 0, 0, "to the upstream, from byte 0 on"},
		{"the server's last words are missing", []*Conn{conn(up, down[:15000], "read from upstream: reset")}, []*Conn{conn(up, down, "write to upstream: broken pipe")}, 0, 0, "to the client"},
		{"the server did not hear all", []*Conn{conn(up, down, "read from upstream: reset")}, []*Conn{conn(up[:9000], down, "write to upstream: broken pipe")}, 0, 1, ""},
		{"bytes from nowhere on a broken one", []*Conn{conn(up, down, "reset")}, []*Conn{conn(up, down[:15000], "")}, 0, 0, "to the client"},
		{"came and went", []*Conn{conn(nil, nil, "reset"), conn(nil, nil, "")}, nil, 0, 0, ""},
		{"came and went beside one that broke", []*Conn{conn(nil, nil, ""), conn(up[:50], nil, "reset")}, []*Conn{conn(nil, nil, "")}, 1, 0, "only at the client's side"},
		{"an upstream troubled for nothing", nil, []*Conn{conn(nil, nil, "")}, 0, 0, "only at the server's side"},
		{"said something before the dial", []*Conn{conn(up, nil, "reset")}, nil, 0, 0, "only at the client's side"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Compare(tt.outer, tt.inner)
			if r.Conns != len(tt.outer) || r.Equal != tt.equal || r.Cut != tt.cut {
				t.Errorf("got %d conns, %d equal, %d cut; want %d, %d, %d", r.Conns, r.Equal, r.Cut, len(tt.outer), tt.equal, tt.cut)
			}
			got := strings.Join(r.Different, "\n")
			if tt.different == "" && got != "" || !strings.Contains(got, tt.different) {
				t.Errorf("different: %q, want it to say %q", got, tt.different)
			}
		})
	}
}

func TestDifferenceShowsBytes(t *testing.T) {
	r := Compare([]*Conn{conn([]byte("PING\r\n"), []byte("+PONG\r\n"), "")}, []*Conn{conn([]byte("PING\r\n"), []byte("+PANG\r\n"), "")})
	got := strings.Join(r.Different, "\n")
	for _, want := range []string{"from byte 2 on", `"+PONG\r\n"`, `"+PANG\r\n"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want it to have %s", got, want)
		}
	}
}

// upstream serves one connection after another, and returns its address.
func upstream(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serve(c.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func dial(t *testing.T, r *Recorder) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func TestRecorderPassesHalfCloseOn(t *testing.T) {
	r, err := Start(upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		p, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("got "), p...)) // the reader tells
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, r)
	p := noise(200000)
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, append([]byte("got "), p...)) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if !r.Drain(10 * time.Second) {
		t.Error("a connection stayed open")
	}
	conns := r.Stop()
	want := conn(p, got, "")
	if len(conns) != 1 || conns[0].key() != want.key() || conns[0].Broken != "" {
		t.Errorf("recorded %+v", conns)
	}
}

// A server that refuses a client writes why and closes, whatever else the client is
// still sending. That must arrive as it does without a recorder.
func TestRecorderPassesLastWordsOn(t *testing.T) {
	r, err := Start(upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, 10)) // the client tells
		_, _ = c.Write([]byte("bye"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	for range 100 {
		c := dial(t, r)
		for err := error(nil); err == nil; {
			_, err = c.Write(make([]byte, 1024))
		}
		last := make([]byte, 10)
		if n, _ := c.Read(last); string(last[:n]) != "bye" {
			t.Fatalf("got %q, want the last words", last[:n])
		}
		c.Close()
	}
}

func TestRecorderPassesResetOn(t *testing.T) {
	reset := make(chan error, 1)
	r, err := Start(upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		_, err := io.Copy(io.Discard, c)
		reset <- err
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, r)
	if _, err := c.Write([]byte("PING")); err != nil {
		t.Fatal(err)
	}
	for !r.heard() {
		time.Sleep(time.Millisecond)
	}
	_ = c.SetLinger(0)
	c.Close()
	if err := <-reset; err == nil {
		t.Error("the upstream saw an orderly end, want a reset")
	}
	conns := r.Stop()
	if len(conns) != 1 || !strings.Contains(conns[0].Broken, "reset") {
		t.Errorf("recorded %+v, want it broken by a reset", conns)
	}
}

// heard reports whether a connection is open on both sides.
func (r *Recorder) heard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) == 2
}

func TestStopEndsWhatIsOpen(t *testing.T) {
	r, err := Start(upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		_, _ = io.Copy(io.Discard, c)
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, r)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for !r.heard() {
		time.Sleep(time.Millisecond)
	}
	if r.Drain(time.Millisecond) {
		t.Error("drained although a client is there")
	}
	if conns := r.Stop(); len(conns) != 1 || conns[0].Broken == "" {
		t.Errorf("recorded %+v, want it broken", conns)
	}
}
