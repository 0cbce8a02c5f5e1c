package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// However many locks there are, what was found of them is bounded, and counted.
func TestVerdictsOfManyLocksAreBounded(t *testing.T) {
	s := &script{hash: lock.NewHasher([]byte("t")), label: map[string]uint64{}, lease: time.Second}
	const locks = mostFound + 3000
	for i := range locks {
		for _, l := range []string{"A acquire lock:%d=a no-ttl %d-%d", "A release lock:%d=a %d-%d"} {
			at := 10 + 4*i + 2*strings.Count(l, "release")
			if err := s.line(strings.Fields(fmt.Sprintf(l, i, at, at+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	j := judge(s.in, windowOps, mostKept)
	sum := 0
	for _, v := range j.result().Verdicts {
		if v.Code == "LF304" {
			sum += v.Count
		}
	}
	if len(j.found) > mostFound+10 || len(j.piles) > mostFound || sum != locks {
		t.Errorf("%d findings, %d piles, of %d locks without a lifetime %d are counted", len(j.found), len(j.piles), locks, sum)
	}
}

// What a cluster takes in beside those that met is the same each time.
func TestTheSameAreTakenIn(t *testing.T) {
	var first []int
	for try := range 50 {
		k := &cluster{rows: map[tableRow]bool{}, start: lock.Never}
		byRow := map[tableRow][]*section{}
		both := &section{n: 0, start: 0, end: 100, rows: map[tableRow]bool{}}
		for i := range 20 {
			row := tableRow{"t", itoa(int64(i))}
			both.rows[row] = true
			byRow[row] = []*section{{n: i + 1, start: 10, end: 20, rows: map[tableRow]bool{row: true}}}
		}
		k.add(both)
		k.complete(byRow)
		var got []int
		for _, s := range k.sections {
			got = append(got, s.n)
		}
		if try == 0 {
			first = got
		} else if !slices.Equal(got, first) {
			t.Fatalf("%v, and %v", first, got)
		}
	}
}

// Which cells are left out where there are too many is the same each time.
func TestCellsAreKeptInTurn(t *testing.T) {
	cells := map[cell]rest{}
	for i := range 100 {
		cells[cell{"t", itoa(int64(i)), "v"}] = rest{}
	}
	if got := inTurn(cells); len(got) != 100 || !slices.IsSortedFunc(got, compareCells) {
		t.Error(got)
	}
}
