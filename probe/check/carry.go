package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A carry is what outlasts a view: what was found, the figures, and what later
// subjects have to be compared with. All of it is bounded.
type carry struct {
	*remembered
	setup  Setup
	known  *Survey
	ledger *lock.Ledger
	end    lock.Instant // the last that the record tells of
	gap    lock.Instant // the last gap
	pins   int          // terms that went on for longer than ops are kept
	hung   int          // unanswered ops that were not kept
	limits [bounds]int  // how often each was met
	floor  lock.Instant // what began before it is kept no more

	readBy   lock.Instant // what was left behind before it is not waited for to be read
	ghostsBy lock.Instant // of acquires that were not answered later, something may yet be heard

	answersBy lock.Instant // what was done later may have its answer held, and not be known yet

	found     []*finding
	lastOne   map[string]*finding // by what counts together: see file
	piles     map[string]*finding
	cycles    map[cycleID]*finding
	staleOf   map[staleID]*finding // the LF103 of a term
	out       Result
	columns   map[columnOf]*columnState
	fallen    map[columnOf]int // fences that were too low
	stepsOn   map[columnOf]*stepState
	commonOf  map[tableRow]*commonLocks
	numbers   map[columnOf]bool // integers that a section wrote after it had read them
	looked    int               // reads gone through to find the bases of writes
	settled   settlement
	lastRead  map[reading]*lock.Op   // the last one each, of those that are nobody's for sure
	tasksOf   map[string]*actorTasks // by actor
	actors    map[string]bool
	lockOrder []lock.LockID
	lockKnown map[lock.LockID]*lockState
	rowLocks  map[cell][]lock.LockID // whose sections wrote the cell
	highest   map[lockRow]fenced     // of the writes that left the view
	tallies   []*tally
	figures   []*fenceTally
	risings   []*rising
	tables    map[string]*tableState
	declared  map[string]*namedTable
	strayed   map[string]int       // accepted writes by nobody for sure, by table
	refused   map[string][]refusal // by process, its last refused writes of rows that it has not read again
	later     []func()             // what is to be found once the whole is known
	unproved  []*unprovenColumn
	pictures  *gallery
}

// Bounds of what is carried. Beyond them nothing new is remembered.
const (
	mostLocks  = 1 << 13
	mostActors = 1 << 14
	mostCells  = 1 << 15
	mostTables = 1 << 10
	mostFound  = 1 << 14
)

func newCarry(setup Setup, known *Survey) *carry {
	c := &carry{remembered: newRemembered(setup.Clocks), setup: setup, known: known, ledger: lock.NewLedger(setup.Declarations), ghostsBy: lock.Never, answersBy: lock.Never,
		lastOne: map[string]*finding{}, refused: map[string][]refusal{}, piles: map[string]*finding{}, staleOf: map[staleID]*finding{}, cycles: map[cycleID]*finding{}, columns: map[columnOf]*columnState{},
		fallen: map[columnOf]int{}, numbers: map[columnOf]bool{}, stepsOn: map[columnOf]*stepState{}, commonOf: map[tableRow]*commonLocks{}, lastRead: map[reading]*lock.Op{}, settled: settlement{cells: map[cell]rest{}},
		tasksOf: map[string]*actorTasks{}, actors: map[string]bool{}, lockKnown: map[lock.LockID]*lockState{},
		rowLocks: map[cell][]lock.LockID{}, highest: map[lockRow]fenced{}, tables: map[string]*tableState{}, strayed: map[string]int{}, declared: declaredTables(setup.Declarations)}
	c.ledger.Learn(known.locks)
	c.ledger.KeepGhosts()
	for _, inv := range setup.Invariants {
		switch inv.Kind {
		case "fence":
			c.figures = append(c.figures, newFenceTally(inv))
		case "monotone":
			c.risings = append(c.risings, newRising(inv))
		default:
			c.tallies = append(c.tallies, newTally(inv))
		}
	}
	return c
}

// A lockState is what is carried of one lock.
type lockState struct {
	fact     LockFact
	held     []time.Duration // of the sections, or of every n-th
	every    int
	sections int
	shown    bool              // something but a guess says that the key is a lock
	released bool              // a holder released or renewed it
	marker   bool              // a term of it is a once-marker
	unsure   [2]int            // leases that ended while held if it is never released, and if it is
	holders  map[string]uint64 // by process, the Seq of its first grant
	refused  map[string]uint64 // by process, the Seq of its first refusal
	denied   map[string]uint64 // by process, the Seq of its last refusal while it had the lock
}

// state returns what is carried of a lock. When there are too many, those that are
// met then share one that no fact tells of.
func (c *carry) state(id lock.LockID) *lockState {
	s := c.lockKnown[id]
	if s != nil {
		return s
	}
	if len(c.lockOrder) >= mostLocks {
		id = lock.LockID{}
		if s = c.lockKnown[id]; s != nil {
			return s
		}
	} else {
		c.lockOrder = append(c.lockOrder, id)
	}
	s = &lockState{every: 1, holders: map[string]uint64{}, refused: map[string]uint64{}, denied: map[string]uint64{}}
	s.fact.Lock = id.String()
	_, s.fact.Declared = c.purposeOf(id.Key)
	c.lockKnown[id] = s
	return s
}

// met notes a term of the lock.
func (s *lockState) met(t *lock.Term) {
	s.marker = s.marker || t.Marker
	if _, ok := s.holders[t.Actor]; !ok && len(s.holders) < mostActors {
		s.holders[t.Actor] = t.Grant.Seq
	}
}

// turnedAway notes that a process was refused the lock.
func (s *lockState) turnedAway(op *lock.Op) {
	if seq, ok := s.refused[op.Actor]; !ok && len(s.refused) < mostActors || ok && op.Seq < seq {
		s.refused[op.Actor] = op.Seq
	}
}

// An actorTasks tells whether a process has had two sections open at once.
type actorTasks struct {
	last *lock.Term
	many bool
}

func (c *carry) tasks(t *lock.Term) {
	if t.Span == lock.TxSpan {
		return
	}
	a := c.tasksOf[t.Actor]
	if a == nil {
		if len(c.tasksOf) >= mostActors {
			return
		}
		a = &actorTasks{}
		c.tasksOf[t.Actor] = a
	}
	if last := a.last; last != nil && (last.End == 0 || last.End > t.Grant.A) {
		a.many = true
	}
	a.last = t
}

// manyTasks reports whether a process has had two sections open at once.
func (c *carry) manyTasks(actor string) bool {
	a := c.tasksOf[actor]
	return a != nil && a.many || a == nil && len(c.tasksOf) >= mostActors
}

// purposeOf returns what was declared of a lock, if anything.
func (c *carry) purposeOf(key string) (purpose string, declared bool) {
	for _, d := range c.setup.Declarations {
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

// A finding is a verdict before the whole history is known.
type finding struct {
	Verdict
	id       lock.LockID
	from     lock.Instant   // of the first op that it cites
	guessed  bool           // it cites an op that was guessed
	unless   func() bool    // it does not hold if this does, once the whole is known
	filed    int            // how many of its kind were filed with it
	into     *finding       // the one that counts it, where there were too many
	doubt    func() string  // why it is no more than LIKELY, once the whole is known; "" if nothing is
	likelier func(*Verdict) // what the whole tells of whose it is
	apart    bool           // it may be of tables of several schemas
	more     string         // to be said, with the count, of a pile of several
}

// perLock is how many verdicts of one code and level a lock gets; further ones
// are counted in the last.
const perLock = 1000

// emit adds a verdict about a lock, of its code's class.
func (c *kase) emit(id lock.LockID, v Verdict, cited ...*lock.Op) *finding {
	_, class := about(v.Code)
	return c.emitAs(id, class, v, cited...)
}

// emitAs adds a verdict about a lock. Across a gap it is at most LIKELY.
func (c *kase) emitAs(id lock.LockID, class Class, v Verdict, cited ...*lock.Op) *finding {
	if v.Level == Proven && slices.ContainsFunc(v.Terms, func(t lock.TermID) bool { return c.pinned[t] }) {
		v.Level = Likely
		v.Proof += " But " + beyondKept
	}
	f := c.file(id, class, v, cited...)
	c.draw(f, cited)
	return f
}

// beyondKept is why what is said of terms that went on for long is not proven.
const beyondKept = "some of it goes back beyond what the judge keeps in mind, so this is not proven."

func (c *carry) file(id lock.LockID, class Class, v Verdict, cited ...*lock.Op) *finding {
	f := &finding{Verdict: v, id: id, from: lock.Never}
	purpose, declared := c.purposeOf(id.Key)
	if purpose == "efficiency" && id.Key != "" {
		return f
	}
	f.Name, _ = about(v.Code)
	f.Class = class
	f.Harm = class == Harm || class == Declared && declared
	if id.Key != "" {
		f.Lock = id.String()
	}
	for _, op := range cited {
		if op == nil {
			continue
		}
		f.from, f.guessed = min(f.from, op.A), f.guessed || op.Guessed
		if !slices.Contains(f.Ops, op.Seq) {
			f.Ops = append(f.Ops, op.Seq)
		}
	}
	f.apart = c.apart(f, cited)
	f.Count = max(1, f.Count)
	key := c.kindOf(f)
	if last := c.lastOne[key]; last != nil && (last.filed >= perLock || len(c.found) >= mostFound) {
		c.meet(boundVerdicts)
		last.Count, f.into = last.Count+f.Count, last
		return f
	} else if last != nil {
		f.filed = last.filed
	}
	f.filed++
	c.lastOne[key] = f
	c.found = append(c.found, f)
	return f
}

// kindOf is what a finding counts together with where there are too many: those of its
// lock, and of whatever lock once there is no room for one that has none.
func (c *carry) kindOf(f *finding) string {
	kind := f.Code + string(f.Level) + string(f.Class)
	if c.lastOne[kind+f.Lock] == nil && len(c.found) >= mostFound {
		return fmt.Sprint(kind, " of several ", f.Harm)
	}
	return kind + f.Lock
}

// piled adds n to the verdict of that code and level which stands for all of them
// of the lock (and of by, where each has its own), and reports whether there is one.
func (c *carry) piled(code string, level Level, id lock.LockID, by string, n int) bool {
	f := c.piles[pileOf(code, level, id, by)]
	if f != nil {
		f.Count += n
	}
	return f != nil
}

func pileOf(code string, level Level, id lock.LockID, by string) string {
	return code + string(level) + id.Upstream + "/" + id.String() + "/" + by
}

// pile makes a verdict the one that stands for all of its code and level. What
// more says is added to its proof if it comes to stand for several: a format with
// their number.
func (c *carry) pile(f *finding, by, more string) *finding {
	f.more, f.pile = more, pileOf(f.Code, f.Level, f.id, by)
	if len(c.piles) < mostFound {
		c.piles[f.pile] = cmp.Or(f.into, f)
	}
	return f
}

// result puts together what was found.
func (c *carry) result() Result {
	c.sum()
	c.sumGhosts()
	c.blindSpots()
	c.out.Map = c.lockMap()
	for _, find := range c.later {
		find()
	}
	for _, f := range c.found {
		if f.unless == nil || !f.unless() {
			c.out.Verdicts = append(c.out.Verdicts, c.finished(f))
		}
	}
	c.sumLimits()
	slices.SortStableFunc(c.out.Verdicts, func(a, b Verdict) int {
		if a.Code != b.Code {
			return strings.Compare(a.Code, b.Code)
		}
		return cmp.Compare(firstOp(a), firstOp(b))
	})
	slices.SortFunc(c.out.Facts.Overlaps, func(a, b Overlap) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return c.out
}

// finished takes into account what only the whole history tells.
func (c *carry) finished(f *finding) Verdict {
	v := f.Verdict
	if v.Level == Proven && c.gap != 0 && c.gap >= f.from {
		v.Level = Likely
		v.Proof += " The record has a gap there, so this is not proven."
	}
	if v.Level == Proven && (f.guessed || c.isGuess(f.id)) {
		v.Level = Likely
		v.Proof += " It rests on a script whose text was not seen, and that was read off its arguments, so this is not proven."
	}
	if f.apart && v.Level != Possible {
		v.Level = Likely
		v.Proof += " " + otherSchemas
	}
	if f.doubt != nil {
		if doubt := f.doubt(); doubt != "" {
			v.Level = Likely
			v.Proof += " " + doubt + ", so this is not proven."
		}
	}
	if f.likelier != nil {
		f.likelier(&v)
	}
	if f.more != "" && v.Count > 1 {
		v.Proof += " " + fmt.Sprintf(f.more, v.Count)
	}
	if v.Train > 0 {
		v.Proof += " " + fmt.Sprintf(trainOf(v.Code), v.Train)
	}
	return v
}

// trainOf says what it is that some of what was counted follows from: a format with
// their number.
func trainOf(code string) string {
	if code == "LF301" {
		return "%d of them follow from the others: their own lock had been removed so before."
	}
	return "%d of them follow from a release that had removed another holder's lock (LF301)."
}

// isGuess reports whether only a guess says that the key is a lock at all.
func (c *carry) isGuess(id lock.LockID) bool {
	s := c.lockKnown[id]
	_, declared := c.purposeOf(id.Key)
	return s != nil && !declared && !s.shown
}

func firstOp(v Verdict) uint64 {
	if len(v.Ops) == 0 {
		return 0
	}
	return v.Ops[0]
}
