package resp

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// blob packs what MessagePack would: an array of short texts, or a map.
func blob(isMap bool, texts ...string) string {
	n := len(texts)
	head := byte(0x90)
	if isMap {
		n, head = n/2, 0x80
	}
	out := []byte{head | byte(n)}
	for _, s := range texts {
		out = append(append(out, 0xa0|byte(len(s))), s...)
	}
	return string(out)
}

// A job's lock: its key is named nowhere, its token packed among the arguments.
func TestLockThatIsNamedNowhere(t *testing.T) {
	l := newLab(t)
	l.shadow.Whole()
	l.tell([]step{
		plainly("LPUSH wait 7"),
		calling(luaJobLock, "wait active", `store "bull:7:lock" A ttl=30s done`, "bull:", blob(true, "token", tokA, "lockDuration", "30000")),
		calling(luaJobAgain, "stalled", `renew "bull:7:lock" guarded A ttl=30s done`, "bull:", blob(false, tokA), blob(false, "7"), "30000"),
		calling(luaJobAgain, "stalled", `renew "bull:7:lock" guarded not-held`, "bull:", blob(false, tokB), blob(false, "7"), "30000"),
		calling(luaJobOff, "stalled done", `release "bull:7:lock" guarded A done`, "bull:", blob(true, "token", tokA, "id", "7")),
		calling(luaJobOff, "stalled done", `release "bull:7:lock" guarded not-held`, "bull:", blob(true, "token", tokA, "id", "7")),
	})
}

func TestScriptInAnotherDatabase(t *testing.T) {
	l := newLab(t)
	l.shadow.Whole()
	_, e := l.call(luaOtherDB, []string{"k"}, "3", tokA, "60000")
	if got, want := effects(e), strings.Replace(inTokens(`acquire "k" nx A ttl=1m0s granted`), "db0", "db3", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A lock that lapses is free, and a key whose end is near may be either.
func TestShadowKnowsWhenKeysEnd(t *testing.T) {
	l := newLab(t)
	l.shadow.Whole()
	l.tell([]step{calling(luaMany, "k", `acquire "k" nx A ttl=40ms granted`, tokA, "40")})
	st := l.shadow.keys[Ref{Key: "k"}].state
	for after, want := range map[int64]KeyType{-20: String, -nearlyEnds: Unseen, 0: Unseen, nearlyEnds: Unseen, nearlyEnds + 1: Absent} {
		if got := l.shadow.Look(Ref{Key: "k"}, st.Ends+after).Type; got != want {
			t.Errorf("%d ms after its end: %d, want %d", after, got, want)
		}
	}
	time.Sleep(60 * time.Millisecond)
	l.tell([]step{
		calling(luaAgainOrFree, "k", `acquire "k" nx B ttl=1m0s granted`, tokB, "60000"),
		calling(compareAndDelete, "k", `other "k" not-held`, tokA),
		calling(compareAndDelete, "k", `release "k" guarded B done`, tokB),
		calling(compareAndDelete, "k", `release "k" guarded A not-held`, tokA),
	})
}

// What was there before is not known: the look that follows says more.
func TestSettle(t *testing.T) {
	l := newLab(t)
	l.do("SET", "held", tokB, "PX", "60000")
	l.do("ZADD", "permits", "1", tokA)
	tests := []struct {
		text, key  string
		args       []string
		want, then string
	}{
		{luaUntil, "free", []string{tokA, "4102444800000"}, `acquire "free" nx A unknown until`, `acquire "free" nx A granted until`},
		{luaUntil, "held", []string{tokA, "4102444800000"}, `acquire "held" nx A unknown until`, `acquire "held" nx A refused until`},
		{luaUntil, "held2", []string{tokA, "4102444800000"}, `acquire "held2" nx A unknown until`, `acquire "held2" nx A granted until`},
		{compareAndExpire, "held", []string{tokB, "60000"}, `renew "held" guarded ttl=1m0s done`, `renew "held" guarded B ttl=1m0s done`},
		{luaMany, "many", []string{tokA, "60000"}, `acquire "many" nx A ttl=1m0s granted`, ""},
		{`if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then local n = redis.call('incr', 'day') redis.call('expire', 'day', 60) return n end`, "daily", []string{tokA}, `acquire "daily" nx A unknown`, `acquire "daily" nx A granted`},
		{luaPermitAgain, "permits", []string{"60000", tokA}, `renew "permits" guarded A done member until`, ""},
		{luaHashOn, "hash", []string{"60000", tokA}, `acquire "hash" A ttl=1m0s granted member`, ""},
	}
	client := l.client()
	for _, tt := range tests {
		_, e := l.call(tt.text, []string{tt.key}, tt.args...)
		if got := effects(e); got != inTokens(tt.want) {
			t.Errorf("%s: got %s, want %s", tt.key, got, inTokens(tt.want))
		}
		if (len(e.Unsure) > 0) != (tt.then != "") {
			t.Errorf("%s: unsure of %v", tt.key, e.Unsure)
		}
		for _, s := range looksAt(t, client, []string{tt.key}) {
			l.shadow.Settle(&e, callOf(tt.text, []string{tt.key}, tt.args), s, time.Now().UnixMicro())
		}
		if tt.then != "" && effects(e) != inTokens(tt.then) || len(e.Unsure) > 0 {
			t.Errorf("%s: settled %s, want %s", tt.key, effects(e), inTokens(tt.then))
		}
		l.shadow.Forget()
	}
}

// A function is seen as a script is.
func TestEffectsOfFunctions(t *testing.T) {
	l := newLab(t)
	l.shadow.Whole()
	l.do("FUNCTION", "LOAD", `#!lua name=locks
		redis.register_function('take', function(keys, args)
			return redis.call('set', keys[1], args[1], 'NX', 'PX', args[2]) end)
		redis.register_function('drop', function(keys, args)
			if redis.call('get', keys[1]) == args[1] then return redis.call('del', keys[1]) end return 0 end)`)
	for _, s := range []struct{ words, want string }{
		{"FCALL take 1 k " + tokA + " 60000", `acquire "k" nx A ttl=1m0s granted`},
		{"FCALL take 1 k " + tokB + " 60000", `acquire "k" nx B ttl=1m0s refused`},
		{"FCALL drop 1 k " + tokA, `release "k" guarded A done`},
		{"FCALL drop 1 k " + tokB, `release "k" guarded B not-held`},
	} {
		w := strings.Fields(s.words)
		_, shown := l.do(w...)
		c := callOf("", w[3:4], w[4:])
		c.Verb, c.Script = w[0], "/"+w[1]
		if got := effects(l.effect(c, shown)); got != inTokens(s.want) {
			t.Errorf("%s: got %s, want %s", s.words, got, inTokens(s.want))
		}
	}
}

// What a witness cannot have seen of a server must not be made up: the shadow is
// as the keys are, whatever is run.
func TestShadowIsAsTheKeysAre(t *testing.T) {
	l := newLab(t)
	l.shadow.Whole()
	client := l.client()
	for _, line := range []string{
		"SET a 1", "SET a 2 NX", "SET b 3 XX", "SET b 4 NX PX 60000", "SETNX c 5", "SETEX d 50 6", "PSETEX e 50000 7", "GETSET a 8", "GETDEL c",
		"GETEX d PERSIST", "GETEX e PX 70000", "MSET f 1 g 2", "MSETNX g 3 h 4", "MSETNX h 5 i 6", "INCR f", "INCRBY f 10", "DECR f", "DECRBY n 4", "INCR a",
		"SET d x KEEPTTL", "SET e x KEEPTTL", "APPEND f x", "SETRANGE g 0 z", "EXPIRE h 100", "EXPIRE h 50 GT", "EXPIRE h 50 LT", "PERSIST h", "EXPIRE h 50 XX", "EXPIRE i 50 NX",
		"PEXPIREAT i 4102444800000", "EXPIREAT i 4102444800", "EXPIRE b 0", "PEXPIREAT a 5", "DEL h nothing", "RENAME i j", "COPY j k", "UNLINK k",
		"HSET ha x 1 y 2", "HSETNX ha x 5", "HSETNX ha z 5", "HINCRBY ha x 3", "HINCRBY hb x 3", "HDEL hb x", "HDEL ha y nothing", "HMSET hc a b", "HINCRBYFLOAT hc f 1.5",
		"SADD sa a b", "SADD sa b c", "SREM sa a", "SADD sb a", "SREM sb a", "SPOP sa", "SMOVE sa sc b",
		"ZADD za 1 a 2 b", "ZADD za NX 5 a 3 c", "ZADD za XX 7 a 1 d", "ZADD za GT 1 a", "ZREM za b", "ZADD zb 1 a 5 b 9 c", "ZREMRANGEBYSCORE zb -inf (5", "ZREMRANGEBYSCORE zb 9 9", "ZINCRBY zb 1 b", "ZPOPMIN za",
		"LPUSH la x", "RPOPLPUSH la lb", "SET la 1", "HSET a f v", "SADD a x", "ZADD a 1 x", "INCR ha", "XADD xa * f v", "SETBIT bits 1 1", "PFADD pf a", "GEOADD geo 1 1 a", "SORT sa STORE sorted",
		"SELECT 2", "SET other 1", "SELECT 0", "MOVE g 2", "SWAPDB 0 2", "SWAPDB 0 2", "OBJECT ENCODING a", "RESTORE r 0 x", "SET last 1 EX 5",
	} {
		l.plain(line)
		var keys []string
		for k := range l.shadow.keys {
			if k.DB == 0 {
				keys = append(keys, k.Key)
			}
		}
		if l.shadow.whole {
			keys = append(keys, client.Keys(t.Context(), "*").Val()...)
		}
		for _, real := range looksAt(t, client, keys) {
			got := l.shadow.Look(real.Ref, time.Now().UnixMilli())
			if got.Type == Unseen {
				continue
			}
			if !agrees(got, real.State) {
				t.Errorf("after %s: %s is %+v, the shadow has %+v", line, real.Key, real.State, got)
			}
		}
	}
}

// agrees reports whether what is known of a key holds.
func agrees(got, real State) bool {
	if got.Type != real.Type || got.Value.Known() && !got.Value.Same(real.Value) {
		return false
	}
	if d := got.Ends - real.Ends; got.Ends != UnknownEnd && (d < -3 || d > 3) {
		return false
	}
	if !got.Partial && got.Type > String && got.Type < OtherType && len(got.Members) != len(real.Members) {
		return false
	}
	for _, m := range got.Members {
		is, there := real.member(m.Token)
		if there == no || m.Value.Known() && !m.Value.Same(is.Value) || m.Score == m.Score && m.Score != is.Score {
			return false
		}
	}
	return true
}

// With nothing known of what was there before, a witness says less and nothing
// else.
func TestEffectsFromTheMiddle(t *testing.T) {
	eachStory(t, func(t *testing.T, l *lab, steps []step) {
		for i, s := range steps {
			if s.line != "" {
				l.do(strings.Fields(s.line)...) // before anybody watched
				continue
			}
			reply, e := l.call(s.text, s.keys, s.args...)
			l.shadow.Forget()
			got, want := strings.Split(effects(e), "; "), inTokens(s.want)
			for _, op := range got {
				if !strings.Contains(op, " granted") && !strings.Contains(op, " done") && !strings.Contains(op, " refused") || mayBe(op, want) {
					continue
				}
				t.Errorf("step %d: got\n  %s\nwant\n  %s\nreply %q", i, effects(e), want, reply)
			}
		}
	})
}

// mayBe reports whether an op is one of those wanted, but for what was not known.
func mayBe(op, want string) bool {
	w := strings.Fields(op)
	for _, part := range strings.Split(want, "; ") {
		same := strings.Contains(part, w[2]) && (strings.HasPrefix(part, w[0]) || w[0] == "store")
		for _, outcome := range []string{" granted", " refused"} {
			same = same && (!strings.Contains(op, outcome) || strings.Contains(part, outcome))
		}
		if same {
			return true
		}
	}
	return false
}

// A step towards a release that turns out to be all of it, of a lock of which
// nothing was known.
func TestReleaseFromTheMiddle(t *testing.T) {
	l := newLab(t)
	for _, depth := range []string{"1", "2"} {
		l.do("HSET", "k", tokA, depth)
		l.do("DEL", "latch")
		_, e := l.call(luaHashOff, []string{"k", "ch", "latch"}, "0", "60000", tokA, "publish", "5000")
		want := `release "k" guarded A done member`
		if depth == "2" {
			want = `release "k" guarded A ttl=1m0s done member depth=1`
		}
		if got, _, _ := strings.Cut(effects(e), "; store"); got != inTokens(want) {
			t.Errorf("depth %s: got %s, want %s", depth, got, inTokens(want))
		}
		l.shadow.Forget()
	}
}

// What a function that was refused is for is told by its library's text.
func TestPurposeOfFunctions(t *testing.T) {
	s := NewScripts()
	s.learnLibrary([]byte(`redis.register_function('undo', function(k, a) if redis.call('hexists', k[1], a[1]) == 1 then redis.call('HDEL', k[1], a[1]) end end)
		redis.register_function('look', function(k, a) return redis.call('get', k[1]) end)`))
	for name, want := range map[string]lock.Kind{"/undo": lock.Release, "/look": lock.Other, "/none": lock.Other, "undo": lock.Other} {
		if got, _ := s.purpose(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
