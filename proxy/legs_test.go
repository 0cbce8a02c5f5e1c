package proxy

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// over is a connection over another.
type over struct {
	net.Conn
	plain net.Conn
}

func (o over) NetConn() net.Conn { return o.Conn }
func (o over) Plain() net.Conn   { return o.plain }

// That a client has gone is seen below whatever is spoken with it.
func TestGoneBelowTLS(t *testing.T) {
	client, server := connected(t)
	c := over{Conn: tls.Server(server, &tls.Config{})}
	if hungUp(c) {
		t.Error("a client that is there has gone")
	}
	client.Close()
	for end := time.Now().Add(10 * time.Second); !hungUp(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that has gone is still there")
		}
	}
	if _, ok := tcp(c); ok {
		t.Error("TLS is taken for the connection below")
	}
	if _, ok := tcp(over{server, server}); !ok {
		t.Error("a plain connection cannot be spliced")
	}
	if _, ok := tcp(over{server, nil}); ok {
		t.Error("a connection that has read ahead can be spliced")
	}
}
