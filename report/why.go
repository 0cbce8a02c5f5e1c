package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The outcomes of an injection, as the history spells them.
const (
	landed   = "landed"
	gaveUp   = "client-gave-up"
	refused  = "refused" // a prefix: the reason follows
	cutShort = "cut short"
	shut     = "never opened" // a gate: what it waited for did not come about
)

// A tally is what became of one rule's injections.
type tally struct {
	Total, Landed, Section, GaveUp, Refused, Cut, Shut int

	longest time.Duration // of those that landed inside a section
	asked   time.Duration // for the freezes that held, all together
	frozen  time.Duration // how long these were
	effects []string
	reasons []string // of those that were refused or cut short, or that say why they did nothing
	shut    []string // of gates that never opened
}

func (t *tally) add(i history.Injection) {
	t.Total++
	outcome := string(i.Outcome)
	switch {
	case strings.HasPrefix(outcome, gaveUp):
		t.GaveUp++
	case strings.HasPrefix(outcome, refused):
		t.Refused++
		t.reasons = addOnce(t.reasons, strings.TrimLeft(strings.TrimPrefix(outcome, refused), ": "))
	default:
		t.Landed++
		if strings.HasPrefix(outcome, cutShort) {
			t.Cut++
		}
		if outcome == shut {
			t.Shut++
			t.shut = addOnce(t.shut, i.Reason)
		}
		if i.Section {
			t.Section++
			t.longest = max(t.longest, lasted(i))
		}
	}
	if i.Outcome == landed && i.Effect == "freeze" && i.Until == "" && i.Confirmed > 0 {
		t.asked += i.For
		t.frozen += i.Ended.Sub(i.Confirmed)
	}
	t.effects = addOnce(t.effects, i.Effect)
	t.reasons = addOnce(t.reasons, i.Reason)
}

// lasted is how long the pause was: what was asked for, or less if the record
// shows that it ended sooner.
func lasted(i history.Injection) time.Duration {
	from := i.Confirmed
	if from == 0 {
		from = i.At
	}
	if i.Ended > from && (i.For == 0 || i.Ended.Sub(from) < i.For) {
		return i.Ended.Sub(from)
	}
	return i.For
}

// tallyAll counts every injection of the run, tallyOf those of one rule.
func (r Run) tallyAll() tally {
	var t tally
	for _, i := range r.Injections {
		t.add(i)
	}
	return t
}

func (r Run) tallyOf(u RuleUse) tally {
	var t tally
	for _, i := range r.Injections {
		if u.owns(i) {
			t.add(i)
		}
	}
	return t
}

// owns reports whether the injection came of the rule. A name says so by
// itself; else the text does, which the history may have without its flag.
func (u RuleUse) owns(i history.Injection) bool {
	if u.Name != "" && i.Name != "" {
		return u.Name == i.Name
	}
	return u.Text == i.Rule || strings.HasSuffix(u.Text, " "+i.Rule)
}

// unable says what those that were refused were not able to do.
func (t tally) unable() string {
	if slices.Contains(t.effects, "lose-key") || slices.Contains(t.effects, "kill-backend") {
		return ""
	}
	return "not freezable: "
}

// noun is what the injections were.
func (t tally) noun() string {
	if slices.Contains(t.effects, "drop-reply") || slices.Contains(t.effects, "reset") {
		return "reset"
	}
	if t.unable() == "" {
		return "loss"
	}
	return "pause"
}

// whyUnexercised gives the reason of each rule, with the rule in front.
func (r Run) whyUnexercised() []string {
	out := make([]string, len(r.Rules))
	for i, u := range r.Rules {
		out[i] = u.Text + ": " + u.why(r.tallyOf(u), r.Result.Facts)
	}
	return out
}

// why says why the rule ended no lease while it was held.
func (u RuleUse) why(t tally, f check.Facts) string {
	switch {
	case t.Total == 0 && u.Fired == 0:
		return u.whyNotFired()
	case t.Total == 0:
		return fmt.Sprintf("fired %s, and the record does not say what became of it", times(u.Fired))
	case t.Refused == t.Total:
		return "refused: " + t.unable() + because(t.reasons)
	case t.Landed == 0 && t.GaveUp > 0:
		return "the client gave up on its request each time, before the pause was over"
	case t.Section == 0 && t.Shut > 0:
		return fmt.Sprintf("%s landed, none inside a section; %s", many(t.Landed, t.noun()), t.gates())
	case t.Section == 0:
		return fmt.Sprintf("%s landed, none inside a section: nobody was holding the lock", many(t.Landed, t.noun()))
	}
	return u.whyHarmless(t, f)
}

func (u RuleUse) whyNotFired() string {
	switch {
	case u.Seen > 0 && u.Could == 0:
		return "barred each time: " + counts(u.Barred) + u.meaningTTL()
	case u.Seen > 0 && len(u.Barred) > 0:
		return fmt.Sprintf("barred: %s; of %s at which it could have fired none was at the ordinal or the draw that it selects",
			counts(u.Barred)+u.meaningTTL(), many(u.Could, "event"))
	case u.Seen > 0:
		return fmt.Sprintf("its event was seen %s, and never at the ordinal or the draw that it selects", times(u.Seen))
	case len(u.Nearest) > 0:
		return "never matched; nearest events seen: " + counts(u.Nearest)
	}
	return "never matched; no event like it was seen"
}

// meaningTTL explains the reasons that are not the name of a limit.
func (u RuleUse) meaningTTL() string {
	for _, why := range []string{"no lease", "given back", "timeout", "ttl unknown"} {
		if slices.ContainsFunc(u.Barred, func(c Count) bool { return c.What == why }) {
			return " (" + meaningOf(why) + ")"
		}
	}
	return ""
}

func meaningOf(bar string) string {
	switch bar {
	case "no lease":
		return "the lock of these events has no lease: it is there until it is given back, or its session or transaction ends"
	case "given back":
		return "the lock of these events had been given back: its lease ends by itself no more"
	case "timeout":
		return "the gate's timeout is over before the lease that it waits for"
	}
	return "the events belonged to no open term with a known lease"
}

// whyHarmless: pauses landed inside sections, and still no lease ended there.
func (u RuleUse) whyHarmless(t tally, f check.Facts) string {
	said := fmt.Sprintf("%s landed inside a section", many(t.Section, "pause"))
	lease, renewals := shortestLease(f)
	switch {
	case t.Shut > 0:
		return fmt.Sprintf("%s; %s", said, t.gates())
	case lease > 0 && t.longest > 0 && t.longest < lease:
		return fmt.Sprintf("%s, the longest of %s: shorter than the lease of %s", said, span(t.longest), span(lease))
	case renewals > 0 && (slices.Contains(t.effects, "stall") || slices.Contains(t.effects, "hold")):
		return fmt.Sprintf("%s; the lease was renewed meanwhile (%s). A stalled connection leaves the heartbeat running: freeze the process instead",
			said, many(renewals, "renewal"))
	case renewals > 0:
		return fmt.Sprintf("%s; the lease was renewed (%s)", said, many(renewals, "renewal"))
	case t.Cut > 0:
		return fmt.Sprintf("%s, and %d of them ended early: %s", said, t.Cut, because(t.reasons))
	case len(t.reasons) > 0:
		return said + ": " + because(t.reasons)
	}
	if leaseless(f) {
		return said + "; no lock of these has a lease that could end: it lasts until it is given back, or its connection or transaction ends"
	}
	if held, unreleased := leases(f); unreleased > 0 {
		return fmt.Sprintf("%s; of %s %d were not released while the record lasts, and none of those is known to have ended before its holder did",
			said, many(held, "lease"), unreleased)
	}
	return said + ", and its owner asked for the release before the lease ended"
}

// gates says of those that never opened what kept them shut.
func (t tally) gates() string {
	return fmt.Sprintf("%s never opened: %s", many(t.Shut, "gate"), because(t.shut))
}

// leases counts the leases of locks that are no markers, and those whose owner
// never asked for the release.
func leases(f check.Facts) (held, unreleased int) {
	for _, l := range f.Locks {
		if !l.Marker {
			held += l.Grants
		}
	}
	return held, held - f.Sections
}

// shortestLease is the shortest lifetime that was granted, and how many
// renewals there were of any lock.
func shortestLease(f check.Facts) (lease time.Duration, renewals int) {
	for _, l := range f.Locks {
		renewals += l.Renewals
		for _, ttl := range l.TTLs {
			if ttl > 0 && (lease == 0 || ttl < lease) {
				lease = ttl
			}
		}
	}
	return lease, renewals
}

func because(reasons []string) string {
	if len(reasons) == 0 {
		return "no reason is recorded"
	}
	return few(reasons, 3)
}

// counts lists what happened and how often, at most three of them.
func counts(list []Count) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = c.What
		if c.N > 0 {
			parts[i] += " (" + times(c.N) + ")"
		}
	}
	return few(parts, 3)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// span prints a duration to three figures, which is all that a reader wants.
func span(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case abs >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case abs >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.String()
}
