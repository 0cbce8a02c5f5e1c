package legs

import (
	"io"
	"net"
	"testing"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// What was read before comes first, and only then is the connection below the
// same stream.
func TestReadBefore(t *testing.T) {
	a, b := pair(t)
	r := &read{Conn: a, head: []byte("before ")}
	if r.Plain() != nil {
		t.Error("the connection below is offered, and begins too late")
	}
	if _, err := b.Write([]byte("behind")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	small := make([]byte, 3)
	if n, _ := r.Read(small); string(small[:n]) != "bef" || r.Plain() != nil {
		t.Errorf("read %q", small[:n])
	}
	all, err := io.ReadAll(r)
	if string(all) != "ore behind" || err != nil || r.Plain() != a || r.NetConn() != a {
		t.Errorf("read %q, %v", all, err)
	}
}

// A plaintext Redis connection is its own once its first byte is known.
func TestUnhandshaken(t *testing.T) {
	for text, refused := range map[string]bool{"PING\r\n": false, "\x16\x03\x01": true} {
		a, b := pair(t)
		told := false
		u := &unhandshaken{Conn: a, refuse: func() { told = true }}
		if u.Plain() != nil {
			t.Error("the connection below is offered before anything was read")
		}
		if _, err := b.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		n, err := u.Read(make([]byte, 64))
		if told != refused || (err != nil) != refused || refused && n != 0 || u.Plain() != a {
			t.Errorf("%q: read %d, %v, refused %v", text, n, err, told)
		}
	}
}
