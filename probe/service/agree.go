package service

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Side is a query and where it is asked.
type Side struct {
	Query string
	At    *Database
}

// Agrees is two queries that must give the same number, such as a total and the sum of its ledger.
type Agrees struct {
	Is    About
	A, B  Side // with the same At both are read as of one moment
	Lock  string
	Table string

	mem agreed
}

// agreed is what is remembered of two databases: whether they differed at the last look, and how.
type agreed struct {
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
}

// About says what it is.
func (a *Agrees) About() About { return a.Is }

// Memory is what differed last.
func (a *Agrees) Memory() any { return &a.mem }

// Look reads both.
func (a *Agrees) Look(ctx context.Context) (func() Opinion, error) {
	if a.A.At != a.B.At {
		return a.lookApart(ctx)
	}
	var x, y value
	err := a.A.At.snapshot(ctx, func(tx pgx.Tx) (err error) {
		if x, err = one(ctx, tx, a.A.Query); err != nil {
			return fmt.Errorf("read %q: %w", a.A.Query, err)
		}
		if y, err = one(ctx, tx, a.B.Query); err != nil {
			return fmt.Errorf("read %q: %w", a.B.Query, err)
		}
		return nil
	})
	at := time.Now()
	return func() Opinion { return a.judge(x, y, at, true) }, err
}

// apart is how long two databases have to differ within one look: what is written to one after the other differs until it is
// written to both.
const apart = 250 * time.Millisecond

// lookApart reads two databases, which have no moment in common: the first once more after the second. If they differ it
// reads them again after a while.
func (a *Agrees) lookApart(ctx context.Context) (func() Opinion, error) {
	x, y, err := a.apart(ctx)
	if still := x; err == nil && x.text != y.text {
		pause(ctx, apart)
		if x, y, err = a.apart(ctx); x != still {
			x.moved = true
		}
	}
	if err != nil {
		return nil, err
	}
	at := time.Now()
	return func() Opinion {
		if x.moved {
			return Opinion{State: Unknown, Value: x.text, Text: "the first changed while the second was read"}
		}
		return a.judge(x, y, at, false)
	}, nil
}

func (a *Agrees) apart(ctx context.Context) (x, y value, err error) {
	var got [3]value
	for i, side := range []Side{a.A, a.B, a.A} {
		err := side.At.use(ctx, func(c *pgx.Conn) (err error) {
			got[i], err = one(ctx, c, side.Query)
			return err
		})
		if err != nil {
			return x, y, a.failed(side, err)
		}
	}
	x, y = got[2], got[1]
	x.moved = got[0] != got[2]
	return x, y, nil
}

// failed says of which of the two databases an error is.
func (a *Agrees) failed(side Side, err error) error {
	err = fmt.Errorf("read %q: %w", side.Query, err)
	if side == a.B && len(a.Is.Of) > 1 {
		return unreached{a.Is.Of[1], err}
	}
	return err
}

// judge compares. What was not read as of one moment has to differ in the same way twice.
func (a *Agrees) judge(x, y value, at time.Time, together bool) Opinion {
	m, okX := x.number()
	n, okY := y.number()
	shown := fmt.Sprintf("%s and %s", x.shown(), y.shown())
	switch {
	case !x.row || !y.row:
		return Opinion{State: Unknown, Value: shown, Text: "there is no such row"}
	case !okX || !okY:
		return Opinion{State: Unknown, Value: shown, Text: "they are no numbers"}
	case m.Cmp(n) == 0:
		a.mem = agreed{}
		return Opinion{State: Holds, Value: shown}
	}
	last := a.mem
	a.mem = agreed{x.text, y.text}
	if !together && last != a.mem {
		return Opinion{State: Unknown, Value: shown, Text: "they differ, which is told if they still do at the next look"}
	}
	by := new(big.Rat).Sub(m, n).RatString()
	proof := fmt.Sprintf("Let A be what %q returns and B what %q returns, which have to agree.", a.A.Query, a.B.Query)
	if together {
		proof += fmt.Sprintf(" Both were read as of one moment, by %s, in one transaction.", stamp(at))
	} else {
		proof += fmt.Sprintf(" They are of two databases: A was read before and after B and had not changed, and both were so at two looks, the last at %s.", stamp(at))
	}
	proof += fmt.Sprintf(" However A is %s and B is %s, a difference of %s.", x.shown(), y.shown(), by)
	b := Breach{Code: "LF405", Name: "invariant-broken", Class: check.Harm, Level: check.Proven, Harm: true, Lock: a.Lock, Table: a.Table, Proof: proof}
	if !together {
		b.Level = check.Likely
	}
	return Opinion{State: Broken, Value: shown, Text: "they differ by " + by, Breaches: []Breach{b}}
}

// number reads a value; a sum of no rows, which is NULL, is 0.
func (v value) number() (*big.Rat, bool) {
	if v.isNull {
		return new(big.Rat), true
	}
	if len(v.text) > 100 { // an exponent may make a long number of a short text, but no server writes one
		return nil, false
	}
	return new(big.Rat).SetString(v.text)
}

func (v value) shown() string {
	switch {
	case !v.row:
		return "no row"
	case v.isNull:
		return "NULL"
	}
	return v.text
}
