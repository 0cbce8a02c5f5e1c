package proxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A rule that never matches tells what came nearest, also where no op was made
// of that.
func TestNearestOfWhatIsNoOp(t *testing.T) {
	e := engine(t, "stall-before", "GET(lock:conter)=1ms", "stall-before", "SELECT(conter)=1ms")
	redis := NewSession(e, e.Open(1, owner("a")), resp.NewTracker(resp.Options{
		Wants: func(verb string) bool { return e.plan.Wants(lock.Redis, verb) }, Could: e.Keys,
	}), func(string) {})
	for _, cut := range []int{5, 33} { // in pieces and whole
		get := []byte("*2\r\n$3\r\nGET\r\n$12\r\nlock:counter\r\n")
		for len(get) > 0 {
			n := min(cut, len(get))
			redis.Feed(ToUpstream, get[:n], 1)
			get = get[n:]
		}
	}
	pg := NewSession(e, e.Open(2, owner("a")), pgwire.NewTracker(pgwire.Options{
		Wants: func(verb string) bool { return e.plan.Wants(lock.Postgres, verb) }, Reads: e.Reads,
	}), func(string) {})
	pg.Feed(ToUpstream, []byte("\x00\x00\x00\x08\x00\x03\x00\x00"), 1)
	for range 2 {
		pg.Feed(ToUpstream, []byte("Q\x00\x00\x00\x1aSELECT * FROM counter\x00"), 1)
	}
	want := [][]fault.Count{{{What: "GET(lock:counter)"}}, {{What: "SELECT(counter) outside a section"}}}
	for i, u := range e.Uses() {
		if !slices.Equal(u.Nearest, want[i]) {
			t.Errorf("%s: nearest %v, expected %v", u.Text, u.Nearest, want[i])
		}
	}
}

// Asking does not change the answer, and takes no memory.
func TestInterestIsPure(t *testing.T) {
	e := engine(t, "stall-before", "GET(other)=1ms", "stall-before", "SELECT(other)=1ms")
	keys, key := e.Keys("GET"), []byte("key")
	for i := range 3 {
		if keys(key) || !keys([]byte("other")) || e.Reads("counter") || !e.Reads("other") {
			t.Errorf("at look %d the answers are others", i)
		}
	}
	for i := range 10_000 {
		keys(fmt.Append(nil, i))
	}
	if n := testing.AllocsPerRun(100, func() { keys(key) }); n != 0 {
		t.Errorf("%v allocations a look", n)
	}
}

// Names are told from each other whatever their hashes: two often want one place.
func TestGlancesOfManyNames(t *testing.T) {
	for range 200 {
		g := newGlances()
		for round, want := range []bool{true, false} {
			for n := range 16 {
				if got := g.first(g.selects, fmt.Append(nil, n)); got != want {
					t.Fatalf("round %d, name %d: first %v", round, n, got)
				}
			}
		}
	}
}
