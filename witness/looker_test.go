package witness

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// What is left of a lifetime is of an instant somewhere between two looks at the server's clock: a look for
// which that is long would show a key's end to have moved that has not.
func TestALookThatTookLong(t *testing.T) {
	clock := func(micros int64) reply {
		return reply{kind: '*', list: []reply{{kind: '$', text: []byte("1700000000")}, {kind: '$', text: strconv.AppendInt(nil, micros, 10)}}}
	}
	key := []reply{
		{kind: '+', text: []byte("string")}, {kind: ':', text: []byte("500")}, {kind: '$', text: []byte("token")},
		{kind: '-'}, {kind: '-'}, {kind: '-'},
	}
	for _, c := range []struct {
		from, to int64
		ok       bool
	}{{7000, 7000, true}, {7000, 8000, true}, {7000, 8001, false}, {7000, 6999, false}} {
		l := newLooker(Redis{}, lock.NewHasher(nil), nil)
		q, db := &question{refs: []resp.Ref{{Key: "lock"}}}, 0
		commands := l.commands(q, &db)
		exec := append(append([]reply{}, key...), clock(c.to), reply{kind: '$'})
		got := make([]reply, len(commands))
		got[0], got[len(got)-1] = clock(c.from), reply{kind: '*', list: exec}
		if !l.read(q, got) || q.ok != c.ok || q.at != 1700000000_000_000+c.to {
			t.Errorf("from %d to %d µs: usable %v, at %d", c.from, c.to, q.ok, q.at)
		}
		if end := q.sights[0].Ends; end != 1700000000_000+c.to/1000+500 {
			t.Errorf("it ends at %d", end)
		}
	}
}

// A canned is a connection that has its answers beforehand.
type canned struct {
	net.Conn
	asked bytes.Buffer
}

func (a *canned) Write(p []byte) (int, error) { return a.asked.Write(p) }
func (a *canned) SetDeadline(time.Time) error { return nil }

// answersOf are a server's to looks at a key that took so many microseconds.
func answersOf(took ...int) string {
	var b strings.Builder
	clock := func(micros int) { fmt.Fprintf(&b, "*2\r\n$10\r\n1700000000\r\n$6\r\n%06d\r\n", micros) }
	for i, d := range took {
		clock(100)
		b.WriteString("+OK\r\n" + strings.Repeat("+QUEUED\r\n", perKey+2) + "*8\r\n+string\r\n:500\r\n")
		fmt.Fprintf(&b, "$6\r\ntoken%d\r\n-ERR\r\n-ERR\r\n-ERR\r\n", i)
		clock(100 + d)
		b.WriteString("$4\r\nmark\r\n")
	}
	return b.String()
}

// A look that took too long is taken again, a few times; but for one whose place MONITOR is to show.
func TestALookThatTookLongIsTakenAgain(t *testing.T) {
	hash := lock.NewHasher(nil)
	for _, c := range []struct {
		took  []int
		shown func()
		looks int
	}{
		{[]int{1000}, nil, 1},
		{[]int{1001, 5}, nil, 2},
		{[]int{5000, -1, 5}, nil, 3},
		{[]int{5000, 5000, 5000, 5}, nil, 0},
		{[]int{1001, 5}, func() {}, 0},
	} {
		server := &canned{}
		k := &link{conn: server, in: bufio.NewReader(strings.NewReader(answersOf(c.took...)))}
		q := &question{refs: []resp.Ref{{Key: "lock"}}, shown: c.shown}
		if err := newLooker(Redis{}, hash, nil).answer(k, []*question{q}); err != nil {
			t.Fatal(err)
		}
		if q.ok != (c.looks > 0) || len(q.sights) != 1 || q.ok && !q.sights[0].Value.Same(hash.Of(fmt.Appendf(nil, "token%d", c.looks-1))) {
			t.Errorf("%v: usable %v, seen %+v", c.took, q.ok, q.sights)
		}
	}
}
