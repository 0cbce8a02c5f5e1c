package witness

import (
	"errors"
	"log/slog"
	"maps"
	"sync"
)

// Counts says how often something came, by what that is.
type Counts map[string]int

// Lapses counts how often a side connection was lost, or not made.
const Lapses = "lapses"

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
func (n *notes) lost(which, upstream string, err error) {
	n.mu.Lock()
	n.counts[Lapses]++
	first := !n.said[which+upstream]
	n.said[which+upstream] = true
	n.mu.Unlock()
	if !first {
		return
	}
	said := []any{"witness", which, "err", err}
	if upstream != "" {
		said = append(said, "upstream", upstream)
	}
	var r refusal
	if errors.As(err, &r) {
		n.log.Warn("a witness is refused by the server", said...)
		return
	}
	n.log.Warn("a witness has lost the server, and goes on trying", said...)
}

func (n *notes) all() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}
