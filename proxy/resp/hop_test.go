package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

func TestHopsOverWhatMattersToNobody(t *testing.T) {
	for _, c := range []struct {
		requests string
		hopped   int // bytes
		replies  string
		taken    int
	}{
		{words("GET a") + words("set k v") + words("MGET a b c"), len(words("GET a") + words("set k v") + words("MGET a b c")), "$1\r\nx\r\n+OK\r\n*1\r\n:1\r\n", len("$1\r\nx\r\n+OK\r\n")},
		{words("GET a") + nx, len(words("GET a")), ":1\r\n:0\r\n", len(":1\r\n")},
		{words("GET a")[:10], 0, "", 0},
		{"GET a\r\n", 0, "$-1\r\n", 0},
		{words("AUTH p"), 0, "", 0},
		{words("SUBSCRIBE a"), 0, "", 0},
		{"*1\r\n$04\r\nPING\r\n", 0, "", 0},
		{"*01\r\n$4\r\nPING\r\n", 0, "", 0},
		{"*0\r\n", 0, "", 0},
		{"*-1\r\n", 0, "", 0},
		{"*1\r\n$0\r\n\r\n", 0, "", 0},
		{words("PING") + words("PING") + words("PING"), 3 * len(words("PING")), ":12\r\n+a\nb\r\n+PONG\r\n", 5},
		{words("PING"), len(words("PING")), "-ERR\r\n", 0},
		{words("PING"), len(words("PING")), ">1\r\n+x\r\n", 0},
		{words("PING"), len(words("PING")), "$2\r\nabc\r\n", 0},
		{words("PING"), len(words("PING")), "+" + strings.Repeat("x", 200) + "\r\n", 0},
	} {
		tr := newTracker()
		if n := tr.hopRequests([]byte(c.requests)); n != c.hopped {
			t.Errorf("%q: %d bytes hopped over, expected %d", c.requests, n, c.hopped)
		}
		if n := tr.hopReplies([]byte(c.replies)); n != c.taken {
			t.Errorf("%q: %d bytes hopped over, expected %d", c.replies, n, c.taken)
		}
	}
}

// What rules name is hopped over only where its key cannot be meant.
func TestHopsOverKeysThatNoRuleMatches(t *testing.T) {
	tr := newTracker("GET", "PING")
	both := words("GET boring") + words("GET a")
	if n := tr.hopRequests([]byte(both)); n != len(words("GET boring")) {
		t.Errorf("%d bytes hopped over, expected %d", n, len(words("GET boring")))
	}
	if n := tr.hopRequests([]byte(words("PING"))); n != 0 {
		t.Errorf("a verb without a key that a rule names was hopped over")
	}
	for _, cut := range []cutter{uncut, bytewise} {
		tr := newTracker("GET")
		var verbs []string
		stream := []byte(both)
		for len(stream) > 0 {
			n := cut(len(stream))
			marks, _ := tr.Client(stream[:n], nil)
			for _, m := range marks {
				verbs = append(verbs, m.Op.Verb+" "+m.Op.Key)
			}
			stream = stream[n:]
		}
		if !slices.Equal(verbs, []string{"GET a"}) {
			t.Errorf("ops %q, expected GET a alone", verbs)
		}
	}
}

// A chunk is what the driver forwards: nothing in it may change.
func TestHopLeavesTheChunkAlone(t *testing.T) {
	tr := newTracker()
	chunk := []byte(words("get a") + words("Set b c"))
	before := string(chunk)
	if _, clear := tr.Client(chunk, []wire.Mark{}); clear != int64(len(before)) || string(chunk) != before {
		t.Errorf("%q became %q, clear to %d", before, chunk, clear)
	}
}

// What rules come to name is hopped over no more, and what none names any more is hopped over again, however often the
// command has come by.
func TestHopsFollowTheRules(t *testing.T) {
	wanted, epoch := false, uint64(0)
	o := testOptions("GET")
	o.Wants = func(verb string) bool { return wanted && verb == "GET" }
	o.Could = func(string) func([]byte) bool { return func([]byte) bool { return wanted } }
	o.Epoch = func() uint64 { return epoch }
	tr, get := NewTracker(o), []byte(words("GET a"))
	for _, wanted = range []bool{false, true, false, true} {
		epoch++
		for range 3 {
			n := tr.hopRequests(get)
			if hopped := n == len(get); hopped == wanted {
				t.Errorf("wanted %t, hopped over %t", wanted, hopped)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { epoch++; tr.hopRequests(get) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
