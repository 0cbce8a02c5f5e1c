package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidwall/redcon"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A cutter hands out a stream in pieces.
type cutter func(left int) int

func uncut(left int) int { return left }
func bytewise(int) int   { return 1 }

func randomly(seed uint64) cutter {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(left int) int { return min(left, 1+r.IntN(1+r.IntN(64))) }
}

// at cuts once, at a place.
func at(place int) cutter {
	first := true
	return func(left int) int {
		if first && place > 0 && place < left {
			first = false
			return place
		}
		return left
	}
}

// follow feeds both streams, first the client's, and returns all marks and
// both final clear offsets in words.
func follow(t testing.TB, client, server []byte, cut cutter, wants ...string) string {
	tr := newTracker(wants...)
	c := feed(t, tr, true, client, cut, false)
	s := feed(t, tr, false, server, cut, false)
	return c + "\n" + s
}

// skim is follow with a driver that feeds nothing which it may skip.
func skim(t testing.TB, client, server []byte, cut cutter, wants ...string) string {
	tr := newTracker(wants...)
	c := feed(t, tr, true, client, cut, true)
	s := feed(t, tr, false, server, cut, true)
	return c + "\n" + s
}

func feed(t testing.TB, tr *Tracker, fromClient bool, stream []byte, cut cutter, skip bool) string {
	var out strings.Builder
	var fed, last, end int64
	for len(stream) > 0 {
		n := cut(len(stream))
		if rest := tr.Rest(fromClient); rest > 0 {
			if last != fed {
				t.Fatalf("%d bytes to skip, while %d are withheld", rest, fed-last)
			}
			if n = int(min(int64(n), rest)); skip {
				tr.Skip(fromClient, int64(n))
				stream, fed, last = stream[n:], fed+int64(n), fed+int64(n)
				continue
			}
		}
		marks, clear := scanned(tr, fromClient, stream[:n])
		stream, fed = stream[n:], fed+int64(n)
		if clear < last || clear > fed || fed-clear > wire.MaxHeld {
			t.Fatalf("clear %d after %d, of %d", clear, last, fed)
		}
		for _, m := range marks {
			if m.Start > m.End || m.End < end || m.End > fed || m.Start < m.End && m.Start < last || m.End > clear {
				t.Fatalf("mark [%d, %d) after %d; clear was %d and is %d", m.Start, m.End, end, last, clear)
			}
			end = m.End
			fmt.Fprintf(&out, "%d[%d,%d) %s", m.Kind, m.Start, m.End, m.Reason)
			if m.Op != nil {
				out.WriteString(describe(m.Op))
			}
			out.WriteByte('\n')
		}
		last = clear
	}
	fmt.Fprintf(&out, "clear %d", last)
	checkHeld(t, tr, tr.req.pos+tr.rep.pos)
	return out.String()
}

// scanned hands over a chunk that is the caller's again afterwards.
func scanned(tr *Tracker, fromClient bool, b []byte) ([]wire.Mark, int64) {
	chunk := bytes.Clone(b)
	defer func() {
		for i := range chunk {
			chunk[i] = '!'
		}
	}()
	if fromClient {
		return tr.Client(chunk, nil)
	}
	return tr.Upstream(chunk, nil)
}

func sameHoweverCut(t testing.TB, client, server []byte, cuts ...cutter) {
	for _, wants := range [][]string{nil, {"GET", "EVALSHA", "FCALL", "XREAD", "SET", "OBJECT", "PUBLISH"}, {witnessed}, {witnessed, "EVAL"}} {
		want := follow(t, client, server, uncut, wants...)
		for i, cut := range cuts {
			if got := follow(t, client, server, cut, wants...); got != want {
				t.Fatalf("cut %d, wanted %q\nclient %q\nserver %q\ngot  %s\nwant %s", i, wants, client, server, got, want)
			}
			if got := skim(t, client, server, cut, wants...); got != want {
				t.Fatalf("cut %d, skipping, wanted %q\nclient %q\nserver %q\ngot  %s\nwant %s", i, wants, client, server, got, want)
			}
		}
	}
}

// sameInTurns is the same for directions that take turns, by a seed.
func sameInTurns(t testing.TB, client, server []byte, seed uint64, cuts ...cutter) {
	for _, wants := range [][]string{nil, {"GET", "FCALL", "XREAD", "EVALSHA"}, {witnessed}} {
		want := inTurns(t, client, server, seed, uncut, wants...)
		for i, cut := range cuts {
			if got := inTurns(t, client, server, seed, cut, wants...); got != want {
				t.Fatalf("cut %d, seed %d, wanted %q\nclient %q\nserver %q\ngot  %s\nwant %s", i, seed, wants, client, server, got, want)
			}
		}
	}
}

func inTurns(t testing.TB, client, server []byte, seed uint64, cut cutter, wants ...string) string {
	tr, r := newTracker(wants...), rand.New(rand.NewPCG(seed, 3))
	var out strings.Builder
	for len(client)+len(server) > 0 {
		n, m := min(len(client), r.IntN(200)), min(len(server), r.IntN(40))
		out.WriteString(said(t, tr, true, client[:n], cut) + said(t, tr, false, server[:m], cut))
		client, server = client[n:], server[m:]
	}
	return out.String()
}

// said feeds a part of a stream, and returns its marks in words.
func said(t testing.TB, tr *Tracker, fromClient bool, part []byte, cut cutter) string {
	var out strings.Builder
	for len(part) > 0 {
		n := cut(len(part))
		marks, clear := scanned(tr, fromClient, part[:n])
		checkMarks(t, marks, clear)
		for _, m := range marks {
			fmt.Fprintf(&out, "%d[%d,%d) %s", m.Kind, m.Start, m.End, m.Reason)
			if m.Op != nil {
				out.WriteString(describe(m.Op))
			}
			out.WriteByte('\n')
		}
		if part = part[n:]; len(part) == 0 {
			fmt.Fprintf(&out, "clear %d\n", clear)
		}
	}
	return out.String()
}

var conversations = [][2]string{
	{"PING\r\nSETNX a \"b\x00c\"\r\n" + nx, "+PONG\r\n:1\r\n"},
	{words("GET") + words("FCALL f 0") + words("FCALL f 0 x") + words("FCALL f 1 boring") + words("FCALL f 1 a") + words("OBJECT HELP") + words("OBJECT ENCODING boring"), "-ERR x\r\n:1\r\n:1\r\n:1\r\n:1\r\n*0\r\n-ERR x\r\n"},
	{words("XREAD STREAMS a 0") + words("XREAD COUNT 1 STREAMS boring 0") + words("XREAD STREAMS") + cmd("GET", strings.Repeat("k", 2100)) + words("GET boring") + cmd("GET", ""), "*-1\r\n*-1\r\n-ERR x\r\n$-1\r\n$-1\r\n$-1\r\n"},
	{lines("GET a;EVALSHA " + sha("x") + " 0 a;EVALSHA " + sha("x") + " 1 boring;EVALSHA " + sha("x") + " 1 k token-of-it 500;P1"), "$-1\r\n:1\r\n:1\r\n:1\r\n:1001\r\n"},
	{lines("MULTI;LRANGE l 0 -1;P1;SUBSCRIBE c;PUBLISH c x;UNSUBSCRIBE c;EXEC;LRANGE l 0 -1;P2"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*5\r\n" + likeMessage + ":1001\r\n" + likeConfirm + likeMessage + ":1\r\n" + ended + likeMessage + ":1002\r\n"},
	{words("GET boring") + words("PING") + words("get a") + words("GET boring") + words("SET boring x") + nx, "+x\r\n+PONG\r\n$3\r\nabc\r\n$-1\r\n+OK\r\n:1\r\n"},
	{nx + words("GET a") + words("INCR f"), ":1\r\n$3\r\nabc\r\n:7\r\n"},
	{words("MULTI") + nx + words("SELECT 3") + words("DEL a b") + words("EXEC") + nx, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n+OK\r\n:1\r\n:0\r\n"},
	{cmd("EVAL", compareAndDelete, "1", "k", "tok") + cmd("EVALSHA", sha(compareAndDelete), "1", "k", "tok"), ":1\r\n-NOSCRIPT x\r\n"},
	{words("EVALSHA "+sha("x")+" 1 k token-of-it 500 0") + words("EVALSHA "+sha("x")+" 1 k 12345678 500") + words("evalsha "+sha("y")+" 1 k token-of-it"), "-NOSCRIPT x\r\n:1\r\n:1\r\n"},
	{cmd("EVAL", acquireWithFence, "2", "k", "f", "tok", "500"), "|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n:4\r\n"},
	{words("HELLO 3 AUTH u p SETNAME me") + words("CLIENT SETNAME you") + "SET k \"v \\x41\" NX PX 5\r\n", "%1\r\n+proto\r\n:3\r\n+OK\r\n_\r\n"},
	{nx + words("SUBSCRIBE a") + nx, ":1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"},
	{"\r\n*0\r\n*-1\r\nPING\r\n" + nx + "*2\r\n$3\r\nGET\r\n$-1\r\n" + nx, "+PONG\r\n:1\r\n-ERR Protocol error\r\n"},
	{words("GET a") + words("QUIT") + nx, "*2\r\n*1\r\n:1\r\n~0\r\n+OK\r\n"},
	{words("RESET") + words("AUTH x") + nx, "+RESET\r\n"},
	{nx, "*" + strings.Repeat("1\r\n*", 130) + "0\r\n"},
	{lines("MULTI;P1;SUBSCRIBE a b;CLIENT REPLY SKIP;P2;UNSUBSCRIBE;EXEC;P3;P4"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*5\r\n:1\r\n" +
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$1\r\nx\r\n:2\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n:4\r\n"},
	{lines("HELLO 3;SUBSCRIBE a;P1;SUNSUBSCRIBE;RESET;SUBSCRIBE a;PING;P2;UNSUBSCRIBE;P3"), "%1\r\n+proto\r\n:3\r\n>3\r\n+subscribe\r\n+a\r\n:1\r\n>3\r\n+message\r\n+a\r\n+x\r\n:1\r\n" +
		">3\r\n+sunsubscribe\r\n_\r\n:0\r\n+RESET\r\n*3\r\n+subscribe\r\n+a\r\n:1\r\n*2\r\n+pong\r\n+\r\n-ERR x\r\n*3\r\n+unsubscribe\r\n+a\r\n:0\r\n:3\r\n"},
	{lines("CLIENT REPLY OFF;P1;MULTI;P2;EXEC;CLIENT REPLY SKIP;CLIENT REPLY ON;P3;CLIENT REPLY SKIP") + "\r\n" + lines("P4;CLIENT REPLY SKIP;P5;NOSUCH;REPLCONF ACK 1;P6"), "+OK\r\n:3\r\n:4\r\n-ERR x\r\n:6\r\n"},
	{lines("MONITOR;PING;MONITOR;MULTI;PING;EXEC;RESET;P1"), "+OK\r\n+PONG\r\n+1.5 [0 x] \"PING\"\r\n+OK\r\n+1.5 [0 x] \"MULTI\"\r\n+QUEUED\r\n*1\r\n+PONG\r\n+1.5 [0 x] \"PING\"\r\n+RESET\r\n:1\r\n"},
	{lines("PING;AUTH u p;SET a b;GET a;P1;HELLO 3 AUTH u p;P2;MULTI;AUTH u p;EXEC"), "+PONG\r\n+OK\r\n$1\r\nb\r\n:1\r\n%0\r\n:2\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"},
	{lines("P1;PSYNC ? -1;P2"), ":1\r\n+FULLRESYNC x 0\r\n$5\r\nREDIS"},
	{lines("P1;P2"), "-ERR Protocol error: x\r\n:2\r\n"},
	{cmd("HSET", "h", "f", strings.Repeat("v", 300)) + cmd("GET", "k"), ":1\r\n*2\r\n$300\r\n" + strings.Repeat("v", 300) + "\r\n*1\r\n$90\r\n" + strings.Repeat("w", 90) + "\r\n"},
	{cmd("SET", "k", strings.Repeat("v", 200), "EX", "5", "GET"), "$200\r\n" + strings.Repeat("v", 200) + "\r\n"},
}

func TestSameHoweverCut(t *testing.T) {
	for _, c := range conversations {
		client, server := []byte(c[0]), []byte(c[1])
		cuts := []cutter{bytewise}
		for i := range max(len(client), len(server)) {
			cuts = append(cuts, at(i), randomly(uint64(i)))
		}
		sameHoweverCut(t, client, server, cuts...)
		for seed := range uint64(40) {
			sameInTurns(t, client, server, seed, bytewise, randomly(seed))
		}
	}
}

// The property for what is too large to be withheld, where cuts decide what
// had gone before.
func TestSameHoweverCutWhenLarge(t *testing.T) {
	client := []byte(cmd("SET", "k", strings.Repeat("v", wire.MaxHeld+10), "NX", "PX", "500") + nx)
	server := []byte("*140000\r\n" + strings.Repeat(":12345\r\n", 140000) + ":1\r\n")
	by := func(size int) cutter { return func(left int) int { return min(left, size) } }
	sameHoweverCut(t, client, server, by(4096), by(1000), by(wire.MaxHeld), by(wire.MaxHeld+1))
	for _, nul := range []int{10, maxInline - 1, maxInline, maxInline + 10} {
		line := []byte(strings.Repeat("x", nul) + "\x00" + strings.Repeat("x", maxInline))
		sameHoweverCut(t, line, nil, by(4096), by(1000), by(maxInline), by(nul))
	}
}

func FuzzTracker(f *testing.F) {
	for i, c := range conversations {
		f.Add([]byte(c[0]), []byte(c[1]), uint64(i))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, seed uint64) {
		sameHoweverCut(t, client, server, bytewise, randomly(seed), at(int(seed%uint64(len(client)+len(server)+1))))
		sameInTurns(t, client, server, seed, bytewise, randomly(seed))
	})
}

// Any order of the two directions: nothing panics and the offsets hold, even
// for replies that nothing can have asked for yet.
func FuzzInterleaved(f *testing.F) {
	for i, c := range conversations {
		f.Add([]byte(c[0]), []byte(c[1]), uint64(i))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, seed uint64) {
		tr, r := newTracker("GET"), rand.New(rand.NewPCG(seed, 2))
		if seed%2 == 0 {
			tr.opt.Wants = func(string) bool { return true }
		}
		for len(client)+len(server) > 0 {
			fromClient := r.IntN(2) == 0
			stream := &server
			if fromClient {
				stream = &client
			}
			n := min(len(*stream), 1+r.IntN(32))
			if rest := tr.Rest(fromClient); rest > 0 && r.IntN(2) == 0 {
				n = int(min(int64(n), rest))
				tr.Skip(fromClient, int64(n))
			} else {
				marks, clear := scanned(tr, fromClient, (*stream)[:n])
				checkMarks(t, marks, clear)
			}
			*stream = (*stream)[n:]
			checkHeld(t, tr, tr.req.pos+tr.rep.pos)
		}
	})
}

// Requests as another parser frames them, as far as it can be trusted: it reads
// no negative counts, glues no quotes, and panics.
func FuzzRequestsAgainstRedcon(f *testing.F) {
	for _, c := range conversations {
		f.Add([]byte(c[0]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ends []int64
		var r requests
		pos := 0
		for rest := b; len(rest) > 0; {
			n, ev := r.next(rest)
			rest = rest[n:]
			if ev == named {
				r.plan, r.chosen = plan{}, true
			}
			if ev == malformed {
				break
			}
			if ev == framed {
				ends = append(ends, r.pos)
			}
		}
		for _, end := range ends {
			n, ok := byRedcon(b[pos:])
			if !ok {
				return
			}
			if pos += n; int64(pos) != end {
				t.Fatalf("a request ends at %d, by the other parser at %d: %q", end, pos, b)
			}
		}
	})
}

// byRedcon returns the length of the request that b begins with, and false if
// the other parser is not to be asked.
func byRedcon(b []byte) (n int, ok bool) {
	if len(b) == 0 || b[0] != '*' || len(b) > 1<<16 {
		return 0, false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	complete, args, kind, left, err := redcon.ReadNextCommand(b, nil)
	return len(b) - len(left), complete && err == nil && kind == redcon.Redis && len(args) > 0
}
