package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
)

func TestC085EveryType(t *testing.T) {
	// Attributes are sent by this command alone, but bring its reply behind them.
	types := []string{"string", "integer", "double", "null", "array", "set", "map", "attrib", "push", "verbatim", "true", "false", "bignum"}
	all := ""
	for i, name := range types {
		all += fmt.Sprintf("DEBUG PROTOCOL %s;P%d;", name, i+1)
	}
	p := tapOn(t, dialServer(t))
	for _, version := range []string{"2", "3"} {
		for _, text := range []string{all + "P99", strings.ReplaceAll(all, "DEBUG", "MULTI;PING;DEBUG") + "P99"} {
			if strings.HasPrefix(text, "MULTI") {
				text = strings.ReplaceAll(text, ";P", ";EXEC;P")
				text = strings.ReplaceAll(text, ";EXEC;PING", ";PING")
			}
			p.marks, p.all = p.marks[:0], nil
			p.send(lines("FLUSHALL;HELLO " + version + ";" + text))
			p.until(probed(99))
			want := make([]string, 0, len(types)+1)
			for i := range types {
				want = append(want, fmt.Sprintf("%d done", i+1))
			}
			p.done(strings.Join(append(want, "99 done"), ", "))
		}
	}
	for _, null := range []string{"$-1\r\n", "*-1\r\n", "_\r\n"} {
		play(t, newTracker(), ">"+words("SET k v NX")+nx, "<"+null+":1\r\n", `=SET acquire db0 "k" nx `+tok("v")+" refused; "+nxOp(`db0 "k"`)+" granted")
	}
	// No server sends streamed types: they end the reading, and nothing else.
	for _, streamed := range []string{"$?\r\n;4\r\nabcd\r\n;0\r\n", "*?\r\n:1\r\n.\r\n", "%?\r\n.\r\n", "~?\r\n.\r\n", ";4\r\nabcd\r\n", ".\r\n"} {
		tr := newTracker()
		tr.Client([]byte(words("GET a")+nx), nil)
		marks, clear := tr.Upstream([]byte(streamed), nil)
		if len(marks) != 1 || marks[0].Kind != wire.Blind || clear != int64(len(streamed)) {
			t.Errorf("%q: %s, clear %d", streamed, kinds(marks), clear)
		}
	}
}

func TestC089EndOfSubscriptionUnasked(t *testing.T) {
	const ended = ">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:1\r\n"
	const hello = "%1\r\n+proto\r\n:3\r\n>3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$10\r\nssubscribe\r\n$1\r\nb\r\n:2\r\n"
	for name, s := range map[string]struct{ requests, replies string }{
		"idle":                     {lines("GET a"), ended + "$-1\r\n"},
		"before a subscription":    {lines("SSUBSCRIBE c"), ended + ">3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:2\r\n"},
		"before an end asked for":  {lines("SUNSUBSCRIBE b;GET a"), ended + ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:0\r\n$-1\r\n"},
		"before the end of all":    {lines("SUNSUBSCRIBE;GET a"), ended + ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:0\r\n$-1\r\n"},
		"before an end refused":    {lines("SUNSUBSCRIBE b;GET a"), ended + "-NOPERM x\r\n$-1\r\n"},
		"before a command's reply": {lines("GET a;SUNSUBSCRIBE b"), ended + "$-1\r\n" + ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:0\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			play(t, tr, ">"+lines("HELLO 3;SSUBSCRIBE a b"), "<"+hello, ">"+s.requests+nx, "<"+s.replies+":1\r\n", "="+nxOp(`db0 "k"`)+" granted")
			if tr.told || !tr.queue.empty() || tr.subs.waiting != 0 {
				t.Error("out of step")
			}
		})
	}
	tr := newTracker()
	play(t, tr, ">"+lines("SSUBSCRIBE a b"), "<"+strings.ReplaceAll(hello[len("%1\r\n+proto\r\n:3\r\n"):], ">", "*"), ">"+lines("SSUBSCRIBE c;SUNSUBSCRIBE")+nx,
		"<*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:2\r\n*3\r\n$12\r\nsunsubscribe\r\n$1\r\nb\r\n:1\r\n*3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n:1\r\n",
		"="+nxOp(`db0 "k"`)+" granted")
}

func TestC090PushesConsumeNothing(t *testing.T) {
	pushes := ""
	for _, kind := range []string{"message", "pmessage", "smessage", "invalidate", "tracking-redir-broken", "MOVING", "MIGRATING", "FAILED_OVER", "monitor", "subscribe", "unsubscribe", "new-kind"} {
		pushes += fmt.Sprintf(">3\r\n$%d\r\n%s\r\n$1\r\nx\r\n:1\r\n", len(kind), kind)
	}
	pushes += ">0\r\n>1\r\n*2\r\n>1\r\n:1\r\n:2\r\n:3\r\n>2\r\n+invalidate\r\n_\r\n"
	for name, prelude := range map[string][2]string{
		"plain":      {"", ""},
		"subscribed": {lines("HELLO 3;SUBSCRIBE a"), "%1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"},
		"muted":      {lines("CLIENT REPLY OFF;GET a;CLIENT REPLY ON"), pushes + "+OK\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			play(t, tr, ">"+prelude[0]+words("GET a")+nx+words("MULTI")+nx+words("EXEC"), "<"+prelude[1]+pushes+"$-1\r\n"+pushes+":1\r\n"+pushes+"+OK\r\n"+pushes+"+QUEUED\r\n"+pushes+"*1\r\n:0\r\n"+pushes,
				"="+nxOp(`db0 "k"`)+" granted; "+nxOp(`db0 "k"`)+" refused")
			if tr.told || !tr.queue.empty() {
				t.Error("out of step")
			}
		})
	}
}

// Redis 7.2 to 8 leave an AUTH's error out if replies are due.
func TestC094AuthBehindOthers(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{ // which does not: all that is told must be true
		{"succeeds", lines("PING;AUTH default x;P1;GET a;P2"), probed(2), "1 done, 2 done"},
		{"succeeds before SETs", lines("PING;AUTH default x;SET a b;SET c d;P1;P2"), probed(2), "1 done, 2 done"},
		{"fails", lines("PING;AUTH default x y;AUTH u bad;P1;P2"), probed(2), "1 done, 2 done"},
		{"HELLO fails", lines("PING;HELLO 3 AUTH u bad;P1;P2"), probed(2), "1 done, 2 done"},
		{"HELLO succeeds", lines("PING;HELLO 3 AUTH default x SETNAME n;P1;P2"), probed(2), "1 done, 2 done"},
		{"a transaction behind", lines("PING;AUTH default x;MULTI;P1;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"first of its flight", lines("AUTH u bad;AUTH default x;HELLO 3 AUTH default x;P1"), probed(1), "1 done"},
		{"in MULTI", lines("MULTI;P1;AUTH u bad;EXEC;P2"), probed(2), "blind"},
	})
	for name, s := range map[string]struct{ requests, replies, want string }{
		"left out, data behind":     {lines("PING;AUTH u bad;GET a") + nx, "+PONG\r\n$1\r\na\r\n:1\r\n", " granted"},
		"left out, an op behind":    {lines("PING;AUTH u bad") + nx + lines("GET a"), "+PONG\r\n:1\r\n$1\r\na\r\n", " granted"},
		"left out, HELLO":           {lines("PING;HELLO 3 AUTH u bad") + nx, "+PONG\r\n:0\r\n", " refused"},
		"left out, OK behind":       {lines("PING;AUTH u bad;SET a b;GET a") + nx, "+PONG\r\n+OK\r\n$1\r\nb\r\n:1\r\n", " granted"},
		"answered, OK behind":       {lines("PING;AUTH u good;SET a b;GET a") + nx, "+PONG\r\n+OK\r\n+OK\r\n$1\r\nb\r\n:1\r\n", " granted"},
		"left out, errors behind":   {lines("PING;AUTH u bad;NOSUCH;GET a") + nx, "+PONG\r\n-ERR unknown\r\n$1\r\nb\r\n:1\r\n", " granted"},
		"left out, not logged in":   {lines("PING;AUTH u bad;GET a") + nx, "+PONG\r\n-NOAUTH x\r\n-NOAUTH x\r\n", " failed err=NOAUTH"},
		"left out, SELECT behind":   {lines("PING;AUTH u bad;SELECT 2;GET a") + nx, "+PONG\r\n+OK\r\n$1\r\nb\r\n:1\r\n", " granted db2"},
		"left out, then quiet":      {lines("PING;AUTH u bad;SET a b"), "+PONG\r\n+OK\r\n", "doubt"},
		"answered, then quiet":      {lines("PING;AUTH u good;SET a b"), "+PONG\r\n+OK\r\n+OK\r\n", "sure"},
		"unclear till it is quiet":  {lines("PING;AUTH u good;SET a b") + cmd("SET", "k", "v", "NX"), "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n", "sure"},
		"left out, before AUTHs":    {lines("PING;AUTH u bad;AUTH u bad;GET a") + nx, "+PONG\r\n$1\r\na\r\n:1\r\n", "blind"},
		"answered, a subscription":  {lines("PING;AUTH u good;SUBSCRIBE a;UNSUBSCRIBE") + nx, "+PONG\r\n+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n:1\r\n", " granted"},
		"answered, replies off":     {lines("PING;AUTH u good;CLIENT REPLY OFF;GET a;CLIENT REPLY ON") + nx, "+PONG\r\n+OK\r\n+OK\r\n:1\r\n", "blind"},
		"left out in a transaction": {lines("PING;AUTH u bad;MULTI") + nx + lines("EXEC"), "+PONG\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n", " granted"},
	} {
		t.Run(name, func(t *testing.T) { authFlight(t, s.requests, s.replies, s.want) })
	}
}

func authFlight(t *testing.T, requests, replies, want string) {
	tr := newTracker()
	marks, _ := tr.Client([]byte(requests), nil)
	for _, m := range marks {
		if strings.Contains(m.Reason, "bad") {
			t.Errorf("a password in %q", m.Reason)
		}
	}
	marks, _ = tr.Upstream([]byte(replies), nil)
	switch want {
	case "doubt":
		if tr.told || tr.queue.empty() {
			t.Errorf("it is sure: %s", kinds(marks))
		}
	case "sure":
		if tr.told || tr.doubt || tr.careful || !tr.queue.empty() {
			t.Errorf("it is not: %s, doubt %v, careful %v", kinds(marks), tr.doubt, tr.careful)
		}
	case "blind":
		if !tr.told {
			t.Errorf("it goes on: %s", kinds(marks))
		}
	default:
		got := ""
		for _, m := range marks {
			got += describe(m.Op)
		}
		outcome, in2 := strings.CutSuffix(want, " db2")
		db := `db0 "k"`
		if in2 {
			db = `db2 "k"`
		}
		if got != nxOp(db)+outcome || tr.told || tr.careful {
			t.Errorf("got %s, careful %v, want %s", kinds(marks), tr.careful, want)
		}
	}
}

func TestC095Transactions(t *testing.T) {
	server := testbed.Redis(t)
	fly(t, server, []flight{
		{"runs", lines("WATCH a;MULTI;P1;SET a b;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"an error inside", lines("SET probe:1 x;MULTI;P1;P2;EXEC;P3"), probed(3), "1 failed ERR, 2 done, 3 done"},
		{"aborted", lines("MULTI;P1;INCRBY;P2;EXEC;P3"), probed(3), "1 failed EXECABORT, 2 failed EXECABORT, 3 done"},
		{"discarded", lines("MULTI;P1;DISCARD;P2"), probed(2), "1 failed DISCARD, 2 done"},
		{"reset", lines("MULTI;P1;RESET;P2"), probed(2), "1 failed DISCARD, 2 done"},
		{"nested", lines("MULTI;P1;MULTI;WATCH a;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"without MULTI", lines("EXEC;DISCARD;P1;EXEC;P2"), probed(2), "1 done, 2 done"},
		{"empty", lines("MULTI;EXEC;P1"), probed(1), "1 done"},
	})
	p, other := newTap(t, server), newTap(t, server)
	for _, version := range []string{"2", "3"} {
		p.send(lines("FLUSHALL;HELLO " + version + ";WATCH a;PING"))
		p.until("+PONG\r\n")
		other.send(lines("INCR a;PING"))
		other.until("+PONG\r\n")
		p.send(lines("MULTI;P1;P2;EXEC;P3"))
		p.until(probed(3))
	}
	p.done("1 failed, 2 failed, 3 done, 1 failed, 2 failed, 3 done")
}

func TestC096Scripts(t *testing.T) {
	server := testbed.Redis(t)
	p := newTap(t, server)
	p.send(lines("HELLO 3"), cmd("EVALSHA", sha(compareAndDelete), "1", "k", "tok"), cmd("EVAL", compareAndDelete, "1", "k", "tok"), cmd("EVALSHA", sha(compareAndDelete), "1", "k", "tok"),
		cmd("EVAL", "redis.setresp(3) return {redis.call('HGETALL', 'h'), {1, {2, {3}}}, {map={a={double=1.5}}}}", "0"), probe(1),
		cmd("EVAL", "return redis.error_reply('ERR x')", "0"), cmd("EVAL", "return redis.status_reply('QUEUED')", "0"), cmd("EVAL", "return", "x"), cmd("EVAL", "syntax(", "0"),
		words("MULTI"), cmd("EVAL", "return {1, {2, false, {3}}}", "0"), cmd("EVALSHA", sha("none"), "0"), probe(2), words("EXEC"), words("FCALL f 0"), probe(3))
	p.until(probed(3))
	p.done("1 done, 2 done, 3 done")
	var got []string
	for _, m := range p.marks {
		if m.Kind == wire.Reply && strings.HasPrefix(m.Op.Verb, "EVAL") {
			got = append(got, fmt.Sprintf("%s %s %s", m.Op.Verb, m.Op.Kind, m.Op.Outcome))
		}
	}
	if want := "EVALSHA release failed|EVAL release not-held|EVALSHA release not-held"; strings.Join(got, "|") != want && strings.Join(got, "|") != strings.TrimPrefix(want, "EVALSHA release failed|") {
		t.Errorf("scripts: %q", got)
	}
}

func TestC097Blocking(t *testing.T) {
	server := testbed.Redis(t)
	p, other := newTap(t, server), newTap(t, server)
	p.send(lines("P1;BLPOP list 0;P2;XREAD BLOCK 20 STREAMS s $;P3;BLMOVE list l2 LEFT LEFT 0.01;WAIT 1 10;P4;MULTI;BLPOP list 0;P5;EXEC;P6"))
	p.until(probed(1))
	if p.tr.due != 5 {
		t.Errorf("%d ops wait, want 5", p.tr.due)
	}
	for unblocked := false; !unblocked; { // BLPOP may not have been read yet
		other.send(lines("CLIENT LIST;EXISTS x"))
		unblocked = strings.Contains(other.until(":0\r\n"), "cmd=blpop")
	}
	other.send(lines("RPUSH list x"))
	p.until(probed(6))
	p.done("1 done, 2 done, 3 done, 4 done, 5 done, 6 done")

	gone := newTap(t, server)
	gone.send(lines("BLPOP nothing 0;P7"))
	gone.c.Close()
	if got := gone.story(); got != "" || gone.tr.due != 1 {
		t.Errorf("a client that has gone: %q, %d due", got, gone.tr.due)
	}
}

func TestC099Replication(t *testing.T) {
	for name, s := range map[string]struct{ diskless, command, first string }{
		"disk": {"no", "PSYNC ? -1", "+FULLRESYNC "}, "diskless": {"yes", "PSYNC ? -1", "+FULLRESYNC "}, "SYNC": {"no", "SYNC", "$"},
	} {
		t.Run(name, func(t *testing.T) {
			server := testbed.Redis(t)
			p, other := newTap(t, server), newTap(t, server)
			p.send(lines("CONFIG SET repl-diskless-sync " + s.diskless + ";CONFIG SET repl-diskless-sync-delay 0;REPLCONF listening-port 1 capa eof capa psync2;REPLCONF GETACK *;P1"))
			p.until(probed(1))
			from := len(p.all)
			before, at := len(p.marks), p.sent+int64(len(words(s.command)))
			p.send(words(s.command), words("REPLCONF ACK 0"))
			other.send(words("SET a marker-of-the-stream"))
			for !bytes.Contains(p.all[from:], []byte("marker-of-the-stream")) {
				p.some()
				p.send(words("REPLCONF ACK 0")) // a replica says so that it is ready for the stream
			}
			if len(p.marks) != before+1 || p.marks[before].Kind != wire.Blind || p.marks[before].End != at {
				t.Fatalf("%s, want one mark, blind at %d", kinds(p.marks[before:]), at)
			}
			if !bytes.HasPrefix(bytes.TrimLeft(p.all[from:], "\n"), []byte(s.first)) || p.tr.rep.pos != int64(len(p.all)) || p.tr.Rest(true) != endless || p.tr.Rest(false) != endless {
				t.Errorf("%.60q, %d of %d", p.all[from:], p.tr.rep.pos, len(p.all))
			}
			p.done("1 done, blind")
		})
	}
}

func TestC100Databases(t *testing.T) {
	p := newTap(t, testbed.Redis(t))
	p.send(lines("P1;SELECT 3;P2;SELECT 99;P3;SELECT x;SELECT;P4;SWAPDB 3 4;P5;HELLO 3;P6;MULTI;SELECT 5;P7;EXEC;P8;MULTI;SELECT 6;DISCARD;P9;CLIENT REPLY SKIP;SELECT 7;P10;RESET;P11"))
	p.until(probed(11))
	p.done("1 done, 2 done, 3 done, 4 done, 5 done, 6 done, 7 done, 8 done, 9 done, 10 done, 11 done")
	want := []int{0, 3, 3, 3, 3, 3, 5, 5, 5, 7, 0}
	for _, m := range p.marks {
		var n int
		if fmt.Sscanf(m.Op.Key, "probe:%d", &n); m.Kind == wire.Reply && m.Op.DB != want[n-1] {
			t.Errorf("probe %d in database %d, want %d", n, m.Op.DB, want[n-1])
		}
	}
	play(t, newTracker(), ">"+words("SELECT 65535")+nx, "<+OK\r\n:1\r\n", "="+nxOp(`db65535 "k"`)+" granted")
	play(t, newTracker(), ">"+words("SELECT 70000")+nx, "<+OK\r\n:1\r\n", "="+nxOp(`db70000 "k"`)+" granted")
}

func TestC103ClientSideCaching(t *testing.T) {
	server := testbed.Redis(t)
	p, other := newTap(t, server), newTap(t, server)
	p.send(lines("HELLO 3;CLIENT TRACKING ON;PING"))
	p.until("+PONG\r\n")
	for n := range 50 {
		p.send(lines(fmt.Sprintf("MULTI;P%d;GET a;EXEC", n)))
		p.until("_\r\n")
		other.send(lines("SET a v;DEL a;PING"))
		other.until("+PONG\r\n")
		p.send(lines(fmt.Sprintf("GET b;P%d;GET a", 100+n)))
		p.until("_\r\n")
	}
	if n := strings.Count(p.story(), "done"); n != 100 || p.tr.told || !p.tr.queue.empty() {
		t.Errorf("%d done: %s", n, p.story())
	}
	// What the last transaction read was changed before the reply that followed.
	if n := bytes.Count(p.all, []byte("invalidate")); n < 50 {
		t.Errorf("only %d invalidations came between", n)
	}
}

// What names another address is passed on as it is, and told.
func TestC101LeadingAway(t *testing.T) {
	for what, s := range map[string][2]string{
		"MOVED": {lines("GET a;GET a"), "-MOVED 3999 10.0.0.9:6381\r\n$-1\r\n"}, "ASK": {lines("GET a;ASKING;GET a"), "-ASK 3999 10.0.0.9:6381\r\n+OK\r\n$-1\r\n"},
		"CLUSTER SLOTS": {lines("cluster slots"), "*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$8\r\n10.0.0.9\r\n:6381\r\n"}, "CLUSTER SHARDS": {lines("CLUSTER SHARDS"), "*0\r\n"}, "CLUSTER NODES": {lines("CLUSTER NODES"), "$1\r\nx\r\n"},
		"SENTINEL": {lines("SENTINEL get-master-addr-by-name m"), "*2\r\n$8\r\n10.0.0.9\r\n$4\r\n6381\r\n"}, "ROLE": {lines("ROLE"), "*1\r\n+master\r\n"},
		"MOVING": {lines("HELLO 3;GET a"), "%0\r\n>4\r\n$6\r\nMOVING\r\n:1\r\n:15\r\n$13\r\n10.0.0.9:6381\r\n_\r\n"},
		"":       {lines("CLUSTER INFO;CLUSTER KEYSLOT a;GET a;PING"), "$1\r\nx\r\n:1\r\n-MOVEDX y\r\n+PONG\r\n"},
	} {
		t.Run(what, func(t *testing.T) {
			told := ""
			opt := testOptions()
			opt.Leaves = func(what string) { told += what }
			tr := NewTracker(opt)
			play(t, tr, ">"+s[0]+s[0]+nx, "<"+s[1]+s[1]+":1\r\n", "="+nxOp(`db0 "k"`)+" granted")
			if told != what || tr.told {
				t.Errorf("told %q", told)
			}
			play(t, newTracker(), ">"+s[0]+nx, "<"+s[1]+":1\r\n", "="+nxOp(`db0 "k"`)+" granted")
		})
	}
	fly(t, testbed.Redis(t), []flight{{"live", lines("ROLE;P1;CLUSTER SLOTS;P2;SENTINEL MASTERS;ASKING;READONLY;P3"), probed(3), "1 done, 2 done, 3 done"}})
}
