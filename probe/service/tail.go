package service

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A tail knows of the lines that are kept where in the file each is, and by when what it tells of was over.
type tail struct {
	buffer []byte // lines that are not in the file yet
	size   int64  // also of those
	lines  []kept
}

// A kept is a line that is kept.
type kept struct {
	n    uint64 // its number in the run
	at   int64  // where it begins
	over lock.Instant
}

// trimFrom is how large a tail is at least that is trimmed.
const trimFrom = 1 << 20

// note takes in that a line of so many bytes comes behind the others.
func (t *tail) note(n uint64, bytes int, e history.Entry) {
	t.lines = append(t.lines, kept{n, t.size, overBy(e)})
	t.size += int64(bytes)
}

// overBy is when what a line tells of was over.
func overBy(e history.Entry) lock.Instant {
	switch {
	case e.Op != nil:
		return overOp(e.Op)
	case e.End != nil:
		return e.End.At
	case e.Gap != nil:
		return e.Gap.At
	}
	return 0
}

// choose returns which parts of the file have the lines that are needed: the header, those of the judge's ranges, those
// from its next number on, and those of what was over late. It makes the tail one of these.
func (t *tail) choose(keeps [][2]uint64, next uint64, late lock.Instant) (parts [][2]int64) {
	left, size := []kept{}, int64(0)
	for i, k := range t.lines {
		end := t.size
		if i+1 < len(t.lines) {
			end = t.lines[i+1].at
		}
		if k.n != 0 && k.n < next && k.over < late && !within(keeps, k.n) {
			continue
		}
		if last := len(parts) - 1; last >= 0 && parts[last][1] == k.at {
			parts[last][1] = end
		} else {
			parts = append(parts, [2]int64{k.at, end})
		}
		left = append(left, kept{k.n, size, k.over})
		size += end - k.at
	}
	t.lines, t.size = left, size
	return parts
}

// wasted reports whether it is worth while to choose.
func (t *tail) wasted(needed int, from int64) bool {
	return t.size >= from && len(t.lines) > 2*needed
}

// ranges makes of ascending numbers those from and to which there are no others in between.
func ranges(numbers []uint64) (out [][2]uint64) {
	for _, n := range numbers {
		if last := len(out) - 1; last >= 0 && out[last][1]+1 == n {
			out[last][1] = n
		} else {
			out = append(out, [2]uint64{n, n})
		}
	}
	return out
}

func within(list [][2]uint64, n uint64) bool {
	at, _ := slices.BinarySearchFunc(list, n, func(r [2]uint64, n uint64) int {
		if r[1] < n {
			return -1
		}
		return 1
	})
	return at < len(list) && list[at][0] <= n
}
