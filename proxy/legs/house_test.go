package legs_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/legs"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A house is a proxy for tests.
type house struct {
	t       *testing.T
	server  *proxy.Server
	cancels legs.Cancels
	log     testbed.Log
	serving sync.WaitGroup
	ctx     context.Context
	strip   map[string]bool // by upstream: rather than as the legs say
}

func newHouse(t *testing.T, rules ...fault.Rule) *house {
	plan, err := fault.NewPlan(rules, 1, fault.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	h := &house{t: t}
	var cancel context.CancelFunc
	h.ctx, cancel = context.WithCancel(context.Background())
	h.server = &proxy.Server{
		Engine: proxy.NewEngine(lock.NewLedger(nil), plan), Freezer: nobody{}, Track: h.track,
		Clock: func() lock.Instant { return lock.Instant(time.Since(start)) + 1 },
		Log:   slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	plan.Start(h.server.Clock())
	runner := &proxy.Runner{Engine: h.server.Engine, Freezer: nobody{}, Clock: h.server.Clock}
	h.serving.Go(func() { runner.Run(h.ctx) })
	t.Cleanup(func() {
		cancel()
		h.serving.Wait()
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", h.log.String())
		}
	})
	return h
}

func (h *house) track(r proxy.Route, session uint64) proxy.Tracker {
	if r.Protocol == lock.Redis {
		return proxy.Tracker{Tracker: resp.NewTracker(resp.Options{Session: session, Scripts: resp.NewScripts()})}
	}
	pair := r.Legs.(*legs.Postgres)
	w := pair.Watch()
	strip, otherwise := h.strip[r.Name]
	if !otherwise {
		strip = pair.Stripped()
	}
	t := pgwire.NewTracker(pgwire.Options{Session: session, StripPlus: strip, KeyData: w.KeyData, Refused: w.Refused})
	return proxy.Tracker{Tracker: t, Ended: w.Ended}
}

// policy is one with an address and no TLS.
func (h *house) policy(upstream string, client, up *tls.Config) legs.Policy {
	return legs.Policy{Client: client, Upstream: up, Address: upstream, Log: h.server.Log,
		Connect: func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}}
}

func (h *house) postgres(upstream string, client, up *tls.Config) string {
	return h.serve(lock.Postgres, upstream, &legs.Postgres{Policy: h.policy(upstream, client, up), Cancels: &h.cancels})
}

func (h *house) redis(upstream string, client, up *tls.Config) string {
	return h.serve(lock.Redis, upstream, &legs.Redis{Policy: h.policy(upstream, client, up)})
}

// serve returns the address of a listener with the legs.
func (h *house) serve(p lock.Protocol, upstream string, l proxy.Legs) string {
	h.t.Helper()
	return h.named("", p, upstream, l)
}

// named is serve for a route with a name.
func (h *house) named(name string, p lock.Protocol, upstream string, l proxy.Legs) string {
	h.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.serving.Go(func() {
		_ = h.server.Serve(h.ctx, ln, proxy.Route{Name: name, Protocol: p, Upstream: upstream, Legs: l})
	})
	return ln.Addr().String()
}

// says waits until the log has a text, in one line.
func (h *house) says(text string) {
	h.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(h.log.String(), text) {
			return
		}
	}
	h.t.Errorf("the log does not say %q:\n%s", text, h.log.String())
}

// silent wants the log to have no line.
func (h *house) silent() {
	h.t.Helper()
	if s := h.log.String(); s != "" {
		h.t.Errorf("the log says\n%s", s)
	}
}

type nobody struct{}

func (nobody) Lookup(_ context.Context, client, _ netip.AddrPort) *proxy.Owner {
	return &proxy.Owner{Address: client.Addr().String(), Reason: "no process found"}
}

func (nobody) Freeze(context.Context, *proxy.Owner, fault.Scope, time.Duration) (proxy.Thawer, error) {
	return nil, errors.New("nobody freezes here")
}

// dial connects to an address; what is read has to come within the time that a
// busy machine needs.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly so much.
func expect(t *testing.T, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	n, err := io.ReadFull(c, b)
	if string(b[:n]) != want {
		t.Fatalf("read %q, %v; want %q", b[:n], err, want)
	}
}

// rest reads to the end.
func rest(t *testing.T, c io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("read %q, then %v; want an orderly end", b, err)
	}
	return string(b)
}
