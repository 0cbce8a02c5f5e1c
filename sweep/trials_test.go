package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A script makes the ops of a run, in the order of the calls.
type script struct {
	ops  []*lock.Op
	term lock.TermID
	who  string
}

func (s *script) add(op lock.Op) *script {
	op.Seq, op.Actor = uint64(len(s.ops)+1), s.who
	if op.Kind != lock.Acquire || op.Outcome == lock.Granted {
		op.Term = lock.Attribution{ID: s.term, Confidence: 1}
	}
	s.ops = append(s.ops, &op)
	return s
}

func (s *script) acquire(who, key string, ttl time.Duration) *script {
	s.who = who
	s.term++
	return s.add(lock.Op{Kind: lock.Acquire, Verb: "SET", Key: key, TTL: ttl, Outcome: lock.Granted})
}

func (s *script) refused(who, key string) *script {
	s.who = who
	return s.add(lock.Op{Kind: lock.Acquire, Verb: "SET", Key: key, Outcome: lock.Refused})
}

func (s *script) fence() *script {
	return s.add(lock.Op{Kind: lock.Fence, Key: "fence:counter", Outcome: lock.Done})
}
func (s *script) renew() *script {
	return s.add(lock.Op{Kind: lock.Renew, Key: "lock:counter", Outcome: lock.Done})
}

func (s *script) read(table string, more ...func(*lock.Op)) *script {
	return s.statement(lock.Op{Kind: lock.Read, SQL: &lock.Statement{Table: table}}, more)
}

func (s *script) write(table string, more ...func(*lock.Op)) *script {
	return s.statement(lock.Op{Kind: lock.Write, SQL: &lock.Statement{Table: table, Set: []lock.Assign{{Column: "value"}}}}, more)
}

func (s *script) statement(op lock.Op, more []func(*lock.Op)) *script {
	op.Implicit, op.Outcome = true, lock.Done
	for _, f := range more {
		f(&op)
	}
	return s.add(op)
}

func (s *script) commit(table string) *script {
	return s.add(lock.Op{Kind: lock.Commit, Tables: []string{table}, Outcome: lock.Done})
}

func (s *script) release(key string) *script {
	return s.add(lock.Op{Kind: lock.Release, Key: key, Outcome: lock.Done})
}

func inTx(op *lock.Op)      { op.Implicit = false }
func forUpdate(op *lock.Op) { op.SQL.ForUpdate = true }
func claiming(op *lock.Op) {
	op.SQL.Returning, op.SQL.Columns, op.SQL.Set = true, []string{"value"}, []lock.Assign{{Column: "fence"}}
}

const ttl = 500 * time.Millisecond

func unfenced() *script {
	s := &script{}
	for _, who := range []string{"A1", "A2", "A1"} {
		s.refused("A3", "lock:counter").acquire(who, "lock:counter", ttl).read("counter").renew().write("public.counter").release("lock:counter")
	}
	return s
}

func fenced() *script {
	return (&script{}).refused("A2", "lock:counter").acquire("A1", "lock:counter", ttl).fence().read("counter").write("counter").release("lock:counter")
}

func claimed() *script {
	return (&script{}).refused("A2", "lock:counter").acquire("A1", "lock:counter", ttl).fence().write("counter", claiming).write("counter").release("lock:counter")
}

func transaction() *script {
	return (&script{}).refused("A2", "lock:counter").acquire("A1", "lock:counter", ttl).read("counter", inTx).write("counter", inTx).commit("counter").release("lock:counter")
}

func derived(t *testing.T, s *script) Section {
	t.Helper()
	section, err := Derive(s.ops, "")
	if err != nil {
		t.Fatal(err)
	}
	return section
}

func TestASectionIsWhatMostHoldersDo(t *testing.T) {
	s := unfenced()
	s.acquire("A2", "lock:counter", ttl).read("counter").release("lock:counter") // one that had nothing to write
	s.acquire("A2", "lock:other", ttl).release("lock:other")
	s.acquire("A2", "lock:counter", ttl).read("counter") // and one that never ended
	const want = "lock:counter (lease 500ms): acquire, read counter, write counter, release; 3 of 4 went this way, by 3 processes"
	if got := derived(t, s).String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	other, err := Derive(s.ops, "lock:other")
	if got := other.String(); err != nil || got != "lock:other (lease 500ms): acquire, release; 1 of 1 went this way, by 1 processes" {
		t.Errorf("the lock that is asked for: got %s, %v", got, err)
	}
}

func TestARenewalByAPlainSetIsNoStep(t *testing.T) {
	s := (&script{}).acquire("A1", "lock:counter", ttl).read("counter")
	s.add(lock.Op{Kind: lock.Store, Verb: "SET", Key: "lock:counter", Outcome: lock.Done}).write("counter").release("lock:counter")
	if got := derived(t, s).String(); !strings.Contains(got, ": acquire, read counter, write counter, release;") {
		t.Errorf("got %s", got)
	}
}

func TestAReleaseThatFailedEndsNothing(t *testing.T) {
	s := (&script{}).acquire("A1", "lock:counter", ttl).write("counter")
	s.add(lock.Op{Kind: lock.Release, Key: "lock:counter", Outcome: lock.Failed}).write("counter").release("lock:counter")
	if got := derived(t, s).String(); !strings.Contains(got, ": acquire, write counter, write counter, release;") {
		t.Errorf("got %s", got)
	}
}

func TestNoSectionIsSaidWithTheReason(t *testing.T) {
	unended := (&script{}).acquire("A1", "lock:counter", ttl).read("counter")
	for _, tt := range []struct {
		ops  []*lock.Op
		key  string
		want string
	}{
		{nil, "", "no lock and no statement was seen"},
		{unended.ops, "", "no section was seen to its end"},
		{unfenced().ops, "lock:nowhere", "no section of the lock lock:nowhere"},
	} {
		if _, err := Derive(tt.ops, tt.key); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func TestLocksWithAKeyForEachJobAreOneKind(t *testing.T) {
	s := &script{}
	for n := range 3 {
		key := fmt.Sprintf("lock:job:%d", n)
		s.acquire("A1", key, ttl).write("job").release(key)
	}
	section := derived(t, s)
	if !section.Many || section.Count != 3 || section.Alike != 3 {
		t.Errorf("got %+v", section)
	}
	if _, rule := section.rule(section.Anchors()[0], Short); rule != "acquire#1=ttl*0.5,max=1" {
		t.Errorf("a key of this run in a rule for the next: %s", rule)
	}
}

// table is every anchor with the faults that are tried there, in letters: short, Read, Write, drop.
func table(s Section) (out []string) {
	letters := map[string]string{Short: "s", NextRead: "R", NextWrite: "W", DropReply: "d"}
	for _, name := range Names(s.Cross()) {
		line := name + ":"
		for _, t := range Only(s.Cross(), name) {
			if t.Pruned == "" {
				line += letters[t.Fault]
			}
		}
		out = append(out, line)
	}
	return out
}

func TestAnchorsAndFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script *script
		want   []string
	}{
		{"no fence", unfenced(), []string{"after acquire:sRWd", "before read:sRW", "after read:sRWd", "before write:sRW", "reply of write:sWd", "before release:sW", "reply of release:d"}},
		{"fence", fenced(), []string{"after acquire:sRWd", "before fence:sRW", "before read:sRW", "after read:sRWd", "before write:sRW", "reply of write:sWd", "before release:sW", "reply of release:d"}},
		{"claim", claimed(), []string{"after acquire:sRWd", "before fence:sRW", "before read (claim):sRW", "after read (claim):sRWd", "before write:sRW", "reply of write:sWd", "before release:sW", "reply of release:d"}},
		{"transaction", transaction(), []string{"after acquire:sRWd", "before read:sRW", "after read:sRWd", "before write:sRW", "reply of write:sRd", "before commit:sR", "reply of commit:sWd", "before release:sW", "reply of release:d"}},
		{"a read that locks", (&script{}).refused("A2", "lock:counter").acquire("A1", "lock:counter", ttl).read("counter", inTx, forUpdate).write("counter", inTx).commit("counter").release("lock:counter"),
			[]string{"after acquire:sRWd", "before read:sRW", "after read:sd", "before write:s", "reply of write:sd", "before commit:s", "reply of commit:sWd", "before release:sW", "reply of release:d"}},
		{"no lease", (&script{}).refused("A2", "advisory:1").acquire("A1", "advisory:1", 0).write("counter").release("advisory:1"),
			[]string{"after acquire:d", "before write:", "reply of write:d", "before release:", "reply of release:d"}},
		{"one process", (&script{}).acquire("A1", "lock:counter", ttl).write("counter").release("lock:counter"),
			[]string{"after acquire:sd", "before write:s", "reply of write:sd", "before release:s", "reply of release:d"}},
		{"two writes", (&script{}).refused("A2", "lock:counter").acquire("A1", "lock:counter", ttl).write("a").write("b").release("lock:counter"),
			[]string{"after acquire:sRWd", "before write:sRW", "reply of write:sRWd", "before write 2:sRW", "reply of write 2:sWd", "before release:sW", "reply of release:d"}},
	} {
		if got := table(derived(t, tt.script)); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestEveryTrialIsARuleAndEveryOmissionHasAReason(t *testing.T) {
	for _, s := range []*script{unfenced(), fenced(), claimed(), transaction()} {
		all := derived(t, s).Cross()
		if n := len(Runs(all)); n < 20 || n > 30 {
			t.Errorf("%d trials, and 20 to 30 are what somebody waits for", n)
		}
		for _, trial := range all {
			if trial.Pruned != "" {
				continue
			}
			if _, err := fault.Parse(trial.Flag, trial.Rule); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestARuleIsOfItsStepAlone(t *testing.T) {
	want := map[string]string{
		"after acquire=" + Short:          "--freeze-after acquire(lock:counter)#1=ttl*0.5,max=1",
		"before fence=" + NextRead:        "--freeze-before fence(fence:counter)#1=until:lease-expired+next-read,max=1",
		"before read (claim)=" + Short:    "--freeze-before write(counter)#1=ttl*0.5,max=1",
		"before write=" + NextWrite:       "--freeze-before write(counter)#2=until:lease-expired+next-write,per=section,max=1",
		"reply of write=" + DropReply:     "--drop-reply write(counter)#2,per=section,max=1",
		"reply of release=" + DropReply:   "--drop-reply release(lock:counter)#1,max=1",
		"before release=" + NextWrite:     "--freeze-before release(lock:counter)#1=until:lease-expired+next-write,max=1",
		"after read (claim)=" + DropReply: "--drop-reply write(counter)#1,max=1",
	}
	all := derived(t, claimed()).Cross()
	for what, rule := range want {
		if got := Only(all, what); len(got) != 1 || "--"+got[0].Flag+" "+got[0].Rule != rule {
			t.Errorf("%s: got %+v, want %s", what, got, rule)
		}
	}
	if got := escape(`odd(key)*\`); got != `odd\(key\)\*\\` {
		t.Errorf("got %s", got)
	}
}
