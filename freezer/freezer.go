package freezer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// Options are what New needs.
type Options struct {
	// JournalDir is made if it is missing, and must be writable for this user
	// alone. Put it on a file system that does not outlive a boot.
	JournalDir string
	// GuardCommand starts a process that calls [RunGuard]:
	// {"/proc/self/exe", "guard"}.
	GuardCommand []string
	// Lazy starts the guard with the first freeze, which then takes some
	// milliseconds longer.
	Lazy bool
	// Upstreams are the addresses whose servers must never be frozen.
	Upstreams []netip.AddrPort
	// Log may be nil. Nothing is logged between a freeze and its thaw.
	Log *slog.Logger
}

// A Freezer finds and freezes the processes behind connections. It is safe for
// concurrent use. Its owner calls Close.
type Freezer struct {
	options  Options
	log      *slog.Logger
	journal  *journal
	mounts   mounts
	diag     diag
	spaces   spaces
	upstream servers
	tables   tables

	mu     sync.Mutex
	recent []*holder // the latest last
	closed bool
	nextID uint64
	active map[uint64]*Frozen
	taken  map[string]bool // what is being frozen, from before the policy is asked until it runs again

	guardMu sync.Mutex // held while a guard is started
	guard   *guardian  // nil: none yet, or it died; behind mu

	wg sync.WaitGroup
}

// New replays the journal, so that nothing is left frozen by a daemon that
// died, and starts the guard. ctx bounds New alone.
func New(ctx context.Context, o Options) (*Freezer, error) {
	log := logger(o.Log)
	j, err := openJournal(o.JournalDir)
	if err != nil {
		return nil, err
	}
	if _, err := Replay(j.dir, log); err != nil {
		// Somebody has to act on it, but refusing to start would help nobody.
		log.Error("some processes may still be frozen", "err", err)
	}
	m, err := findMounts()
	if err != nil {
		return nil, err
	}
	f := &Freezer{
		options: o, log: log, journal: j, mounts: m,
		active: make(map[uint64]*Frozen), taken: make(map[string]bool),
	}
	f.tables.read = make(map[int]*table)
	f.upstream.ask = f.listeners
	if !o.Lazy {
		if _, err := f.liveGuard(); err != nil {
			return nil, err
		}
	}
	// So that the first freeze need not read every process.
	f.wg.Go(func() { _, _ = f.upstream.of(o.Upstreams) })
	return f, ctx.Err()
}

// Close thaws everything, ends the guard and waits for both. It is idempotent.
// The error names what could not be thawed; that stays in the journal.
func (f *Freezer) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()

	err := f.thawAll(nil, "")
	// A guard that is just being started is waited for, and then ended too.
	f.guardMu.Lock()
	f.mu.Lock()
	g := f.guard
	f.mu.Unlock()
	f.guardMu.Unlock()
	if g != nil {
		g.end()
	}
	f.wg.Wait()
	f.forgetAll()
	return errors.Join(err, f.diag.close(), f.spaces.close())
}

// GuardPID returns the guard's pid, 0 while there is none.
func (f *Freezer) GuardPID() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.guard == nil {
		return 0
	}
	return f.guard.pid()
}

// liveGuard returns a living guard, and starts one where there is none.
func (f *Freezer) liveGuard() (*guardian, error) {
	f.guardMu.Lock()
	defer f.guardMu.Unlock()
	f.mu.Lock()
	g, closed := f.guard, f.closed
	f.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if g != nil && g.alive() {
		return g, nil
	}
	g, err := startGuard(f.options.GuardCommand)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGuard, err)
	}
	f.mu.Lock()
	f.guard = g
	f.mu.Unlock()
	begun := time.Now()
	f.wg.Go(func() {
		g.wait()
		f.guardDied(g, time.Since(begun))
	})
	return g, nil
}

// guardDied thaws what the guard was to thaw, and starts another. One that
// lived too shortly is not replaced at once, since the next would do no better.
func (f *Freezer) guardDied(g *guardian, lived time.Duration) {
	g.conn.Close()
	f.mu.Lock()
	if f.guard == g {
		f.guard = nil
	}
	closed := f.closed
	f.mu.Unlock()
	err := f.thawAll(g, "the guard died")
	if closed {
		return
	}
	f.log.Warn("the guard died; what was frozen has been thawed", "guard", g.pid(), "err", err)
	if lived < time.Second {
		return
	}
	if _, err := f.liveGuard(); err != nil && !errors.Is(err, ErrClosed) {
		f.log.Error("no guard, so nothing will be frozen", "err", err)
	}
}

// thawAll ends every freeze that g guards; nil means all of them.
func (f *Freezer) thawAll(g *guardian, why string) error {
	f.mu.Lock()
	var zs []*Frozen
	for _, z := range f.active {
		if g == nil || z.guard == g {
			zs = append(zs, z)
		}
	}
	f.mu.Unlock()
	var errs []error
	for _, z := range zs {
		errs = append(errs, z.end(why))
	}
	return errors.Join(errs...)
}

// take reserves what is to be frozen: of two freezes of one thing, the first
// thaw would end the other.
func (f *Freezer) take(keys []string) *Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		if f.taken[k] {
			return &Refusal{Reason: fmt.Sprintf("%s is already frozen, or being frozen", k)}
		}
	}
	for _, k := range keys {
		f.taken[k] = true
	}
	return nil
}

func (f *Freezer) give(keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		delete(f.taken, k)
	}
}
