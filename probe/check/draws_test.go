package check

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"pgregory.net/rapid"
)

// histories returns how many are drawn: ORDERS of the environment, or as many as there
// is time for with every change.
func histories(quick int) uint64 {
	n, err := strconv.Atoi(os.Getenv("ORDERS"))
	switch {
	case err == nil && n > 0:
		return uint64(n)
	case testing.Short():
		return uint64(quick / 4)
	}
	return uint64(quick)
}

// drawnSim draws what is simulated, with so many sections of each worker and one of these
// chances of a pause.
func drawnSim(t *rapid.T, least, most int, pauses ...float64) simConfig {
	return simConfig{
		workers:  rapid.IntRange(1, 4).Draw(t, "workers"),
		sections: rapid.IntRange(least, most).Draw(t, "sections"),
		lease:    500 * time.Millisecond,
		fenced:   rapid.SampledFrom([]string{"0", "1", "claim"}).Draw(t, "fenced"),
		broken:   rapid.SampledFrom([]string{"", "", "no-nx", "blind-del"}).Draw(t, "broken"),
		pauses:   rapid.SampledFrom(pauses).Draw(t, "pauses"),
		pause:    time.Duration(rapid.IntRange(1, 800).Draw(t, "pause")) * time.Millisecond,
		latency:  rapid.SampledFrom([]time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 15 * time.Millisecond}).Draw(t, "latency"),
	}
}

// level returns the highest level of a code's verdicts: every order, some, or none.
func level(r Result, code string) string {
	out := "none"
	for _, v := range r.Verdicts {
		switch {
		case v.Code != code:
		case v.Level == Proven:
			return "every"
		default:
			out = "some"
		}
	}
	return out
}

func levelOf(t orders.Tally) string {
	switch {
	case t.Every():
		return "every"
	case t.Some():
		return "some"
	}
	return "none"
}
