package check

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// A sim runs workers of the counter algorithm over a model of Redis and of one
// Postgres row, in virtual time, and records what a proxy would have seen.
type sim struct {
	cfg    simConfig
	rand   *rand.Rand
	hash   *lock.Hasher
	now    lock.Instant
	queue  simQueue
	seq    uint64
	ops    []*lock.Op
	tokens int

	key       string // the lock's token; "" when free
	expires   lock.Instant
	counterOf int64 // the fence counter
	value     int64
	fence     int64

	writes, rejected int64
}

type simConfig struct {
	workers  int
	sections int // of each worker
	lease    time.Duration
	fenced   string  // 0, 1, claim
	broken   string  // "", no-nx, blind-del
	pauses   float64 // chance of a pause at a step
	pause    time.Duration
	latency  time.Duration
}

type simEvent struct {
	at lock.Instant
	n  int
	do func()
}
type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func (s *sim) after(d time.Duration, do func()) {
	s.tokens++
	heap.Push(&s.queue, simEvent{s.now.Add(d), s.tokens, do})
}

func (s *sim) some(d time.Duration) time.Duration { return time.Duration(s.rand.Int64N(int64(d)) + 1) }

// send plays one op of a worker: it may be paused before it is sent, or before
// its reply is heard.
func (s *sim) send(op *lock.Op, effect func(), then func()) {
	pause := func() time.Duration {
		if s.rand.Float64() < s.cfg.pauses {
			return s.some(2 * s.cfg.pause)
		}
		return 0
	}
	s.after(pause(), func() {
		s.seq++
		op.Seq, op.A = s.seq, s.now
		s.ops = append(s.ops, op)
		s.after(pause()+s.some(s.cfg.latency), func() {
			op.F = s.now
			s.after(s.some(s.cfg.latency), func() {
				effect()
				s.after(s.some(s.cfg.latency), func() {
					s.seq++
					op.ReplySeq, op.R = s.seq, s.now
					op.Z = 0
					if op.Proto == lock.Postgres && op.Implicit {
						op.Z = s.now
					}
					s.after(pause()+1, func() {
						op.D = s.now
						s.after(s.some(s.cfg.latency), then)
					})
				})
			})
		})
	})
}

func (s *sim) v(n int64) lock.Value { return s.hash.Of([]byte(strconv.FormatInt(n, 10))) }

type simWorker struct {
	s     *sim
	name  string
	id    uint64
	left  int
	token string
	fence int64
	base  int64
}

func (w *simWorker) redis(kind lock.Kind, verb, key string) *lock.Op {
	return &lock.Op{Session: w.id * 10, Actor: w.name, Proto: lock.Redis, Kind: kind, Verb: verb, Key: key}
}

func (w *simWorker) pg(kind lock.Kind, verb string, where ...lock.Cond) *lock.Op {
	where = append([]lock.Cond{{Column: "id", Op: "=", Value: w.s.v(1)}}, where...)
	return &lock.Op{Session: w.id*10 + 1, Actor: w.name, Proto: lock.Postgres, Kind: kind, Verb: verb, Implicit: true, Tx: w.s.seq + 1,
		SQL: &lock.Statement{Table: "counter", Where: where}}
}

func (w *simWorker) start() {
	if w.left == 0 {
		return
	}
	w.left--
	w.token = fmt.Sprintf("%s-t-%d", w.name, w.left)
	w.acquire()
}

func (w *simWorker) acquire() {
	s := w.s
	op := w.redis(lock.Acquire, "SET", "lock:counter")
	op.NX, op.TTL, op.Token = true, s.cfg.lease, s.hash.Of([]byte(w.token))
	if s.cfg.broken == "no-nx" {
		op.Kind, op.NX = lock.Store, false
	}
	s.send(op, func() {
		op.Outcome = lock.Refused
		if s.key == "" || s.now > s.expires || !op.NX {
			s.key, s.expires, op.Outcome = w.token, s.now.Add(s.cfg.lease), lock.Granted
		}
		if op.Kind == lock.Store {
			op.Outcome = lock.Done
		}
	}, func() {
		if op.Outcome == lock.Refused {
			s.after(5*time.Millisecond, w.acquire)
			return
		}
		w.issue()
	})
}

func (w *simWorker) issue() {
	s := w.s
	if s.cfg.fenced == "0" {
		w.read()
		return
	}
	op := w.redis(lock.Fence, "INCR", "fence:counter")
	op.FenceKey = "fence:counter"
	s.send(op, func() {
		s.counterOf++
		op.Outcome, op.Fence, op.HasFence = lock.Done, s.counterOf, true
		w.fence = s.counterOf
	}, w.read)
}

func (w *simWorker) read() {
	s := w.s
	if s.cfg.fenced == "claim" {
		op := w.pg(lock.Write, "UPDATE", lock.Cond{Column: "fence", Op: "<", Value: s.v(w.fence)})
		op.SQL.Set = []lock.Assign{{Column: "fence", Value: s.v(w.fence)}}
		op.SQL.Returning, op.SQL.Columns = true, []string{"value"}
		s.send(op, func() {
			op.Outcome = lock.Done
			if s.fence < w.fence {
				s.fence, op.Rows = w.fence, 1
				w.base = s.value
				op.Row = []lock.Cell{{Column: "value", Value: s.v(s.value)}}
			}
		}, func() {
			if op.Rows == 0 {
				s.rejected++
				w.release()
				return
			}
			s.after(20*time.Millisecond, w.write)
		})
		return
	}
	op := w.pg(lock.Read, "SELECT")
	op.SQL.Columns = []string{"value"}
	s.send(op, func() {
		op.Outcome, op.Rows, w.base = lock.Done, 1, s.value
		op.Row = []lock.Cell{{Column: "value", Value: s.v(s.value)}}
	}, func() { s.after(20*time.Millisecond, w.write) })
}

func (w *simWorker) write() {
	s := w.s
	op := w.pg(lock.Write, "UPDATE")
	op.SQL.Set = []lock.Assign{{Column: "value", Value: s.v(w.base + 1)}}
	if s.cfg.fenced == "1" {
		op.SQL.Set = append(op.SQL.Set, lock.Assign{Column: "fence", Value: s.v(w.fence)})
		op.SQL.Where = append(op.SQL.Where, lock.Cond{Column: "fence", Op: "<", Value: s.v(w.fence)})
	}
	if s.cfg.fenced == "claim" {
		op.SQL.Where = append(op.SQL.Where, lock.Cond{Column: "fence", Op: "=", Value: s.v(w.fence)})
	}
	s.send(op, func() {
		op.Outcome = lock.Done
		if s.cfg.fenced == "1" && s.fence >= w.fence || s.cfg.fenced == "claim" && s.fence != w.fence {
			return
		}
		s.value, op.Rows = w.base+1, 1
		if s.cfg.fenced == "1" {
			s.fence = w.fence
		}
	}, func() {
		if op.Rows == 1 {
			s.writes++
		} else {
			s.rejected++
		}
		w.release()
	})
}

func (w *simWorker) release() {
	s := w.s
	op := w.redis(lock.Release, "EVAL", "lock:counter")
	op.Guarded, op.Token = true, s.hash.Of([]byte(w.token))
	if s.cfg.broken == "blind-del" {
		op.Verb, op.Guarded, op.Token = "DEL", false, lock.Value{}
	}
	s.send(op, func() {
		op.Outcome = lock.NotHeld
		if s.key != "" && s.now <= s.expires && (s.key == w.token || !op.Guarded) {
			s.key, op.Outcome = "", lock.Done
		}
	}, w.start)
}

func simulate(seed uint64, cfg simConfig) *sim {
	s := &sim{cfg: cfg, rand: rand.New(rand.NewPCG(seed, 1)), hash: lock.NewHasher([]byte("sim")), now: 1000}
	for i := range cfg.workers {
		w := &simWorker{s: s, name: string(rune('A' + i)), id: uint64(i + 1), left: cfg.sections}
		s.after(time.Millisecond, w.start)
	}
	for s.queue.Len() > 0 {
		e := heap.Pop(&s.queue).(simEvent)
		s.now = e.at
		e.do()
	}
	return s
}

func (s *sim) input() Input {
	return Input{Ops: s.ops, Invariants: []Invariant{{Name: "counter", Kind: "counter", Query: "SELECT value FROM counter WHERE id = 1",
		Table: "counter", Column: "value", HasStart: true, End: s.value, HasEnd: true}}}
}

// withoutNumbers is the input as read back from a history in which no integer
// is kept, and no invariant is named.
func (s *sim) withoutNumbers(t testing.TB) Input {
	var b bytes.Buffer
	w := history.NewWriter(&b, history.Header{}, nil)
	for _, op := range s.ops {
		w.Op(op)
	}
	h, err := history.Read(&b)
	if err != nil || w.Close() != nil {
		t.Fatal(err, w.Close())
	}
	return From(h)
}

// recorded is the input as read back from a history, where integers are kept
// for the counter's column alone.
func (s *sim) recorded(t rapid.TB) Input {
	in := s.input()
	var b bytes.Buffer
	inv := in.Invariants[0]
	w := history.NewWriter(&b, history.Header{Invariants: []history.Invariant{{Kind: "counter", Query: inv.Query, Table: inv.Table, Column: inv.Column}}},
		func(_, column string) bool { return column == "value" })
	for _, op := range in.Ops {
		w.Op(op)
	}
	h, err := history.Read(&b)
	if err != nil || w.Close() != nil {
		t.Fatal(err, w.Close())
	}
	in.Ops = h.Ops
	return in
}

func count(r Result, code string, level Level) (n int) {
	for _, v := range r.Verdicts {
		if v.Code == code && (level == "" || v.Level == level) {
			n++
		}
	}
	return n
}

func TestSimulatedRunsAreJudgedRight(t *testing.T) {
	var lost, proven, rejected int
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawnSim(t, 1, 25, 0, 0.02, 0.1, 0.3)
		s := simulate(rapid.Uint64().Draw(t, "seed"), cfg)
		r := Judge(s.input())
		if again := Judge(s.recorded(t)); !reflect.DeepEqual(again, r) {
			t.Fatalf("from the record:\n%+v\nfrom memory:\n%+v", again, r)
		}
		c := r.Counters[0]
		deficit := s.writes - s.value
		if !c.Known || c.Unbounded || c.Acknowledged != s.writes || c.NetDeficit != deficit {
			t.Fatalf("counter %+v; %d writes, value %d", c, s.writes, s.value)
		}
		if n := count(r, "LF403", Proven); (n > 0) != (deficit != 0) {
			t.Fatalf("deficit %d, %d LF403", deficit, n)
		}
		if n := count(r, "LF104", Proven); n > 0 && deficit == 0 {
			t.Fatalf("nothing was lost, %v", r.Verdicts)
		}
		if n := count(r, "LF104", ""); n == 0 && deficit != 0 {
			t.Fatalf("%d lost and no LF104: %v", deficit, r.Verdicts)
		}
		if n := count(r, "LF104", Proven); n > 0 && (c.StaleBase == 0 || c.Victims == 0) {
			t.Fatalf("%d lost updates are proven, and of the counter it is said %+v", n, c)
		}
		if deficit != 0 {
			lost++
			if count(r, "LF104", Proven) > 0 {
				proven++
			}
		}
		if n := count(r, "LF201", ""); int64(n) != s.rejected || r.Facts.Rejected != n {
			t.Fatalf("%d rejected, %d LF201", s.rejected, n)
		}
		rejected += int(s.rejected)
		if n := count(r, "LF105", ""); n > 0 {
			t.Fatalf("the fence never fell: %v", r.Verdicts)
		}
		if cfg.broken == "" && cfg.pauses == 0 && len(r.Verdicts) > 0 {
			t.Fatalf("nothing happened: %v", r.Verdicts)
		}
		if cfg.broken != "blind-del" && count(r, "LF301", "") > 0 {
			t.Fatalf("every release compares its token: %v", r.Verdicts)
		}
		if cfg.broken != "no-nx" && count(r, "LF305", "") > 0 {
			t.Fatalf("the lock excludes: %v", r.Verdicts)
		}
		if cfg.fenced == "claim" && deficit != 0 {
			t.Fatal("the model is wrong: a claim loses nothing")
		}
	})
	t.Logf("%d runs lost updates, LF104 was proven in %d; %d rejected", lost, proven, rejected)
}

func BenchmarkJudge(b *testing.B) {
	for _, broken := range []string{"", "no-nx", "blind-del"} {
		b.Run("broken="+broken, func(b *testing.B) {
			s := simulate(1, simConfig{workers: 8, sections: 2500, lease: 500 * time.Millisecond, fenced: "1", broken: broken,
				pauses: 0.01, pause: 800 * time.Millisecond, latency: time.Millisecond})
			in := s.input()
			for b.Loop() {
				Judge(in)
			}
			b.ReportMetric(float64(len(in.Ops)), "ops")
		})
	}
}

// lossy simulates runs until one loses an update.
func lossy(t *testing.T, cfg simConfig) *sim {
	for seed := range uint64(100) {
		if s := simulate(seed, cfg); s.value < s.writes {
			return s
		}
	}
	t.Fatal("no seed loses anything")
	return nil
}

func TestTheStepIsLearnedFromCleanSections(t *testing.T) {
	for _, sections := range []int{8, 40} {
		in := lossy(t, simConfig{workers: 2, sections: sections, lease: 500 * time.Millisecond, fenced: "0",
			pauses: 0.02, pause: 800 * time.Millisecond, latency: time.Millisecond}).input()
		in.Invariants = nil
		if found := count(Judge(in), "LF104", Proven) > 0; found != (sections == 40) {
			t.Errorf("two workers with %d sections each: a lost update is found: %v", sections, found)
		}
	}
}

// Nobody named the counter, and the history keeps no number of it: the
// differences that it does keep are enough where the step is constant.
func TestLostUpdatesAreProvenWithoutAnInvariant(t *testing.T) {
	for _, varied := range []bool{false, true} {
		s := lossy(t, simConfig{workers: 2, sections: 40, lease: 500 * time.Millisecond, fenced: "0",
			pauses: 0.02, pause: 800 * time.Millisecond, latency: time.Millisecond})
		if varied {
			for _, op := range s.ops {
				if op.Kind == lock.Write {
					op.SQL.Set[0].Value = s.v(op.SQL.Set[0].Value.Int + 1000*int64(1+op.Seq%7))
				}
			}
		}
		r := Judge(s.withoutNumbers(t))
		if got := count(r, "LF104", Proven) > 0; got == varied {
			t.Errorf("steps vary: %v; lost updates are found: %v", varied, got)
		}
		u := r.Facts.Unproven
		if !varied {
			if len(u) > 0 {
				t.Errorf("not judged: %+v", u)
			}
			continue
		}
		if count(r, "LF103", "") == 0 {
			t.Errorf("no stale write: %+v", r.Verdicts)
		}
		if len(u) != 1 || u[0].Writes == 0 || !u[0].Number || u[0].Table+"."+u[0].Column+" "+u[0].Where != "counter.value id = ..." {
			t.Errorf("not judged: %+v", u)
		}
		if got := r.Facts.Tables[0]; len(got.Numbers) != 1 || got.Numbers[0] != "value" || got.Where != "id = ..." {
			t.Errorf("numbers of %+v", got)
		}
	}
}

func TestFenceFigure(t *testing.T) {
	s, err := readScript("testdata/good/LF201-fence-at-the-write.txt")
	if err != nil {
		t.Fatal(err)
	}
	s.in.Invariants = []Invariant{{Kind: "fence", Table: "counter", Column: "fence", End: 2, HasStart: true, HasEnd: true}}
	got := Judge(s.in).Fences
	want := FenceFigure{Table: "counter", Column: "fence", Accepted: 1, Rejected: 1, Lowest: 2, Highest: 2, End: 2, Known: true}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A fence that an invariant names must rise, whatever lock it is written
// under, and none as well.
func TestANamedFenceMustRise(t *testing.T) {
	hash := lock.NewHasher([]byte("fence"))
	v := func(n int64) lock.Value { return hash.Of([]byte(strconv.FormatInt(n, 10))) }
	put := func(at lock.Instant, verb string, n int64) *lock.Op {
		return &lock.Op{Session: 1, Actor: "A", Proto: lock.Postgres, Kind: lock.Write, Verb: verb, Implicit: true, Tx: uint64(at), Rows: 1,
			Outcome: lock.Done, A: at, F: at, R: at + 5, D: at + 5, Z: at + 5, SQL: &lock.Statement{Table: "t",
				Set: []lock.Assign{{Column: "fence", Value: v(n)}}, Where: []lock.Cond{{Column: "id", Op: "=", Value: v(1)}}}}
	}
	gone := put(20, "DELETE", 0)
	gone.SQL.Set = nil
	emptied := put(20, "TRUNCATE", 0)
	emptied.SQL, emptied.Rows = &lock.Statement{Table: "t"}, 0
	other := put(30, "UPDATE", 2)
	other.SQL.Where[0].Value = v(2)
	together := put(12, "UPDATE", 2)
	together.Session = 2
	fence := Invariant{Kind: "fence", Query: "SELECT fence FROM t WHERE id = 1", Table: "t", Column: "fence", HasStart: true, HasEnd: true}
	for _, c := range []struct {
		name       string
		ops        []*lock.Op
		start, end int64
		want       int
		proof      string
	}{
		{"9 then 2", []*lock.Op{put(10, "UPDATE", 9), put(30, "UPDATE", 2)}, 0, 2, 1, "with fence 2"},
		{"2 then 9", []*lock.Op{put(10, "UPDATE", 2), put(30, "UPDATE", 9)}, 0, 9, 0, ""},
		{"9 twice", []*lock.Op{put(10, "UPDATE", 9), put(30, "UPDATE", 9)}, 0, 9, 0, ""},
		{"at once", []*lock.Op{put(10, "UPDATE", 9), together}, 0, 9, 0, ""},
		{"another row", []*lock.Op{put(10, "UPDATE", 9), other}, 0, 9, 0, ""},
		{"made anew", []*lock.Op{put(10, "UPDATE", 9), gone, put(30, "UPDATE", 2)}, 0, 2, 0, ""},
		{"emptied", []*lock.Op{put(10, "UPDATE", 9), emptied, put(30, "UPDATE", 2)}, 0, 2, 0, ""},
		{"past the proxy", []*lock.Op{put(10, "UPDATE", 9)}, 7, 5, 1, "past the proxy"},
		{"by nobody seen", nil, 7, 5, 1, "past the proxy"},
		{"it ended lower than was accepted", []*lock.Op{put(10, "UPDATE", 9)}, 0, 8, 1, "past the proxy"},
		{"it rose", nil, 5, 7, 0, ""},
	} {
		inv := fence
		inv.Start, inv.End = c.start, c.end
		r := Judge(Input{Ops: c.ops, Invariants: []Invariant{inv}})
		if got := count(r, "LF105", Proven); got != c.want || r.Fences[0].Regressions != c.want || len(r.Verdicts) != c.want {
			t.Errorf("%s: %d, figure %+v, want %d", c.name, got, r.Fences[0], c.want)
		}
		if c.want > 0 && !strings.Contains(r.Verdicts[0].Proof, c.proof) {
			t.Errorf("%s: %q is not in %q", c.name, c.proof, r.Verdicts[0].Proof)
		}
	}
}
