package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Result is everything that the judge has to say.
type Result struct {
	Facts    Facts
	Verdicts []Verdict // by code, then in the order of the first op that they cite
	Counters []Counter
	Fences   []FenceFigure
}

// Judge says what a history proves. It changes nothing of its input.
func Judge(in Input) Result {
	c := newCase(in)
	c.replay()
	c.settle()
	c.collect()
	c.lostUpdates()
	c.staleWrites()
	c.unproven()
	c.overruns()
	c.overlaps()
	c.doubleGrants()
	c.unsafeReleases()
	c.fences()
	c.rejections()
	c.inversions()
	c.lockless()
	c.counters()
	c.facts()
	return c.result()
}

// A case is one history being judged.
type kase struct {
	in     Input
	ops    []*lock.Op   // own copies, by Seq
	end    lock.Instant // the last that the record tells of
	ledger *lock.Ledger
	shapes map[string]*shape // by table

	txs      map[txID]*tx
	writes   []*write
	beside   []*write                // to other tables than the statement's own: of whatever rows, with whatever values
	written  map[cell][]*write       // accepted and unknown ones that assign the cell, by earliest effect
	overs    map[cell][]lock.Instant // see oversOf
	may      map[cell][]*write       // see mayWrite, with oversOf it
	mayOvers map[cell][]lock.Instant
	others   map[cell][]*write              // see otherwise
	byName   map[columnOf]map[string][]cell // the written cells, by what names their rows
	sources  map[source]*sourced            // the reads, by request
	ofTerm   map[lock.TermID]*doings
	strays   []stray
	acts     map[lock.LockID]*acts
	terms    map[lock.LockID][]*lock.Term
	locks    []lock.LockID // with terms or refusals, by first use

	guessed map[lock.LockID]bool // only a guess says that the key is a lock
	cycled  map[*write]bool      // writes of a cycle
	lost    map[cell][]pair      // those that are sure
	proven  map[columnOf]bool    // writes of the column depend on reads of it
	fallen  map[columnOf]int     // fences that were too low
	numbers map[columnOf]bool    // integers that a section wrote after it had read them
	looked  int                  // reads gone through to find the bases of writes
	found   []Verdict
	emitted map[string]int
	out     Result
}

// doings are what a term did for sure.
type doings struct {
	reads  []*read
	writes []*write
	ops    []*lock.Op // statements and commits, by Seq
}

// A stray is a write by a process without an open term that was last refused
// the locks named.
type stray struct {
	op      *lock.Op
	refused map[lock.LockID]*lock.Op
	certain bool // what it wrote is what the lock in question protects
}

func newCase(in Input) *kase {
	c := &kase{
		in: in, end: lastOf(in), ledger: lock.NewLedger(in.Declarations), shapes: map[string]*shape{},
		txs: map[txID]*tx{}, written: map[cell][]*write{}, overs: map[cell][]lock.Instant{}, sources: map[source]*sourced{},
		may: map[cell][]*write{}, others: map[cell][]*write{}, mayOvers: map[cell][]lock.Instant{},
		ofTerm: map[lock.TermID]*doings{}, acts: map[lock.LockID]*acts{}, terms: map[lock.LockID][]*lock.Term{},
		guessed: map[lock.LockID]bool{}, cycled: map[*write]bool{}, lost: map[cell][]pair{}, proven: map[columnOf]bool{}, fallen: map[columnOf]int{},
		numbers: map[columnOf]bool{}, emitted: map[string]int{},
	}
	c.ledger.KeepAll()
	c.ops = make([]*lock.Op, len(in.Ops))
	for i, op := range in.Ops {
		own := *op
		own.Term = lock.Attribution{}
		c.ops[i] = &own
	}
	return c
}

// purposeOf returns what was declared of a lock, if anything.
func (c *kase) purposeOf(key string) (purpose string, declared bool) {
	for _, d := range c.in.Declarations {
		if !d.Covers(key) {
			continue
		}
		if d.Purpose != "" {
			purpose = d.Purpose
		}
		declared = declared || d.Declared || d.Purpose == "correctness"
	}
	return purpose, declared
}

// perLock is how many verdicts of one code and level a lock gets; further ones
// are counted in the last.
const perLock = 1000

// emit adds a verdict about a lock, of its code's class.
func (c *kase) emit(id lock.LockID, v Verdict, cited ...*lock.Op) {
	_, class := about(v.Code)
	c.emitAs(id, class, v, cited...)
}

// emitAs adds a verdict about a lock. Across a gap it is at most LIKELY.
func (c *kase) emitAs(id lock.LockID, class Class, v Verdict, cited ...*lock.Op) {
	purpose, declared := c.purposeOf(id.Key)
	if purpose == "efficiency" && id.Key != "" {
		return
	}
	v.Name, _ = about(v.Code)
	v.Class = class
	v.Harm = v.Class == Harm || v.Class == Declared && declared
	if id.Key != "" {
		v.Lock = id.String()
	}
	for _, op := range cited {
		if op != nil && !slices.Contains(v.Ops, op.Seq) {
			v.Ops = append(v.Ops, op.Seq)
		}
	}
	if v.Level == Proven && c.gapAfter(cited) {
		v.Level = Likely
		v.Proof += " The record has a gap there, so this is not proven."
	}
	if v.Level == Proven && c.isGuess(id, cited) {
		v.Level = Likely
		v.Proof += " It rests on a script whose text was not seen, and that was read off its arguments, so this is not proven."
	}
	v.Count = max(1, v.Count)
	key := v.Code + string(v.Level) + string(v.Class) + v.Lock
	if c.emitted[key]++; c.emitted[key] > perLock {
		for i := range slices.Backward(c.found) {
			if w := &c.found[i]; w.Code == v.Code && w.Level == v.Level && w.Lock == v.Lock {
				w.Count += v.Count
				return
			}
		}
	}
	c.found = append(c.found, v)
}

// isGuess reports whether one of the ops was guessed, or that the key is a lock
// at all.
func (c *kase) isGuess(id lock.LockID, cited []*lock.Op) bool {
	return c.guessed[id] || slices.ContainsFunc(cited, func(op *lock.Op) bool { return op != nil && op.Guessed })
}

// gapAfter reports whether the record lacks something since the first of the
// ops: what was lost could be a release, or another write.
func (c *kase) gapAfter(cited []*lock.Op) bool {
	first := lock.Never
	for _, op := range cited {
		if op != nil {
			first = min(first, op.A)
		}
	}
	return slices.ContainsFunc(c.in.Gaps, func(g Gap) bool { return g.At >= first })
}

func (c *kase) result() Result {
	slices.SortStableFunc(c.found, func(a, b Verdict) int {
		if a.Code != b.Code {
			if a.Code < b.Code {
				return -1
			}
			return 1
		}
		return int(firstOp(a)) - int(firstOp(b))
	})
	c.out.Verdicts = c.found
	return c.out
}

func firstOp(v Verdict) uint64 {
	if len(v.Ops) == 0 {
		return 0
	}
	return v.Ops[0]
}

// about returns a code's name and class.
func about(code string) (name string, class Class) {
	switch code {
	case "LF101":
		return "lease-overrun", Hazard
	case "LF102":
		return "overlap", Hazard
	case "LF103":
		return "stale-write", Hazard
	case "LF104":
		return "lost-update", Harm
	case "LF105":
		return "fence-regression", Harm
	case "LF201":
		return "fence-rejected", Good
	case "LF301":
		return "unsafe-release", Harm
	case "LF305":
		return "double-grant", Declared
	case "LF308":
		return "wrote-without-lock", Declared
	case "LF309":
		return "fence-inversion", Declared
	}
	return "counter-mismatch", Harm
}
