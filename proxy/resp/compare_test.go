package resp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/lock"
)

// looks finds what is at the keys, as a probe does.
func looksAt(t *testing.T, c *redis.Client, keys []string) []Sight {
	t.Helper()
	ctx := context.Background()
	var out []Sight
	for _, key := range keys {
		s := Sight{Ref: Ref{Key: key}}
		s.Type = KeyTypeOf(c.Type(ctx, key).Val())
		switch s.Type {
		case String:
			s.Value = testHash.Of([]byte(c.Get(ctx, key).Val()))
		case Hash:
			for f, v := range c.HGetAll(ctx, key).Val() {
				s.Members = append(s.Members, Member{Token: testHash.Of([]byte(f)), Value: testHash.Of([]byte(v))})
			}
		case Set:
			for _, m := range c.SMembers(ctx, key).Val() {
				s.Members = append(s.Members, Member{Token: testHash.Of([]byte(m))})
			}
		case SortedSet:
			for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
				s.Members = append(s.Members, Member{Token: testHash.Of([]byte(z.Member.(string))), Score: z.Score})
			}
		}
		if n := c.PExpireTime(ctx, key).Val(); n > 0 {
			s.Ends = int64(n / time.Millisecond)
		}
		out = append(out, s)
	}
	return out
}

// The same calls by what was there before and after. What differs is told beside
// each step.
func TestEffectsByLooks(t *testing.T) {
	eachStory(t, func(t *testing.T, l *lab, steps []step) {
		client := l.client()
		for i, s := range steps {
			time.Sleep(4 * time.Millisecond) // so that an end that is moved shows
			if s.line != "" {
				l.plain(s.line)
				continue
			}
			keys := append(append([]string{}, s.keys...), s.args...)
			from := time.Now().UnixMicro()
			before := looksAt(t, client, keys)
			reply, _ := l.do(append(append([]string{"EVAL", s.text, itoa(int64(len(s.keys)))}, s.keys...), s.args...)...)
			after := looksAt(t, client, keys)
			e := l.shadow.Compare(callOf(s.text, s.keys, s.args), before, after, from, time.Now().UnixMicro())
			want := s.want
			if s.seen != "" {
				want = strings.TrimPrefix(s.seen, "-")
			}
			if got := effects(e); got != inTokens(want) {
				t.Errorf("step %d: got\n  %s\nwant\n  %s\nreply %q", i, got, inTokens(want), reply)
			}
			for _, op := range e.Ops {
				if op.Evidence != lock.FromProbe {
					t.Errorf("step %d: %+v", i, op)
				}
			}
		}
	})
}

// What looks cannot tell is not told.
func TestLooksThatTellLittle(t *testing.T) {
	const from, to = 1_700_000_000_000_000, 1_700_000_000_004_000
	a, later := testHash.Of([]byte(tokA)), int64(1_700_000_060_000)
	held := State{Type: String, Value: a, Ends: later}
	lapsing := State{Type: String, Value: a, Ends: to/1000 + 1}
	holder := State{Type: Hash, Members: []Member{{Token: a, Value: testHash.Of([]byte("1"))}}, Ends: later}
	many := holder
	many.Partial = true
	for name, tt := range map[string]struct {
		before, after State
		want          string
	}{
		"released":          {held, State{Type: Absent}, `release "k" guarded A done`},
		"or lapsed":         {lapsing, State{Type: Absent}, `release "k" guarded A unknown`},
		"taken":             {State{Type: Absent}, held, `acquire "k" nx A ttl=1m0s granted`},
		"taken, by a field": {State{Type: Absent}, holder, `acquire "k" nx A ttl=1m0s granted member depth=1`},
		"never seen":        {State{}, held, ``},
		"not seen again":    {held, State{}, ``},
		"too many members":  {many, State{Type: Hash, Ends: later}, ``},
		"and then fewer":    {State{Type: Hash, Ends: later}, many, ``},
		"another type":      {held, holder, ``},
		"as before":         {held, held, ``},
		"nearly as before":  {held, State{Type: String, Value: a, Ends: later + 1}, ``},
		"earlier":           {held, State{Type: String, Value: a, Ends: later - 10_000}, `renew "k" guarded A ttl=50s done`},
		"never":             {held, State{Type: String, Value: a}, `renew "k" guarded A done`},
	} {
		s := NewShadow(testHash, NewScripts())
		k := Ref{Key: "k"}
		e := s.Compare(callOf("x", []string{"k"}, []string{tokA, "60", "50000"}), []Sight{{k, tt.before}}, []Sight{{k, tt.after}}, from, to)
		if got := effects(e); got != inTokens(tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, inTokens(tt.want))
		}
		if got := s.Look(k, to/1000); got.Type != tt.after.Type {
			t.Errorf("%s: the shadow has %+v", name, got)
		}
	}
}

// A renewal to the end that a key has already leaves nothing to see: that it had
// success is told by its reply.
func TestRenewalToTheSameEnd(t *testing.T) {
	const at = 1_700_000_000_000_000
	a, b, ends := testHash.Of([]byte(tokA)), testHash.Of([]byte(tokB)), int64(1_700_000_060_000)
	held := State{Type: String, Value: a, Ends: ends}
	field := State{Type: Hash, Members: []Member{{Token: b}, {Token: a}}, Ends: ends}
	for name, tt := range map[string]struct {
		state State
		reply string
		role  lock.Kind
		want  string
	}{
		"renewed":               {held, ":1", lock.Renew, `renew "k" guarded A done until`},
		"renewed, with OK":      {held, "+OK", lock.Renew, `renew "k" guarded A done until`},
		"renewed, by a field":   {field, ":1", lock.Renew, `renew "k" guarded A done member until`},
		"refused":               {held, ":0", lock.Renew, `renew "k" guarded A not-held`},
		"another's":             {State{Type: String, Value: b, Ends: ends}, ":1", lock.Renew, `renew "k" guarded A not-held`},
		"refused a release":     {held, ":1", lock.Release, `release "k" guarded A not-held`},
		"refused what is first": {held, ":0", lock.Other, `other "k" not-held`},
		"had what is first":     {held, ":1", lock.Other, ``},
	} {
		s := NewShadow(testHash, NewScripts())
		k, c := Ref{Key: "k"}, callOf("x", []string{"k"}, []string{tokA})
		c.reply.kind, c.reply.n = tt.reply[0], copy(c.reply.buf[:], tt.reply[1:])
		s.Took(k, b)
		if tt.role != lock.Other {
			s.scripts.roles.saw(c.Script, tt.role, 1, 1, false)
		}
		e := s.Compare(c, []Sight{{k, tt.state}}, []Sight{{k, tt.state}}, at, at+4000)
		if got := effects(e); got != inTokens(tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, inTokens(tt.want))
		}
	}
}

func TestRoles(t *testing.T) {
	var r roles
	for i := range 3 * maxScripts {
		r.saw(itoa(int64(i)), lock.Acquire, 1, 1, false)
	}
	if len(r.known) != maxScripts || len(r.line) != maxScripts {
		t.Errorf("%d scripts", len(r.known))
	}
	r.saw("", lock.Acquire, 1, 1, false)
	if _, ok := r.of(""); ok {
		t.Error("a script without a name has a role")
	}
	r.saw("s", lock.Release, 1, 1, false)
	r.saw("s", lock.Release, 2, 3, false)
	if got, _ := r.of("s"); got.key != 0 || got.token != 0 {
		t.Errorf("%+v", got)
	}
	for _, tt := range []struct {
		kinds       []lock.Kind
		kind, alone lock.Kind
	}{
		{[]lock.Kind{lock.Acquire}, lock.Acquire, lock.Acquire}, {[]lock.Kind{lock.Renew}, lock.Renew, lock.Renew}, {[]lock.Kind{lock.Release}, lock.Release, lock.Release},
		{[]lock.Kind{lock.Acquire, lock.Renew}, lock.Acquire, lock.Other}, {[]lock.Kind{lock.Renew, lock.Release}, lock.Other, lock.Other}, {[]lock.Kind{lock.Acquire, lock.Release}, lock.Acquire, lock.Other},
	} {
		var r roles
		for _, k := range tt.kinds {
			r.saw("s", k, 1, 1, false)
		}
		got, _ := r.of("s")
		kind, _ := got.kind()
		alone, _ := got.only()
		if kind != tt.kind || alone != tt.alone {
			t.Errorf("%s: %s, alone %s", tt.kinds, kind, alone)
		}
	}
}
