package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// soon is longer than anything takes that happens at all.
const soon = time.Minute

// A client writes a long pipeline before it reads anything, and its server,
// which has answered much of it, dies. The client must not wait for it: nobody
// reads the answers that are under way before it has written.
func TestClientThatOnlyWritesHearsOfTheEnd(t *testing.T) {
	client, server := newStreet(t, nil).connect()
	go io.Copy(io.Discard, io.LimitReader(server, 3<<20))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		io.WriteString(server, strings.Repeat("+0123456789012345678901234567890123456789\r\n", 1<<20))
	}()
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(client, strings.Repeat("PING\r\n", 10<<20))
		wrote <- err
	}()
	untilStuck(t, client, server)
	server.SetLinger(0)
	server.Close()
	select {
	case <-wrote:
	case <-time.After(soon):
		t.Fatal("the client's write still waits for a server that is dead")
	}
	client.SetReadDeadline(time.Now().Add(soon))
	if _, err := io.Copy(io.Discard, client); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the client does not hear of the end")
	}
	<-answered
}

// untilStuck waits until what both ends have written stays in their kernels.
func untilStuck(t *testing.T, ends ...*net.TCPConn) {
	t.Helper()
	for last, same := "", 0; same < 20; time.Sleep(10 * time.Millisecond) {
		now := ""
		for _, c := range ends {
			now += fmt.Sprint(unsent(t, c), " ")
		}
		if now == last && !strings.HasPrefix(" "+now, " 0 ") {
			same++
			continue
		}
		last, same = now, 0
	}
}

func unsent(t *testing.T, c *net.TCPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A client sends its last request while replies are under way that it will not
// read, and closes. Its server hears the request, as it would directly.
func TestLastRequestOfAClientThatReadsNoMore(t *testing.T) {
	s := newStreet(t, nil)
	for range 100 {
		client, server := s.connect()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			for {
				if _, err := io.WriteString(server, strings.Repeat("+0123456789\r\n", 1000)); err != nil {
					return
				}
			}
		}()
		heard := make(chan string)
		go func() {
			server.SetReadDeadline(time.Now().Add(soon))
			b, _ := io.ReadAll(server)
			heard <- string(b)
		}()
		io.WriteString(client, "GET k\r\n")
		io.ReadFull(client, make([]byte, 100))
		io.WriteString(client, "SET done 1\r\n")
		client.Close()
		if got, want := <-heard, "GET k\r\nSET done 1\r\n"; got != want {
			t.Fatalf("the server heard %q, want %q", got, want)
		}
		<-answered
		server.Close()
	}
}

// A client pipelines, half-closes and then reads; the server answers the first
// request and closes on the others, which its kernel answers with a reset. What
// it said is heard.
func TestLastWordsToAHalfClosedClient(t *testing.T) {
	s := newStreet(t, nil)
	for range 200 {
		client, server := s.connect()
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.ReadFull(server, make([]byte, 6))
			io.WriteString(server, "+OK\r\n")
			server.Close()
		}()
		io.WriteString(client, "QUIT\r\n"+strings.Repeat("PING\r\n", 50000))
		client.CloseWrite()
		<-done
		client.SetReadDeadline(time.Now().Add(soon))
		if got, err := io.ReadAll(client); string(got) != "+OK\r\n" || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the client reads %q, %v", got, err)
		}
	}
}

// What a server said before it reset is heard by a client that reads slowly,
// and then the reset.
func TestResetComesBehindLastWords(t *testing.T) {
	client, server := newStreet(t, nil).connect()
	const size = 1 << 20
	io.WriteString(client, "GET k\r\n")
	io.ReadFull(server, make([]byte, 7))
	text := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
	io.WriteString(server, text)
	for unsent(t, server) > 0 {
		runtime.Gosched()
	}
	server.SetLinger(0)
	server.Close()
	var got int
	for b := make([]byte, 16<<10); ; {
		client.SetReadDeadline(time.Now().Add(soon))
		n, err := client.Read(b)
		got += n
		if err != nil {
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client's stream ends with %v, want a reset", err)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got != len(text) {
		t.Errorf("the client got %d of %d bytes", got, len(text))
	}
}

// The one who writes to a server that resets the connection may be the one who
// is told of it, and only one is. The client hears of a reset all the same.
func TestResetThatAWriteWasToldOf(t *testing.T) {
	for range 50 {
		client, server := newStreet(t, nil).connect()
		read := make(chan error, 1)
		go func() {
			client.SetReadDeadline(time.Now().Add(soon))
			_, err := io.Copy(io.Discard, client)
			read <- err
		}()
		told := false // the client's own write was
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for range 20000 {
				if _, err := io.WriteString(client, "PING\r\n"); err != nil {
					told = errors.Is(err, syscall.ECONNRESET)
					return
				}
			}
		}()
		io.ReadFull(server, make([]byte, 600))
		server.SetLinger(0)
		server.Close()
		err := <-read
		client.Close()
		<-wrote
		if !errors.Is(err, syscall.ECONNRESET) && !told {
			t.Fatalf("the client reads %v, want a reset", err)
		}
	}
}

// A connection that is passed on unread has the kernel move its bytes, through
// a pipe. It keeps none when it has become quiet.
func TestQuietConnectionKeepsNoPipe(t *testing.T) {
	conns := make(chan *net.TCPConn, 2)
	s := newStreet(t, func(c net.Conn) { conns <- c.(*net.TCPConn) })
	client, server := s.connect()
	<-conns // the client's
	upstream := <-conns
	io.WriteString(client, "MONITOR\r\n")
	io.ReadFull(server, make([]byte, 9))
	before := -1
	within(t, "no pipe is left of others", func() bool {
		runtime.GC() // which empties the pool of pipes
		last := before
		before = pipes()
		return before == last
	})
	say := func(text string) {
		t.Helper()
		io.WriteString(server, text)
		client.SetReadDeadline(time.Now().Add(soon))
		if _, err := io.ReadFull(client, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
	}
	say("+OK\r\n" + strings.Repeat("+123 \"GET\" \"k\"\r\n", 400))
	within(t, "a pipe is used", func() bool { say("+123 \"GET\" \"k\"\r\n"); return pipes() > before })
	upstream.SetReadDeadline(time.Now()) // as if it had been quiet
	within(t, "the pipe is given back", func() bool {
		runtime.GC()
		return pipes() <= before
	})
	say("+123 \"GET\" \"late\"\r\n")
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func pipes() (n int) {
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range fds {
		if l, err := os.Readlink(f); err == nil && strings.HasPrefix(l, "pipe:") {
			n++
		}
	}
	return n
}

// A stall that begins while the kernel moves a body soon holds the rest of it.
func TestStallHoldsABody(t *testing.T) {
	s := newStreet(t, nil, "stall-after", "SETNX=1h")
	client, server := s.connect()
	request := "SET job token NX PX 1000\r\n"
	const size = 8 << 20
	start := request + fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", size) + strings.Repeat("x", 200<<10)
	io.WriteString(client, start)
	if _, err := io.ReadFull(server, make([]byte, len(start))); err != nil {
		t.Fatal(err)
	}
	io.WriteString(server, "+OK\r\n") // the grant
	within(t, "the session is stalled", func() bool { return s.engine.Sessions()[0].Held })
	go io.WriteString(client, strings.Repeat("y", 4<<20))
	server.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	n, err := io.Copy(io.Discard, server)
	if n > 1<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server got %d more bytes, %v", n, err)
	}
}

// A frame that is not whole when its sender resets is passed on as far as it
// came, ahead of the reset.
func TestPartOfAFrameBeforeAReset(t *testing.T) {
	request := "SET job token NX GET PX 1000\r\n"
	for name, e := range map[string]struct {
		asked, part string
		toClient    bool
	}{"reply": {request, "$5\r\nhel", true}, "request": {"PING\r\n", request[:10], false}} {
		client, server := newStreet(t, nil).connect()
		io.WriteString(client, e.asked)
		io.ReadFull(server, make([]byte, len(e.asked)))
		from, to := client, server
		if e.toClient {
			from, to = server, client
		}
		io.WriteString(from, e.part)
		for unsent(t, from) > 0 {
			runtime.Gosched()
		}
		from.SetLinger(0)
		from.Close()
		to.SetReadDeadline(time.Now().Add(soon))
		if b, err := io.ReadAll(to); string(b) != e.part || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the other end reads %q, %v; want %q and a reset", name, b, err, e.part)
		}
	}
}

// A client that has ended its stream still gets a reply that was stalled.
func TestStalledReplyToAHalfClosedClient(t *testing.T) {
	client, server := newStreet(t, nil, "stall-after", "SETNX=50ms").connect()
	io.WriteString(client, "SET job token NX PX 1000\r\n")
	client.CloseWrite()
	io.ReadAll(server)
	io.WriteString(server, "+OK\r\n")
	server.Close()
	client.SetReadDeadline(time.Now().Add(soon))
	if got, err := io.ReadAll(client); string(got) != "+OK\r\n" || err != nil {
		t.Errorf("the client reads %q, %v", got, err)
	}
}

// A stall holds an end of either kind.
func TestStallHoldsEnds(t *testing.T) {
	for _, linger := range []int{-1, 0} {
		client, server := newStreet(t, nil, "stall-before", "DEL=1h").connect()
		io.WriteString(client, "PING\r\nDEL k\r\n")
		io.ReadFull(server, make([]byte, 6)) // let go with the stall already there
		server.SetLinger(linger)
		server.Close()
		client.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("linger %d: the client hears %v", linger, err)
		}
	}
}
