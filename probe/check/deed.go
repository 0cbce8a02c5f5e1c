package check

import (
	"github.com/lockfaultd/lockfaultd/lock"
)

// A deedKind says what happens at an instant that has to be placed.
type deedKind int

const (
	deedSnapshot deedKind = iota // a transaction takes its snapshot
	deedLook                     // a statement reads, and locks the row if it is FOR UPDATE
	deedPut                      // a write of its own transaction takes effect
	deedTake                     // a write of an explicit one gets its row's lock
	deedMiss                     // a write finds its guard false
	deedCommit                   // a transaction commits
	deedUndo                     // it is rolled back
	deedEither                   // it commits, or is rolled back
)

// A deed is what happened at one instant, and where that lies.
type deed struct {
	kind     deedKind
	op       *lock.Op
	row      int // of a statement, by place
	tx       int // by place
	sets     []assigned
	guards   []guarded
	returned []returned
	locks    bool // a reader takes the row's lock
	lo, hi   lock.Instant
	optional bool   // or it lies nowhere
	after    uint64 // the deeds that come before it, one bit each
}

// An assigned is what a write puts into a cell.
type assigned struct {
	cell  int
	val   datum
	delta bool
}

// A guarded is what a statement demands of a cell.
type guarded struct {
	cell int
	op   string
	val  datum
}

// A returned is what a statement returned of a cell.
type returned struct {
	cell int
	val  datum
}

// A datum is a number, or a text by its hash; the zero value is not known.
type datum struct {
	n    int64
	kind numbered
	hash string
	sent bool // as a client wrote it: no reading was seen to return it so
}

type numbered uint8

const (
	noNumber numbered = iota
	aNumber
	aShifted // by an amount that is the same for its column
)

func (v datum) known() bool { return v.kind != noNumber || v.hash != "" }

// A live read is one on which a write of its section depends.
type live struct {
	section    int
	read       *lock.Op
	write      *lock.Op
	cell       int
	val        datum
	on         columnOf
	sure       bool // that it is this read which the write was computed from
	everything bool // without any premise
}

// mostDeeds is how many deeds a scene may have.
const mostDeeds = 40
