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
