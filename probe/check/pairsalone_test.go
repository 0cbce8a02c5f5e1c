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
	eachHistory(3000, func(_ uint64, h orders.History, want orders.Result) {
		r := judgeBy(inputOf(h), func(j *Judging) { j.room = 0 }).result()
		for code, w := range talliesOf(want) {
			if level(r, code) == "every" && !w.Every() {
				t.Errorf("%s is proven; the orders say %s\n%s", code, levelOf(w), h)
			}
		}
	})
}

// eachHistory calls f, on several goroutines, for drawn histories with what their orders show.
func eachHistory(n int, f func(seed uint64, h orders.History, want orders.Result)) {
	seeds := make(chan uint64)
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for seed := range seeds {
				h := drawn(seed)
				if want := orders.Judge(h, 20000); !want.Enough && want.Orders > 0 {
					f(seed, h, want)
				}
			}
		})
	}
	for seed := range histories(n) {
		seeds <- seed
	}
	close(seeds)
	work.Wait()
}

func talliesOf(want orders.Result) map[string]orders.Tally {
	return map[string]orders.Tally{"LF104": want.Lost, "LF105": want.Fell, "LF106": want.Anomaly}
}
