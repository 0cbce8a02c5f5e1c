package check

import (
	"math/bits"
	"slices"
	"time"
)

// A sketch keeps how durations are spread, in a bounded number of buckets: each is
// a 32nd of a power of two, so that a quantile is within 2 % of the true one.
type sketch struct {
	n       int
	least   time.Duration
	most    time.Duration
	buckets map[int16]int
}

// Quantiles tell how durations are spread: each of the P is exceeded by so many.
type Quantiles struct {
	N              int
	Min, Max       time.Duration
	P50, P99, P999 time.Duration
}

func (s *sketch) add(d time.Duration) {
	if s.buckets == nil {
		s.buckets, s.least, s.most = map[int16]int{}, d, d
	}
	s.n++
	s.least, s.most = min(s.least, d), max(s.most, d)
	s.buckets[bucketOf(d)]++
}

// bucketOf numbers the buckets in the order of their durations, 0 being none.
func bucketOf(d time.Duration) int16 {
	switch {
	case d < 0:
		return -bucketOf(max(-d, 1))
	case d < 32:
		return int16(d)
	}
	shift := bits.Len64(uint64(d)) - 6
	return int16(32*shift + int(d>>shift))
}

// middleOf is a duration in the middle of a bucket.
func middleOf(bucket int16) time.Duration {
	switch {
	case bucket < 0:
		return -middleOf(-bucket)
	case bucket < 64:
		return time.Duration(bucket)
	}
	shift := int(bucket)/32 - 1
	low := time.Duration(int(bucket)-32*shift) << shift
	return low + time.Duration(1)<<shift/2
}

// quantiles reads the sketch.
func (s *sketch) quantiles() Quantiles {
	q := Quantiles{N: s.n, Min: s.least, Max: s.most}
	if s.n > 0 {
		q.P50, q.P99, q.P999 = s.at(500), s.at(990), s.at(999)
	}
	return q
}

// at returns the duration that so many of a thousand do not exceed.
func (s *sketch) at(perMille int) time.Duration {
	names := make([]int16, 0, len(s.buckets))
	for b := range s.buckets {
		names = append(names, b)
	}
	slices.Sort(names)
	rank, seen := (s.n*perMille+999)/1000, 0
	for _, b := range names {
		if seen += s.buckets[b]; seen >= rank {
			return min(max(middleOf(b), s.least), s.most)
		}
	}
	return s.most
}
