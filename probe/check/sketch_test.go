package check

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestSketchIsNearTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []int64{20, 1e3, 1e6, 1e9, 1e15} {
		var s sketch
		var all []time.Duration
		for range 5000 {
			d := time.Duration(r.Int64N(2*spread) - spread/4)
			s.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		q := s.quantiles()
		for _, c := range []struct{ got, want time.Duration }{
			{q.P50, all[2499]}, {q.P99, all[4949]}, {q.P999, all[4994]}, {q.Min, all[0]}, {q.Max, all[4999]},
		} {
			if off := (c.got - c.want).Abs(); off > c.want.Abs()/50+1 {
				t.Errorf("spread %d: %v, want %v", spread, c.got, c.want)
			}
		}
		if len(s.buckets) > 2*64*32 {
			t.Errorf("%d buckets", len(s.buckets))
		}
	}
}

func TestBucketsAreInOrder(t *testing.T) {
	last := bucketOf(-1 << 62)
	for d := time.Duration(-1 << 62); d < 1<<62-1<<56; d += 1 << 56 {
		b := bucketOf(d)
		if b < last {
			t.Fatalf("%d is in bucket %d, before it came %d", d, b, last)
		}
		last = b
	}
	for d := time.Duration(-200); d < 5000; d++ {
		if off := (middleOf(bucketOf(d)) - d).Abs(); off > d.Abs()/32+1 {
			t.Errorf("%d: bucket %d, whose middle is %d", d, bucketOf(d), middleOf(bucketOf(d)))
		}
	}
	if q := new(sketch).quantiles(); q != (Quantiles{}) {
		t.Errorf("%+v", q)
	}
}
