package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/legs"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
	"github.com/lockfaultd/lockfaultd/witness"
)

// A daemon is the wiring of one lockfaultd: engine, runner, sessions, freezer
// and history. It is made by newDaemon, opened with listen, and ended by close.
type daemon struct {
	setup   *setup
	plan    *fault.Plan
	engine  *proxy.Engine
	server  *proxy.Server
	freezer *freezing
	record  *proxy.Record // nil: no history
	file    *os.File      // of the history
	clock   func() lock.Instant
	log     *slog.Logger

	hash       *lock.Hasher
	scripts    *resp.Scripts
	statements *pgwire.Cache
	cancels    legs.Cancels
	witnesses  *witness.House // nil: none
	hand       *witness.House // what acts on servers; the witnesses, where there are any
	admin      *admin.Server  // nil: none
	adminURL   string
	diverged   chan struct{} // closed when a schedule is found not to be repeated

	mu       sync.Mutex
	backends map[*pgwire.Tracker]bool
	pids     []int32

	stopServing context.CancelFunc
	stopRunning context.CancelFunc
	serving     sync.WaitGroup
	running     sync.WaitGroup
	serve       context.Context
}

// newClock returns when Instant 0 is, and how to count from there.
func newClock() (time.Time, func() lock.Instant) {
	start := time.Now()
	return start, func() lock.Instant { return lock.Instant(time.Since(start)) + 1 }
}

// newDaemon wires everything and starts the runner. historyFile may be empty;
// full says what happens when the disk cannot keep up with it.
func newDaemon(s *setup, up []netip.AddrPort, historyFile string, full proxy.WhenFull, baseline func(context.Context, string) bool, log *slog.Logger) (*daemon, error) {
	plan, err := fault.NewPlan(s.rules, s.seed, s.limits)
	if err != nil {
		return nil, usageError{err}
	}
	plan.Baseline(s.baseline)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	start, clock := newClock()
	ledger := lock.NewLedger(s.decls)
	ledger.Servers(s.servers(lock.Redis))
	d := &daemon{
		setup: s, plan: plan, clock: clock, log: log,
		engine:     proxy.NewEngine(ledger, plan, s.tables()...),
		hash:       lock.NewHasher(key),
		scripts:    resp.NewScripts(),
		statements: pgwire.NewCache(),
		backends:   map[*pgwire.Tracker]bool{},
		diverged:   make(chan struct{}),
	}
	for _, l := range s.decls {
		if l.Lease != nil {
			d.statements.Declare(*l.Lease)
		}
	}
	d.engine.Started(start)
	if d.freezer, err = newFreezing(s, up, log); err != nil {
		return nil, err
	}
	if historyFile != "" {
		if err := d.openHistory(historyFile, start, full); err != nil {
			return nil, err
		}
	}
	d.server = &proxy.Server{
		Engine: d.engine, Freezer: d.freezer, Clock: clock, Log: log,
		Track: d.track,
	}
	if d.record != nil {
		d.server.Recorder = d.record
	}
	if err := d.openAdmin(); err != nil {
		return nil, errors.Join(err, d.freezer.Close(), d.closeHistory())
	}
	d.start(baseline)
	return d, nil
}

func (d *daemon) start(baseline func(context.Context, string) bool) {
	var run context.Context
	run, d.stopRunning = context.WithCancel(context.Background())
	d.serve, d.stopServing = context.WithCancel(context.Background())
	d.plan.Start(d.clock())
	r := &proxy.Runner{
		Engine: d.engine, Freezer: d.freezer, Clock: d.clock, Baseline: baseline, Injected: d.injected, Turned: d.turned,
		Vain: d.vain, Blocked: rows{d}, Diverged: d.strayed, Hand: hand{d}, Deed: d.did,
	}
	d.running.Go(func() { r.Run(run) })
}

func (d *daemon) injected(in history.Injection) {
	said := []any{"rule", in.Rule, "effect", in.Effect, "matched", in.Matched, "for", in.For, "actor", in.Actor, "outcome", in.Outcome}
	if in.Reason != "" {
		said = append(said, "reason", in.Reason)
	}
	d.log.Info("injection ended", said...)
	if d.record != nil {
		d.record.Injection(in)
	}
}

func (d *daemon) turned(t history.Turn) {
	if d.record != nil {
		d.record.Turn(t)
	}
}

// did records what a rule has done to a lock.
func (d *daemon) did(op *lock.Op) {
	if d.record != nil {
		d.record.Op(op)
	}
}

func (d *daemon) vain(v fault.Vain) {
	d.log.Warn("a rule waits in vain", "rule", v.Rule, "matched", v.Name, "why", v.Why)
	if d.record != nil {
		d.record.Vain(v)
	}
}

func (d *daemon) openHistory(path string, start time.Time, full proxy.WhenFull) error {
	f, err := os.Create(path)
	if err != nil {
		return usagef("--out: cannot write the history: %v", err)
	}
	h := history.Header{
		Schema: history.Schema, Started: start, Seed: d.setup.seed, KeyID: d.hash.ID(), Version: version,
		Declarations: d.setup.decls, Invariants: invariantsForHeader(d.setup.invariants), Upstreams: d.setup.upstreams(),
	}
	d.file = f
	buffer := bufio.NewWriterSize(&disk{File: f, log: d.log}, 64<<10)
	d.record = proxy.NewRecord(history.NewWriter(buffer, h, d.setup.integers), buffer.Flush, d.engine, full)
	return nil
}

// A disk says so at once when it fails for the first time: the error itself
// comes out only when the history is closed, which for a sidecar may be weeks
// later.
type disk struct {
	*os.File
	log    *slog.Logger
	failed bool
}

func (d *disk) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	if err != nil && !d.failed {
		d.failed = true
		d.log.Error("the history cannot be written: nothing is recorded from here on", "err", err)
	}
	return n, err
}

// tables lists what invariants and declarations name.
func (s *setup) tables() []string {
	var out []string
	for _, d := range s.decls {
		out = append(out, d.Table)
	}
	for _, i := range s.invariants {
		out = append(out, i.Table)
	}
	return out
}

// integers says which columns are recorded as numbers: fences, and what an
// invariant names. Everything else is recorded as a hash.
func (s *setup) integers(table, column string) bool {
	for _, d := range s.decls {
		if sameTable(d.Table, table) && strings.EqualFold(d.FenceColumn, column) {
			return true
		}
	}
	for _, i := range s.invariants {
		if sameTable(i.Table, table) && strings.EqualFold(i.Column, column) {
			return true
		}
	}
	return false
}

func sameTable(a, b string) bool {
	return a != "" && strings.TrimPrefix(a, "public.") == strings.TrimPrefix(b, "public.")
}

// accept serves endpoints until endSessions.
func (d *daemon) accept(list []endpoint) {
	routes := d.routes(list)
	d.employ(list, routes)
	for i, e := range list {
		d.serving.Go(func() {
			if err := d.server.Serve(d.serve, e.ln, routes[i]); err != nil {
				d.log.Error("proxy ended", "err", err)
			}
		})
	}
}

// routes makes a route of each endpoint. Upstreams have a name in the record
// where there are several of one protocol.
func (d *daemon) routes(list []endpoint) []proxy.Route {
	out := make([]proxy.Route, len(list))
	for i, e := range list {
		out[i] = proxy.Route{Protocol: e.proxy.Protocol, Upstream: e.proxy.Upstream, Legs: d.legs(e.proxy), Name: d.setup.nameOf(e.proxy)}
	}
	return out
}

// nameOf returns an upstream's name in the record.
func (s *setup) nameOf(p config.Proxy) string {
	if s.servers(p.Protocol) > 1 {
		return p.Upstream
	}
	return ""
}

// servers counts the upstreams of a protocol.
func (s *setup) servers(protocol lock.Protocol) (n int) {
	for _, p := range s.proxies {
		if p.Protocol == protocol {
			n++
		}
	}
	return n
}

// upstreams lists the servers that the run speaks to.
func (s *setup) upstreams() []history.Upstream {
	var out []history.Upstream
	for _, p := range s.proxies {
		out = append(out, history.Upstream{Name: s.nameOf(p), Proto: p.Protocol})
	}
	return out
}

// legs makes the connections of a proxy's sessions.
func (d *daemon) legs(p config.Proxy) proxy.Legs {
	policy := legs.Policy{Client: p.TLS.Client, Upstream: p.TLS.Upstream, Address: p.Upstream, Connect: dial, Log: d.log}
	if p.Protocol == lock.Redis {
		return &legs.Redis{Policy: policy}
	}
	return &legs.Postgres{Policy: policy, Direct: p.TLS.Direct, Cancels: &d.cancels}
}

// track makes the parser of a new session.
func (d *daemon) track(r proxy.Route, session uint64) proxy.Tracker {
	wants := d.wants(r.Protocol)
	if r.Protocol == lock.Redis {
		leaves := func(what string) {
			d.log.Info("the upstream names other addresses: the client may go on past the proxy", "session", session, "upstream", r.Name, "by", what)
		}
		t := resp.NewTracker(resp.Options{Session: session, Upstream: r.Name, Hash: d.hash, Scripts: d.scripts, Wants: wants, Could: d.engine.Keys, Leaves: leaves, Witnessed: d.sees(), EffectsOnly: d.setup.effects})
		return proxy.Tracker{Tracker: t, ClientName: t.ClientName}
	}
	pair := r.Legs.(*legs.Postgres)
	watch := pair.Watch()
	t := pgwire.NewTracker(pgwire.Options{
		Session: session, Upstream: r.Name, Hash: d.hash, Statements: d.statements, Wants: wants, Reads: d.engine.Reads,
		StripPlus: pair.Stripped(), KeyData: watch.KeyData, Refused: watch.Refused,
	})
	d.mu.Lock()
	d.backends[t] = true
	d.mu.Unlock()
	return proxy.Tracker{Tracker: t, ClientName: t.ApplicationName, Backend: t.BackendPID, Working: t.Working, Ended: func() { watch.Ended(); d.backendEnded(t) }}
}

// wants tells which verbs the rules name; nil without rules.
func (d *daemon) wants(p lock.Protocol) func(verb string) bool {
	if len(d.setup.rules) == 0 {
		return nil
	}
	return func(verb string) bool { return d.plan.Wants(p, verb) }
}

func (d *daemon) backendEnded(t *pgwire.Tracker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.backends, t)
	if pid := t.BackendPID(); pid != 0 && (len(d.setup.invariants) > 0 || d.setup.wrapping) {
		d.pids = append(d.pids, pid)
	}
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
}

// linger waits for the sessions to end by themselves, at most for patience and
// until ctx is done.
func (d *daemon) linger(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for d.server.Live() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// endSessions stops accepting, ends the sessions and waits for them.
func (d *daemon) endSessions() {
	d.stopServing()
	d.serving.Wait()
}

// backendPIDs lists the Postgres backends that sessions have used.
func (d *daemon) backendPIDs() []int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int32(nil), d.pids...)
}

// close ends everything that is still running, thaws what is frozen, and closes
// the history.
func (d *daemon) close() error {
	d.endSessions()
	d.stopRunning()
	d.running.Wait()
	d.dismiss()
	return errors.Join(d.freezer.Close(), d.closeHistory(), d.closeAdmin()) // last: nothing waits for its clients
}

func (d *daemon) closeHistory() error {
	if d.record == nil {
		return nil
	}
	return errors.Join(d.record.Close(), d.file.Close())
}

// journalDir is where freezes are noted, so that a later start can undo them.
func journalDir() string {
	if os.Getuid() == 0 {
		return "/run/lockfaultd"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("lockfaultd-%d", os.Getuid()))
}

// logOfSidecar is of a daemon that serves on: what its rules do is worth a line
// with its time, and with verbose so is each session.
func logOfSidecar(w io.Writer, verbose bool) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level(slog.LevelInfo, verbose)}))
}

// logTo is of what stands beside the output of a command.
func logTo(w io.Writer, verbose bool) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level(slog.LevelWarn, verbose), ReplaceAttr: withoutTime}))
}

func level(usual slog.Level, verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return usual
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func resolve(address string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	ips, _ := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	p, _ := net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
	var out []netip.AddrPort
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip.Unmap(), uint16(p)))
	}
	return out
}
