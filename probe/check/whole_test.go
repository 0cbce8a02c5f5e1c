package check

import "github.com/lockfaultd/lockfaultd/lock"

// told returns a judging that was told of a whole history and has judged nothing.
func told(in Input) *Judging {
	ops := make([]*lock.Op, len(in.Ops))
	for i, op := range in.Ops {
		own := *op
		ops[i] = &own
	}
	j := NewJudging(in.setup(), surveyOf(in.Declarations, ops))
	j.window = len(ops) + 1
	replay(eventsOf(ops), in.Ends, j.tell)
	return j
}
