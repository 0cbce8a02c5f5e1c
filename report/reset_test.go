package report

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
)

// reset makes the first pause of a run a reset, as given.
func reset(change func(*history.Injection)) func(*Run) {
	return func(r *Run) {
		r.Injections = r.Injections[:1]
		r.Injections[0].Effect = "drop-reply"
		change(&r.Injections[0])
	}
}

// A connection that was reset under a lock exercises what its rule is about; no lease has to end.
func TestResetsExercise(t *testing.T) {
	outside := func(i *history.Injection) { i.Section = false }
	for _, c := range []struct {
		name   string
		change func(*history.Injection)
		exit   int
	}{
		{"drop-reply in a section", func(*history.Injection) {}, 0},
		{"reset in a section", func(i *history.Injection) { i.Effect = "reset" }, 0},
		{"on an acquire", func(i *history.Injection) { outside(i); i.Asked = true }, 0},
		{"outside of sections", outside, 11},
		{"its client had gone", func(i *history.Injection) { i.Outcome = gaveUp }, 11},
		{"a stall", func(i *history.Injection) { i.Effect = "stall" }, 11},
	} {
		r := with(armed(), reset(c.change))
		o := r.Outcome()
		if o.Exit != c.exit {
			t.Errorf("%s: exit %d (%s), want %d", c.name, o.Exit, o.Why, c.exit)
		}
		_, implied := r.requirements()
		if (implied == 0) != (c.exit == 0) {
			t.Errorf("%s: %d implied requirements", c.name, implied)
		}
	}
}

func TestResetsAreTold(t *testing.T) {
	r := with(armed(), reset(func(*history.Injection) {}))
	if said := exercised(r); !strings.HasSuffix(said, "under a lock, or while it was asked for: 1.") {
		t.Error(said)
	}
	r = with(armed(), reset(func(i *history.Injection) { i.Section = false }))
	if why := r.whyUnexercised()[0]; !strings.Contains(why, "1 reset landed, none inside a section") {
		t.Error(why)
	}
}
