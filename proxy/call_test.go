package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// connected returns the two ends of a connection.
func connected(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	out, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close(); in.Close() })
	return out.(*net.TCPConn), in.(*net.TCPConn)
}

// What is written arrives, in order and whole, however full the kernel's
// buffers are and however small the reads.
func TestCallsMoveEverything(t *testing.T) {
	a, b := connected(t)
	text := make([]byte, 32<<20)
	_, _ = rand.Read(text)
	wrote := make(chan error, 1)
	go func() {
		out := writing(a)
		var err error
		for rest := text; len(rest) > 0 && err == nil; {
			n := min(len(rest), 3<<20+7)
			err = out.write(rest[:n])
			rest = rest[n:]
		}
		a.CloseWrite()
		wrote <- err
	}()
	in := reading(b)
	var got bytes.Buffer
	for p := make([]byte, 10<<10); ; {
		n, err := in.read(p)
		got.Write(p[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-wrote; err != nil || !bytes.Equal(got.Bytes(), text) {
		t.Errorf("%d of %d bytes arrived, or others; %v", got.Len(), len(text), err)
	}
	if in.raw == nil {
		t.Error("the calls were not made here")
	}
}

// Errors are those of package net.
func TestCallsFailAsConnectionsDo(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(a, b *net.TCPConn) error
		want error
	}{
		"read of a reset": {func(a, b *net.TCPConn) error {
			_ = b.SetLinger(0)
			b.Close()
			_, err := reading(a).read(make([]byte, 1))
			return err
		}, syscall.ECONNRESET},
		"write to a reset": {func(a, b *net.TCPConn) error {
			_ = b.SetLinger(0)
			b.Close()
			out := writing(a)
			for {
				if err := out.write([]byte("x")); err != nil {
					return err
				}
			}
		}, syscall.ECONNRESET},
		"deadline": {func(a, _ *net.TCPConn) error {
			_ = a.SetReadDeadline(time.Now())
			_, err := reading(a).read(make([]byte, 1))
			return err
		}, os.ErrDeadlineExceeded},
		"closed under a read": {func(a, _ *net.TCPConn) error {
			time.AfterFunc(time.Millisecond, func() { a.Close() })
			_, err := reading(a).read(make([]byte, 1))
			return err
		}, net.ErrClosed},
		"closed under a write": {func(a, _ *net.TCPConn) error {
			time.AfterFunc(time.Millisecond, func() { a.Close() })
			return writing(a).write(make([]byte, 64<<20))
		}, net.ErrClosed},
	} {
		a, b := connected(t)
		if err := c.do(a, b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A connection whose bytes are those of a TCP connection only later is used as
// it is until then.
func TestCallsWaitForThePlainConnection(t *testing.T) {
	a, b := connected(t)
	l := &late{Conn: b}
	in := reading(l)
	for i, want := range []bool{false, true} {
		if _, err := a.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := in.read(make([]byte, 1)); n != 1 || err != nil || (in.raw != nil) != want {
			t.Errorf("read %d: %d bytes, %v, made here: %v", i, n, err, in.raw != nil)
		}
	}
}

type late struct {
	net.Conn
	read bool
}

func (l *late) Read(p []byte) (int, error) {
	l.read = true
	return l.Conn.Read(p)
}

func (l *late) Plain() net.Conn {
	if l.read {
		return l.Conn
	}
	return nil
}

// Whoever reads on where a window was finds none of its deadlines.
func TestWindowLeavesNoDeadline(t *testing.T) {
	a, b := connected(t)
	w := newWindow(a)
	w.watch()
	_ = a.SetReadDeadline(time.Now()) // as if it had come
	w.close()
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}
