package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// dropped begins a drop-reply, and returns how it ended after what is done to it.
func dropped(t *testing.T, then func(e *Engine, c *conn, in *injection)) []history.Injection {
	t.Helper()
	e := engine(t, "drop-reply", "acquire")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	g := e.Reply(c, op, true, 2)
	if g == nil || g.cut == nil || g.Opened() {
		t.Fatalf("gate %+v, want one that is cut", g)
	}
	if next, due := e.NextDeadline(3); due {
		t.Errorf("a reset has a deadline: %d", next)
	}
	then(e, c, g.cut)
	_, ended := e.Take()
	if !e.Idle() {
		t.Error("the injection is never over")
	}
	return ended
}

func TestCutIsToldOnce(t *testing.T) {
	ended := dropped(t, func(e *Engine, _ *conn, in *injection) {
		e.Cut(in, false, 5)
		e.Cut(in, false, 6)
	})
	if len(ended) != 1 || ended[0].Outcome != "landed" || ended[0].Confirmed != 5 || ended[0].Ended != 5 {
		t.Errorf("%+v", ended)
	}
}

func TestCutThatNeverCame(t *testing.T) {
	for name, then := range map[string]func(e *Engine, c *conn, in *injection){
		"client-gave-up": func(e *Engine, c *conn, _ *injection) { e.Closed(c, 7) },
		"cut short":      func(e *Engine, _ *conn, _ *injection) { e.Disarm(7) },
	} {
		ended := dropped(t, then)
		if len(ended) != 1 || ended[0].Outcome != name || ended[0].Ended != lock.Instant(7) || ended[0].Reason == "" {
			t.Errorf("%s: %+v", name, ended)
		}
	}
}
