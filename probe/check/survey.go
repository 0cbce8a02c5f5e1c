package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Survey is what has to be known of a whole history before it is judged: how
// its statements name their rows, which keys are locks, and which ops come far
// from their place. It is told of the ops one by one, in the order of the
// history's lines, and its memory does not grow with their number.
type Survey struct {
	locks  *lock.Survey
	shapes map[string]*shape // by table
	last   *shape            // the one that was asked for last, as lastOf
	lastOf string
	paths  map[string]*pathUse
	pathed bool // names beyond those were used under a path of their session's

	latest   uint64     // the highest place met
	late     []*lock.Op // those that came too late for the queue, by Seq
	lost     int        // how many of those there was no room for
	unplaced bool       // some requests or replies have no number

	restless bool // what tells rows apart was found out after rows had been told apart
	second   bool // this is the second look
}

// mostLate is how many ops are kept that come far from their place.
const mostLate = 4096

// NewSurvey returns an empty survey that knows what the user declared.
func NewSurvey(declared []lock.Declaration) *Survey {
	return &Survey{locks: lock.NewSurvey(declared), shapes: map[string]*shape{}, paths: map[string]*pathUse{}}
}

// Op takes in an op, which must not change any more.
func (k *Survey) Op(op *lock.Op) {
	k.learnShape(op)
	if k.second {
		return
	}
	k.locks.Add(op)
	k.learnPath(op)
	k.unplaced = k.unplaced || op.Seq == 0 || op.ReplySeq == 0 && answered(op)
	if op.Seq != 0 && op.Seq+queued/2 < k.latest {
		k.keep(op)
	}
	k.latest = max(k.latest, op.Seq, op.ReplySeq)
}

func (k *Survey) keep(op *lock.Op) {
	if len(k.late) == mostLate {
		k.lost++
		return
	}
	at, _ := slices.BinarySearchFunc(k.late, op.Seq, bySeq)
	k.late = slices.Insert(k.late, at, op)
}

func bySeq(op *lock.Op, seq uint64) int {
	switch {
	case op.Seq < seq:
		return -1
	case op.Seq > seq:
		return 1
	}
	return 0
}

// Again reports whether the survey needs a second look at the whole history, and
// makes itself ready for it.
func (k *Survey) Again() bool {
	if !k.restless || k.second {
		return false
	}
	k.second = true
	for _, s := range k.shapes {
		s.forgetRows()
	}
	return true
}
