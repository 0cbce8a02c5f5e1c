package witness

import (
	"errors"
	"log/slog"
	"maps"
	"sync"
)

// Counts says how often something came, by what that is.
type Counts map[string]int

// The things that are counted.
const (
	Told    = "told"    // calls whose effect was seen
	Late    = "late"    // calls whose effect was not seen in time
	Unseen  = "unseen"  // calls of which it could not be told what they did
	Lapses  = "lapses"  // how often a side connection was lost, or not made
	Outside = "outside" // who used locks' keys past the proxies
)

// notes are what a witness has to say to people: each thing once, with how often
// it came.
type notes struct {
	log *slog.Logger

	mu     sync.Mutex
	said   map[string]bool
	counts Counts
}

func newNotes(log *slog.Logger) *notes {
	return &notes{log: log, said: map[string]bool{}, counts: Counts{}}
}

// lost says, the first time, that some witness is not there, and why.
// That a server cannot be reached is said once for all of them.
func (n *notes) lost(which, upstream string, err error) {
	refused := errors.As(err, new(refusal))
	about := upstream
	if refused {
		about = which + " " + upstream
	}
	n.mu.Lock()
	n.counts[Lapses]++
	first := !n.said[about]
	n.said[about] = true
	n.mu.Unlock()
	if !first {
		return
	}
	said := []any{"witness", which, "err", err}
	if upstream != "" {
		said = append(said, "upstream", upstream)
	}
	if refused {
		n.log.Warn("a witness is refused by the server", said...)
		return
	}
	n.log.Warn("a witness has lost the server, and goes on trying", said...)
}

// without says that something is not looked at, and why.
func (n *notes) without(which, upstream string, why error) {
	n.log.Info("a witness does without", "witness", which, "upstream", upstream, "why", why)
}

func (n *notes) count(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what]++
}

func (n *notes) all() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}
