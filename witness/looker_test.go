package witness

import (
	"strconv"
	"testing"

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
