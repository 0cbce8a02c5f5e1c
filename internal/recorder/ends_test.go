package recorder

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// What arrives of an end, and what is said of it.
func TestFateOfAnEnd(t *testing.T) {
	fin, rst, gone := Peer{End: FIN}, Peer{End: RST}, Peer{End: FIN, Gone: true}
	for _, tt := range []struct {
		name string
		way  way
		want fate
	}{
		{"an orderly end", way{sent: fin, arrived: fin}, kept},
		{"an abort", way{sent: rst, arrived: rst}, kept},
		{"none", way{}, kept},
		{"an orderly end as an abort", way{sent: fin, arrived: rst}, changed},
		{"an abort as an orderly end", way{sent: rst, arrived: fin}, changed},
		{"an orderly end from nowhere", way{arrived: fin}, changed},
		{"an abort from nowhere", way{arrived: rst, receiver: fin}, changed},
		{"not heard, as the receiver went first", way{sent: fin, receiver: rst}, racy},
		{"an orderly end with an abort behind it", way{sent: gone, arrived: rst}, racy},
		{"an orderly end towards an abort", way{sent: fin, arrived: rst, receiver: rst}, racy},
		{"an abort towards an abort", way{sent: rst, arrived: fin, receiver: rst}, racy},
		{"an abort against bytes on their way", way{sent: rst, arrived: fin, counterBytes: true}, racy},
		{"an abort that a write has met", way{sent: rst, arrived: Peer{End: FIN, Gone: true}}, racy},
		{"an orderly end that a write has met", way{sent: fin, arrived: Peer{End: RST, Gone: true}}, changed},
		{"an orderly end against bytes on their way", way{sent: fin, arrived: rst, counterBytes: true}, changed},
		{"what an abort from the other side made", way{arrived: fin, receiver: rst}, racy},
	} {
		if got := tt.way.fate(); got != tt.want {
			t.Errorf("%s: fate %d, want %d", tt.name, got, tt.want)
		}
	}
}

func ended(client, upstream End) *Conn {
	return &Conn{ToUpstream: streamOf([]byte("PING")), ToClient: streamOf([]byte("PONG")), Client: Peer{End: client}, Upstream: Peer{End: upstream}}
}

// Of connections with the same bytes those belong together that ended alike.
func TestEqualConnectionsAreMatchedByTheirEnds(t *testing.T) {
	for _, tt := range []struct {
		name          string
		outer, inner  []*Conn
		racy, differs int
	}{
		{"crosswise", []*Conn{ended(FIN, FIN), ended(RST, Unheard)}, []*Conn{ended(RST, Unheard), ended(FIN, FIN)}, 0, 0},
		{"the choosy one comes second", []*Conn{ended(FIN, Unheard), ended(RST, Unheard)}, []*Conn{ended(Unheard, Unheard), ended(FIN, FIN)}, 2, 0},
		{"one of two changed", []*Conn{ended(FIN, FIN), ended(RST, Unheard)}, []*Conn{ended(FIN, FIN), ended(FIN, Unheard)}, 0, 1},
		{"both ends changed", []*Conn{ended(FIN, RST)}, []*Conn{ended(RST, FIN)}, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Compare(tt.outer, tt.inner)
			if r.Equal != len(tt.outer) || r.Racy != tt.racy || len(r.Different) != tt.differs {
				t.Errorf("got %+v, want %d racy and %d different", r, tt.racy, tt.differs)
			}
		})
	}
}

// Thousands of connections with the same bytes and ends find each other, and so
// do those of which some must give their partner up.
func TestThousandsOfEqualConnectionsAreMatched(t *testing.T) {
	const n = 4000
	var outer, inner, choosy []*Conn
	for i := range n {
		outer, inner = append(outer, ended(FIN, FIN)), append(inner, ended(FIN, FIN))
		choosy = append(choosy, ended(FIN, FIN))
		if i%2 == 1 {
			choosy[i] = ended(RST, FIN)
		}
	}
	if r := Compare(outer, inner); r.Equal != n || len(r.Different) != 0 {
		t.Errorf("alike: %d equal, %d different", r.Equal, len(r.Different))
	}
	if r := Compare(choosy, inner); r.Equal != n || len(r.Different) != n/2 {
		t.Errorf("half of them changed: %d equal, %d different", r.Equal, len(r.Different))
	}
}

// A play is what client and server do on a connection through two recorders and
// a proxy between them, and what is to be said of how it ended.
func TestEndsOnSockets(t *testing.T) {
	abort := func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() } // the connection is ours
	heard := func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) } // an error is an end, too
	faithful := func(t *testing.T, to string) string {
		r, err := Start(to)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Stop() })
		return r.Addr()
	}
	after := func(end func(from, to *net.TCPConn, err error)) func(*testing.T, string) string {
		return func(t *testing.T, to string) string { return wrongProxy(t, to, end) }
	}
	closes := func(from, to *net.TCPConn, _ error) { _ = to.CloseWrite() }
	aborts := func(from, to *net.TCPConn, _ error) { abort(to); abort(from) }
	for _, tt := range []struct {
		name           string
		proxy          func(*testing.T, string) string
		client, server func(*net.TCPConn)
		want           string
	}{
		{"both end", faithful, func(c *net.TCPConn) { c.CloseWrite(); heard(c); c.Close() }, func(c *net.TCPConn) { heard(c); c.Close() }, ""},
		{"the server ends first", faithful, func(c *net.TCPConn) { heard(c); c.Close() }, func(c *net.TCPConn) { c.CloseWrite(); heard(c); c.Close() }, ""},
		{"the client aborts", faithful, abort, heard, ""},
		{"the server aborts", faithful, heard, abort, ""},
		{"the client's end becomes an abort", after(aborts), func(c *net.TCPConn) { c.CloseWrite(); heard(c); c.Close() }, heard, "FIN of the client arrived as RST"},
		{"the server's end becomes an abort", after(aborts), heard, func(c *net.TCPConn) { c.CloseWrite(); heard(c); c.Close() }, "FIN of the server arrived as RST"},
		{"the client's abort becomes an end", after(closes), abort, func(c *net.TCPConn) { heard(c); c.Close() }, "RST of the client arrived as FIN"},
		{"the server's abort becomes an end", after(closes), func(c *net.TCPConn) { heard(c); c.Close() }, abort, "RST of the server arrived as FIN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner, err := Start(upstream(t, func(c *net.TCPConn) { greet(c); tt.server(c); c.Close() }))
			if err != nil {
				t.Fatal(err)
			}
			outer, err := Start(tt.proxy(t, inner.Addr()))
			if err != nil {
				t.Fatal(err)
			}
			c := dial(t, outer)
			greet(c)
			tt.client(c)
			c.Close()
			if !outer.Drain(10*time.Second) || !inner.Drain(10*time.Second) {
				t.Error("a connection stayed open")
			}
			r := Compare(outer.Stop(), inner.Stop())
			got := strings.Join(r.Different, "\n")
			if r.Equal != 1 || (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %+v, want %q", r, tt.want)
			}
		})
	}
}

// greet makes sure that a connection has come all the way.
func greet(c *net.TCPConn) {
	_, _ = io.WriteString(c, "ready")
	_, _ = io.ReadFull(c, make([]byte, 5)) // what is missing shows in the comparison
}

// wrongProxy copies, and ends one direction as it is told when it has ended.
func wrongProxy(t *testing.T, to string, end func(from, to *net.TCPConn, err error)) string {
	return upstream(t, func(client *net.TCPConn) {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			return
		}
		server := c.(*net.TCPConn)
		back := make(chan struct{})
		go func() {
			defer close(back)
			_, err := io.Copy(client, server)
			end(server, client, err)
		}()
		_, err = io.Copy(server, client)
		end(client, server, err)
		<-back
		client.Close()
		server.Close()
	})
}

// Behind its orderly end a peer may abort; a write tells.
func TestAbortBehindAnEndIsNoticed(t *testing.T) {
	r, err := Start(upstream(t, func(c *net.TCPConn) {
		defer c.Close()
		_, _ = io.Copy(io.Discard, c) // until the client's end
		for err := error(nil); err == nil; {
			_, err = c.Write(make([]byte, 1024))
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, r)
	_ = c.CloseWrite()
	if _, err := io.ReadFull(c, make([]byte, 1024)); err != nil {
		t.Error(err)
	}
	_ = c.SetLinger(0)
	c.Close()
	if !r.Drain(10 * time.Second) {
		t.Error("the connection stayed open")
	}
	if conns := r.Stop(); len(conns) != 1 || conns[0].Client != (Peer{End: FIN, Gone: true}) {
		t.Errorf("recorded %+v", conns)
	}
}
