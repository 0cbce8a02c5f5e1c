package resp

import (
	"fmt"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// refusedCall is a call of a script whose text nobody knows, which is refused
// before any of its script had success, and what its witness tells of it.
func refusedCall(t *testing.T, scripts *Scripts, s *Shadow, args ...string) (*Call, Effect) {
	t.Helper()
	line := append([]string{"EVALSHA", fmt.Sprintf("%040d", 7), "1", "lock:a"}, args...)
	tr := NewTracker(Options{Session: 1, Hash: testHash, Scripts: scripts, Witnessed: true, EffectsOnly: true})
	marks, _ := tr.Client([]byte(cmd(line...)), nil)
	tr.Upstream([]byte(":0\r\n"), nil)
	c := marks[len(marks)-1].Call.(*Call)
	return c, s.Script(c, 1e15, []Command{{DB: 0, Addr: "lua", Args: [][]byte{[]byte("get"), []byte("lock:a")}}})
}

// heldShadow knows that lock:a is a lock, which somebody has.
func heldShadow(scripts *Scripts) *Shadow {
	s := NewShadow(testHash, scripts)
	s.Whole()
	s.Run(&Command{At: 1e15, Args: [][]byte{[]byte("set"), []byte("lock:a"), []byte("token-of-b"), []byte("NX"), []byte("PX"), []byte("60000")}})
	return s
}

// What a refused call was for is told by the first of its script that has success.
func TestRefusedBeforeAnySuccess(t *testing.T) {
	for _, tt := range []struct {
		kinds []lock.Kind // that calls of the script then turn out to be
		want  string
	}{
		{nil, "other not-held false false"},
		{[]lock.Kind{lock.Release}, "release not-held true true"},
		{[]lock.Kind{lock.Renew}, "renew not-held true true"},
		{[]lock.Kind{lock.Acquire}, "acquire refused false true"},
		{[]lock.Kind{lock.Acquire, lock.Renew}, "other not-held false false"},
	} {
		scripts := NewScripts()
		c, effect := refusedCall(t, scripts, heldShadow(scripts), "token-of-a")
		c.Tell(effect)
		ops := c.Resolve(true)
		later := c.Later(false)
		if len(ops) != 1 || later == nil || len(later.Ops()) != 1 || later.Known() {
			t.Fatalf("ops %v, later %v", ops, later)
		}
		for _, k := range tt.kinds {
			scripts.roles.saw(c.Script, k, 1, 1, false)
		}
		own := *ops[0]
		if known := later.Known(); known != (tt.want[:5] != "other") {
			t.Errorf("%v: known %v", tt.kinds, known)
		}
		later.Amend([]*lock.Op{&own})
		token := own.Token.Same(testHash.Of([]byte("token-of-a")))
		if got := fmt.Sprintf("%s %s %v %v", own.Kind, own.Outcome, own.Guarded, token); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.kinds, got, tt.want)
		}
		if ops[0].Kind != lock.Other || scripts.nameless.Load() != 0 {
			t.Errorf("%v: the op itself is %v, %d are waited for", tt.kinds, ops[0].Kind, scripts.nameless.Load())
		}
	}
}

// One that its arguments were taken for keeps to that until it is known, and is no op
// beside it.
func TestAGuessThatWasRefusedBeforeAnySuccess(t *testing.T) {
	for _, tt := range []struct {
		kind lock.Kind // that calls of the script then turn out to be
		want string
	}{
		{lock.Release, "release not-held guessed=false guarded=true nx=false 0s monitor"},
		{lock.Renew, "renew not-held guessed=false guarded=true nx=false 500ms monitor"},
		{lock.Acquire, "acquire refused guessed=false guarded=false nx=true 0s monitor"},
	} {
		scripts := NewScripts()
		s := heldShadow(scripts)
		tr := NewTracker(Options{Session: 1, Hash: testHash, Scripts: scripts, Witnessed: true})
		marks, _ := tr.Client([]byte(cmd("EVALSHA", fmt.Sprintf("%040d", 7), "1", "lock:a", "token-of-a", "500")), nil)
		tr.Upstream([]byte(":0\r\n"), nil)
		c := marks[len(marks)-1].Call.(*Call)
		c.Tell(s.Script(c, 1e15, []Command{{DB: 0, Addr: "lua", Args: [][]byte{[]byte("get"), []byte("lock:a")}}}))
		more, later := c.Resolve(true), c.Later(false)
		if len(more) != 0 || later == nil || len(later.Ops()) != 1 || !later.Ops()[0].Guessed || later.Known() {
			t.Fatalf("ops %v and %v, later %v", c.ops, more, later)
		}
		scripts.roles.saw(c.Script, tt.kind, 1, 1, false)
		own := *later.Ops()[0]
		later.Amend([]*lock.Op{&own})
		if got := fmt.Sprintf("%s %s guessed=%v guarded=%v nx=%v %s %s", own.Kind, own.Outcome, own.Guessed, own.Guarded, own.NX, own.TTL, own.Evidence); got != tt.want || !later.Known() {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Those that wait are bounded.
func TestRefusedCallsThatWaitAreBounded(t *testing.T) {
	scripts := NewScripts()
	s := heldShadow(scripts)
	for i := range mostNameless + 1 {
		c, effect := refusedCall(t, scripts, s, "token-of-a")
		c.Tell(effect)
		c.Resolve(true)
		if later := c.Later(false); (later != nil) != (i < mostNameless) {
			t.Fatalf("call %d waits: %v", i, later != nil)
		}
	}
}

// What is told behind the reply completes copies of what the request was taken for,
// and the ops themselves stay as they were.
func TestToldBehindTheReply(t *testing.T) {
	scripts := NewScripts()
	scripts.roles.saw(fmt.Sprintf("%040d", 7), lock.Release, 1, 1, false)
	c, effect := refusedCall(t, scripts, heldShadow(scripts), "token-of-a")
	if more := c.Resolve(true); len(more) != 0 || len(c.ops) != 1 {
		t.Fatalf("ops %v and %v", c.ops, more)
	}
	later := c.Later(true)
	if later.Known() {
		t.Error("known before it is told")
	}
	own, was := *later.Ops()[0], *later.Ops()[0]
	c.Tell(effect)
	if more := later.Amend([]*lock.Op{&own}); !later.Known() || len(more) != 0 {
		t.Errorf("more: %v", more)
	}
	if own.Outcome != lock.NotHeld || own.Evidence != lock.FromMonitor || c.ops[0].Outcome != was.Outcome || was.Outcome == lock.NotHeld {
		t.Errorf("own %v %v, was %v, is %v", own.Outcome, own.Evidence, was.Outcome, c.ops[0].Outcome)
	}
	if c.Later(false) != nil {
		t.Error("more is waited for")
	}
}
