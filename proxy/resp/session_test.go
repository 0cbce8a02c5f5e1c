package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A step of a script: > from the client, < from the server, = what the marks
// of the step before were.
func play(t *testing.T, tr *Tracker, steps ...string) {
	t.Helper()
	got := ""
	for _, s := range steps {
		var marks []wire.Mark
		var clear int64
		switch s[0] {
		case '>':
			marks, clear = tr.Client([]byte(s[1:]), nil)
		case '<':
			marks, clear = tr.Upstream([]byte(s[1:]), nil)
		case '=':
			if got != s[1:] {
				t.Errorf("got  %s\nwant %s", got, s[1:])
			}
			continue
		}
		checkMarks(t, marks, clear)
		var ops []string
		for _, m := range marks {
			if m.Kind == wire.Blind {
				ops = append(ops, "blind: "+m.Reason)
				continue
			}
			ops = append(ops, describe(m.Op))
		}
		got = strings.Join(ops, "; ")
	}
}

const nx = "*3\r\n$5\r\nSETNX\r\n$1\r\nk\r\n$1\r\nv\r\n"

func nxOp(rest string) string { return "SETNX acquire " + rest + " nx " + tok("v") }

func TestRepliesPairInOrder(t *testing.T) {
	play(t, newTracker(),
		">"+words("GET a")+nx+words("GET b")+words("INCR f")+words("PING"),
		"="+nxOp(`db0 "k"`)+`; INCR fence db0 "f" fencekey=f`,
		"<$3\r\nabc\r\n", "=",
		"<:1\r\n", "="+nxOp(`db0 "k"`)+" granted",
		"<$-1\r\n:5\r\n+PONG\r\n", `=INCR fence db0 "f" fencekey=f fence=5 done`,
		">"+nx, "<:0\r\n", "="+nxOp(`db0 "k"`)+" refused")
}

func TestEmptyRequestsHaveNoReply(t *testing.T) {
	for _, empty := range []string{"\r\n", "\n", "*0\r\n", "*-1\r\n", "*-5\r\n", "  \r\n"} {
		play(t, newTracker(), ">"+empty+nx, "<:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
	}
}

func TestPushesAndAttributesTakeNoPlace(t *testing.T) {
	const invalidate = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n"
	for name, reply := range map[string]string{
		"push":                    invalidate + ":1\r\n",
		"two pushes":              invalidate + ">2\r\n$10\r\ninvalidate\r\n_\r\n:1\r\n",
		"empty push":              ">0\r\n:1\r\n",
		"attribute":               "|1\r\n+ttl\r\n:3600\r\n:1\r\n",
		"empty attribute":         "|0\r\n:1\r\n",
		"attribute with an array": "|1\r\n+k\r\n%1\r\n+a\r\n*2\r\n:8\r\n:9\r\n:1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			play(t, newTracker(), ">"+nx+words("INCR f"), "<"+reply, "="+nxOp(`db0 "k"`)+" granted",
				"<:6\r\n", `=INCR fence db0 "f" fencekey=f fence=6 done`)
		})
	}
}

func TestRepliesOfEveryType(t *testing.T) {
	for _, reply := range []string{
		"+OK", "-ERR x", ":1", "$0\r\n", "$3\r\nabc", "$-1", "*-1", "*0", "*2\r\n:1\r\n*1\r\n$1\r\nx",
		"_", "#t", "#f", ",1.5", ",inf", "(3492890328409238509324850943850943825024385", "!5\r\nERR x", "=7\r\ntxt:abc",
		"%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n+c\r\n_", "~2\r\n:1\r\n:2", "%0", "~0",
		"*2\r\n>2\r\n+message\r\n*0\r\n:1\r\n:2", "*1\r\n|1\r\n+a\r\n+b\r\n:1", "*2\r\n*0\r\n%0", "*1\r\n*1\r\n*1\r\n*1\r\n*0",
	} {
		t.Run(reply, func(t *testing.T) {
			play(t, newTracker(), ">"+words("HGETALL h")+nx, "<"+reply+"\r\n", "=", "<:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
		})
	}
}

func TestSelect(t *testing.T) {
	t.Run("after OK", func(t *testing.T) {
		play(t, newTracker(), ">"+words("SELECT 3"), "<+OK\r\n", ">"+nx, "<:1\r\n", "="+nxOp(`db3 "k"`)+" granted")
	})
	t.Run("after an error", func(t *testing.T) {
		play(t, newTracker(), ">"+words("SELECT 99"), "<-ERR DB index is out of range\r\n", ">"+nx, "="+nxOp(`db0 "k"`))
	})
	t.Run("in a pipeline", func(t *testing.T) {
		play(t, newTracker(), ">"+nx+words("select 2")+nx+words("SELECT 99")+nx,
			"<:1\r\n+OK\r\n:1\r\n-ERR out of range\r\n:1\r\n",
			"="+nxOp(`db0 "k"`)+" granted; "+nxOp(`db2 "k"`)+" granted; "+nxOp(`db2 "k"`)+" granted",
			">"+nx, "="+nxOp(`db2 "k"`))
	})
	t.Run("RESET", func(t *testing.T) {
		play(t, newTracker(), ">"+words("SELECT 2")+words("RESET"), "<+OK\r\n+RESET\r\n", ">"+nx, "="+nxOp(`db0 "k"`))
	})
	t.Run("HELLO keeps it", func(t *testing.T) {
		play(t, newTracker(), ">"+words("SELECT 2")+words("HELLO 3"), "<+OK\r\n%1\r\n+proto\r\n:3\r\n", ">"+nx, "="+nxOp(`db2 "k"`))
	})
}

func TestTransactions(t *testing.T) {
	queue := ">" + words("MULTI") + words("GET a") + nx + words("INCR f") + words("EXEC")
	incr := `INCR fence db0 "f" fencekey=f`
	for name, tt := range map[string]struct{ replies, want string }{
		"runs":        {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*2\r\n:1\r\n:2\r\n:1\r\n:8\r\n", nxOp(`db0 "k"`) + " granted; " + incr + " fence=8 done"},
		"in part":     {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n-ERR\r\n:0\r\n-WRONGTYPE x\r\n", nxOp(`db0 "k"`) + " refused; " + incr + " failed err=WRONGTYPE"},
		"watched":     {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", nxOp(`db0 "k"`) + " failed; " + incr + " failed"},
		"watched 3":   {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n_\r\n", nxOp(`db0 "k"`) + " failed; " + incr + " failed"},
		"aborted":     {"+OK\r\n-ERR wrong\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT Transaction discarded\r\n", nxOp(`db0 "k"`) + " failed err=EXECABORT; " + incr + " failed err=EXECABORT"},
		"one refused": {"+OK\r\n+QUEUED\r\n-OOM command\r\n+QUEUED\r\n-EXECABORT x\r\n", nxOp(`db0 "k"`) + " failed err=OOM; " + incr + " failed err=EXECABORT"},
		"push inside": {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+x\r\n>2\r\n+message\r\n:5\r\n:1\r\n:8\r\n", nxOp(`db0 "k"`) + " granted; " + incr + " fence=8 done"},
		"no MULTI":    {"-NOAUTH x\r\n-NOAUTH x\r\n:1\r\n:8\r\n-ERR EXEC without MULTI\r\n", nxOp(`db0 "k"`) + " granted; " + incr + " fence=8 done"},
		"wrong count": {"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n", nxOp(`db0 "k"`) + " unknown; " + incr + " unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, newTracker(), queue, "<"+tt.replies, "="+tt.want, ">"+words("GET a")+nx, "<$-1\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
		})
	}
	t.Run("discarded", func(t *testing.T) {
		play(t, newTracker(), ">"+words("MULTI")+nx+words("SELECT 4")+words("DISCARD"), "<+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n",
			"="+nxOp(`db0 "k"`)+" failed err=DISCARD", ">"+nx, "="+nxOp(`db0 "k"`))
	})
	t.Run("select inside", func(t *testing.T) {
		play(t, newTracker(), ">"+words("MULTI")+nx+words("SELECT 4")+nx+words("EXEC"), "<+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n+OK\r\n:1\r\n",
			"="+nxOp(`db0 "k"`)+" granted; "+nxOp(`db4 "k"`)+" granted", ">"+nx, "="+nxOp(`db4 "k"`))
	})
}

func TestTransactionReplyIsWithheld(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte(words("MULTI")+nx+words("EXEC")), nil)
	_, clear := tr.Upstream([]byte("+OK\r\n+QUEUED\r\n*1\r\n:1\r"), nil)
	if clear != 14 {
		t.Errorf("clear %d, want 14: before EXEC's reply", clear)
	}
	marks, clear := tr.Upstream([]byte("\n"), nil)
	if kinds(marks) != "reply[14,22) SETNX granted" || clear != 22 {
		t.Errorf("%s, clear %d", kinds(marks), clear)
	}
}

func TestClientName(t *testing.T) {
	tr := newTracker()
	step := func(request, reply, want string) {
		t.Helper()
		exchange(t, tr, request, reply)
		if tr.ClientName() != want {
			t.Errorf("after %q: %q, want %q", request, tr.ClientName(), want)
		}
	}
	step(words("CLIENT SETNAME bad\nname"), "-ERR\r\n", "")
	step(words("client setname one"), "+OK\r\n", "one")
	step(words("CLIENT SETINFO lib-name x"), "+OK\r\n", "one")
	step(words("HELLO 3 AUTH default secret SETNAME two"), "-WRONGPASS\r\n", "one")
	step(words("HELLO 3 AUTH default secret SETNAME two"), "%1\r\n+proto\r\n:3\r\n", "two")
	step("HELLO 2 SETNAME three\r\n", "*2\r\n+proto\r\n:2\r\n", "three")
	step(words("RESET"), "+RESET\r\n", "")
}

// Replication is another protocol from its first byte on, both ways.
func TestReplicationIsPassedOn(t *testing.T) {
	for request, names := range map[string]string{words("PSYNC ? -1"): "PSYNC", "sync\r\n": "SYNC"} {
		t.Run(names, func(t *testing.T) {
			tr := newTracker()
			marks, clear := tr.Client([]byte(nx+request+nx+"*2\r\n$"), nil)
			all := int64(len(nx)*2 + len(request) + 5)
			if len(marks) != 2 || marks[1].Kind != wire.Blind || marks[1].End != int64(len(nx)+len(request)) || clear != all {
				t.Fatalf("%s, clear %d of %d", kinds(marks), clear, all)
			}
			if !strings.Contains(marks[1].Reason, names) {
				t.Errorf("reason %q does not name %s", marks[1].Reason, names)
			}
			marks, clear = tr.Upstream([]byte(":1\r\n\x00RDB*9"), nil)
			if len(marks) != 1 || marks[0].Op.Outcome != "granted" || clear != 10 {
				t.Errorf("a reply that was due before it: %s, clear %d", kinds(marks), clear)
			}
			if marks, _ = tr.Client([]byte(nx), nil); len(marks) != 0 {
				t.Errorf("marks behind it: %s", kinds(marks))
			}
		})
	}
}

func TestNothingIsFollowedBehindQuit(t *testing.T) {
	play(t, newTracker(), ">"+nx+words("QUIT")+nx, "="+nxOp(`db0 "k"`), "<:1\r\n+OK\r\n", "="+nxOp(`db0 "k"`)+" granted")
}

func TestMalformedRequests(t *testing.T) {
	for request, want := range map[string]string{
		"*x\r\n":                         `request at byte 4: multibulk count "x", expected a number up to 2147483647 (byte 5)`,
		"*\r\n":                          `request at byte 4: multibulk count "\r", expected a number up to 2147483647 (byte 5)`,
		"*2147483648\r\n":                `request at byte 4: multibulk count "2147483648", expected a number up to 2147483647 (byte 17)`,
		"*99999999999999999999\r\n":      `request at byte 4: multibulk count "9999999999999999999", expected a number up to 2147483647 (byte 23)`,
		"*1\r\n+PING\r\n":                `request at byte 4: byte '+' before argument 0, expected '$' (byte 8)`,
		"*1\r\n*1\r\n":                   `request at byte 4: byte '*' before argument 0, expected '$' (byte 8)`,
		"*2\r\n$3\r\nGET\r\n$-1\r\n":     `request at byte 4: length "-1" of argument 1, expected 0 to 536870912 (byte 22)`,
		"*2\r\n$3\r\nGET\r\n$-5\r\n":     `request at byte 4: length "-5" of argument 1, expected 0 to 536870912 (byte 22)`,
		"*1\r\n$536870913\r\n":           `request at byte 4: length "536870913" of argument 0, expected 0 to 536870912 (byte 20)`,
		"*1\r\n$0x10\r\n":                `request at byte 4: length "0x" of argument 0, expected 0 to 536870912 (byte 10)`,
		"SET \"k\"x\r\n":                 `request at byte 4: unbalanced quotes in an inline request, expected each to be closed and followed by a space (byte 14)`,
		strings.Repeat("a", maxInline+1): `request at byte 4: inline request without an end after 65536 bytes (byte 65540)`,
	} {
		play(t, newTracker(), ">*0\r\n"+request+nx, "=blind: "+want)
	}
}

func TestMalformedReplies(t *testing.T) {
	deep := strings.Repeat("*1\r\n", maxDepth)
	for reply, want := range map[string]string{
		"?1\r\n":          `reply at byte 4: type byte '?', expected one of +-:_#,($!=*~%>| (byte 4)`,
		"$?\r\n":          `reply at byte 4: length "?" after '$', expected -1 to 536870912 (byte 5)`,
		"*?\r\n":          `reply at byte 4: length "?" after '*', expected -1 to 2147483647 (byte 5)`,
		"$-2\r\n":         `reply at byte 4: length "-2" after '$', expected -1 to 536870912 (byte 9)`,
		"*9999999999\r\n": `reply at byte 4: length "9999999999" after '*', expected -1 to 2147483647 (byte 17)`,
		">-1\r\n":         `reply at byte 4: length -1 after '>', expected 0 to 2147483647 (byte 9)`,
		"*1\r\nx\r\n":     `reply at byte 4: type byte 'x', expected one of +-:_#,($!=*~%>| (byte 8)`,
		deep + "*1\r\n:1": `reply at byte 4: more than 128 levels of nesting (byte 520)`,
		"+unasked\r\n":    `reply at byte 8: it answers no request`,
	} {
		tr := newTracker()
		play(t, tr, ">"+words("PING")+nx, "<:0\r\n")
		if reply[0] == '+' {
			play(t, tr, "<:1\r\n")
		}
		play(t, tr, "<"+reply, "=blind: "+want)
	}
	play(t, newTracker(), ">"+words("PING")+nx, "<"+deep+":1\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
	play(t, newTracker(), "<-ERR max number of clients reached\r\n", "=")
}

func TestBlindIsSaidOnce(t *testing.T) {
	tr := newTracker()
	play(t, tr, ">"+words("PING")+"*x", `=blind: request at byte 14: multibulk count "x", expected a number up to 2147483647 (byte 15)`, "<?", "=")
	if marks, clear := tr.Upstream([]byte("???"), nil); len(marks) != 0 || clear != 4 {
		t.Errorf("%s, clear %d", kinds(marks), clear)
	}
	tr = newTracker()
	tr.Client([]byte(nx+"*3\r\n$5\r\nSETNX"), nil)
	play(t, tr, "<?", "=blind: reply at byte 0: type byte '?', expected one of +-:_#,($!=*~%>|"+" (byte 0)")
	if marks, clear := tr.Client([]byte("\r\n$1"), nil); len(marks) != 0 || clear != int64(len(nx)+17) {
		t.Errorf("the client's direction: %s, clear %d", kinds(marks), clear)
	}
}

// What may be forwarded, byte for byte.
func TestClear(t *testing.T) {
	for _, tt := range []struct{ whole, part string }{
		{"", "*3\r\n$5\r\nSETN"},                        // could be anything yet
		{"*2\r\n$3\r\nGET\r\n$100\r\nabc", ""},          // no op whatever follows
		{words("GET a"), nx[:len(nx)-1]},                // an op but for one byte
		{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nabc", ""}, // a SET without room for options
		{"", "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nabc"},
		{"*4\r\n$7\r\nEVALSHA\r\n$40\r\n" + sha("unknown") + "\r\n$1", ""},
		{"*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n", ""},
		{fmt.Sprintf("*5\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n", 0, ""), ""},
		{"", fmt.Sprintf("*5\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n", len(compareAndDelete), compareAndDelete)},
		{"", "SETNX k"},
		{"*1\r\n$100\r\na", ""}, // longer than any name
	} {
		_, clear := newTracker().Client([]byte(tt.whole+tt.part), nil)
		if clear != int64(len(tt.whole)) {
			t.Errorf("%q + %q: clear %d, want %d", tt.whole, tt.part, clear, len(tt.whole))
		}
	}
	for _, tt := range []struct{ whole, part string }{
		{"+PONG\r\n", ":"},
		{"+PON", ""},
		{"+PONG\r\n", "|1\r\n+a\r\n+b\r\n:"},
		{"+PONG\r\n", "*2\r\n:1\r\n"},
		{"+PONG\r\n>2\r\n+a", ""},
		{"+PONG\r\n:1\r\n$100\r\nabc", ""},
	} {
		tr := newTracker()
		tr.Client([]byte(words("PING")+nx+words("GET a")), nil)
		_, clear := tr.Upstream([]byte(tt.whole+tt.part), nil)
		if clear != int64(len(tt.whole)) {
			t.Errorf("%q + %q: clear %d, want %d", tt.whole, tt.part, clear, len(tt.whole))
		}
	}
}

// What is larger than may be withheld streams.
func TestTooLargeToHold(t *testing.T) {
	value := strings.Repeat("v", wire.MaxHeld)
	request := cmd("SET", "k", value, "NX", "PX", "500")
	tr := newTracker()
	_, clear := tr.Client([]byte(request[:100]), nil)
	if clear != 100 {
		t.Errorf("clear %d of 100: its length was known by then", clear)
	}
	marks, clear := tr.Client([]byte(request[100:]), nil)
	end := int64(len(request))
	if len(marks) != 1 || marks[0].Start != end || marks[0].End != end || clear != end || marks[0].Op.Token.Known() {
		t.Errorf("%s, clear %d", kinds(marks), clear)
	}

	tr = newTracker()
	tr.Client([]byte(request), nil)
	reply := "*200000\r\n" + strings.Repeat(":1234\r\n", 200000)
	_, clear = tr.Upstream([]byte(reply[:wire.MaxHeld]), nil)
	if clear != 0 {
		t.Errorf("clear %d while it may be withheld", clear)
	}
	_, clear = tr.Upstream([]byte(reply[wire.MaxHeld:wire.MaxHeld+1]), nil)
	if clear != wire.MaxHeld+1 {
		t.Errorf("clear %d, want all of it", clear)
	}
	marks, _ = tr.Upstream([]byte(reply[wire.MaxHeld+1:]), nil)
	if len(marks) != 1 || marks[0].Start != marks[0].End || marks[0].End != int64(len(reply)) {
		t.Errorf("%s", kinds(marks))
	}

	tr = newTracker()
	tr.Client([]byte(nx), nil)
	if _, clear = tr.Upstream([]byte("$2000000\r\nabc"), nil); clear != 13 {
		t.Errorf("clear %d of 13: its length was known by then", clear)
	}
}

// The limit holds to the byte, also where it falls inside a header.
func TestWithheldToTheByte(t *testing.T) {
	const head, empty = "*400000\r\n$3\r\nDEL\r\n", "$0\r\n\r\n"
	for pad := range len(empty) {
		tr := newTracker()
		fed := int64(0)
		feed := func(s string) {
			_, clear := tr.Client([]byte(s), nil)
			if fed += int64(len(s)); fed-clear > wire.MaxHeld {
				t.Fatalf("pad %d: %d bytes withheld of %d", pad, fed-clear, fed)
			}
		}
		feed(head + fmt.Sprintf("$%d\r\n%s\r\n", pad, strings.Repeat("x", pad)))
		feed(strings.Repeat(empty, (wire.MaxHeld-100)/len(empty)))
		for range 40 {
			for _, c := range empty {
				feed(string(c))
			}
		}
		if _, clear := tr.Client(nil, nil); clear != fed {
			t.Errorf("pad %d: clear %d of %d", pad, clear, fed)
		}
	}
}

func TestLongArguments(t *testing.T) {
	long := strings.Repeat("x", maxArg+1)
	if got := exchange(t, newTracker(), cmd("SET", "k", long, "NX", "PX", "500"), "+OK\r\n"); len(got) != 1 || got[0] != `SET acquire db0 "k" nx ttl=500ms granted` {
		t.Errorf("a value too long to keep: %q", got)
	}
	if got := exchange(t, newTracker(), cmd("SETNX", long, "v"), ":1\r\n"); len(got) != 0 {
		t.Errorf("a key too long to keep: %q", got)
	}
	play(t, newTracker(), ">"+cmd("SETNX", long, "v")+nx, "<:1\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
}

func TestWants(t *testing.T) {
	for _, tt := range []struct{ verb, request, reply, want string }{
		{"GET", "get k", "$1\r\nv", `GET other db0 "k" done`},
		{"GET", "GET k", "-WRONGTYPE", `GET other db0 "k" failed err=WRONGTYPE`},
		{"SET", "SET k v", "+OK", `SET other db0 "k" done`},
		{"GET", "MGET k", "*0", ""},
		{"HGETALL", "HGETALL h", "%1\r\n+a\r\n+b", `HGETALL other db0 "h" done`},
		{"PING", "PING", "+PONG", `PING other db0 "" done`},
		{"EVAL", "EVAL return 2 k l", ":1", `EVAL other db0 "k" done`},
		{"XINFO", "XINFO STREAM s", "*0", `XINFO other db0 "s" done`},
		{"AUTH", "AUTH secret", "+OK", `AUTH other db0 "" done`},
		{"CONFIG", "CONFIG SET requirepass secret", "+OK", `CONFIG other db0 "" done`},
		{"ACL", "ACL SETUSER u", "+OK", `ACL other db0 "" done`},
		{"EXEC", "EXEC", "-ERR EXEC without MULTI", `EXEC other db0 "" failed err=ERR`},
		{"INCRBY", "INCRBY f -1", ":0", `INCRBY other db0 "f" done`},
	} {
		for _, request := range []string{words(tt.request), tt.request + "\r\n"} {
			got := strings.Join(exchange(t, newTracker(tt.verb), request, tt.reply+"\r\n"), "|")
			if got != tt.want {
				t.Errorf("%s wanted, %q: got %s, want %s", tt.verb, request, got, tt.want)
			}
		}
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	for _, request := range []string{
		words("AUTH user hunter2"), words("HELLO 3 AUTH user hunter2 SETNAME n"), words("ACL SETUSER u >hunter2"),
		words("HELLO 3 SETNAME AUTH AUTH user hunter2"), words("CONFIG SET masterauth hunter2"), words("MIGRATE h 1 k 0 9 AUTH hunter2"), words("MIGRATE h 1 k 0 9 AUTH2 user hunter2"),
		words("CONFIG SET requirepass hunter2"), "AUTH hunter2\r\n", "HELLO 3 AUTH user hunter2\r\n", "CONFIG SET requirepass hunter2\r\n",
	} {
		tr := newTracker("AUTH", "HELLO", "ACL", "CONFIG", "MIGRATE")
		for _, c := range []byte(request) {
			tr.Client([]byte{c}, nil)
			if request[0] == '*' && strings.Contains(string(tr.req.buf[:cap(tr.req.buf)]), "hunter2") {
				t.Fatalf("%q: kept on the way", request)
			}
		}
		if strings.Contains(string(tr.req.buf[:cap(tr.req.buf)]), "hunter2") {
			t.Errorf("%q: kept", request)
		}
	}
}

func TestSecretsOfAMalformedRequestAreNotKept(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte("AUTH \"hunter2\n"), nil)
	if strings.Contains(string(tr.req.buf[:cap(tr.req.buf)]), "hunter2") {
		t.Error("kept")
	}
}

func TestInlineQuoting(t *testing.T) {
	for line, want := range map[string]string{
		`a b`: "a|b", "\ta \t b ": "a|b", `"a b" 'c d'`: "a b|c d", `"\x41\n\"\\\q"`: "A\n\"\\q", `'it\'s\n'`: `it's\n`,
		`""`: "", `a"b c"`: "ab c", `"a" ""`: "a|", "$3 foo": "$3|foo",
	} {
		b := []byte(line)
		args, ok := splitInline(b, nil)
		var got []string
		for _, a := range args {
			got = append(got, string(b[a.off:a.off+a.len]))
		}
		if !ok || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v", line, got, ok)
		}
	}
	for _, line := range []string{`"a`, `'a`, `"a"b`, `"a\`, `"a\"`} {
		if _, ok := splitInline([]byte(line), nil); ok {
			t.Errorf("%q is balanced?", line)
		}
	}
}

// What a server may refuse goes on ahead, and the rest of the request is held
// all the same.
func TestHeldBehindWhatMayBeRefused(t *testing.T) {
	for request, ahead := range map[string]string{
		cmd(append([]string{"DEL"}, strings.Fields(strings.Repeat("k ", 10))...)...): "*11\r\n",
		cmd("SETNX", "k", strings.Repeat("x", 16<<10+1)):                             "*3\r\n$5\r\nSETNX\r\n$1\r\nk\r\n$16385\r\n",
		cmd(append([]string{"DEL"}, strings.Fields(strings.Repeat("k ", 9))...)...):  "",
		cmd("SETNX", "k", strings.Repeat("x", 16<<10)):                               "",
	} {
		for _, whole := range []bool{true, false} {
			tr := newTracker()
			rest := request
			if !whole {
				for ; len(rest) > 1; rest = rest[1:] {
					if _, clear := tr.Client([]byte(rest[:1]), nil); clear > int64(len(ahead)) {
						t.Fatalf("%.40q: clear %d", request, clear)
					}
				}
			}
			marks, _ := tr.Client([]byte(rest), nil)
			if len(marks) == 0 || marks[0].Start != int64(len(ahead)) || marks[0].End != int64(len(request)) {
				t.Errorf("%.40q: %s, expected from %d", request, kinds(marks), len(ahead))
			}
		}
	}
}

func TestNamesOfVerbsAreBounded(t *testing.T) {
	tr := newTracker("NOSUCH")
	for i := range 2000 {
		tr.Client([]byte(words(fmt.Sprintf("NAME%d x", i))), nil)
	}
	if len(tr.memos) > maxMemos {
		t.Errorf("%d names", len(tr.memos))
	}
}

func TestAnsweredOpsAreLetGo(t *testing.T) {
	tr := newTracker()
	play(t, tr, ">"+strings.Repeat(nx, 5), "<"+strings.Repeat(":1\r\n", 4))
	for _, e := range tr.queue.first.entries[:tr.queue.head] {
		if e.more != nil {
			t.Error("the queue still holds an op that was answered")
		}
	}
	if tr.waiting != 2 || tr.due != 1 {
		t.Errorf("%d waiting, want a request and its op; %d ops", tr.waiting, tr.due)
	}
}

func TestQueueKeepsOrderAndCounts(t *testing.T) {
	var q queue
	r := rand.New(rand.NewPCG(3, 3))
	var want []int // numbers of entries, -1 for plain ones
	for n := range 20000 {
		switch r.IntN(4) {
		case 0:
			q.push(entry{act: selects, num: uint16(n)})
			want = append(want, n)
		case 1:
			q.plain()
			want = append(want, -1)
		default:
			if len(want) == 0 || n < 5000 && r.IntN(3) > 0 {
				continue
			}
			e := q.pop()
			if got := int(e.num); want[0] < 0 && !e.plain() || want[0] >= 0 && got != want[0] {
				t.Fatalf("step %d: popped %d, want %d", n, got, want[0])
			}
			want = want[1:]
		}
		if q.empty() != (len(want) == 0) {
			t.Fatalf("step %d: empty %v with %d left", n, q.empty(), len(want))
		}
		e, more := q.second()
		if next := q.next(); next != nil && (more != (len(want) > 1) || more && (e == nil) != (want[1] < 0)) {
			t.Fatalf("step %d: second %v, %v of %v", n, e, more, want[:min(2, len(want))])
		}
	}
}

func TestManyOpsWithoutReplyGoBlind(t *testing.T) {
	tr := newTracker()
	request := []byte(strings.Repeat(words("INCR f"), 1000))
	var marks []wire.Mark
	for range maxPending/1000 + 2 {
		marks, _ = tr.Client(request, marks[:0])
		if n := len(marks); n > 0 && marks[n-1].Kind == wire.Blind {
			if tr.waiting < maxPending/2 || tr.waiting > maxPending+2 {
				t.Errorf("blind at %d", tr.waiting)
			}
			return
		}
	}
	t.Error("never blind")
}
