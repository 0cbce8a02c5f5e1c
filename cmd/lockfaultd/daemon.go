package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/metrics"
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
	record  *proxy.Record  // nil: no history
	files   *history.Parts // of the history; nil: it is in no file
	ring    *history.Ring  // of its last lines; nil: nobody can ask for them
	run     string         // names this start in it
	clock   func() lock.Instant
	started time.Time // when Instant 1 is
	marks   *marks    // what the page shows of the last minute; nil: it is not served
	log     *slog.Logger

	registry   *prometheus.Registry // of what is told to Prometheus; nil: nothing
	metrics    *metrics.Daemon
	hash       *lock.Hasher
	scripts    *resp.Scripts
	statements *pgwire.Cache
	cancels    legs.Cancels
	witnesses  *witness.House // nil: none
	hand       *witness.House // what acts on servers; the witnesses, where there are any
	admin      *admin.Server  // nil: none
	adminURL   string         // for whoever is on this machine
	adminAt    string         // as it listens
	diverged   chan struct{}  // closed when a schedule is found not to be repeated

	mu       sync.Mutex
	backends map[*pgwire.Tracker]bool
	pids     []int32

	endpoints   []endpoint  // set before accepting
	accepting   atomic.Bool // clients, at all listeners; no more once it is to end
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

// keyOr returns the key, or one that is drawn where there is none.
func keyOr(key []byte) []byte {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
	}
	return key
}

// newDaemon wires everything and starts the runner. historyFile may be empty: what
// is seen is recorded then for the admin API alone, if there is one;
// full says what happens when the disk cannot keep up with it.
func newDaemon(s *setup, up []netip.AddrPort, historyFile string, full proxy.WhenFull, baseline func(context.Context, string) bool, log *slog.Logger) (*daemon, error) {
	plan, err := s.plan()
	if err != nil {
		return nil, usageError{err}
	}
	start, clock := newClock()
	ledger := lock.NewLedger(s.decls)
	ledger.Servers(s.servers(lock.Redis))
	d := &daemon{
		setup: s, plan: plan, clock: clock, started: start, log: log, run: newRun(),
		engine:     proxy.NewEngine(ledger, plan, s.tables()...),
		hash:       lock.NewHasher(keyOr(s.key)),
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
	if s.alters() {
		d.engine.Alters()
	}
	plan.Start(clock()) // from here on the API may change it
	if d.freezer, err = newFreezing(s, up, log); err != nil {
		return nil, err
	}
	if historyFile != "" || s.admin != "" {
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
	if s.admin != "" {
		d.marks = newMarks()
		d.server.Recorder = noting{d.record, d}
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
	r := &proxy.Runner{
		Engine: d.engine, Freezer: d.freezer, Clock: d.clock, Baseline: baseline, Injected: d.injected, Turned: d.turned,
		Vain: d.vain, Blocked: rows{d}, Diverged: d.strayed, Hand: hand{d}, Deed: d.did,
	}
	d.running.Go(func() { r.Run(run) })
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
	d.accepting.Store(false)
	d.stopServing()
	d.serving.Wait()
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

// journalDir is where freezes are noted, so that a later start can undo them.
func journalDir() string {
	if os.Getuid() == 0 {
		return "/run/lockfaultd"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("lockfaultd-%d", os.Getuid()))
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
