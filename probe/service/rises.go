package service

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Reading is one number that was read.
type Reading struct {
	Value  int64
	Exists bool
	Server string // which server answered, where that is told: a process has one of its own
}

// Rises is a number that must never fall: a counter of kind monotone, or a fence.
type Rises struct {
	Is   About
	Read func(ctx context.Context) (Reading, error)
	// Fence says that it is a fence, which makes a fall LF105 and not LF404. Issued: it is the number from which fences are
	// given out, which must not vanish either.
	Fence, Issued bool
	Lock, Table   string

	mem risen
}

// risen is what is remembered.
type risen struct {
	Has     bool      `json:"has"`
	Highest int64     `json:"highest"`
	At      time.Time `json:"at"`
	Server  string    `json:"server,omitempty"`
}

// About says what it is.
func (r *Rises) About() About { return r.Is }

// Memory is the highest number so far.
func (r *Rises) Memory() any { return &r.mem }

// Look reads the number.
func (r *Rises) Look(ctx context.Context) (func() Opinion, error) {
	n, err := r.Read(ctx)
	at := time.Now()
	return func() Opinion { return r.judge(n, at) }, err
}

func (r *Rises) judge(n Reading, at time.Time) Opinion {
	switch {
	case !n.Exists && (!r.mem.Has || !r.Issued):
		return Opinion{State: Unknown, Text: "it is not there"}
	case !n.Exists:
		return r.fell("nothing", "it has vanished", n, at)
	case r.mem.Has && n.Value < r.mem.Highest:
		return r.fell(fmt.Sprint(n.Value), fmt.Sprintf("it fell by %d", r.mem.Highest-n.Value), n, at)
	}
	if !r.mem.Has || n.Value > r.mem.Highest || n.Server != r.mem.Server {
		r.mem = risen{true, n.Value, at, n.Server}
	}
	return Opinion{State: Holds, Value: fmt.Sprint(n.Value)}
}

func (r *Rises) fell(now, what string, n Reading, at time.Time) Opinion {
	proof := fmt.Sprintf("Let N be %s. It was %d at %s. Then it may not be lower than that any more. However at %s it is %s: %s.",
		r.Is.Text, r.mem.Highest, stamp(r.mem.At), stamp(at), now, what)
	if n.Server != r.mem.Server {
		proof += " Another server process answers now than then: it was started anew, or replaced, and came up without what it had acknowledged."
	}
	if r.Issued {
		proof += " Fences that are given out from now on are lower than some that were accepted: a holder of today is refused, or, where nothing compares them, one of yesterday is not."
	}
	b := Breach{Code: "LF404", Name: "counter-regressed", Class: check.Harm, Level: check.Proven, Harm: true, Lock: r.Lock, Table: r.Table, Proof: proof}
	if r.Fence {
		b.Code, b.Name = "LF105", "fence-regression"
	}
	return Opinion{State: Broken, Value: now, Text: fmt.Sprintf("%s, from %d", what, r.mem.Highest), Breaches: []Breach{b}}
}

// stamp writes a time for a proof.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
