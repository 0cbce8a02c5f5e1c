package main

import (
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// slack is what a busy machine may add to a budget of docs/performance.md. What
// the gate is for is a lock, an allocation or a copy on the path of every
// message, and those cost more.
const slack = 0.35

// TestCostBesideCopy holds the processor time of a request through lockfaultd,
// with the history on and rules armed, to that of the bare copying proxy. What
// other processes use meanwhile is in neither.
func TestCostBesideCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("runs load for half a minute")
	}
	ways := openForTest(t, copying, recording)
	for _, c := range []struct {
		name     string
		requests int
	}{
		{"redis GET 50c", 20_000},
		{"redis GET 50c P16", 200_000},
		{"pgbench prepared 8c", 8_000},
	} {
		w := workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == c.name })]
		t.Run(c.name, func(t *testing.T) {
			limit := w.budget + slack
			got := costRatio(t, w, ways, c.requests)
			if got.mid > limit {
				t.Logf("%v of copy's processor time: once more", got)
				got = costRatio(t, w, ways, c.requests)
			}
			t.Logf("%v of copy's processor time; the aim is %.2f", got, w.budget)
			if got.mid > limit {
				t.Errorf("%v of the bare copying proxy's processor time, twice; at most %.2f", got, limit)
			}
		})
	}
}

// costRatio runs five interleaved rounds of a workload on two ways.
func costRatio(t *testing.T, w workload, ways []*way, requests int) spread {
	t.Helper()
	b := &bench{ways: ways}
	for round := range 5 {
		for i := range ways {
			s, err := measure(t.Context(), w, ways[(i+round)%len(ways)], requests)
			if err != nil {
				t.Fatal(err)
			}
			b.samples = append(b.samples, s)
		}
	}
	return ratios(of(b.samples, w.name, ways[1].name), of(b.samples, w.name, ways[0].name), cost)
}

// openForTest starts servers, filled, and proxies in front of them.
func openForTest(t *testing.T, names ...string) []*way {
	t.Helper()
	s := &servers{testbed.Redis(t), testbed.Postgres(t)}
	if err := fill(t.Context(), &way{redis: s.redis.Addr(), postgres: s.postgres.Addr()}); err != nil {
		t.Fatal(err)
	}
	ways, err := openWays(t.Context(), t.TempDir(), names, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWays(ways) })
	return ways
}
