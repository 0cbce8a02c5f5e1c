package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// ms writes an instant for a proof.
func ms(at lock.Instant) string {
	if at == lock.Never {
		return "never"
	}
	return fmt.Sprintf("%.3f ms", float64(at)/float64(time.Millisecond))
}

func span(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}

// named is an op in a proof: its number, its verb and what it is about.
func named(op *lock.Op) string {
	what := op.Key
	if op.SQL != nil {
		what = op.SQL.Table
	}
	if what != "" {
		what = " " + what
	}
	return fmt.Sprintf("op %d (%s%s)", op.Seq, op.Verb, what)
}

func holder(t *lock.Term) string {
	who := t.Actor
	if who == "" {
		who = fmt.Sprintf("session %d", t.Session)
	}
	return fmt.Sprintf("term %d of %s (%s)", t.ID, t.Lock, who)
}

// A proof is written in three parts: what there is, what follows, and what it
// contradicts.
type proof struct{ strings.Builder }

func (p *proof) say(format string, args ...any) *proof {
	if p.Len() > 0 {
		p.WriteByte(' ')
	}
	fmt.Fprintf(p, format, args...)
	return p
}

func let(format string, args ...any) *proof { return new(proof).say("Let "+format, args...) }
