package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// An Accepted is a finding that is known: it is shown as accepted and fails
// nothing until its date, whatever its level.
type Accepted struct {
	Code   string    // LF104
	Lock   string    // glob of the lock's key; "" for any
	Table  string    // glob of the table; "" for any
	Reason string    // why it is accepted
	Until  time.Time // from here on it is not
	Line   int       // where it was written
}

// AcceptableCode reads the code or name, in either case, of a finding that can be
// accepted, and answers with the code.
func AcceptableCode(text string) (string, error) {
	c, ok := lookup(text)
	switch {
	case !ok:
		return "", &UnknownCode{text, closest(text, nil)}
	case c.Code == "LF401":
		return "", fmt.Errorf("%s %s is about a whole run, not about a lock or a table: expected --expect %s instead", c.Code, c.Name, c.Code)
	}
	return c.Code, nil
}

// covers reports whether the entry is about the verdict, whatever its date.
func (a Accepted) covers(v check.Verdict) bool {
	if a.Code != v.Code || a.Table != "" && !lock.Glob(a.Table, v.Table) {
		return false
	}
	key := globKey(check.LockFact{Lock: v.Lock})
	return a.Lock == "" || lock.Glob(a.Lock, v.Lock) || lock.Glob(a.Lock, key)
}

// expired reports whether the entry was over when the run began. A run of which
// it is not known when that was is not judged by dates: judged again, a history
// must say the same.
func (r Run) expired(a Accepted) bool { return !r.Started.IsZero() && !r.Started.Before(a.Until) }

// acceptedBy returns the number of the first entry that accepts the verdict, from
// 1, or 0.
func (r Run) acceptedBy(v check.Verdict) int {
	for i, a := range r.Accepted {
		if a.covers(v) && !r.expired(a) {
			return i + 1
		}
	}
	return 0
}

// AcceptedFor returns the reason for which a verdict is accepted, or "".
func (r Run) AcceptedFor(v check.Verdict) string {
	if i := r.acceptedBy(v); i > 0 {
		return r.Accepted[i-1].Reason
	}
	return ""
}

// acceptance says of a group that it is accepted, and why; "" if it is not.
func (r Run) acceptance(g group) string {
	if g.accepted == 0 {
		return ""
	}
	a := r.Accepted[g.accepted-1]
	return fmt.Sprintf("; accepted until %s: %s", a.lastDay(), a.Reason)
}

func (a Accepted) lastDay() string { return a.Until.AddDate(0, 0, -1).Format(time.DateOnly) }

func (a Accepted) String() string {
	s := a.Code
	if a.Lock != "" {
		s += " of " + a.Lock
	}
	if a.Table != "" {
		s += " of table " + a.Table
	}
	return fmt.Sprintf("%s (line %d)", s, a.Line)
}

// AcceptedInVain says of each entry that accepted nothing why: it is past its
// date, or nothing was found that it covers.
func (r Run) AcceptedInVain() []string {
	var out []string
	for _, a := range r.Accepted {
		found := r.matched(a)
		switch {
		case r.expired(a) && found > 0:
			out = append(out, fmt.Sprintf("%s was accepted until %s, and is no more (%s)", a, a.lastDay(), a.Reason))
		case r.expired(a):
			out = append(out, fmt.Sprintf("%s was accepted until %s; nothing was found that it covers", a, a.lastDay()))
		case found == 0:
			out = append(out, fmt.Sprintf("%s is accepted, and nothing was found that it covers", a))
		}
	}
	return out
}

func (r Run) matched(a Accepted) (n int) {
	for _, v := range r.Result.Verdicts {
		n += one(a.covers(v))
	}
	return n
}

// whyAccepted names what would have been said of a run that held.
func whyAccepted(gs []group) string {
	var titles []string
	for _, g := range gs {
		if g.accepted > 0 {
			titles = append(titles, g.title())
		}
	}
	if len(titles) == 0 {
		return ""
	}
	return "; accepted: " + strings.Join(titles, ", ")
}

func textAccepted(p *page, r Run) {
	for _, line := range r.AcceptedInVain() {
		p.sub(2, "--accept: "+line+".")
	}
}

func (r Run) toJSONAccepted() []jsonAccepted {
	return each(r.Accepted, func(a Accepted) jsonAccepted {
		return jsonAccepted{Code: a.Code, Lock: a.Lock, Table: a.Table, Reason: a.Reason, Until: a.lastDay(), Line: a.Line,
			Expired: r.expired(a), Matched: r.matched(a)}
	})
}
