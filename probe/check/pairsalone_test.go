package check

import (
	"runtime"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
)

// TestEveryOrderOfPairsAlone holds the judge against every order where it has no room for any:
// what it proves of two sections that met too many others, it proves by the two alone.
func TestEveryOrderOfPairsAlone(t *testing.T) {
	seeds := make(chan uint64)
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for seed := range seeds {
				pairsAlone(t, drawn(seed))
			}
		})
	}
	for seed := range histories(3000) {
		seeds <- seed
	}
	close(seeds)
	work.Wait()
}

func pairsAlone(t *testing.T, h orders.History) {
	want := orders.Judge(h, 20000)
	if want.Enough || want.Orders == 0 {
		return
	}
	r := judgeBy(inputOf(h), func(j *Judging) { j.room = 0 }).result()
	for code, w := range map[string]orders.Tally{"LF104": want.Lost, "LF105": want.Fell, "LF106": want.Anomaly} {
		if level(r, code) == "every" && !w.Every() {
			t.Errorf("%s is proven; the orders say %s\n%s", code, levelOf(w), h)
		}
	}
}
