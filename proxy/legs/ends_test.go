package legs_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// An end that cut the upstream's stream off is never an orderly one for a client
// over TLS, and an orderly one is. Go's TLS takes an end between two records for
// orderly, however it came; so what tells here is the word that comes ahead of it.
func TestEndsOverTLS(t *testing.T) {
	a := authority(t)
	own, up := shown(t, a, "proxy"), trusting(t, a)
	for _, e := range []struct {
		name   string
		secure bool // the upstream leg
		end    func(c net.Conn, below *net.TCPConn)
		want   error
		word   bool // close_notify
	}{
		{"in order, plain", false, func(_ net.Conn, below *net.TCPConn) { below.Close() }, io.EOF, true},
		{"in order, TLS", true, func(c net.Conn, _ *net.TCPConn) { c.Close() }, io.EOF, true},
		{"reset, plain", false, reset, syscall.ECONNRESET, false},
		{"reset, TLS", true, reset, syscall.ECONNRESET, false},
		{"cut off, TLS", true, cutOff, io.EOF, false},
	} {
		t.Run(e.name, func(t *testing.T) {
			ln := listen(t)
			upstream := (*tls.Config)(nil)
			if e.secure {
				upstream = up
			}
			at := newHouse(t).redis(ln.Addr().String(), own, upstream)
			heard := &counting{Conn: dial(t, at)}
			client := tls.Client(heard, trusting(t, a))
			go client.Handshake()
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			below := c.(*net.TCPConn)
			if e.secure {
				c = tls.Server(c, shown(t, a, "localhost"))
			}
			send(t, client, "PING\r\n")
			expect(t, c, "PING\r\n")
			send(t, c, "+PONG\r\n")
			expect(t, client, "+PONG\r\n")
			before := heard.n
			e.end(c, below)
			if n, err := client.Read(make([]byte, 1)); n > 0 || !errors.Is(err, e.want) {
				t.Errorf("the client reads %d bytes, %v; want %v", n, err, e.want)
			}
			if word := heard.n > before; word != e.word {
				t.Errorf("an end was announced: %v, want %v", word, e.word)
			}
		})
	}
}

func reset(_ net.Conn, below *net.TCPConn) {
	_ = below.SetLinger(0)
	below.Close()
}

// cutOff ends in the middle of a record.
func cutOff(_ net.Conn, below *net.TCPConn) {
	_, _ = below.Write([]byte{0x17, 3, 3, 0, 100, 1, 2, 3})
	below.Close()
}

// counting counts the bytes that were read.
type counting struct {
	net.Conn
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n += n
	return n, err
}

func listen(t *testing.T) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}
