package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// freezes is how many grants are frozen in TestFreezeIsConfirmedBeforeTheReplyGoes.
const freezes = 300

// impatient is a client that, the moment it hears a grant, sends its next
// command. It is this test's binary in a process of its own.
func impatient(address string, n int) error {
	network := "tcp"
	if path, ok := config.UnixPath(address); ok {
		network, address = "unix", path
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i := range n {
		for _, command := range []string{fmt.Sprintf("SET key%d token NX PX 60000\r\n", i), fmt.Sprintf("DEL key%d\r\n", i)} {
			if _, err := io.WriteString(c, command); err != nil {
				return err
			}
			if _, err := in.ReadString('\n'); err != nil {
				return err
			}
		}
	}
	return nil
}

// The other order, reply first, let the next command out in a third of the tries.
func TestFreezeIsConfirmedBeforeTheReplyGoes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("freezing takes root")
	}
	freezesBeforeReplies(t, config.Proxy{Listen: "127.0.0.1:0"}, asItIs)
}

// The client of a Unix socket has no address, and is frozen all the same.
func TestFreezeOfUnixClients(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("freezing takes root")
	}
	h := freezesBeforeReplies(t, config.Proxy{Listen: "unix:" + filepath.Join(t.TempDir(), "redis.sock")}, asItIs)
	if len(h.Actors) != 1 || h.Actors[0].PID == 0 || h.Actors[0].Address != "unix" {
		t.Errorf("actors %+v", h.Actors)
	}
}

// Whoever comes through a relay is found by the addresses that the relay tells.
func TestFreezeBehindARelay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("freezing takes root")
	}
	h := freezesBeforeReplies(t, config.Proxy{Listen: "127.0.0.1:0", Relayed: true}, func(address string) string { return relay(t, address) })
	if len(h.Actors) != 1 || h.Actors[0].PID == 0 || h.Actors[0].PID == os.Getpid() {
		t.Errorf("actors %+v of the relay's one client", h.Actors)
	}
}

// relay passes connections on to an address, each with a header that says whose it is.
func relay(t *testing.T, address string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer up.Close()
				client, server := c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr)
				fmt.Fprintf(up, "PROXY TCP4 %s %s %d %d\r\n", client.IP, server.IP, client.Port, server.Port)
				go io.Copy(c, up)
				io.Copy(up, c)
			}()
		}
	}()
	return ln.Addr().String()
}

func asItIs(address string) string { return address }

// freezesBeforeReplies serves a client that comes to the proxy by an address that by makes of the proxy's own.
func freezesBeforeReplies(t *testing.T, p config.Proxy, by func(string) string) *history.History {
	t.Helper()
	redis := testbed.Redis(t)
	p.Upstream = redis.Addr()
	h := serveOnceBy(t, p, "freeze-after", "SETNX=1ms", func(address string) {
		address = by(address)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LOCKFAULT_CLIENT="+address)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("client: %v\n%s", err, out)
		}
	})
	next := map[uint64]*lock.Op{} // by the grant's place: the command behind it
	for i, op := range h.Ops[1:] {
		next[h.Ops[i].Seq] = op
	}
	if len(h.Injections) != freezes {
		t.Fatalf("%d injections, want %d", len(h.Injections), freezes)
	}
	for _, in := range h.Injections {
		op := next[in.Op]
		if in.Outcome != "landed" {
			t.Errorf("injection %d: %s: %s", in.ID, in.Outcome, in.Reason)
		} else if op.A < in.Confirmed.Add(in.For) {
			t.Errorf("injection %d: the client's next command came %v after the freeze, which lasted %v", in.ID, op.A.Sub(in.Confirmed), in.For)
		}
	}
	return h
}

// serveOnce proxies a Redis under one rule while use works, and returns the
// history.
func serveOnce(t *testing.T, upstream, flag, rule string, use func(address string)) *history.History {
	t.Helper()
	return serveOnceBy(t, config.Proxy{Listen: "127.0.0.1:0", Upstream: upstream}, flag, rule, use)
}

func serveOnceBy(t *testing.T, p config.Proxy, flag, rule string, use func(address string)) *history.History {
	t.Helper()
	r, err := fault.Parse(flag, rule)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "history.jsonl")
	p.Name, p.Protocol = "redis", lock.Redis
	e, err := listen(p)
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{rules: []fault.Rule{r}, seed: 1}
	d, err := newDaemon(s, upstreams([]endpoint{e}), file, proxy.Wait, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.accept([]endpoint{e})
	use(e.address())
	d.linger(t.Context(), lingering)
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// libpq and its like look for a socket of this name where a host begins with a slash.
func TestPostgresOnUnixSocket(t *testing.T) {
	postgres := testbed.Postgres(t)
	dir := t.TempDir()
	e, err := listen(config.Proxy{Name: "postgres", Protocol: lock.Postgres, Listen: "unix:" + filepath.Join(dir, ".s.PGSQL.5432"), Upstream: postgres.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(&setup{seed: 1}, nil, "", proxy.Wait, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.accept([]endpoint{e})
	defer d.close()
	conf, err := pgx.ParseConfig(postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	conf.Host, conf.Port, conf.Fallbacks = dir, 5432, nil
	c, err := pgx.ConnectConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := c.QueryRow(t.Context(), "SELECT 41 + 1").Scan(&n); n != 42 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	d.linger(t.Context(), lingering)
	if n := d.server.Live(); n != 0 {
		t.Errorf("%d sessions are open after their clients have gone", n)
	}
}

// A client that sends what no Postgres takes harms nobody but itself.
func TestBadMessagesHarmOnlyTheirOwnConnection(t *testing.T) {
	postgres := testbed.Postgres(t)
	e, err := listen(config.Proxy{Name: "postgres", Protocol: lock.Postgres, Listen: "127.0.0.1:0", Upstream: postgres.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(&setup{seed: 1}, nil, "", proxy.Wait, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.accept([]endpoint{e})
	ctx := t.Context()
	url := strings.Replace(postgres.URL(), postgres.Addr(), e.ln.Addr().String(), 1)
	good, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	startup := "\x00\x00\x00\x1d\x00\x03\x00\x00user\x00postgres\x00\x00xxxx"
	for _, bad := range []string{
		"\x7f\xff\xff\xff\x00\x03\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x08\x04", "GET / HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x02\x00", startup + "Q\xff\xff\xff\xff", startup + "Q\x00\x00\x00\x01", startup + "Q\x7f\xff\xff\xff",
		startup + "B\x00\x00\x00\x04", startup + "\x00\x00\x00\x00\x00\x00", startup + "Q\x00\x00\x00\x09SEL",
	} {
		c, err := net.Dial("tcp", e.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, bad)
		c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
			t.Errorf("%q: the connection hangs", bad)
		}
		c.Close()
		var n int
		if err := good.QueryRow(ctx, "SELECT 6*7").Scan(&n); err != nil || n != 42 {
			t.Fatalf("after %q another session reads %d, %v", bad, n, err)
		}
	}
	good.Close(ctx)
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// A client that sends what no Redis takes harms nobody but itself.
func TestBadFramesHarmOnlyTheirOwnConnection(t *testing.T) {
	redis := testbed.Redis(t)
	h := serveOnce(t, redis.Addr(), "stall-after", "SETNX=0s", func(address string) {
		good, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer good.Close()
		in := bufio.NewReader(good)
		for _, bad := range []string{
			"*1\r\n$-7\r\n", "*99999999999\r\n", "*1\r\n$99999999999999999999\r\nPING\r\n", "*2\r\n$3\r\nGE",
			"*1\r\n:5\r\n", "\x16\x03\x01\x02\x00\x01", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*-9\r\n*3\r\n$3\r\nSET\r\n$1",
		} {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, bad)
			c.(*net.TCPConn).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
				t.Errorf("%q: the connection hangs", bad)
			}
			c.Close()
			_, _ = io.WriteString(good, "PING\r\n")
			if line, err := in.ReadString('\n'); line != "+PONG\r\n" {
				t.Fatalf("after %q another session reads %q, %v", bad, line, err)
			}
		}
		_, _ = io.WriteString(good, "SET k t NX PX 100\r\n")
		if line, _ := in.ReadString('\n'); line != "+OK\r\n" {
			t.Errorf("got %q", line)
		}
	})
	if len(h.Injections) != 1 {
		t.Errorf("%d injections, want the one on the good session", len(h.Injections))
	}
}
