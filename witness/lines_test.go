package witness

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A script is a monitor that is fed line by line, with a looker whose questions
// the test answers.
type script struct {
	t *testing.T
	m *monitor
	e *eye
}

func newScript(t *testing.T, vacant bool) *script {
	o := Options{Hash: testHash, Scripts: resp.NewScripts(), Now: clockFrom(time.Now()), Record: newRecorded()}
	say := newNotes((&logged{}).log())
	l := newLooker(Redis{}, testHash, say)
	l.up = true
	m := newMonitor(Redis{}, l, &o, say)
	m.begin(vacant)
	return &script{t, m, m.watch(proxy.Watched{Session: 1, Local: netip.MustParseAddrPort("10.0.0.1:5")})}
}

// shows has the monitor read lines: a client's address or lua, and words.
func (s *script) shows(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		who, rest, _ := strings.Cut(line, " ")
		text := fmt.Sprintf("%d.000000 [0 %s]", time.Now().Unix(), who)
		for _, word := range strings.Fields(rest) {
			text += fmt.Sprintf(" %q", word)
		}
		if err := s.m.line([]byte(text)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// question takes the next question to the looker.
func (s *script) question() *question {
	s.t.Helper()
	select {
	case q := <-s.m.looker.queue:
		s.m.looker.enlist(q)
		return q
	default:
		s.t.Fatal("nothing is asked")
		return nil
	}
}

// answers ends a question, and shows its mark.
func (s *script) answers(q *question, sights ...resp.Sight) {
	q.sights, q.at, q.ok = sights, time.Now().UnixMicro(), true
	close(q.done)
	s.shows(fmt.Sprintf("10.0.0.1:9 echo %s%d", s.m.looker.mark, q.number.Load()))
}

func (s *script) call(words ...string) wire.Call {
	c := called(s.t, words...)
	if l := s.e.Before(c); l != nil {
		q := s.question()
		s.answers(q)
		l.Take()
	}
	return c
}

var none = strings.Repeat("0", 40)

// A line that is not the first call's shows that the server has refused that.
func TestCallThatTheServerRefused(t *testing.T) {
	s := newScript(t, true)
	first := s.call("EVALSHA", none, "1", "a", "token-of-a")
	second := s.call("EVALSHA", none, "1", "b", "token-of-b")
	s.shows("10.0.0.1:5 EVALSHA "+none+" 1 b token-of-b", "lua SET b token-of-b NX PX 500", "10.0.0.1:5 set x y")
	v := s.e.of(second)
	if v == nil || !v.seen || len(v.effect.Ops) != 1 || v.effect.Ops[0].Key != "b" {
		t.Errorf("of the second is told %+v", v)
	}
	if v := s.e.of(first); v == nil || !v.done || v.seen {
		t.Errorf("of the first is told %+v", v)
	}
}

// The address that a line names must be the session's, and the words the call's.
func TestLineOfAnotherCall(t *testing.T) {
	s := newScript(t, true)
	s.m.past.direct = true
	c := s.call("EVALSHA", none, "1", "a", "token-of-a")
	for _, line := range []string{
		"10.0.0.2:5 EVALSHA " + none + " 1 a token-of-a",
		"10.0.0.1:5 EVALSHA " + none + " 1 a token-of-b",
		"10.0.0.1:5 EVALSHA " + none + " 2 a token-of-a",
		"10.0.0.1:5 EVALSHA " + none + " 1 a token-of-a more",
		"10.0.0.1:5 FCALL " + none + " 1 a token-of-a",
	} {
		s.shows(line, "lua SET a x NX PX 500", "10.0.0.1:5 set x y")
		if v := s.e.of(c); v.at != 0 {
			t.Fatalf("%s is taken for the call's", line)
		}
	}
	s.shows("10.0.0.1:5 evalsha " + none + " 1 a token-of-a")
	if v := s.e.of(c); v.at == 0 {
		t.Error("its own line is not taken for the call's")
	}
}

// A look that is to settle what a call did settles nothing if somebody else has
// got to the key before it.
func TestLookThatComesTooLate(t *testing.T) {
	for _, between := range []string{"", "10.0.0.2:7 SET a other PX 500", "10.0.0.2:7 GET a", "10.0.0.2:7 SET b x"} {
		s := newScript(t, false)
		c := s.call("EVALSHA", none, "1", "a", "token-of-a")
		// Whether the key was there is not known, so neither is whether NX let it be set.
		s.shows("10.0.0.1:5 EVALSHA "+none+" 1 a token-of-a", "lua SET a token-of-a NX PX 60000", "10.0.0.1:5 set x y")
		q := s.question()
		if len(q.refs) != 1 || q.refs[0].Key != "a" {
			t.Fatalf("asked about %v", q.refs)
		}
		if between != "" {
			s.shows(between)
		}
		v := s.e.of(c)
		if v.done {
			t.Fatal("it is known before the look")
		}
		s.answers(q, resp.Sight{Ref: q.refs[0], State: resp.State{Type: resp.String, Value: testHash.Of([]byte("token-of-a")), Ends: time.Now().UnixMilli() + 60000}})
		want := lock.Granted
		if strings.Contains(between, "SET a") {
			want = lock.Unknown
		}
		if !v.seen || len(v.effect.Ops) != 1 || v.effect.Ops[0].Outcome != want {
			t.Errorf("%q between: %+v, want %s", between, v.effect.Ops, want)
		}
	}
}

// What cannot be read of a script leaves its call untold.
func TestScriptThatIsTorn(t *testing.T) {
	s := newScript(t, true)
	c := s.call("EVALSHA", none, "1", "a", "token-of-a")
	s.shows("10.0.0.1:5 EVALSHA " + none + " 1 a token-of-a")
	if err := s.m.line([]byte(`1.000000 [0 lua] "SET" "a" "cut`)); err != nil {
		t.Fatal(err)
	}
	s.shows("10.0.0.1:5 set x y")
	if v := s.e.of(c); !v.done || v.seen {
		t.Errorf("of it is told %+v", v)
	}
}

func TestHeadings(t *testing.T) {
	for line, want := range map[string]heading{
		`1.000000 [0 127.0.0.1:5] "get" "k"`:        {reads: true},
		`1.000000 [0 127.0.0.1:5] "GET" "k"`:        {reads: true},
		`1.000000 [0 lua] "get" "k"`:                {inner: true, reads: true},
		`1.000000 [0 lua] "set" "k" "] \"get\""`:    {inner: true},
		`1.000000 [0 [::1]:5] "EvalSha" "x"`:        {calls: true},
		`1.000000 [0 unix:/run/redis.sock] "ECHO"`:  {mark: true},
		`1.000000 [0 127.0.0.1:5] "module.command"`: {},
		`1.000000 [0 127.0.0.1:5] ""`:               {},
		`1.000000 [0 127.0.0.1:5] "ge`:              {},
		``:                                          {},
	} {
		if got := glance([]byte(line)); got != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
