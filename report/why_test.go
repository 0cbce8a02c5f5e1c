package report

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// What a user reads of a rule that changed nothing, for each reason that there is.
func TestWhyNothingChanged(t *testing.T) {
	// ended has one injection end in a way.
	ended := func(section bool, outcome, reason string) func(*Run) {
		return func(r *Run) {
			r.Rules, r.Injections = r.Rules[:1], r.Injections[:1]
			r.Rules[0].Seen, r.Rules[0].Could, r.Rules[0].Fired = 1, 1, 1
			in := &r.Injections[0]
			in.Rule, in.Outcome, in.Reason, in.Section = r.Rules[0].Text, outcome, reason, section
		}
	}
	// never has the rule not fire at all.
	never := func(seen int, barred, nearest []Count) func(*Run) {
		return func(r *Run) {
			r.Rules, r.Injections = r.Rules[:1], []history.Injection{}
			r.Rules[0].Seen, r.Rules[0].Could, r.Rules[0].Fired, r.Rules[0].Barred, r.Rules[0].Nearest = seen, 0, 0, barred, nearest
		}
	}
	const (
		heartbeat = "waited in vain for lease-expired: renewed by heartbeat: 3 times, last on connection 2"
		nobody    = "waited in vain for next-write: no contender: nobody else asked for the lock"
		blocked   = "waited in vain for next-write: contender blocked by a row lock: connection 8 waits for connection 7, whose transaction is held"
		early     = "waited in vain for lease-expired: finished early: connection 3 gave the lock back while the op was held"
	)
	for _, c := range []struct {
		name   string
		change func(*Run)
		want   string
	}{
		{"renewed by heartbeat", ended(true, "never opened", heartbeat), "1 pause landed inside a section; 1 gate never opened: " + heartbeat},
		{"renewed, outside of a section", ended(false, "never opened", heartbeat), "1 pause landed, none inside a section; 1 gate never opened: " + heartbeat},
		{"no contender", ended(true, "never opened", nobody), "1 pause landed inside a section; 1 gate never opened: " + nobody},
		{"no contender, outside of a section", ended(false, "never opened", nobody), "1 pause landed, none inside a section; 1 gate never opened: " + nobody},
		{"blocked by a row lock", ended(true, "never opened", blocked), "1 pause landed inside a section; 1 gate never opened: " + blocked},
		{"finished early", ended(true, "never opened", early), "1 pause landed inside a section; 1 gate never opened: " + early},
		{"outside of a section", ended(false, "landed", ""), "1 pause landed, none inside a section: nobody was holding the lock"},
		{"never matched", never(0, nil, []Count{{"UPDATE(counter) outside a section", 4}}), "never matched; nearest events seen: UPDATE(counter) outside a section (4 times)"},
		{"not freezable", ended(false, "refused: pid 812 (sshd) is protected by its name", ""), "refused: not freezable: pid 812 (sshd) is protected by its name"},
		{"barred as not freezable", never(3, []Count{{"not freezable", 3}}, nil), "barred each time: not freezable (3 times)"},
		{"budget spent", never(3, []Count{{"max", 3}}, nil), "barred each time: max (3 times)"},
		{"max-freeze", never(3, []Count{{"max-freeze", 3}}, nil), "barred each time: max-freeze (3 times)"},
		{"gave up", ended(true, "client-gave-up", "the client sent the request again"), "the client gave up on its request each time, before the pause was over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := with(armed(), c.change)
			want := r.Rules[0].Text + ": " + c.want
			if o := r.Outcome(); len(o.Reasons) != 1 || o.Reasons[0] != want {
				t.Errorf("%q, want %q", o.Reasons, want)
			}
			if said := strings.Join(strings.Fields(text(t, r)), " "); !strings.Contains(said, c.want) {
				t.Errorf("%q is not in:\n%s", c.want, said)
			}
		})
	}
}

// Of the freezes that held their time it is said how long they were beside what was asked for.
func TestFrozenForWhatWasAsked(t *testing.T) {
	freeze := func(outcome string, real time.Duration) history.Injection {
		return history.Injection{Effect: "freeze", Outcome: outcome, For: 800 * time.Millisecond, Confirmed: 10, Ended: lock.Instant(10).Add(real)}
	}
	gate, stall, unseen := freeze(landed, 2*time.Second), freeze(landed, 2*time.Second), freeze(landed, 2*time.Second)
	gate.Until, stall.Effect, unseen.Confirmed = "next-write", "stall", 0
	var count tally
	for _, i := range []history.Injection{
		freeze(landed, 900*time.Millisecond), freeze(landed, 1100*time.Millisecond), freeze("cut short", 100*time.Millisecond), freeze(gaveUp, 0), gate, stall, unseen,
	} {
		count.add(i)
	}
	if said := used(RuleUse{Seen: 7, Fired: 7}, count); !strings.Contains(said, "; frozen for 1.25 of the time that was asked for;") {
		t.Error(said)
	}
	if said := used(RuleUse{}, tally{}); strings.Contains(said, "asked for") {
		t.Error(said)
	}
}
