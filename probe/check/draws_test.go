package check

import (
	"os"
	"strconv"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
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
