package check

import (
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Result is everything that the judge has to say.
type Result struct {
	Facts    Facts
	Verdicts []Verdict // by code, then in the order of the first op that they cite
	Counters []Counter
	Fences   []FenceFigure
	Risings  []Rising
	Map      []MapEntry // which lock guards what, by first use
}

// Judge says what a history proves. It changes nothing of its input.
func Judge(in Input) Result {
	j := judge(in, windowOps, mostKept)
	return j.result()
}

// judge goes through a whole history that is in memory.
func judge(in Input, window, kept int) *Judging {
	return judgeBy(in, func(j *Judging) { j.window, j.kept = window, kept })
}

// judgeBy does so with limits other than the usual.
func judgeBy(in Input, set func(*Judging)) *Judging {
	ops := make([]*lock.Op, len(in.Ops))
	for i, op := range in.Ops {
		own := *op
		own.Term = lock.Attribution{}
		ops[i] = &own
	}
	j := NewJudging(in.setup(), surveyOf(in.Declarations, ops))
	set(j)
	for _, g := range in.Gaps {
		j.Gap(g)
	}
	replay(eventsOf(ops), in.Ends, j.tell)
	j.cut(lock.Never)
	return j
}

func surveyOf(declared []lock.Declaration, ops []*lock.Op) *Survey {
	k := NewSurvey(declared)
	for first := true; first || k.Again(); first = false {
		for _, op := range ops {
			k.Op(op)
		}
	}
	return k
}

// A case is what is in view of a history, and judged at once. A code's functions
// go through those terms and ops of it that are due (see due and dueOp), each of
// which is so in one case only, and may look at all of the others: whatever met
// one that is due is in view, and over. What they find goes to emit, or to pile
// where one verdict counts many; what must outlast the view is kept in carry.
type kase struct {
	*carry
	viewed
	horizon lock.Instant // what ended before it is due; Never: everything
	room    int          // see orderClusters
	judged  map[*lock.Op]bool
	closed  map[lock.TermID]bool
	pinned  map[lock.TermID]bool
	byID    map[lock.TermID]*lock.Term
	within  map[uint64]openTx // transactions that go on, by session

	ops        []*lock.Op   // by Seq
	all        []*lock.Term // by ID
	txs        map[txID]*tx
	reads      []*read          // those that were answered, by request
	readsOf    map[cell][]*read // the same, by cell
	writes     []*write
	beside     []*write                       // to other tables than the statement's own: of whatever rows, with whatever values
	besideOf   map[*lock.Op][]*write          // the same, by statement
	written    map[cell][]*write              // accepted and unknown ones that assign the cell, by earliest effect
	overs      map[cell][]lock.Instant        // see between
	may        map[cell][]*write              // see mayWrite
	mayEnds    map[cell][]lock.Instant        // when the latest of those up to it was in effect
	others     map[cell][]*write              // see otherwise
	byName     map[columnOf]map[string][]cell // the written cells, by what names their rows
	writeOf    map[*lock.Op]*write
	ends       map[cell][]lock.Instant // see endsOf
	everywhere []*write                // those that may be of any table
	strange    map[string][]*write     // see strangeTo, by table
	opaque     map[string][]*write     // see opaqueOf, by table
	making     map[string][]*write     // see madeOrRemoved, by table
	texts      map[columnText]bool     // see returned
	sources    map[source]*sourced     // the reads, by request
	columnIDs  map[columnOf]int        // see columnID
	rowNames   map[string]string       // see nameOf
	ofTerm     map[lock.TermID]*doings
	strays     []stray
	acts       map[lock.LockID]*acts
	terms      map[lock.LockID][]*lock.Term
	locks      []lock.LockID // with terms or refusals, by first use

	fenced *fencedRows

	crowded  map[*lock.Op]bool // ops of clusters that are too large
	sections []*section
	metLast  map[tableRow]lock.Instant // see lastMet
	waiting  map[*lock.Op]bool         // ops of clusters that go on
	held     map[lock.TermID]bool      // their terms
	subjects map[*lock.Op]bool         // what is due, once that is settled: see dueOp
	ready    []*cluster                // those that are over
	results  []*clustered              // of those, what their orders show
	placeOf  map[*lock.Op]place        // of their writes
	cycled   map[*write][]*premise     // writes of a cycle, with what that rests on
	lost     map[cell][]pair           // those that are sure
}

// doings are what a term did for sure.
type doings struct {
	reads  []*read
	writes []*write
	ops    []*lock.Op   // statements and commits, by Seq
	within []*lock.Op   // likewise, of terms within it
	end    lock.Instant // when the last of them was over
}

// A stray is a write by a process without an open term that was last refused
// the locks named.
type stray struct {
	op      *lock.Op
	refused map[lock.LockID]*lock.Op
	certain bool // what it wrote is what the lock in question protects
}

func newCase(carried *carry) *kase {
	return &kase{
		carry: carried, viewed: viewed{lawless: map[*lock.Op]bool{}, cut: map[lock.TermID]lock.Instant{}},
		txs: map[txID]*tx{}, written: map[cell][]*write{}, overs: map[cell][]lock.Instant{}, sources: map[source]*sourced{}, columnIDs: map[columnOf]int{}, rowNames: map[string]string{},
		may: map[cell][]*write{}, others: map[cell][]*write{}, mayEnds: map[cell][]lock.Instant{},
		ofTerm: map[lock.TermID]*doings{}, acts: map[lock.LockID]*acts{}, terms: map[lock.LockID][]*lock.Term{},
		writeOf: map[*lock.Op]*write{}, readsOf: map[cell][]*read{}, ends: map[cell][]lock.Instant{}, waiting: map[*lock.Op]bool{}, held: map[lock.TermID]bool{},
		cycled: map[*write][]*premise{}, lost: map[cell][]pair{},
	}
}

// judge finds what the subjects of the case show.
func (c *kase) judge() {
	c.settle()
	c.collect()
	c.findClusters()
	c.lostUpdates()
	c.perhapsLost()
	c.replays()
	c.staleWrites()
	c.unproven()
	c.overruns()
	c.overlaps()
	c.doubleGrants()
	c.unsafeReleases()
	c.foreignRenewals()
	c.resurrected()
	c.noExpiry()
	c.ghosts()
	c.releasedEarly()
	c.splitSessions()
	c.noCommonLock()
	c.readsBefore()
	c.fences()
	c.rejections()
	c.inversions()
	c.lockless()
	c.blindness()
	c.chart()
	c.counters()
	c.facts()
}

// about returns a code's name and class.
func about(code string) (name string, class Class) {
	for _, k := range kinds {
		if k.code == code {
			return k.name, k.class
		}
	}
	return "", ""
}

// kinds are the codes that the judge knows.
var kinds = [...]struct {
	code, name string
	class      Class
}{
	{"LF101", "lease-overrun", Hazard},
	{"LF102", "overlap", Hazard},
	{"LF103", "stale-write", Hazard},
	{"LF104", "lost-update", Harm},
	{"LF105", "fence-regression", Harm},
	{"LF106", "section-anomaly", Harm},
	{"LF107", "released-before-commit", Hazard},
	{"LF201", "fence-rejected", Good},
	{"LF202", "replayed-as-is", Harm},
	{"LF301", "unsafe-release", Harm},
	{"LF302", "foreign-renew", Harm},
	{"LF303", "resurrected", Declared},
	{"LF304", "no-expiry", Hazard},
	{"LF305", "double-grant", Declared},
	{"LF306", "failover-lost", Declared},
	{"LF307", "ghost-acquire", Hazard},
	{"LF308", "wrote-without-lock", Declared},
	{"LF309", "fence-inversion", Declared},
	{"LF310", "split-session-lock", Declared},
	{"LF311", "no-common-lock", Hazard},
	{"LF312", "read-before-acquire", Hazard},
	{"LF402", "blind-spot", Inconclusive},
	{"LF403", "counter-mismatch", Harm},
	{"LF404", "counter-regressed", Harm},
}
