package main

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// However a connection ends, nothing of it remains: no goroutine, no file, no
// memory.
func TestNothingRemainsOfAConnection(t *testing.T) {
	redis := testbed.Redis(t)
	e, err := listen(config.Proxy{Name: "redis", Protocol: lock.Redis, Listen: "127.0.0.1:0", Upstream: redis.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := fault.Parse("stall-after", "SETNX(held)=20ms")
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{seed: 1, rules: []fault.Rule{hold}}
	d, err := newDaemon(s, upstreams([]endpoint{e}), filepath.Join(t.TempDir(), "history.jsonl"), proxy.Wait, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.accept([]endpoint{e})
	round := func() {
		for range 20 {
			for _, end := range endings {
				endOne(t, e.ln.Addr().String(), end)
			}
		}
		for n := 0; d.server.Live() > 0; n++ {
			if n > 3000 {
				t.Fatalf("%d sessions go on without a client", d.server.Live())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for range 5 {
		round()
	}
	before := remains(t)
	for range 10 {
		round()
	}
	after := remains(t)
	for n := 0; n < 300 && (after.goroutines > before.goroutines || after.files > before.files); n++ { // the last ones are about to end
		time.Sleep(10 * time.Millisecond)
		after = remains(t)
	}
	if after.goroutines > before.goroutines || after.files > before.files+4 || after.heap > before.heap+2<<20 {
		t.Errorf("before: %+v, after %d connections: %+v", before, 200*len(endings), after)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// endings are the ways in which a client may go, once it has been answered.
var endings = map[string]func(c *net.TCPConn){
	"closes":                      func(*net.TCPConn) {},
	"aborts":                      func(c *net.TCPConn) { _ = c.SetLinger(0) },
	"ends its stream":             func(c *net.TCPConn) { _ = c.CloseWrite(); _, _ = io.Copy(io.Discard, c) },
	"is thrown out":               func(c *net.TCPConn) { say(c, "QUIT\r\n"); _, _ = io.Copy(io.Discard, c) },
	"leaves a reply":              func(c *net.TCPConn) { say(c, "GET x\r\n") },
	"leaves a long reply":         func(c *net.TCPConn) { say(c, "COMMAND DOCS\r\nCOMMAND DOCS\r\n") },
	"leaves a blocking command":   func(c *net.TCPConn) { say(c, "BLPOP nothing 0\r\n") },
	"leaves while it is held":     func(c *net.TCPConn) { say(c, "DEL held\r\nSET held token NX PX 1000\r\n") },
	"aborts while it is held":     func(c *net.TCPConn) { say(c, "DEL held\r\nSET held token NX PX 1000\r\n"); _ = c.SetLinger(0) },
	"leaves half a command":       func(c *net.TCPConn) { say(c, "*3\r\n$3\r\nSET\r\n$4\r\nha") },
	"makes no sense":              func(c *net.TCPConn) { say(c, "*1\r\n$-7\r\n"); _, _ = io.Copy(io.Discard, c) },
	"subscribes and leaves":       func(c *net.TCPConn) { say(c, "SUBSCRIBE a b c\r\n") },
	"leaves within a transaction": func(c *net.TCPConn) { say(c, "MULTI\r\nSET k v\r\n") },
}

func say(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

func endOne(t *testing.T, address string, end func(*net.TCPConn)) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say(c, "PING\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "+PONG") {
		t.Fatalf("%q, %v", line, err)
	}
	end(c.(*net.TCPConn))
}

type remaining struct {
	goroutines, files int
	heap              uint64
}

func remains(t *testing.T) remaining {
	t.Helper()
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return remaining{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}
