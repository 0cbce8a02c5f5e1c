package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// replayed has a dialogue go over a tracker, a line at a time: a request, "->", and
// its reply. It returns the ops, each as of its reply.
func replayed(t *testing.T, tr *Tracker, dialogue string) string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(dialogue, ";") {
		request, reply, _ := strings.Cut(line, "->")
		marks, clear := tr.Client([]byte(words(request)), nil)
		checkMarks(t, marks, clear)
		text := strings.ReplaceAll(strings.TrimSpace(reply), " ", "\r\n") + "\r\n"
		marks, clear = tr.Upstream([]byte(text), nil)
		checkMarks(t, marks, clear)
		for _, m := range marks {
			if m.Kind == wire.Reply {
				out = append(out, describe(m.Op))
			}
		}
	}
	if !tr.queue.empty() || tr.told {
		t.Errorf("%s: out of step", dialogue)
	}
	return strings.Join(out, "|")
}

// What a client compares itself.
func TestReadsBeforeActs(t *testing.T) {
	const taken = "SETNX k tok -> :1; "
	const granted = `SETNX acquire db0 "k" nx T granted|`
	tests := []struct{ name, dialogue, want string }{
		{"racy release", taken + "GET k -> $3 tok; DEL k -> :1", granted + `DEL release db0 "k" T done racy`},
		{"racy release of nothing", taken + "GET k -> $3 tok; DEL k -> :0", granted + `DEL release db0 "k" T not-held racy`},
		{"racy renewal", taken + "GET k -> $3 tok; PEXPIRE k 500 -> :1", granted + `PEXPIRE renew db0 "k" T ttl=500ms done racy`},
		{"one reading, two releases", taken + "GET k -> $3 tok; DEL k -> :1; DEL k -> :0", granted + `DEL release db0 "k" T done racy|DEL release db0 "k" not-held`},
		{"another key", taken + "GET k -> $3 tok; DEL l -> :1", granted + `DEL release db0 "l" done`},
		{"another database", taken + "GET k -> $3 tok; SELECT 1 -> +OK; DEL k -> :1", granted + `DEL release db1 "k" done`},
		{"nothing there", taken + "GET k -> $-1; DEL k -> :0", granted + `DEL release db0 "k" not-held`},
		{"an error", taken + "GET k -> -WRONGTYPE; DEL k -> :1", granted + `DEL release db0 "k" done`},
		{"of no lock", "GET k -> $3 tok; DEL k -> :1", `DEL release db0 "k" done`},
		{"after others", taken + "GET k -> $3 tok; GET k -> $5 other; DEL k -> :1", granted + `DEL release db0 "k" O done racy`},
		{"watched", "WATCH k -> +OK; GET k -> $3 tok; MULTI -> +OK; DEL k -> +QUEUED; EXEC -> *1 :1", `DEL release db0 "k" guarded T done`},
		{"watched, and gone", "WATCH k -> +OK; GET k -> $3 tok; MULTI -> +OK; DEL k -> +QUEUED; EXEC -> *-1", `DEL release db0 "k" guarded T failed`},
		{"watched, renewed", "WATCH k -> +OK; GET k -> $3 tok; MULTI -> +OK; PEXPIRE k 500 -> +QUEUED; EXEC -> *1 :1", `PEXPIRE renew db0 "k" guarded T ttl=500ms done`},
		{"watched, until it was not", "WATCH k -> +OK; GET k -> $3 tok; UNWATCH -> +OK; MULTI -> +OK; DEL k -> +QUEUED; EXEC -> *1 :1", `DEL release db0 "k" T done racy`},
		{"watched, until EXEC", "WATCH k -> +OK; GET k -> $3 tok; MULTI -> +OK; UNWATCH -> +QUEUED; DEL k -> +QUEUED; EXEC -> *2 +OK :1", `DEL release db0 "k" guarded T done`},
		{"watched, outside of MULTI", "WATCH k -> +OK; GET k -> $3 tok; DEL k -> :1", `DEL release db0 "k" T done racy`},
		{"watched before", "WATCH k -> +OK; MULTI -> +OK; EXEC -> *0; GET k -> $3 tok; MULTI -> +OK; DEL k -> +QUEUED; EXEC -> *1 :1", `DEL release db0 "k" done`},
		{"read in MULTI, released behind it", taken + "MULTI -> +OK; GET k -> +QUEUED; EXEC -> *1 $3 tok; DEL k -> :1", granted + `DEL release db0 "k" T done racy`},
		{"discarded", "WATCH k -> +OK; GET k -> $3 tok; MULTI -> +OK; DEL k -> +QUEUED; DISCARD -> +OK", `DEL release db0 "k" guarded T failed err=DISCARD`},
		{"another is watched", taken + "WATCH l -> +OK; GET k -> $3 tok; MULTI -> +OK; DEL k -> +QUEUED; EXEC -> *1 :1", granted + `DEL release db0 "k" T done racy`},
		{"read before it was taken", taken + "GET k -> $3 old; SETNX k tok -> :1; DEL k -> :1", granted + `SETNX acquire db0 "k" nx T granted|DEL release db0 "k" done`},
		{"read before its deadline was replaced", taken + "GET k -> $10 1600000000; GETSET k 1700000000 -> $10 1600000000; DEL k -> :1", granted + `GETSET acquire db0 "k" D unknown until|DEL release db0 "k" done`},
		{"reading in MULTI", "WATCH k -> +OK; MULTI -> +OK; GET k -> +QUEUED; DEL k -> +QUEUED; EXEC -> *2 $3 tok :1", `DEL release db0 "k" done`},
		{"watched and taken", "WATCH k -> +OK; GET k -> $-1; MULTI -> +OK; SET k tok PX 500 -> +QUEUED; EXEC -> *1 +OK", `SET acquire db0 "k" nx T ttl=500ms granted`},
		{"watched and taken by another", "WATCH k -> +OK; GET k -> $-1; MULTI -> +OK; SETEX k 5 tok -> +QUEUED; EXEC -> *-1", `SETEX acquire db0 "k" nx T ttl=5s refused`},
		{"watched and there", "WATCH k -> +OK; GET k -> $5 other; MULTI -> +OK; SET k tok PX 500 -> +QUEUED; EXEC -> *1 +OK", `SET store db0 "k" T ttl=500ms done`},
		{"taken by NX in a transaction that is aborted", "WATCH l -> +OK; MULTI -> +OK; SETNX k tok -> +QUEUED; EXEC -> *-1", `SETNX acquire db0 "k" nx T failed`},
		{"a member", "SADD k tok -> :1; SREM k tok -> :1", `SADD store db0 "k" nx T done member|SREM release db0 "k" guarded T done member`},
		{"a field", "HSETNX k tok me -> :1; HDEL k tok -> :0", `HSETNX store db0 "k" nx T done member|HDEL release db0 "k" guarded T not-held member`},
		{"a member of another key", "SADD k tok -> :1; SREM l tok -> :1", `SADD store db0 "k" nx T done member`},
		{"several members", "SADD k tok -> :1; SREM k tok other -> :1", `SADD store db0 "k" nx T done member`},
		{"no new member", "SADD k tok -> :0; SREM k tok -> :1", `SADD store db0 "k" nx T not-held member`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.NewReplacer(" T", " "+tok("tok"), " O", " "+tok("other"), " D", " "+tok("1700000000")).Replace(tt.want)
			if got := replayed(t, newTracker(), tt.dialogue); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", tt.dialogue, got, want)
			}
		})
	}
}

// A GET that is pipelined with what follows has told nothing by then.
func TestReadsThatHaveToldNothing(t *testing.T) {
	tr := newTracker()
	replayed(t, tr, "SETNX k tok -> :1")
	tr.Client([]byte(lines("GET k;DEL k")), nil)
	marks, _ := tr.Upstream([]byte("$3\r\ntok\r\n:1\r\n"), nil)
	if got := describe(marks[0].Op); got != `DEL release db0 "k" done` {
		t.Error(got)
	}
	if got := replayed(t, tr, "DEL k -> :0"); got != `DEL release db0 "k" not-held` {
		t.Errorf("told later: %s", got)
	}
	for i := range 3 * maxNotes {
		replayed(t, tr, fmt.Sprintf("SETNX k%d tok -> :1", i))
	}
	answers := strings.Repeat("$3\r\nold\r\n", maxNotes) + "$3\r\nnew\r\n"
	tr.Client([]byte(lines("GET k1;GET k2;GET k3;GET k4;GET k5")), nil)
	tr.Upstream([]byte(answers[:len(answers)/5]), nil) // to k1, whose place k5 has taken
	marks, _ = tr.Client([]byte(words("DEL k5")), nil)
	if got := describe(marks[0].Op); got != `DEL release db0 "k5"` {
		t.Error(got)
	}
	tr.Upstream([]byte(answers[len(answers)/5:]+":1\r\n"), nil)
	var gets, replies strings.Builder
	for i := range 3 * maxNotes {
		fmt.Fprintf(&gets, "GET k%d;", i)
		replies.WriteString("$3\r\ntok\r\n")
	}
	tr.Client([]byte(lines(strings.TrimSuffix(gets.String(), ";"))), nil)
	tr.Upstream([]byte(replies.String()), nil)
	if got := replayed(t, tr, "DEL k0 -> :1"); got != `DEL release db0 "k0" done` {
		t.Error(got)
	}
	if got := replayed(t, tr, fmt.Sprintf("DEL k%d -> :1", 3*maxNotes-1)); !strings.Contains(got, "racy") {
		t.Error(got)
	}
}

// A deadline that was replaced is judged by when that was, as the op's lifetime
// tells.
func TestReplacedDeadlines(t *testing.T) {
	for reply, want := range map[string]string{
		"$10\r\n1699999990":    "granted", // the request was made at 1699999995
		"$12\r\n1699999990.5":  "granted",
		"$13\r\n1699999996000": "refused",
		"$10\r\n1699999999":    "refused",
		"$-1":                  "granted",
		"$3\r\ntok":            "unknown",
	} {
		tr := newTracker()
		marks, _ := tr.Client([]byte(words("GETSET k 1700000000")), nil)
		marks[0].Op.TTL = 5 * time.Second
		tr.Upstream([]byte(reply+"\r\n"), nil)
		if got := string(marks[0].Op.Outcome); got != want {
			t.Errorf("%q: %s, want %s", reply, got, want)
		}
	}
}

func TestDeadlines(t *testing.T) {
	for text, want := range map[string]int64{
		"1700000000": 1700000000000, "1700000000.5": 1700000000500, "1700000000.123456": 1700000000123, "1700000000123": 1700000000123, "1700000000.": 1700000000000,
		"": 0, "0": 0, "170000000": 0, "17000000000": 0, "0000000001": 0, "+170000000": 0, "-170000000": 0, "1700000000x": 0, "1700000000.x": 0, "170000000012": 0, "17000000001234": 0, "0000000000001": 0, "1700000000.12345678901": 0,
	} {
		if got := deadline([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// Keys of locks are known up to a bound, and cost the others nothing.
func TestKnownKeysAreBounded(t *testing.T) {
	var s keySet
	for i := range 3 * maxLocks {
		s.add(0, fmt.Sprint(i))
	}
	if len(s.known) != maxLocks || len(s.line) != maxLocks || s.has(0, []byte("0")) || !s.has(0, []byte(fmt.Sprint(3*maxLocks-1))) || s.has(1, []byte(fmt.Sprint(3*maxLocks-1))) || s.has(0, nil) {
		t.Errorf("%d keys", len(s.known))
	}
}

// The forms in which clients compare, on a real server, whole and in transactions.
func TestDirectFormsAgainstAServer(t *testing.T) {
	far := fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
	steps := []struct{ request, want string }{
		{"SET k tok NX PXAT " + far, `SET acquire db0 "k" nx T granted until`},
		{"SET k other NX GET PX 5000", `SET acquire db0 "k" nx O ttl=5s refused`},
		{"GETEX k PX 60000", `GETEX renew db0 "k" ttl=1m0s done`},
		{"PEXPIREAT k " + far, `PEXPIREAT renew db0 "k" done until`},
		{"WATCH k", ""}, {"GET k", ""}, {"MULTI", ""}, {"PEXPIRE k 60000", ""}, {"EXEC", `PEXPIRE renew db0 "k" guarded T ttl=1m0s done`},
		{"WATCH k", ""}, {"GET k", ""}, {"MULTI", ""}, {"DEL k", ""}, {"EXEC", `DEL release db0 "k" guarded T done`},
		{"WATCH k", ""}, {"GET k", ""}, {"MULTI", ""}, {"SET k tok PX 5000", ""}, {"EXEC", `SET acquire db0 "k" nx T ttl=5s granted`},
		{"GET k", ""}, {"DEL k", `DEL release db0 "k" T done racy`},
		{"MSETNX a tok b tok", `MSETNX acquire db0 "a" nx T granted|MSETNX acquire db0 "b" nx T granted`},
		{"MSETNX b tok c tok", `MSETNX acquire db0 "b" nx T refused|MSETNX acquire db0 "c" nx T refused`},
		{"GETDEL a", `GETDEL release db0 "a" done`}, {"GETDEL a", `GETDEL release db0 "a" not-held`},
		{"EXPIREAT b 5", `EXPIREAT release db0 "b" done`},
		{"HSETNX h tok 1", `HSETNX store db0 "h" nx T done member`}, {"HSETNX h tok 1", `HSETNX store db0 "h" nx T not-held member`},
		{"HDEL h tok", `HDEL release db0 "h" guarded T done member`}, {"HDEL h tok", `HDEL release db0 "h" guarded T not-held member`},
		{"ZADD z NX 1 tok", `ZADD store db0 "z" nx T done member`}, {"ZADD z NX 2 tok", `ZADD store db0 "z" nx T not-held member`}, {"ZREM z tok", `ZREM release db0 "z" guarded T done member`},
		{"MULTI", ""}, {"SETNX k tok", ""}, {"SADD s tok", ""}, {"SREM s tok", ""}, {"EXEC", `SETNX acquire db0 "k" nx T granted|SADD store db0 "s" nx T done member`},
		{"SREM s tok", `SREM release db0 "s" guarded T not-held member`},
	}
	for _, proto := range []string{"2", "3"} {
		p := newTap(t, testbed.Redis(t))
		p.send(words("HELLO " + proto))
		p.until("\r\n")
		p.send(words("FLUSHALL"))
		p.until("+OK\r\n")
		for _, s := range steps {
			before := len(p.marks)
			switch p.send(words(s.request)); {
			case s.request == "MULTI":
				p.until("+OK\r\n")
			case p.tr.multi:
				p.until("+QUEUED\r\n")
			default:
				p.send(cmd("ECHO", "end"))
				p.until("end\r\n")
			}
			var got []string
			for _, m := range p.marks[before:] {
				if m.Kind == wire.Reply {
					got = append(got, describe(m.Op))
				}
			}
			want := strings.NewReplacer(" T", " "+tok("tok"), " O", " "+tok("other")).Replace(s.want)
			if strings.Join(got, "|") != want {
				t.Errorf("RESP%s, %s: got %s, want %s", proto, s.request, strings.Join(got, "|"), want)
			}
		}
	}
}
