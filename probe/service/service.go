package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Config is what a service is made of.
type Config struct {
	Source  Source // nil: none is followed
	Watches []Watch

	Declared   []lock.Declaration                  // beyond what the history's header says
	Invariants []check.Invariant                   // that the judge of the history knows
	Listen     []func(run string, e history.Entry) // told of every line, on the desk, also of those that were kept
	Log        *slog.Logger
	Version    string
	Named      func(key string) string // what the config calls a lock; "": nothing. nil: it calls none
}

// A Service watches. New, Run and Close in that order; what HTTP wants may be asked at any time.
type Service struct {
	conf  Config
	store *Store
	since time.Time

	trimFrom, turnFrom int64 // see the constants

	// The desk's own.
	judge *check.Live // nil: no run goes on
	lines *history.Decoder

	// The desk's to change, with mu held, so that HTTP can read it.
	mu       sync.Mutex
	pos      Position // of the last line
	header   history.Header
	ended    bool // the run of pos has been judged to its end
	tail     tail
	pending  []look
	episodes map[string]map[string]string // by watch and thing, the id of the verdict
	gaps     gaps
	told     told
	facts    check.Numbers
	locks    *locks
	opinions map[string]opinion
	changed  bool
	saved    time.Time
	reached  bool // the source has been reached, and no line came since then
	over     bool // the source has ended in order
	took     time.Duration
	taken    time.Time    // when the line was heard that was taken in last
	at       lock.Instant // the latest that a line told of
	down     time.Time    // since when the source is not seen; zero: it is

	heard  atomic.Int64 // when the last message came, in Unix nanoseconds
	up     atomic.Bool  // the source is connected
	queued atomic.Int64 // messages that were heard and not taken in

	counts counts
}

// New takes in what the state folder had.
func New(conf Config, store *Store, kept Kept) (*Service, error) {
	s := &Service{conf: conf, store: store, since: time.Now(), trimFrom: trimFrom, turnFrom: turnFrom, lines: history.NewDecoder(), episodes: map[string]map[string]string{}, locks: newLocks(), opinions: map[string]opinion{}}
	s.counts.init()
	s.gaps = gaps{kept.State.Gaps, kept.State.Missed}
	s.gaps.endStrays(s.since, s.watches)
	for _, why := range kept.Spoilt {
		conf.Log.Warn("a part of the state cannot be read, and is left out", "where", why)
		s.gaps.add(Gap{Of: "state", From: s.since, To: s.since, Why: why})
	}
	for _, r := range kept.Aside {
		s.told.remember(r.Verdicts)
	}
	for _, r := range kept.Records {
		s.replay(r)
	}
	s.facts = kept.State.Facts
	if err := s.remember(kept.State); err != nil {
		return nil, err
	}
	s.absent(kept.State)
	s.resume(kept)
	return s, nil
}

// watches reports whether a gap is of what is looked at.
func (s *Service) watches(gap *Gap) bool {
	if gap.Invariant == "" && s.conf.Source != nil && gap.Of == s.conf.Source.Name() {
		return true
	}
	return slices.ContainsFunc(s.conf.Watches, func(w Watch) bool { return w.About().Name == cmp.Or(gap.Invariant, gap.Of) })
}

// absent notes that watches which had looked before saw nothing while no probe ran. What the history has told meanwhile is
// caught up, and is no gap.
func (s *Service) absent(state State) {
	from := state.Saved
	if from.IsZero() {
		return
	}
	if from.After(s.since) { // somebody has set the clock back
		from = s.since
	}
	for _, w := range s.conf.Watches {
		name := w.About().Name
		if _, looked := state.Watches[name]; looked && s.gaps.open(Gap{Of: name, From: from, Why: "no probe ran"}) {
			s.changed = true
		}
	}
}

// remember gives the watches what they had kept.
func (s *Service) remember(state State) error {
	for _, w := range s.conf.Watches {
		if b, ok := state.Watches[w.About().Name]; ok {
			if err := recall(b, w.Memory()); err != nil {
				return fmt.Errorf("recall invariant %s: %w", w.About().Name, err)
			}
		}
	}
	return nil
}

// resume puts the judge where it was.
func (s *Service) resume(kept Kept) {
	state := kept.State
	s.pos, s.ended = Position{state.Run, state.N}, state.Ended
	for _, m := range kept.Tail {
		e, err := s.lines.Line(m.Line)
		if err != nil {
			continue // it was read before
		}
		if m.Pos.Run != s.pos.Run { // the state is older than the run's first line
			s.pos, s.ended, state.Live, s.judge, s.tail.lines = m.Pos, false, check.LiveState{}, nil, nil
		}
		s.tail.note(m.Pos.N, len(m.wire()), e)
		s.pos.N, s.at = max(s.pos.N, m.Pos.N), max(s.at, overBy(e))
		if s.ended {
			continue
		}
		s.listen(m.Pos.Run, e)
		if s.judge == nil {
			s.judge = check.ResumeLive(s.header, s.conf.Declared, s.conf.Invariants, state.Live)
		}
		if m.Pos.N >= state.Live.Next || within(state.Keeps, m.Pos.N) {
			s.judge.Entry(m.Pos.N, e)
		}
	}
	if s.judge != nil {
		s.conf.Log.Info("goes on", "run", s.pos.Run, "line", s.pos.N, "kept", len(kept.Tail))
	}
}

// Pace of the desk.
const (
	judgeEvery = time.Second
	lookAgain  = 100 * time.Millisecond // at looks that have to wait
	share      = 4                      // how many times as long as it took to judge is waited
	hurry      = 1 << 13                // lines that came meanwhile, with which it is waited as long as it took
	mostFresh  = 1 << 15                // with so many no more are taken before they are judged: the source has to wait
	flushAt    = 256 << 10
)

// Run watches until the context ends, and puts everything on the disk. Its error is the disk's.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	messages, looks := make(chan Message, 4096), make(chan look)
	if src := s.conf.Source; src != nil {
		from := s.pos
		tasks.Go(func() {
			src.Follow(ctx, from, func(m Message) { s.hear(ctx, m, messages) })
		})
	}
	for n, w := range s.conf.Watches {
		tasks.Go(func() { keepLooking(ctx, n, w, looks) })
	}
	judging, again := time.NewTimer(judgeEvery), time.NewTicker(lookAgain)
	defer judging.Stop()
	defer again.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return s.finish()
		case m := <-s.unless(messages):
			err = s.locked(func() error { return s.take(m) })
			s.queued.Add(-1)
		case l := <-looks:
			err = s.locked(func() error { return s.looked(l) })
		case <-again.C:
			err = s.locked(s.lookAtPending)
		case <-judging.C:
			err = s.settle()
			judging.Reset(s.pause())
		}
		if err != nil {
			return err
		}
	}
}

// fresh is how many lines wait to be judged.
func (s *Service) fresh() int {
	if s.judge == nil {
		return 0
	}
	return s.judge.Fresh()
}

// unless is where lines come from, or nothing while too many wait to be judged.
func (s *Service) unless(messages chan Message) chan Message {
	if s.fresh() >= mostFresh {
		return nil
	}
	return messages
}

// pause is how long to wait until lines are judged again: the less the more have come while others were judged.
func (s *Service) pause() time.Duration {
	switch fresh := s.fresh() + int(s.queued.Load()); {
	case fresh >= mostFresh:
		return 0
	case fresh >= hurry:
		return max(judgeEvery/4, s.took)
	}
	return max(judgeEvery, share*s.took)
}

func (s *Service) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

// hear passes a message on to the desk.
func (s *Service) hear(ctx context.Context, m Message, desk chan<- Message) {
	s.heard.Store(time.Now().UnixNano())
	s.queued.Add(1)
	select {
	case desk <- m:
	case <-ctx.Done():
	}
	s.heard.Store(time.Now().UnixNano())
}

// How long it takes for what a daemon has told to be here, if nothing is in its way.
const onItsWay = 100 * time.Millisecond

// CaughtUp reports, on the desk, whether what the daemon had told by an instant of its clock (0: not known), and of ours, has
// been taken in, as far as can be told: a later line has been, or everything that came has, and nothing came for a while.
func (s *Service) CaughtUp(at lock.Instant, ours time.Time) bool {
	if !s.up.Load() {
		return false
	}
	if at == 0 {
		at = lock.Instant(ours.Sub(s.locks.started) - time.Second)
	}
	if s.locks.now >= at && s.taken.Sub(ours) >= onItsWay {
		return true
	}
	heard := time.Unix(0, s.heard.Load())
	return s.queued.Load() == 0 && time.Since(heard) >= onItsWay && time.Since(ours) >= onItsWay
}

// Granted returns, on the desk, when the history last told of a grant of the lock that nobody has given back since.
func (s *Service) Granted(key string, db int) (time.Time, bool) { return s.locks.granted(key, db) }

// finish puts on the disk what there is.
func (s *Service) finish() error {
	if err := s.settle(); err != nil {
		return err
	}
	return s.locked(func() error { return s.save(true) })
}
