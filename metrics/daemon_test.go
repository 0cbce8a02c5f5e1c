package metrics

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A scene feeds a daemon with ops as a session's life goes.
type scene struct {
	*Daemon
	t   testing.TB
	reg *prometheus.Registry
	now lock.Instant
}

func newScene(t testing.TB, decls ...lock.Declaration) *scene {
	s := &scene{t: t, reg: prometheus.NewRegistry()}
	named := func(key string) string {
		for _, d := range decls {
			if d.Covers(key) {
				return "the " + strings.Trim(d.Key, "*:")
			}
		}
		return ""
	}
	s.Daemon = NewDaemon(s.reg, decls, named, Sources{
		Now: func() lock.Instant { return s.now }, Live: func() int64 { return 3 }, Sessions: func() int { return 12 }, Desyncs: func() int64 { return 1 },
		Unread: func() int64 { return 2 }, HistoryLost: func() int { return 4 }, Lines: func() uint64 { return 99 }, Armed: func() int { return 5 }, Frozen: func() int { return 1 },
	})
	return s
}

func ms(n int) lock.Instant { return lock.Instant(n) * lock.Instant(time.Millisecond) }

// op is one whose request was read at a millisecond and answered at another.
func op(kind lock.Kind, term lock.TermID, a, r int, change func(*lock.Op)) *lock.Op {
	o := &lock.Op{Proto: lock.Redis, Kind: kind, Session: 1, Outcome: lock.Done, A: ms(a), F: ms(a), R: ms(r), D: ms(r)}
	if term != 0 {
		o.Term = lock.Attribution{ID: term, Confidence: 1}
	}
	if change != nil {
		change(o)
	}
	return o
}

func grant(term lock.TermID, key string, a, r int, ttl time.Duration) *lock.Op {
	return op(lock.Acquire, term, a, r, func(o *lock.Op) { o.Key, o.TTL, o.Outcome = key, ttl, lock.Granted })
}

func release(term lock.TermID, a, r int, outcome lock.Outcome) *lock.Op {
	return op(lock.Release, term, a, r, func(o *lock.Op) { o.Outcome = outcome })
}

func write(term lock.TermID, a, r int, rows int64, change func(*lock.Op)) *lock.Op {
	return op(lock.Write, term, a, r, func(o *lock.Op) {
		o.Proto, o.Verb, o.Rows, o.Implicit, o.SQL = lock.Postgres, "UPDATE", rows, true, &lock.Statement{Table: "counter"}
		if change != nil {
			change(o)
		}
	})
}

// tells returns the lines of a scrape that begin with one of the names, without the namespace.
func (s *scene) tells(names ...string) string {
	s.t.Helper()
	w := httptest.NewRecorder()
	Handler(s.reg, s.Settle).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimPrefix(line, "lockfaultd_")
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(line, n) }) && !strings.Contains(line, "_created") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func (s *scene) wants(want string, names ...string) {
	s.t.Helper()
	if got := s.tells(names...); got != want {
		s.t.Errorf("it tells\n%s\nwant\n%s", got, want)
	}
}

// play feeds ops, and lets a minute pass in which nothing happens.
func (s *scene) play(ops ...*lock.Op) *scene {
	for _, o := range ops {
		s.Op(o)
		s.now = max(s.now, o.A, o.R)
	}
	s.now = s.now.Add(2 * time.Second)
	return s
}

// What was left of a lease, how long a section took, and whether it overran.
func TestSections(t *testing.T) {
	const lease = 500 * time.Millisecond // it ends 2.25 ms sooner, or 3.25 ms later, than it says
	commit := func(term lock.TermID, a, r int) *lock.Op {
		return op(lock.Commit, term, a, r, func(o *lock.Op) { o.Proto, o.Tables = lock.Postgres, []string{"counter"} })
	}
	inTx := func(o *lock.Op) { o.Implicit = false }
	for _, tt := range []struct {
		name string
		ops  []*lock.Op
		want string
	}{
		{"in time", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 100, 101, 1, nil), write(1, 200, 205, 1, nil), release(1, 301, 302, lock.Done)},
			"section_seconds_sum 0.3 margin_sum 0.29275 low 0.29275"},
		{"the write is told after the release", []*lock.Op{grant(1, "k", 0, 1, lease), release(1, 301, 302, lock.Done), write(1, 200, 205, 1, nil)},
			"section_seconds_sum 0.3 margin_sum 0.29275 low 0.29275"},
		{"durable later than it was answered", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 200, 205, 1, func(o *lock.Op) { o.Z = ms(300) }), release(1, 301, 302, lock.Done)},
			"section_seconds_sum 0.3 margin_sum 0.19775 low 0.19775"},
		{"in a transaction", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 100, 101, 1, inTx), commit(1, 250, 260), release(1, 301, 302, lock.Done)},
			"section_seconds_sum 0.3 margin_sum 0.23775 low 0.23775"},
		{"rolled back", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 100, 101, 1, inTx), op(lock.Rollback, 1, 250, 260, nil), release(1, 301, 302, lock.Done)},
			"section_seconds_sum 0.3"},
		{"renewed", []*lock.Op{grant(1, "k", 0, 1, lease), op(lock.Renew, 1, 400, 401, func(o *lock.Op) { o.TTL = lease }), write(1, 600, 601, 1, nil), release(1, 601, 602, lock.Done)},
			"section_seconds_sum 0.6 margin_sum 0.29675 low 0.29675"},
		{"a renewal that failed moves nothing", []*lock.Op{grant(1, "k", 0, 1, lease), op(lock.Renew, 1, 400, 401, func(o *lock.Op) { o.TTL, o.Outcome = lease, lock.NotHeld }), write(1, 600, 601, 1, nil), release(1, 601, 602, lock.NotHeld)},
			"section_seconds_sum 0.6 margin_sum -0.10325 low -0.10325 overruns 1"},
		{"written too late, and released by nobody's leave", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 600, 601, 1, nil), release(1, 700, 702, lock.Done)},
			"section_seconds_sum 0.699 margin_sum -0.10325 low -0.10325 overruns 1"},
		{"written too late, when it had been released", []*lock.Op{grant(1, "k", 0, 1, lease), release(1, 401, 402, lock.Done), write(1, 600, 601, 1, nil)},
			"section_seconds_sum 0.4 margin_sum -0.10325 low -0.10325 overruns 1"},
		{"at the very end", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 490, 500, 1, nil), release(1, 501, 502, lock.Done)},
			"section_seconds_sum 0.5 margin_sum -0.00225 low -0.00225 ambiguous 1"},
		{"released late without a write", []*lock.Op{grant(1, "k", 0, 1, lease), release(1, 601, 602, lock.NotHeld)},
			"section_seconds_sum 0.6 overruns 1"},
		{"the lock was lost", []*lock.Op{grant(1, "k", 0, 1, lease), release(1, 101, 102, lock.NotHeld)},
			"section_seconds_sum 0.1 overruns 1"},
		{"a release that failed ends nothing", []*lock.Op{grant(1, "k", 0, 1, lease), release(1, 101, 102, lock.Failed), release(1, 201, 202, lock.Done)},
			"section_seconds_sum 0.2"},
		{"never released", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 100, 101, 1, nil)}, ""},
		{"it changed nothing", []*lock.Op{grant(1, "k", 0, 1, lease), write(1, 100, 101, 0, nil), release(1, 301, 302, lock.Done)}, "section_seconds_sum 0.3"},
		{"taken twice", []*lock.Op{grant(1, "k", 0, 1, lease), grant(1, "k", 10, 11, lease), release(1, 101, 102, lock.Done), release(1, 201, 202, lock.Done)},
			"section_seconds_sum 0.2"},
		{"taken twice, as the server tells", []*lock.Op{
			op(lock.Acquire, 1, 0, 1, func(o *lock.Op) { o.Key, o.TTL, o.Outcome, o.Depth = "k", lease, lock.Granted, 2 }),
			op(lock.Release, 1, 101, 102, func(o *lock.Op) { o.Depth = 1 }), op(lock.Release, 1, 201, 202, nil)},
			"section_seconds_sum 0.2"},
		{"of a transaction", []*lock.Op{
			op(lock.Acquire, 1, 0, 1, func(o *lock.Op) { o.Key, o.Outcome, o.Span, o.Tx = "row:counter:77aa", lock.Granted, lock.TxSpan, 7 }),
			write(1, 100, 101, 1, inTx), op(lock.Commit, 1, 201, 210, func(o *lock.Op) { o.Tx, o.Tables = 7, []string{"counter"} })},
			"section_seconds_sum 0.2"},
		{"of a session that ends", []*lock.Op{
			op(lock.Acquire, 1, 0, 1, func(o *lock.Op) { o.Key, o.Outcome, o.Span = "advisory:1", lock.Granted, lock.SessionSpan })}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t).play(tt.ops...)
			s.End(1, s.now)
			if n := len(s.seen.session); n != 0 {
				t.Errorf("%d sessions are kept in mind", n)
			}
			var got []string
			for _, line := range strings.Split(s.tells("section_seconds_sum", "lease_margin_seconds_sum", "lease_margin_min", "overruns", "ambiguous"), "\n") {
				name, rest, _ := strings.Cut(line, "{")
				_, value, _ := strings.Cut(rest, "} ")
				name = strings.NewReplacer("lease_margin_min_seconds", "3 low", "lease_margin_seconds_sum", "2 margin_sum", "overruns_total", "4 overruns", "ambiguous_writes_total", "5 ambiguous", "section_seconds_sum", "1 section_seconds_sum").Replace(name)
				if line != "" && value != "0" {
					got = append(got, name+" "+value)
				}
			}
			slices.Sort(got)
			for i := range got {
				got[i] = got[i][2:]
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestTheLowestMarginIsOfLate(t *testing.T) {
	s := newScene(t)
	section := func(id lock.TermID, at, left int) {
		s.play(grant(id, "k", at, at, 10*time.Second), write(id, at+9993-left, at+9993-left, 1, nil), release(id, at+9994-left, at+9994-left, lock.Done))
	}
	section(1, 1_000, 4000)
	section(2, 20_000, 2000)
	section(3, 30_000, 3000)
	s.wants(`lease_margin_min_seconds{lock="*"} 2`, "lease_margin_min")
	section(4, 200_000, 3000)
	s.wants(`lease_margin_min_seconds{lock="*"} 2`, "lease_margin_min")
	s.now = ms(340_000)
	s.wants(`lease_margin_min_seconds{lock="*"} 3`, "lease_margin_min")
	s.now = ms(600_000)
	s.wants("", "lease_margin_min")
	section(5, 700_000, 5000)
	s.wants(`lease_margin_min_seconds{lock="*"} 5`, "lease_margin_min")
}

// What a fence, or another guard, refuses on the wire, and what only looks like it.
func TestRejections(t *testing.T) {
	decl := lock.Declaration{Key: "k", Table: "counter", FenceColumn: "fence", Declared: true}
	fence := func(n int64) *lock.Op {
		return op(lock.Fence, 1, 2, 3, func(o *lock.Op) { o.Fence, o.HasFence = n, true })
	}
	where := func(column, operator string, n int64) func(*lock.Op) {
		return func(o *lock.Op) {
			o.SQL.Where = []lock.Cond{{Column: "id", Op: "=", Value: lock.Value{Hash: "1", Int: 1, IsInt: true}}, {Column: column, Op: operator, Value: lock.Value{Hash: "2", Int: n, IsInt: true}}}
		}
	}
	set := func(column string, then func(*lock.Op)) func(*lock.Op) {
		return func(o *lock.Op) {
			then(o)
			o.SQL.Set = []lock.Assign{{Column: column}}
		}
	}
	for _, tt := range []struct {
		name string
		op   *lock.Op
		n    int
	}{
		{"by the declared fence", write(1, 10, 11, 0, where("fence", "<", 5)), 1},
		{"by a number that is the fence", write(1, 10, 11, 0, where("epoch", "<=", 42)), 1},
		{"by the version that it sets", write(1, 10, 11, 0, set("version", where("version", "=", 9))), 1},
		{"it changed a row", write(1, 10, 11, 1, where("fence", "<", 5)), 0},
		{"there is no such row", write(1, 10, 11, 0, where("owner", "=", 9)), 0},
		{"another was first", write(1, 10, 11, 0, func(o *lock.Op) { o.Outcome, o.Err = lock.Failed, "40001" }), 1},
		{"it is no statement", write(1, 10, 11, 0, func(o *lock.Op) { o.Outcome, o.Err = lock.Failed, "42601" }), 0},
		{"a claim of what is there", write(1, 10, 11, 0, func(o *lock.Op) { o.Verb = "INSERT" }), 1},
		{"a claim that comes back empty", write(1, 10, 11, 0, func(o *lock.Op) { where("fence", "<", 5)(o); o.Verb, o.SQL.Returning = "INSERT", true }), 1},
		{"its transaction is refused", op(lock.Commit, 1, 10, 11, func(o *lock.Op) { o.Outcome, o.Err = lock.Failed, "40001" }), 1},
		{"no section's", write(0, 10, 11, 0, where("fence", "<", 5)), 0},
		{"of a lock of Postgres", write(1, 10, 11, 0, func(o *lock.Op) { where("fence", "<", 5)(o); o.SQL.Lease = true }), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := fmt.Sprintf(`fence_rejections_total{lock="the k"} %d`, tt.n) // it is there from the first grant on
			newScene(t, decl).play(grant(1, "k", 0, 1, time.Second), fence(42), tt.op).wants(want, "fence_rejections")
		})
	}
}

func TestUnattributedWrites(t *testing.T) {
	s := newScene(t, lock.Declaration{Key: "k", Table: "public.seats"})
	of := func(table string) func(*lock.Op) { return func(o *lock.Op) { o.SQL.Table = table } }
	s.play(
		write(0, 1, 2, 1, of("seats")),   // declared
		write(0, 1, 2, 0, of("seats")),   // it changed nothing
		write(0, 1, 2, 1, of("counter")), // nobody protects it yet
		grant(1, "k", 3, 4, time.Second), write(1, 5, 6, 1, nil),
		write(0, 7, 8, 1, of("counter")), // a section has written it
		write(1, 7, 8, 1, func(o *lock.Op) { o.Term.Confidence = .75 }),
	)
	s.wants("unattributed_writes_total 3", "unattributed")
}

func TestWhatIsCounted(t *testing.T) {
	s := newScene(t)
	s.Consumers(1)
	s.Lost(7)
	s.Injection(history.Injection{Rule: "SETNX=800ms", Effect: "stall", Outcome: "landed"})
	s.Injection(history.Injection{Rule: "SETNX=800ms", Name: "pause", Effect: "freeze", Outcome: "refused: not ours"})
	s.play(grant(1, "user:17:lock", 0, 1, time.Second),
		op(lock.Acquire, 0, 0, 1, func(o *lock.Op) { o.Key, o.Outcome = "user:18:lock", lock.Refused }),
		op(lock.Commit, 0, 0, 1, func(o *lock.Op) { o.Proto, o.Outcome = lock.Postgres, "" }),
		op(lock.Read, 0, 1000, 1900, func(o *lock.Op) { o.Proto, o.F, o.Held = lock.Postgres, ms(1800), 799*time.Millisecond }))
	s.wants(`blind_spots_total{kind="desync"} 1
blind_spots_total{kind="statement"} 2
connections 3
connections_total 12
event_consumers 1
event_lines_lost_total 7
forward_seconds_sum{protocol="pg"} 0.001
frozen 1
grants_total{lock="user:*"} 1
history_lines_total 99
history_lost_total 4
injections_total{effect="freeze",outcome="refused",rule="pause"} 1
injections_total{effect="stall",outcome="landed",rule="SETNX=800ms"} 1
ops_total{kind="acquire",outcome="granted",protocol="redis"} 1
ops_total{kind="acquire",outcome="refused",protocol="redis"} 1
ops_total{kind="commit",outcome="pending",protocol="pg"} 1
ops_total{kind="read",outcome="done",protocol="pg"} 1
refusals_total{lock="user:*"} 1
rules_armed 5`, "blind", "connections", "event", "forward_seconds_sum", "frozen", "grants", "history", "injections", "ops", "refusals", "rules")
}

// However many keys there are, and whatever they look like, there are few values of the label, and none is a raw key that was told apart.
func TestCardinality(t *testing.T) {
	const keys = 100_000
	forms := []func(n int) string{
		func(n int) string { return fmt.Sprintf("order:%d", n) },
		func(n int) string { return fmt.Sprintf("{user%d}:lock", n) },
		func(n int) string { return fmt.Sprintf("job:%08x-0000-4000-8000-%012x", n, n) },
		func(n int) string { return fmt.Sprintf("blob/%040x", uint64(n)*0x9e3779b97f4a7c15) },
		func(n int) string {
			return strings.Map(func(r rune) rune { return r - '0' + 'k' }, fmt.Sprint(n)) + ":lock"
		},
		func(n int) string { return string([]byte{0xff, byte(n), byte(n >> 8), 'x'}) },
		func(n int) string { return strings.Repeat("long-", 200) + fmt.Sprint(n) },
		func(n int) string { return fmt.Sprintf("declared:%d", n) },
	}
	s := newScene(t, lock.Declaration{Key: "declared:*"})
	for n := range keys {
		id := lock.TermID(n + 1)
		s.play(grant(id, forms[n%len(forms)](n), n, n, time.Second), write(id, n, n, 1, nil), release(id, n, n, lock.Done))
		s.Injection(history.Injection{Rule: fmt.Sprintf("rule %d", n), Effect: "stall", Outcome: fmt.Sprintf("refused: %d", n)})
	}
	values, rules, total := map[string]bool{}, map[string]bool{}, 0
	for _, line := range strings.Split(s.tells("grants_total", "section_seconds_count", "lease_margin_seconds_count", "injections"), "\n") {
		var n int
		_, label, _ := strings.Cut(line, `{`)
		label, value, _ := strings.Cut(label, "} ")
		fmt.Sscan(value, &n)
		if strings.HasPrefix(line, "injections") {
			rules[label] = true
			continue
		}
		if strings.HasPrefix(line, "grants") {
			total += n
		}
		values[label] = true
	}
	if len(values) > mostNames+2 || len(rules) > mostNames+1 || total != keys {
		t.Errorf("%d values of lock and %d of rule, %d grants", len(values), len(rules), total)
	}
	for _, want := range []string{`lock="order:*"`, `lock="*"`, `lock="job:*"`, `lock="blob/*"`, `lock="other"`, `lock="the declared"`} {
		if !values[want] {
			t.Errorf("no %s among %v", want, values)
		}
	}
	if len(s.seen.open) != 0 || len(s.seen.line) > 2 || len(s.seen.ended) > 0 {
		t.Errorf("%d, %d and %d sections are kept in mind", len(s.seen.open), len(s.seen.line), len(s.seen.ended))
	}
}

// Of a key that nobody declared only the word remains that it begins with.
func TestShapes(t *testing.T) {
	for key, want := range map[string]string{
		"lock:alice@example.com": "lock:*", "lock:counter": "lock:*", "lock:42": "lock:*", "advisory:7:12": "advisory:*", "locks/alice": "locks/*",
		"payment-run:alice/x": "payment-run:*", "/locks/alice": "/*", "v2:lock": "v*:*", "lock:6BA7B810-9DAD-11D1-80B4-00C04FD430C8:x": "lock:*",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8:lock": "*:*", "face12:lock": "*:*",
		"alice@example.com": "*", "alice@example.com:lock": "*", "{alice}:lock": "*", "Jürgen:lock": "*", "a b:lock": "*", "counter": "*", "a1b2": "*", "": "*",
		strings.Repeat("long", longPrefix/4) + ":lock": "*", strings.Repeat("x", longPrefix-1) + ":y": strings.Repeat("x", longPrefix-1) + ":*",
		"\xff:lock": "*",
	} {
		if got := shape(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}

// Sections that nobody releases do not pile up, and do not keep those that come later from being seen.
func TestWhatIsNeverReleasedDoesNotPileUp(t *testing.T) {
	s := newScene(t)
	for n := range mostSections + 1000 {
		s.Op(grant(lock.TermID(n+1), "once", n, n, 24*time.Hour))
	}
	if len(s.seen.open) != mostSections || len(s.seen.line) > 2*mostSections {
		t.Errorf("%d sections are kept in mind, in a line of %d", len(s.seen.open), len(s.seen.line))
	}
	s.play(release(mostSections+1000, mostSections+2000, mostSections+2001, lock.Done))
	s.wants(`section_seconds_count{lock="*"} 1`, "section_seconds_count")
	few := newScene(t)
	few.play(grant(1, "k", 0, 1, time.Second), grant(2, "k", 700_000, 700_001, time.Second))
	few.now = few.now.Add(time.Minute)
	few.tells("x")
	if len(few.seen.open) != 1 {
		t.Errorf("%d sections are kept in mind, want the one that is not over for long", len(few.seen.open))
	}
}

// Scrapes at any time, and several at once, take nothing away.
func TestScrapesLoseNothing(t *testing.T) {
	const each = 2000
	s := newScene(t)
	s.now = ms(each + 5000)
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 3 {
		scrapers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.tells("ops")
				}
			}
		})
	}
	for n := 1; n <= each; n++ { // at 0 nothing happens
		id := lock.TermID(n)
		s.Op(grant(id, "k", n, n, time.Second))
		s.Op(write(id, n, n, 1, nil))
		s.Op(release(id, n+1+rand.IntN(3), n+5, lock.Done))
	}
	close(stop)
	scrapers.Wait()
	s.wants(fmt.Sprintf(`grants_total{lock="*"} %[1]d
lease_margin_seconds_count{lock="*"} %[1]d
ops_total{kind="acquire",outcome="granted",protocol="redis"} %[1]d
ops_total{kind="release",outcome="done",protocol="redis"} %[1]d
ops_total{kind="write",outcome="done",protocol="pg"} %[1]d
section_seconds_count{lock="*"} %[1]d`, each), "grants", "lease_margin_seconds_count", "ops", "section_seconds_count")
}
