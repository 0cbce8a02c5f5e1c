package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// toldAt judges a history while it goes on, and lists what is told at each of the instants, in ms.
func toldAt(t *testing.T, history string, at ...lock.Instant) (out []string) {
	t.Helper()
	s := newScript()
	for _, text := range strings.Split("declare lock:c counter; "+history, "; ") {
		if err := s.line(strings.Fields(text)); err != nil {
			t.Fatal(err)
		}
	}
	f := follow(withoutReadings(s.in), func(*Live) {})
	lines, when := linesOf(f.in)
	for _, now := range at {
		for len(lines) > 0 && when[0] <= now*1e6 {
			f.add(lines[0])
			lines, when = lines[1:], when[1:]
		}
		out = append(out, fmt.Sprint(summary(Result{Verdicts: f.live.Settle(now * 1e6).Verdicts})))
	}
	return out
}

// What nobody is known to have done is told once whoever has done it would have been heard of; what is known, at once.
func TestWhoTookAKeyIsWaitedFor(t *testing.T) {
	const (
		lost   = "A acquire lock:c=ta 10-11; A release lock:c=ta 40-41 not-held"
		gone   = "A acquire lock:c=ta 10-11; A renew lock:c=ta 30-31 not-held; A update counter[id=1] value:=7 40-41; A release lock:c=ta 50-51 not-held"
		double = "A acquire lock:c=ta 10-11; B acquire lock:c=tb 30-31; B release lock:c=tb 40-41; A release lock:c=ta 50-51"
		taken  = "C acquire lock:c=tc 1-2; C release lock:c=tc 3-4; C release lock:c 20-21"
	)
	for _, tt := range []struct {
		name, history string
		told          string // after 2 s, 10.03 s and 10.1 s
	}{
		{"a loss", lost, "[[] [] [LF101 LIKELY x1]]"},
		{"a loss that a renewal found", gone, "[[] [] [LF101 PROVEN x1]]"},
		{"a loss of which the answer is held", gone + "; " + taken + "/5000", "[[] [LF101 LIKELY x1 LF301 PROVEN harm x1] []]"},
		{"a loss that is accounted for", gone + "; " + taken, "[[LF101 LIKELY x1 LF301 PROVEN harm x1] [] []]"},
		{"a plain SET", "A store lock:c=ta 10-11; B store lock:c=tb 30-31; B release lock:c=tb 40-41; A release lock:c=ta 50-51 not-held",
			"[[LF102 PROVEN x1 LF305 PROVEN harm x1] [] []]"},
		{"a second grant", double, "[[LF102 PROVEN x1] [] [LF305 LIKELY harm x1]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(toldAt(t, tt.history, 2000, 10030, 10100)); got != tt.told {
				t.Errorf("told %s, want %s", got, tt.told)
			}
		})
	}
}

// A lease that may have ended on the way to the server accounts for what was found.
func TestALeaseThatEndedOnTheWayIsNoLoss(t *testing.T) {
	for text, want := range map[string]bool{
		"A acquire lock:c=ta 10-11; A release lock:c=ta 40-61 not-held": false,
		"A acquire lock:c=ta 10-11; A release lock:c=ta 30-41 not-held": true,
		"A lock advisory:42 10-11; A unlock advisory:42 30-41 not-held": false, // which has no lease
	} {
		s := newScript()
		for _, line := range strings.Split("lease 40; "+text, "; ") {
			if err := s.line(strings.Fields(line)); err != nil {
				t.Fatal(err)
			}
		}
		c := told(s.in).view(lock.Never)
		c.settle()
		c.collect()
		if got := c.unexplained(c.byID[1]) != nil; got != want {
			t.Errorf("found nothing at %s: %v", text, got)
		}
	}
}
