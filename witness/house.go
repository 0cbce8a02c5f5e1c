package witness

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A Recorder takes what witnesses see beside the ops. Its methods are called
// concurrently.
type Recorder interface {
	Clock(history.Clock)
	Bypass(history.Bypass)
}

// Options say whom to watch, and how. Without Monitor and Probe, what scripts do
// is not looked at. All other fields are needed.
type Options struct {
	Redis    []Redis
	Postgres []Postgres
	Monitor  bool   // follow MONITOR
	Probe    Probed // where MONITOR is not followed, or is not to be had
	Hash     *lock.Hasher
	Scripts  *resp.Scripts
	Now      func() lock.Instant
	Locks    func() uint64 // rises with each op of a lock
	Record   Recorder
	Log      *slog.Logger
}

// Probed says around which calls keys are looked at.
type Probed int

// The calls.
const (
	ProbeNone    Probed = iota
	ProbeUnknown        // of scripts whose text is not known
	ProbeAll
)

// A House holds the witnesses of a daemon. It implements [proxy.Witness],
// [proxy.Blocked] and [proxy.Hand].
type House struct {
	redis    map[string]*server // by address
	postgres map[string]*database
	say      *notes

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// A server is what there is of one Redis.
type server struct {
	clock   *Clock
	looker  *looker  // nil: nobody needs one
	monitor *monitor // nil: it is not followed
	prober  *prober  // nil: keys are not looked at
	begin   sync.Once
}

// A database is what there is of one Postgres.
type database struct {
	registrar *registrar
	counts    counts // when the run began; nil: they could not be read
	begin     sync.Once
}

// New returns the witnesses, which open no connection yet. An address that comes
// twice is one server.
func New(o Options) *House {
	h := &House{redis: map[string]*server{}, postgres: map[string]*database{}, say: newNotes(o.Log)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	for _, r := range o.Redis {
		if h.redis[r.Address] == nil {
			h.redis[r.Address] = h.server(r, &o)
		}
	}
	for _, p := range o.Postgres {
		if h.postgres[p.Address] == nil {
			h.postgres[p.Address] = &database{registrar: newRegistrar(p, h.say)}
		}
	}
	return h
}

func (h *House) server(r Redis, o *Options) *server {
	s := &server{clock: &Clock{redis: r, now: o.Now, locks: o.Locks, record: o.Record.Clock, say: h.say}}
	if !o.Monitor && o.Probe == ProbeNone {
		return s
	}
	s.looker = newLooker(r, o.Hash, h.say)
	if o.Monitor {
		s.monitor = newMonitor(r, s.looker, o, h.say)
	}
	if o.Probe != ProbeNone {
		s.prober = newProber(s.looker, o.Probe == ProbeAll, o, h.say)
	}
	return s
}

// Begin opens the side connections, which otherwise comes when they are needed,
// and returns when those that tell what scripts do are there, or were tried in
// vain, or the patience is at its end.
func (h *House) Begin(patience time.Duration) {
	for _, s := range h.redis {
		h.start(s)
	}
	for _, s := range h.postgres {
		h.register(s)
	}
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	for _, s := range h.redis {
		for _, ready := range s.ready() {
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}
	}
}

func (s *server) ready() (out []chan struct{}) {
	if s.looker != nil {
		out = append(out, s.looker.ready)
	}
	if s.monitor != nil {
		out = append(out, s.monitor.ready)
	}
	return out
}

func (h *House) start(s *server) {
	s.begin.Do(func() {
		h.running.Go(func() { s.clock.run(h.ctx) })
		if s.looker != nil {
			h.running.Go(func() { s.looker.run(h.ctx) })
		}
		if s.monitor != nil {
			h.running.Go(func() { s.monitor.run(h.ctx) })
		}
	})
}

func (h *House) register(s *database) {
	s.begin.Do(func() {
		h.running.Go(func() { s.registrar.run(h.ctx) })
	})
}

// Watch implements proxy.Witness.
func (h *House) Watch(w proxy.Watched) proxy.Watcher {
	if s := h.postgres[w.Route.Upstream]; s != nil && w.Route.Protocol == lock.Postgres {
		return &clerk{s.registrar, func() { h.register(s) }}
	}
	s := h.redis[w.Route.Upstream]
	if s == nil || w.Route.Protocol != lock.Redis {
		return nil
	}
	h.start(s)
	var out either
	if s.monitor != nil {
		out = append(out, s.monitor.watch(w))
	}
	if s.prober != nil {
		out = append(out, &touching{s.prober})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Close ends all side connections, waits for what uses them, and returns what
// was counted. No session is watched any more by then.
func (h *House) Close() Counts {
	h.stop()
	h.running.Wait()
	return h.say.all()
}
