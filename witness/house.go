package witness

import (
	"context"
	"log/slog"
	"sync"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A Recorder takes what witnesses see beside the ops. Its methods are called
// concurrently.
type Recorder interface {
	Clock(history.Clock)
}

// Options say whom to watch, and how. All fields are needed.
type Options struct {
	Redis  []Redis
	Now    func() lock.Instant
	Locks  func() uint64 // rises with each op of a lock
	Record Recorder
	Log    *slog.Logger
}

// A House holds the witnesses of a daemon. It implements [proxy.Witness].
type House struct {
	redis map[string]*server // by address
	say   *notes

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// A server is what there is of one Redis.
type server struct {
	clock *Clock
	begin sync.Once
}

// New returns the witnesses, which open no connection yet. An address that comes
// twice is one server.
func New(o Options) *House {
	h := &House{redis: map[string]*server{}, say: newNotes(o.Log)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	for _, r := range o.Redis {
		if h.redis[r.Address] == nil {
			h.redis[r.Address] = &server{clock: &Clock{redis: r, now: o.Now, locks: o.Locks, record: o.Record.Clock, say: h.say}}
		}
	}
	return h
}

// Begin opens the side connections, which otherwise comes with the first session.
func (h *House) Begin() {
	for _, s := range h.redis {
		h.start(s)
	}
}

func (h *House) start(s *server) {
	s.begin.Do(func() {
		h.running.Go(func() { s.clock.run(h.ctx) })
	})
}

// Watch implements proxy.Witness.
func (h *House) Watch(w proxy.Watched) proxy.Watcher {
	if s := h.redis[w.Route.Upstream]; s != nil && w.Route.Protocol == lock.Redis {
		h.start(s)
	}
	return nil
}

// Close ends all side connections, waits for what uses them, and returns what
// was counted. No session is watched any more by then.
func (h *House) Close() Counts {
	h.stop()
	h.running.Wait()
	return h.say.all()
}
