package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// rest is how long connections are left alone before they are measured: longer
// than the proxy takes to call one quiet.
const rest = 25 * time.Second

// idle prints what one idle connection takes of heap and stacks. Its sessions
// are in this process, so that the runtime can be asked; both ends of them are
// in others, since descriptors would not suffice.
func idle(args []string) error {
	fs := flag.NewFlagSet("bench idle", flag.ContinueOnError)
	count := fs.Int("connections", 9000, "how many, two descriptors each")
	wait := fs.Duration("rest", rest, "how long to leave them alone")
	protocols := fs.String("protocols", "redis,pg", "`list`, one after the other")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*protocols, ",") {
		p := lock.Protocol(name)
		used, err := idleMemory(p, *count, *wait)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		fmt.Printf("%s: %d idle connections, %d bytes of heap and stack each\n", p, *count, used/int64(*count))
	}
	return nil
}

func idleMemory(p lock.Protocol, count int, wait time.Duration) (int64, error) {
	if _, known := greetings[string(p)]; !known {
		return 0, errors.New("unknown protocol; expected redis or pg")
	}
	upstream, err := startPeer("upstream", string(p))
	if err != nil {
		return 0, err
	}
	defer upstream.end()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- idleServer().Serve(ctx, ln, proxy.Route{Protocol: p, Upstream: upstream.said}) }()
	before := inUse()
	clients, err := startPeer("clients", string(p), ln.Addr().String(), strconv.Itoa(count))
	if err != nil {
		stop()
		return 0, errors.Join(err, <-done)
	}
	time.Sleep(wait)
	used := inUse() - before
	clients.end()
	stop()
	return used, <-done
}

// inUse is the memory behind live objects and stacks, after a collection that
// has also emptied the pools.
func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// idleServer is lockfaultd's, without a history and the look-up of owners.
func idleServer() *proxy.Server {
	plan, _ := fault.NewPlan(nil, 1, fault.Limits{}) // no rule, no error
	hash := lock.NewHasher(make([]byte, 32))
	scripts, statements := resp.NewScripts(), pgwire.NewCache()
	start := time.Now()
	return &proxy.Server{
		Engine:  proxy.NewEngine(lock.NewLedger(nil), plan),
		Freezer: nobodyOwns{},
		Clock:   func() lock.Instant { return lock.Instant(time.Since(start)) + 1 },
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
		Log: slog.New(slog.DiscardHandler),
		Track: func(r proxy.Route, session uint64) proxy.Tracker {
			wants := func(verb string) bool { return plan.Wants(r.Protocol, verb) }
			if r.Protocol == lock.Redis {
				t := resp.NewTracker(resp.Options{Session: session, Hash: hash, Scripts: scripts, Wants: wants})
				return proxy.Tracker{Tracker: t, ClientName: t.ClientName}
			}
			t := pgwire.NewTracker(pgwire.Options{Session: session, Hash: hash, Statements: statements, Wants: wants})
			return proxy.Tracker{Tracker: t, ClientName: t.ApplicationName}
		},
	}
}

// nobodyOwns looks nobody up: a look-up leaves nothing but a handle.
type nobodyOwns struct{}

func (nobodyOwns) Lookup(context.Context, netip.AddrPort, netip.AddrPort) *proxy.Owner {
	return &proxy.Owner{Reason: "not looked up"}
}

func (nobodyOwns) Freeze(context.Context, *proxy.Owner, fault.Scope, time.Duration) (proxy.Thawer, error) {
	return nil, errors.ErrUnsupported
}

// A peer is one end of all connections, in a process of its own. It ends when
// its standard input does.
type peer struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  string // its first line: where it listens, or that it is done
}

func startPeer(args ...string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	p := &peer{cmd: exec.Command(self, append([]string{"peer"}, args...)...)}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start peer: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start peer: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start peer: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.end()
		return nil, fmt.Errorf("peer %s: %w", args[0], err)
	}
	p.said = strings.TrimSpace(line)
	return p, nil
}

func (p *peer) end() {
	p.stdin.Close()
	_ = p.cmd.Wait() // whatever it says comes too late
}

// greetings are what a client says first, and what it hears.
var greetings = map[string]struct{ ask, answer string }{
	"redis": {"PING\r\n", "+PONG\r\n"},
	"pg": {startupMessage("user", "postgres", "database", "postgres"),
		// AuthenticationOk, BackendKeyData, ReadyForQuery
		"R\x00\x00\x00\x08\x00\x00\x00\x00" + "K\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x02" + "Z\x00\x00\x00\x05I"},
}

func startupMessage(parameters ...string) string {
	body := "\x00\x03\x00\x00" + strings.Join(parameters, "\x00") + "\x00\x00"
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
}

// bePeer is the whole of a peer's process.
func bePeer(args []string) error {
	if len(args) == 2 && args[0] == "upstream" {
		return beUpstream(greetings[args[1]].ask, greetings[args[1]].answer)
	}
	if len(args) == 4 && args[0] == "clients" {
		count, err := strconv.Atoi(args[3])
		if err != nil {
			return fmt.Errorf("read number of clients: %w", err)
		}
		return beClients(greetings[args[1]].ask, greetings[args[1]].answer, args[2], count)
	}
	return fmt.Errorf("unexpected arguments %q", args)
}

func beUpstream(ask, answer string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Println(ln.Addr())
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				if _, err := io.ReadFull(c, make([]byte, len(ask))); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return untilToldTo()
}

func beClients(ask, answer, address string, count int) error {
	open := make([]net.Conn, count)
	for i := range open {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		if _, err := io.WriteString(c, ask); err != nil {
			return fmt.Errorf("greet: %w", err)
		}
		heard := make([]byte, len(answer))
		if _, err := io.ReadFull(c, heard); err != nil || string(heard) != answer {
			return fmt.Errorf("connection %d heard %q: %w", i, heard, err)
		}
		open[i] = c
	}
	fmt.Println("open")
	err := untilToldTo()
	runtime.KeepAlive(open)
	return err
}

func untilToldTo() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
