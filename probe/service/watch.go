package service

import (
	"context"
	"errors"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Watch is something that must hold of the data now, and is looked at again and again.
type Watch interface {
	About() About
	// Look reads. What it returns judges what was read, and is called on the desk, where nothing else touches what the
	// watch remembers; it may be called again if it says that it has to wait. An error: nothing could be read.
	Look(ctx context.Context) (judge func() Opinion, err error)
	// Memory is what the watch remembers of earlier looks: a pointer to what JSON can keep. It is only touched on the desk.
	Memory() any
}

// An About says what a watch is.
type About struct {
	Name  string
	Kind  string
	Of    []string // names of what it asks
	Every time.Duration
	Text  string // what must hold, in words
}

// The states of a watch.
const (
	Holds   = "holds"
	Broken  = "broken"
	Unknown = "unknown" // it cannot be told
)

// An Opinion is what a look says.
type Opinion struct {
	State    string
	Value    string    // what was read
	Text     string    // what that means, or why it cannot be told
	Breaches []Breach  // what does not hold; with State Broken
	Stays    []string  // things of which no more is known than before: an episode of theirs goes on
	Figures  *Figures  // of a counter
	Wait     bool      // it cannot be told yet: ask again
	Limit    string    // something that will not be known any more
	From     time.Time // since when that is so
}

// A Breach is one thing that does not hold. It is told once of each episode: from when it is first among a look's breaches
// until it is not any more.
type Breach struct {
	Thing string // what it is about, where the watch looks at several
	Code  string
	Name  string
	Class check.Class
	Level check.Level
	Harm  bool
	Lock  string
	Table string
	Count int
	Proof string
}

// Figures are a counter's. A figure that is not known is not told.
type Figures struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"` // writes without an answer
	Value        int64 `json:"value"`
	Deficit      int64 `json:"deficit"`
	Known        bool  `json:"known"` // all but Value
}

// A look is what a watch saw, on its way to the desk.
type look struct {
	watch int
	at    time.Time
	judge func() Opinion
	err   error
}

// An unreached is an error of a look that says which of those that the watch asks it was of. Others are of the first.
type unreached struct {
	of  string
	err error
}

func (u unreached) Error() string { return u.err.Error() }
func (u unreached) Unwrap() error { return u.err }

// failedAt is what a look did not reach.
func (a About) failedAt(err error) string {
	var at unreached
	switch {
	case errors.As(err, &at):
		return at.of
	case len(a.Of) > 0:
		return a.Of[0]
	}
	return a.Name
}

// lookLimit bounds one look.
const lookLimit = 10 * time.Second

// keepLooking looks as often as the watch wants to be, one look at a time, until the context ends.
func keepLooking(ctx context.Context, n int, w Watch, desk chan<- look) {
	for {
		began := time.Now()
		l := look{watch: n}
		func() {
			ctx, cancel := context.WithTimeout(ctx, lookLimit)
			defer cancel()
			l.judge, l.err = w.Look(ctx)
		}()
		if l.at = time.Now(); ctx.Err() != nil {
			return
		}
		select {
		case desk <- l:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(max(w.About().Every-time.Since(began), 4*time.Since(began)/10)):
		case <-ctx.Done():
			return
		}
	}
}

// An opinion is one with the time of its look.
type opinion struct {
	Opinion
	at time.Time
}
