package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

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
	c := feed(t, tr.Client, client, cut)
	s := feed(t, tr.Upstream, server, cut)
	return c + "\n" + s
}

func feed(t testing.TB, scan func([]byte, []wire.Mark) ([]wire.Mark, int64), stream []byte, cut cutter) string {
	var out strings.Builder
	var fed, last, end int64
	for len(stream) > 0 {
		n := cut(len(stream))
		chunk := bytes.Clone(stream[:n])
		marks, clear := scan(chunk, nil)
		for i := range chunk {
			chunk[i] = '!' // it is the caller's again
		}
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
	return out.String()
}

func sameHoweverCut(t testing.TB, client, server []byte, cuts ...cutter) {
	for _, wants := range [][]string{nil, {"GET", "EVALSHA"}} {
		want := follow(t, client, server, uncut, wants...)
		for i, cut := range cuts {
			if got := follow(t, client, server, cut, wants...); got != want {
				t.Fatalf("cut %d, wanted %q\nclient %q\nserver %q\ngot  %s\nwant %s", i, wants, client, server, got, want)
			}
		}
	}
}

var conversations = [][2]string{
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
	}
}

// The property for what is too large to be withheld, where cuts decide what
// had gone before.
func TestSameHoweverCutWhenLarge(t *testing.T) {
	client := []byte(cmd("SET", "k", strings.Repeat("v", wire.MaxHeld+10), "NX", "PX", "500") + nx)
	server := []byte("*140000\r\n" + strings.Repeat(":12345\r\n", 140000) + ":1\r\n")
	by := func(size int) cutter { return func(left int) int { return min(left, size) } }
	sameHoweverCut(t, client, server, by(4096), by(1000), by(wire.MaxHeld), by(wire.MaxHeld+1))
}

func FuzzTracker(f *testing.F) {
	for i, c := range conversations {
		f.Add([]byte(c[0]), []byte(c[1]), uint64(i))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, seed uint64) {
		sameHoweverCut(t, client, server, bytewise, randomly(seed), at(int(seed%uint64(len(client)+len(server)+1))))
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
		for len(client)+len(server) > 0 {
			stream, scan := &client, tr.Client
			if r.IntN(2) == 0 {
				stream, scan = &server, tr.Upstream
			}
			n := min(len(*stream), 1+r.IntN(32))
			checkMarksOf(t, scan, (*stream)[:n])
			*stream = (*stream)[n:]
		}
	})
}

func checkMarksOf(t testing.TB, scan func([]byte, []wire.Mark) ([]wire.Mark, int64), chunk []byte) {
	marks, clear := scan(chunk, nil)
	checkMarks(t, marks, clear)
}
