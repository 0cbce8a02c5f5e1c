package fault

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// These play what happens while an UPDATE of counter's row 1 by term 1 is held at a gate: one word for
// each op, "TERM:WHAT".
var gateTests = []struct {
	name  string
	until Conditions
	plays string
	open  bool
	why   string // part of it, where it stays shut
}{
	{"a lease that ends", "lease-expired", "lapse", true, ""},
	{"a grant to another", "next-acquire", "2:granted", true, ""},
	{"a grant of another lock", "next-acquire", "2:granted-other", false, "no contender"},
	{"its own grant", "next-acquire", "1:granted", false, "no contender"},
	{"a refusal", "next-acquire", "0:refused 0:refused", false, "others were refused the lock 2 times"},
	{"another's read", "next-read", "2:read", true, ""},
	{"a read that failed", "next-read", "2:read-failed", false, "no contender"},
	{"another row's read", "next-read", "2:read-other", false, "no contender"},
	{"a read after which it wrote before the lease was over", "lease-expired+next-read", "2:read 2:write lapse", false, "waited in vain for next-read"},
	{"the window of a third after that", "lease-expired+next-read", "2:read 2:write 3:read lapse", true, ""},
	{"a window that another has still", "lease-expired+next-read", "2:read 3:read 2:write lapse", true, ""},
	{"the window in which it opened", "lease-expired+next-read", "lapse 2:read 2:write", true, ""},
	{"no window is waited for", "lease-expired+next-acquire", "2:granted 2:read 2:write lapse", true, ""},
	{"a claim that returns what it does not set", "lease-expired+next-read", "2:claim lapse", true, ""},
	{"a claim ends no window", "lease-expired+next-read", "2:read 2:claim lapse", true, ""},
	{"a claim is a write that is committed", "next-write", "2:claim", true, ""},
	{"another's write", "next-write", "2:write", true, ""},
	{"its own write", "next-write", "1:write", false, "no contender"},
	{"a write of no row", "next-write", "2:write-none", false, "no contender"},
	{"a write that is not known to be durable", "next-write", "2:write-early", false, "no contender"},
	{"one that is, later", "next-write", "2:write-early settle", true, ""},
	{"a write in a transaction that goes on", "next-write", "2:write-tx", false, "no contender"},
	{"one that is committed", "next-write", "2:write-tx commit", true, ""},
	{"one that is rolled back", "next-write", "2:write-tx rollback commit", false, "no contender"},
	{"one whose COMMIT fails", "next-write", "2:write-tx commit-failed", false, "no contender"},
	{"one whose COMMIT was a ROLLBACK", "next-write", "2:write-tx commit-undone", false, "no contender"},
	{"one whose own transaction failed at its end", "next-write", "2:write-early undo settle", false, "no contender"},
	{"one of which it is not known", "next-write", "2:write-early doubt settle", false, "no contender"},
	{"one that a ROLLBACK TO took back", "next-write", "2:write-tx back commit", false, "no contender"},
	{"one before what was taken back", "next-write", "2:write-tx 2:write-tx back commit", true, ""},
	{"a ROLLBACK TO that may reach it", "next-write", "2:write-tx back-unknown commit", false, "no contender"},
	{"one that failed", "next-write", "2:write-tx back-failed commit", true, ""},
	{"a session that ends before its COMMIT", "next-write", "2:write-tx left commit", false, "no contender"},
	{"a write that failed", "next-write", "2:write-failed", false, "no contender"},
	{"one of another row, that is durable", "next-write", "2:write-other settle", false, "no contender"},
	{"one of another table", "next-write", "2:write-table", false, "no contender"},
	{"one that failed at its end, and another's COMMIT there", "next-write", "2:write-early undo settle commit", false, "no contender"},
	{"a COMMIT behind one that failed", "next-write", "2:write-tx commit-failed commit", false, "no contender"},
	{"a claim of all columns", "next-read", "2:claim-all", true, ""},
	{"a write that returns what it sets", "next-read", "2:write-returning", false, "no contender"},
	{"a heartbeat before the lease was over", "lease-expired+next-write", "1:renew lapse", false, "no contender"},
	{"a grant that was told of late", "next-read", "late", false, "a witness told too late that the lock was granted, once"},
	{"and nothing of others is waited for", "signal:go", "late", false, "it did not come about"},
	{"another's release", "next-release", "2:release", true, ""},
	{"its own release", "next-release", "1:release", false, "no contender"},
	{"a release of nothing", "next-release", "0:release-not-held", false, "no contender"},
	{"a signal", "signal:go", "signal", true, ""},
	{"another signal", "signal:stay", "signal", false, "waited in vain for signal:stay: it did not come about"},
	{"one of two", "lease-expired+next-write", "lapse", false, "waited in vain for next-write: no contender"},
	{"a heartbeat", "lease-expired+next-write", "1:renew 1:renew 0:refused", false, "renewed by heartbeat: 2 times, last on connection 1"},
	{"its own release on another connection", "lease-expired+next-write", "1:release-early lapse 2:write", false, "finished early: connection 1 gave the lock back"},
	{"one when the lease was over", "lease-expired+next-write", "lapse 1:release-early 2:write", true, ""},
	{"a contender that waits for a row", "lease-expired+next-write", "lapse 2:granted 2:blocked", false, "contender blocked by a row lock: connection 8 waits for connection 7, whose transaction is held"},
	{"contenders that are frozen too", "lease-expired+next-write", "1:crowded lapse", false, "its contenders run in what is frozen: connection 9"},
	{"and another that is not", "next-write", "1:crowded 2:granted", false, "others were granted the lock once"},
	{"another's heartbeat", "lease-expired", "2:renew", false, "waited in vain for lease-expired: it did not come about"},
}

func TestGates(t *testing.T) {
	for _, tt := range gateTests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWait(tt.until, lock.LockID{Key: "lock:c"}, 1, &lock.Op{Kind: lock.Write, SQL: rowOf("=1", "value")})
			var last *lock.Op
			for i, play := range strings.Fields(tt.plays) {
				last = playAt(w, play, last, lock.Instant(i+1))
			}
			if w.Over() != tt.open {
				t.Fatalf("open %v, want %v; %s", w.Over(), tt.open, w.Why())
			}
			if !tt.open && !strings.Contains(w.Why(), tt.why) {
				t.Errorf("why: %s, want %s", w.Why(), tt.why)
			}
		})
	}
}

func rowOf(id string, sets ...string) *lock.Statement {
	s := &lock.Statement{Table: "public.counter", Where: []lock.Cond{{Column: "id", Op: "=", Value: lock.Value{Hash: id}}}}
	for _, c := range sets {
		s.Set = append(s.Set, lock.Assign{Column: c})
	}
	return s
}

func playAt(w *Wait, play string, last *lock.Op, now lock.Instant) *lock.Op {
	term, what, _ := strings.Cut(play, ":")
	of := lock.TermID(term[0] - '0')
	op := &lock.Op{Seq: uint64(now), Session: uint64(of), Outcome: lock.Done, Implicit: true, Rows: 1, Z: now}
	id := w.Lock()
	if what == "" {
		what = term
	}
	switch what {
	case "lapse":
		w.Lapsed(now)
		return last
	case "signal":
		w.Signal("go", now)
		return last
	case "release-early":
		w.GaveBack(1)
		return last
	case "blocked":
		w.Blocked(8, 7)
		return last
	case "crowded":
		w.Crowded(9)
		return last
	case "settle":
		w.Settled(last, now)
		return last
	case "late":
		w.Late()
		return last
	case "undo":
		last.Outcome = lock.RolledBack
		return last
	case "doubt":
		last.Outcome = lock.Unknown
		return last
	case "left":
		w.Left(last.Session)
		return last
	case "commit", "commit-failed", "commit-undone", "rollback", "back", "back-unknown", "back-failed":
		w.Replied(ending(op, what, last), 0, lock.LockID{}, now)
		return last
	case "granted", "granted-other":
		op.Kind, op.Outcome = lock.Acquire, lock.Granted
		if what == "granted-other" {
			id.Key = "lock:d"
		}
	case "refused":
		op.Kind, op.Outcome = lock.Acquire, lock.Refused
	case "renew":
		op.Kind = lock.Renew
	case "release":
		op.Kind = lock.Release
	case "release-not-held":
		op.Kind, op.Outcome = lock.Release, lock.NotHeld
	default:
		statement(op, what)
	}
	w.Replied(op, of, id, now)
	return op
}

// ending makes an op of what ends the transaction of another, or takes part of it back: that one and no more.
func ending(op *lock.Op, what string, last *lock.Op) *lock.Op {
	op.Session, op.Kind = last.Session, lock.Commit
	if what == "rollback" || strings.HasPrefix(what, "back") {
		op.Kind = lock.Rollback
	}
	op.Savepoint = strings.HasPrefix(what, "back")
	switch what {
	case "back":
		op.Since = last.Seq
	case "commit-failed", "back-failed":
		op.Outcome = lock.Failed
	case "commit-undone":
		op.Outcome = lock.RolledBack
	}
	return op
}

func statement(op *lock.Op, what string) {
	op.Kind, op.SQL = lock.Write, rowOf("=1", "value")
	switch what {
	case "write-other":
		op.SQL, op.Z = rowOf("=2", "value"), 0
	case "write-table":
		op.SQL.Table = "stock"
	case "claim-all":
		op.SQL.Returning, op.SQL.Columns = true, []string{"*"}
	case "write-returning":
		op.SQL.Returning, op.SQL.Columns = true, []string{"value"}
	case "write-failed":
		op.Outcome = lock.Failed
	case "read", "read-failed", "read-other":
		op.Kind, op.SQL = lock.Read, rowOf("=1")
		if what == "read-failed" {
			op.Outcome = lock.Failed
		} else if what == "read-other" {
			op.SQL = rowOf("=2")
		}
	case "claim":
		op.SQL = rowOf("=1", "fence")
		op.SQL.Returning, op.SQL.Columns = true, []string{"value"}
	case "write-none":
		op.Rows = 0
	case "write-early":
		op.Z = 0
	case "write-tx":
		op.Implicit, op.Z = false, 0
	}
}

// What has come about is told in its order, with the op that did it.
func TestMet(t *testing.T) {
	w := NewWait("next-write+lease-expired", lock.LockID{Key: "lock:c"}, 1, &lock.Op{Kind: lock.Write, SQL: rowOf("=1", "value")})
	playAt(w, "lapse", nil, 4)
	if w.WaitsOnlyFor(LeaseExpired) || !w.WaitsOnlyFor(NextWrite) || w.Waits(LeaseExpired) || !w.Waits(NextWrite) {
		t.Error("it waits for what has come about")
	}
	write := playAt(w, "2:write", nil, 7)
	playAt(w, "2:write", nil, 8)
	if want := []Met{{LeaseExpired, 4, 0}, {NextWrite, 7, write.Seq}}; !slices.Equal(w.Met(), want) {
		t.Errorf("%v, want %v", w.Met(), want)
	}
	if w.Lock().Key != "lock:c" || w.Own() != 1 {
		t.Error("it speaks of another lock")
	}
}

// A window that is over is no longer told of.
func TestMetAnew(t *testing.T) {
	w := NewWait("next-read+lease-expired", lock.LockID{Key: "lock:c"}, 1, &lock.Op{Kind: lock.Write, SQL: rowOf("=1", "value")})
	for i, play := range []string{"2:read", "2:write", "3:read"} {
		playAt(w, play, nil, lock.Instant(i+1))
	}
	if want := []Met{{NextRead, 3, 3}}; !slices.Equal(w.Met(), want) {
		t.Errorf("%v, want %v", w.Met(), want)
	}
}

// An op of no section has no term of its own, and what is nobody's is another's.
func TestOfNoSection(t *testing.T) {
	w := NewWait("next-acquire", lock.LockID{Key: "lock:c"}, 0, &lock.Op{Kind: lock.Acquire})
	playAt(w, "0:refused", nil, 1)
	if !strings.Contains(w.Why(), "others were refused the lock once") {
		t.Error(w.Why())
	}
}

// Which statements may be of the held op's row.
func TestWhichRow(t *testing.T) {
	cond := func(column, op, value string) []lock.Cond {
		return []lock.Cond{{Column: column, Op: op, Value: lock.Value{Hash: value}}}
	}
	for _, tt := range []struct {
		name        string
		held, other []lock.Cond
		row         bool
	}{
		{"the same", cond("id", "=", "1"), cond("id", "=", "1"), true},
		{"another", cond("id", "=", "1"), cond("id", "=", "2"), false},
		{"all rows", cond("id", "=", "1"), nil, true},
		{"chosen by another column", cond("id", "=", "1"), cond("name", "=", "2"), true},
		{"a range", cond("id", "=", "1"), cond("id", "<", "2"), true},
		{"of a range", cond("id", ">", "1"), cond("id", "=", "2"), true},
		{"a value that is not known", cond("id", "=", "1"), cond("id", "=", ""), true},
		{"of one that is not known", cond("id", "=", ""), cond("id", "=", "2"), true},
	} {
		held := &lock.Statement{Table: "counter", Where: tt.held}
		w := NewWait("next-write", lock.LockID{Key: "lock:c"}, 1, &lock.Op{Kind: lock.Write, SQL: held})
		write := &lock.Op{Kind: lock.Write, Outcome: lock.Done, Rows: 1, Z: 1, Implicit: true, SQL: &lock.Statement{Table: "counter", Where: tt.other}}
		if w.Replied(write, 2, w.Lock(), 1); w.Over() != tt.row {
			t.Errorf("%s: %v", tt.name, w.Over())
		}
	}
}

// Where the held op is no statement, or one of no table, each statement under the lock will do.
func TestAnyRow(t *testing.T) {
	for _, held := range []*lock.Op{{Kind: lock.Renew}, {Kind: lock.Other, SQL: &lock.Statement{}}} {
		w := NewWait("next-write", lock.LockID{Key: "lock:c"}, 1, held)
		if playAt(w, "2:write", nil, 1); !w.Over() {
			t.Error(w.Why())
		}
	}
}

// A gate of a freeze waits no longer than that may last.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		rule   string
		limits Limits
		want   time.Duration
	}{
		{"stall-before write=until:next-write", Limits{MaxFreeze: time.Second}, 5 * time.Second},
		{"freeze-before write=until:next-write", Limits{MaxFreeze: time.Second}, time.Second},
		{"freeze-before write=until:next-write", Limits{}, 8 * time.Second},
		{"stall-before write=until:next-write,timeout=7s", Limits{}, 7 * time.Second},
	} {
		m := before(sqlOp(lock.Write, "UPDATE", "counter"))
		m.TTL, m.Lock, m.Freezable, m.Actor = 2*time.Second, true, true, "A1"
		if tt.want == 5*time.Second {
			m.TTL = time.Second
		}
		if d := armedWith(t, tt.limits, tt.rule).Decide(m, 0); d.For != tt.want {
			t.Errorf("%s waits %v, want %v", tt.rule, d.For, tt.want)
		}
	}
}
