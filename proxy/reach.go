package proxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// retold is how long nothing more is said of an upstream after it was said that it cannot be reached.
const retold = 10 * time.Second

// An Outage is an upstream that cannot be reached: the last dial failed.
type Outage struct {
	Protocol lock.Protocol
	Upstream string
	Since    lock.Instant // the first dial that failed in a row
	Err      error        // of the last one
}

// reaches is what dials have come to, by upstream.
type reaches struct {
	mu sync.Mutex
	of map[target]*reach
}

// A target is an upstream, whatever the legs to it are.
type target struct {
	protocol lock.Protocol
	upstream string
}

// An attempt is a dial that has ended.
type attempt struct {
	began, ended lock.Instant
	err          error // nil: it succeeded
}

type reach struct {
	ever   bool         // a dial succeeded
	last   lock.Instant // when the last did
	err    error        // of the last dial; nil: it succeeded
	since  lock.Instant // the first that failed in a row
	failed int          // how many have in a row
	told   lock.Instant // when it was said last that it cannot be reached; 0: never
	open   bool         // it was said, and not yet that it can be again
}

// note takes in a dial, and says what is worth it: once when an upstream goes, each ten seconds
// how often it was tried in vain, and once when it is back. One that comes and goes is not told of more often. A failure of a
// dial that began before the last success says nothing of now.
func (l *reaches) note(r Route, a attempt, log *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := target{r.Protocol, r.Upstream}
	if l.of == nil {
		l.of = map[target]*reach{}
	}
	if l.of[key] == nil {
		l.of[key] = &reach{}
	}
	x := l.of[key]
	log = log.With("proxy", r.Protocol, "upstream", r.Upstream)
	switch {
	case a.err == nil:
		x.back(a.ended, log)
		return
	case x.ever && a.began < x.last:
		return
	case x.err == nil:
		x.since, x.failed = a.ended, 0
	}
	x.err, x.failed = a.err, x.failed+1
	if x.told != 0 && a.ended.Sub(x.told) < retold {
		return
	}
	x.told, x.open = a.ended, true
	if x.failed > 1 {
		log = log.With("attempts", x.failed, "for", a.ended.Sub(x.since).Round(time.Millisecond))
	}
	log.Error("upstream cannot be reached", "err", a.err)
}

// back notes that a dial has succeeded.
func (x *reach) back(now lock.Instant, log *slog.Logger) {
	if x.open {
		log.Info("upstream is reached again", "after", now.Sub(x.since).Round(time.Millisecond), "attempts", x.failed)
	}
	*x = reach{ever: true, last: now, told: x.told}
}

// Outages lists the upstreams whose last dial failed, the first to go first.
func (s *Server) Outages() []Outage {
	s.reached.mu.Lock()
	defer s.reached.mu.Unlock()
	var out []Outage
	for w, x := range s.reached.of {
		if x.err != nil {
			out = append(out, Outage{w.protocol, w.upstream, x.since, x.err})
		}
	}
	slices.SortFunc(out, func(a, b Outage) int { return cmp.Compare(a.Since, b.Since) })
	return out
}

// Unreached lists the upstreams that were dialled and never reached, each with
// the last error.
func (s *Server) Unreached() []string {
	s.reached.mu.Lock()
	defer s.reached.mu.Unlock()
	var out []string
	for w, x := range s.reached.of {
		if x.err != nil && !x.ever {
			out = append(out, fmt.Sprintf("%s %s: %v", w.protocol, w.upstream, x.err))
		}
	}
	slices.Sort(out)
	return out
}
