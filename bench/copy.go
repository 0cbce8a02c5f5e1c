package main

import (
	"fmt"
	"net"
	"strings"
)

// copySize is what one read of the bare proxy asks for, the same as one of
// lockfaultd's.
const copySize = 32 << 10

// copyAll is the bare proxy: for each LISTEN=UPSTREAM a listener, for each
// connection two goroutines that read and write. It ends with its process.
func copyAll(pairs []string) error {
	failed := make(chan error)
	for _, p := range pairs {
		listen, upstream, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("copy %q: expected LISTEN=UPSTREAM", p)
		}
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		go func() { failed <- acceptAll(ln, upstream) }()
	}
	return <-failed
}

func acceptAll(ln net.Listener, upstream string) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go relay(c, upstream)
	}
}

func relay(c net.Conn, upstream string) {
	defer c.Close()
	u, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer u.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		plainCopy(c, u)
	}()
	plainCopy(u, c)
	<-done
}

// plainCopy reads and writes. io.Copy would splice, which a proxy that looks
// at the bytes cannot do, and with small messages is no faster.
func plainCopy(to, from net.Conn) {
	buf := make([]byte, copySize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				from.Close() // so that the other side hears of it
				return
			}
		}
		if err != nil {
			break
		}
	}
	if t, ok := to.(*net.TCPConn); ok {
		_ = t.CloseWrite() // fails only when the connection has gone
	}
}
