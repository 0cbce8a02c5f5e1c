package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const (
	compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	compareAndExpire = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	acquireWithFence = `
		local ok = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
		if not ok then return 0 end
		return redis.call('INCR', KEYS[2])`
)

// Shapes of scripts, as the ways in which lock libraries write them differ.
func TestScripts(t *testing.T) {
	tests := []struct {
		name, text string
		keys, args []string
		replies    map[string]string // reply -> outcome, without the op's common part
		want       string            // common part
	}{
		{"compare and delete", compareAndDelete, []string{"k"}, []string{"tok"},
			map[string]string{":1": "done", ":0": "not-held", "-NOSCRIPT No": "failed err=NOSCRIPT"}, `release db0 "k" guarded T`},
		{"through a local", `
			local held = redis.call('GET', KEYS[1])
			if held == ARGV[1] then
			  return redis.call('DEL', KEYS[1])
			end
			return 0`, []string{"k"}, []string{"tok"},
			map[string]string{":1": "done", ":0": "not-held"}, `release db0 "k" guarded T`},
		{"early return", `
			-- a comment with 'quotes
			local token = redis.call('get', KEYS[1])
			if not token or token ~= ARGV[1] then
				return 0
			end
			redis.call('del', KEYS[1])
			return 1`, []string{"k"}, []string{"tok"},
			map[string]string{":1": "done", ":0": "not-held"}, `release db0 "k" guarded T`},
		{"three answers", `
			local val = redis.call("GET", KEYS[1])
			if val == ARGV[1] then return redis.call("UNLINK", KEYS[1])
			elseif val == false then return -1 else return 0 end`, []string{"k"}, []string{"tok"},
			map[string]string{":1": "done", ":0": "not-held", ":-1": "not-held", "$-1": "not-held"}, `release db0 "k" guarded T`},
		{"success is 0", `
			if redis.call("get", KEYS[1]) ~= ARGV[1] then return 1
			else redis.call("del", KEYS[2]) redis.call("del", KEYS[1]) return 0 end`, []string{"k", "signal"}, []string{"tok"},
			map[string]string{":0": "done", ":1": "not-held"}, `release db0 "k" guarded T`},
		{"the same answer either way", `
			if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) end return 1`, []string{"k"}, []string{"tok"},
			map[string]string{":1": "unknown"}, `release db0 "k" guarded T`},
		{"aliases", `
			local key, token = KEYS[2], ARGV[2]
			local call = redis.call
			local v = call([[GET]], key)
			if (token == v) then return call("DEL", key) end return nil`, []string{"x", "k"}, []string{"y", "tok"},
			map[string]string{":1": "done", "$-1": "not-held", "_": "not-held"}, `release db0 "k" guarded T`},
		{"joined key", `if redis.call('get', 'lock:' .. KEYS[1]) == ARGV[1] then return redis.call('del', 'lock:' .. KEYS[1]) end`,
			[]string{"k"}, []string{"tok"}, map[string]string{":1": "done"}, `release db0 "lock:k" guarded T`},
		{"another key is deleted", `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[2]) end`,
			[]string{"k", "l"}, []string{"tok"}, map[string]string{":1": ""}, ""},
		{"compare and expire", compareAndExpire, []string{"k"}, []string{"tok", "500"},
			map[string]string{":1": "done", ":0": "not-held"}, `renew db0 "k" guarded T ttl=500ms`},
		{"compare and expire in seconds", `if redis.pcall('Get',KEYS[1])==ARGV[1] then return redis.pcall('Expire',KEYS[1],tonumber(ARGV[2])) end return 0`,
			[]string{"k"}, []string{"tok", "5"}, map[string]string{":1": "done"}, `renew db0 "k" guarded T ttl=5s`},
		{"compare and set again", `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) end return 0`,
			[]string{"k"}, []string{"tok", "500"}, map[string]string{"+OK": "done", ":0": "not-held"}, `renew db0 "k" guarded T ttl=500ms`},
		{"expiry that depends", `
			local token = redis.call('get', KEYS[1])
			if not token or token ~= ARGV[1] then return 0 end
			local newttl = ARGV[2]
			if ARGV[3] == "0" then newttl = ARGV[2] + redis.call('pttl', KEYS[1]) end
			redis.call('pexpire', KEYS[1], newttl)
			return 1`, []string{"k"}, []string{"tok", "500", "0"},
			map[string]string{":1": "done", ":0": "not-held"}, `renew db0 "k" guarded T`},
		{"acquire", `return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'nx')`, []string{"k"}, []string{"tok", "500"},
			map[string]string{"+OK": "granted", "$-1": "refused", "_": "refused", "-ERR x": "failed err=ERR"}, `acquire db0 "k" nx T ttl=500ms`},
		{"setnx and expire", `
			if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then
				redis.call('EXPIRE', KEYS[1], ARGV[2])
				return 1
			else return 0 end`, []string{"k"}, []string{"tok", "5"},
			map[string]string{":1": "granted", ":0": "refused"}, `acquire db0 "k" nx T ttl=5s`},
		{"exists and set, several keys", `
			for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end
			for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end
			return #KEYS`, []string{"k"}, []string{"tok", "500"},
			map[string]string{":1": "granted", ":0": "refused"}, `acquire db0 "k" nx T ttl=500ms`},
		{"free or mine", `
			local id = redis.call('GET', KEYS[1])
			if id == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true
			elseif not id then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end
			return false`, []string{"k"}, []string{"tok", "500"},
			map[string]string{":1": "granted", "$-1": "refused", "#t": "granted", "#f": "refused"}, `acquire db0 "k" nx T ttl=500ms`},
		{"with a fence", acquireWithFence, []string{"k", "f"}, []string{"tok", "500"},
			map[string]string{":17": "fence=17 granted", ":0": "refused", "$-1": "refused", ":-1": "refused"}, `acquire db0 "k" nx T ttl=500ms fencekey=f`},
		{"with a fence in a table", `
			if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
				local fence = redis.call('INCR', KEYS[1] .. ':fence')
				return {1, fence}
			end
			return {0, redis.call('PTTL', KEYS[1])}`, []string{"k"}, []string{"tok", "500"},
			map[string]string{"*2\r\n:1\r\n:9": "fence=9 granted", "*2\r\n:0\r\n:480": "refused"}, `acquire db0 "k" nx T ttl=500ms fencekey=k:fence`},
		{"with a fence beside its answer", `return {redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]), redis.call('incr', KEYS[2])}`,
			[]string{"k", "f"}, []string{"tok", "500"},
			map[string]string{"*2\r\n+OK\r\n:6": "fence=6 granted", "*2\r\n$-1\r\n:6": "refused", "*2\r\n*-1\r\n:6": "refused",
				"*2\r\n_\r\n:6": "refused", "*2\r\n#f\r\n:6": "refused"}, `acquire db0 "k" nx T ttl=500ms fencekey=f`},
		{"with a fence before its answer", `return {redis.call('incr', KEYS[2]), redis.call('setnx', KEYS[1], ARGV[1])}`,
			[]string{"k", "f"}, []string{"tok"},
			map[string]string{"*2\r\n:6\r\n:1": "fence=6 granted", "*2\r\n:6\r\n:0": "refused", "*2\r\n:6\r\n_": "refused"}, `acquire db0 "k" nx T fencekey=f`},
		{"refusal begins with false", `
			if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {true, redis.call('incr', KEYS[2])} end
			return {false, redis.call('incr', KEYS[3])}`, []string{"k", "f", "n"}, []string{"tok", "500"},
			map[string]string{"*2\r\n:1\r\n:6": "fence=6 granted", "*2\r\n$-1\r\n:6": "refused", "*2\r\n_\r\n:6": "refused",
				"*2\r\n#f\r\n:6": "refused", "*2\r\n#t\r\n:6": "fence=6 granted"}, `acquire db0 "k" nx T ttl=500ms fencekey=f`},
		{"with a literal counter", `
			if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {ARGV[1], tostring(redis.call('incr', 'fences'))} end
			return {}`, []string{"k"}, []string{"tok", "500"},
			map[string]string{"*2\r\n$3\r\ntok\r\n$1\r\n9": "fence=9 granted", "*0": "refused", "*-1": "refused"}, `acquire db0 "k" nx T ttl=500ms fencekey=fences`},
		{"refusal tells the rest", `
			if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.status_reply('OK') end
			return redis.call('PTTL', KEYS[1])`, []string{"k"}, []string{"tok", "500"},
			map[string]string{"+OK": "granted", ":480": "unknown", ":-2": "refused"}, `acquire db0 "k" nx T ttl=500ms`},
		{"counter that is not returned", `
			if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then redis.call('INCR', KEYS[2]) return 1 end
			return 0`, []string{"k", "n"}, []string{"tok", "500"},
			map[string]string{":1": "granted"}, `acquire db0 "k" nx T ttl=500ms`},
		{"a rate limiter", `local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n`,
			[]string{"k"}, []string{"5"}, map[string]string{":1": ""}, ""},
		{"word left of a release", `
			local done = redis.call('get', KEYS[2]) if done then return 1 end
			if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
			redis.call('del', KEYS[1]) redis.call('set', KEYS[2], 1, 'px', ARGV[2]) return 1`,
			[]string{"k", "word"}, []string{"tok", "500"}, map[string]string{":1": ""}, ""},
		{"a plain delete", `return redis.call('DEL', KEYS[1])`, []string{"k"}, []string{"x"}, map[string]string{":1": ""}, ""},
		{"not mine, or set again", `
			local v = redis.call('get', KEYS[1])
			if not v or v ~= ARGV[1] then return 0 end
			redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`, []string{"k"}, []string{"tok", "500"},
			map[string]string{":1": "done", ":0": "not-held"}, `renew db0 "k" guarded T ttl=500ms`},
		{"nested too deep", "if " + strings.Repeat("(", 100) + "redis.call('get', KEYS[1])" + strings.Repeat(")", 100) + " == ARGV[1] then redis.call('del', KEYS[1]) end",
			[]string{"k"}, []string{"tok"}, map[string]string{":1": ""}, ""},
		{"not Lua", `"`, []string{"k"}, []string{"x"}, map[string]string{"-ERR Error": ""}, ""},
		{"missing argument", compareAndDelete, []string{}, []string{}, map[string]string{"-ERR Error": ""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for reply, outcome := range tt.replies {
				want := ""
				if tt.want != "" {
					want = strings.ReplaceAll("EVAL "+tt.want, " T", " "+tok("tok")) + " " + outcome
				}
				args := append([]string{"EVAL", tt.text, fmt.Sprint(len(tt.keys))}, append(tt.keys, tt.args...)...)
				got := strings.Join(exchange(t, newTracker(), cmd(args...), reply+"\r\n"), "|")
				if got != want {
					t.Errorf("%q: got  %s\nwant %s", reply, got, want)
				}
			}
		})
	}
}

func TestSeveralKeysOfAScript(t *testing.T) {
	const text = `local n = 0 for i = 1, #KEYS do if redis.call("get", KEYS[i]) == ARGV[1] then n = n + redis.call("del", KEYS[i]) end end return n`
	for reply, outcome := range map[string]string{":2": "done", ":1": "unknown", ":0": "not-held"} {
		got := exchange(t, newTracker(), cmd("EVAL", text, "2", "a", "b", "tok"), reply+"\r\n")
		if len(got) != 2 || !strings.HasSuffix(got[0], outcome) || !strings.Contains(got[1], `"b"`) || !strings.HasSuffix(got[1], outcome) {
			t.Errorf("%s: got %q", reply, got)
		}
	}
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestEvalShaKnowsWhatWasSeen(t *testing.T) {
	tests := map[string]string{
		"EVAL":        cmd("EVAL", compareAndDelete, "1", "k", "tok"),
		"SCRIPT LOAD": cmd("script", "load", compareAndDelete),
	}
	for name, learn := range tests {
		t.Run(name, func(t *testing.T) {
			opt := testOptions()
			first, second := NewTracker(opt), NewTracker(opt)
			request := cmd("evalsha", strings.ToUpper(sha(compareAndDelete)), "1", "k", "tok")
			if got := exchange(t, second, request, "-NOSCRIPT No matching script.\r\n"); len(got) != 0 {
				t.Fatalf("before its text was seen: %q", got)
			}
			exchange(t, first, learn, ":1\r\n")
			got := exchange(t, second, request, "-NOSCRIPT No matching script.\r\n")
			if want := `EVALSHA release db0 "k" guarded ` + tok("tok") + " failed err=NOSCRIPT"; len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestWantedScriptIsAnOp(t *testing.T) {
	got := exchange(t, newTracker("EVALSHA"), cmd("EVALSHA", sha("x"), "2", "a", "b"), ":1\r\n")
	if len(got) != 1 || got[0] != `EVALSHA other db0 "a" done` {
		t.Errorf("got %q", got)
	}
}

func TestScriptCacheIsBounded(t *testing.T) {
	s := NewScripts()
	s.learn([]byte(compareAndDelete))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range maxScripts {
				s.learn(fmt.Appendf(nil, "return %d -- %d", i, w))
				if s.lookup([]byte(sha(compareAndDelete))) == nil {
					t.Error("a script in use was driven out")
					return
				}
			}
		})
	}
	wg.Wait()
	if len(s.known) != maxScripts || len(s.order) != maxScripts {
		t.Errorf("%d known, %d in order", len(s.known), len(s.order))
	}
	long := strings.Repeat("x", maxArg-200)
	for i := range 900 {
		s.learn(fmt.Appendf(nil, "if redis.call('get', '%s%d') == ARGV[1] then redis.call('del', '%s%d') end", long[:7000], i, long[:7000], i))
	}
	bytes := 0
	for _, p := range s.known {
		bytes += p.cost()
	}
	if s.bytes != bytes || bytes > maxScriptBytes {
		t.Errorf("%d bytes counted, %d held", s.bytes, bytes)
	}
}

// A script's own words tell more than how answers usually read.
func TestLiteralAnswers(t *testing.T) {
	const nx = "redis.call('set', KEYS[1], ARGV[1], 'NX')"
	const setnx = "redis.call('setnx', KEYS[1], ARGV[1])"
	for text, replies := range map[string]map[string]string{
		"if " + nx + " then return 0 else return 1 end":                                          {":0": "unknown", ":1": "refused"},
		"if " + nx + " then return 0 end return 1":                                               {":0": "unknown", ":1": "refused"},
		"if not " + nx + " then return 1 end return 0":                                           {":0": "unknown", ":1": "refused"},
		"if " + nx + " then return 1 else return 0 end":                                          {":0": "refused", ":1": "granted"},
		"if " + nx + " then return nil end return 0":                                             {"$-1": "unknown", "_": "unknown", ":0": "refused"},
		"if " + nx + " then return 1 end return nil":                                             {"$-1": "refused", "_": "refused", ":1": "granted"},
		"if " + setnx + " == 0 then return 'LOCKED' end redis.call('get', 'x') return 'OK'":      {"$6\r\nLOCKED": "refused", "$2\r\nOK": "granted"},
		"if " + setnx + " == 1 then return 'yes' else return 'no' end":                           {"$2\r\nno": "refused", "$3\r\nyes": "granted", "$1\r\nx": "granted"},
		"if 1 == " + setnx + " then return '0' end return '1'":                                   {"$1\r\n0": "unknown", "$1\r\n1": "refused"},
		"local n = " + setnx + " if n < 1 then return 'LOCKED' end return 'TAKEN'":               {"$6\r\nLOCKED": "unknown", "$5\r\nTAKEN": "unknown"},
		"local n = " + setnx + " if n == 0 and ARGV[2] then return 'a' end return 'b'":           {"$1\r\na": "unknown", "$1\r\nb": "unknown"},
		"if " + setnx + " == 0 then if ARGV[2] == 'x' then return 'a' end return 'b' end return": {"$1\r\na": "unknown", "$1\r\nb": "refused"},
		"if not (" + setnx + " == 0) then return 'a' end return 'b'":                             {"$1\r\na": "unknown", "$1\r\nb": "unknown"},
		"if " + nx + " then return 'x' end return 'x'":                                           {"$1\r\nx": "unknown"},
		"if " + nx + " then return 0 end return redis.call('pttl', KEYS[1])":                     {":0": "unknown", ":5": "unknown", ":-1": "refused"},
		"if redis.call('exists', KEYS[1]) == 1 then return 1 end redis.call('set', KEYS[1], ARGV[1]) return 0": {
			":1": "refused", ":0": "unknown"},
		"if redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], ARGV[1]) return 'new' else return 'old' end": {
			"$3\r\nnew": "granted", "$3\r\nold": "refused"},
		"local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return 1 elseif not v then redis.call('set', KEYS[1], ARGV[1]) return 1 end return 0": {
			":1": "granted", ":0": "refused"},
		"if " + nx + " then return 1 elseif redis.call('get', KEYS[1]) == ARGV[1] then return 1 else return 0 end": {
			":1": "granted", ":0": "refused"},
	} {
		for reply, want := range replies {
			got := strings.Join(exchange(t, newTracker(), cmd("EVAL", text, "1", "k", "tok"), reply+"\r\n"), "|")
			if !strings.Contains(got, " acquire ") || !strings.HasSuffix(got, " "+want) {
				t.Errorf("%s\n%q: got %s, want %s", text, reply, got, want)
			}
		}
	}
}

// What a key's presence is compared with decides whether a SET creates it.
func TestSetIfAbsent(t *testing.T) {
	const set = ` redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) `
	for text, want := range map[string]effect{
		"if redis.call('exists', KEYS[1]) == 0 then" + set + "return 1 end return 0":                            acquires,
		"if 0 == redis.call('exists', KEYS[1]) then" + set + "return 1 end return 0":                            acquires,
		"if redis.call('exists', KEYS[1]) ~= 1 then" + set + "end":                                              acquires,
		"if redis.call('get', KEYS[1]) == false then" + set + "end":                                             acquires,
		"if not redis.call('get', KEYS[1]) then" + set + "end":                                                  acquires,
		"if redis.call('exists', KEYS[1]) == 1 then return 0 end" + set:                                         acquires,
		"if redis.call('exists', KEYS[1]) == 1 then return 0 else" + set + "end":                                acquires,
		"if redis.call('exists', KEYS[1]) == 1 then redis.log(1, 'x') elseif ARGV[3] == '1' then" + set + "end": acquires,
		"if redis.call('get', KEYS[1]) ~= false then return 0 end" + set:                                        acquires,
		"local v = redis.call('get', KEYS[1]) if v then return 0 end" + set + "return 1":                        acquires,
		"local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return 2 end if not v then" + set + "end":    acquires,
		"if redis.call('exists', KEYS[1]) == 0 then if ARGV[3] == '1' then" + set + "end end":                   acquires,
		"if redis.call('exists', KEYS[1]) == 1 then" + set + "return 1 end return 0":                            noEffect,
		"if redis.call('get', KEYS[1]) ~= false then" + set + "end":                                             noEffect,
		"if redis.call('get', KEYS[1]) then" + set + "end":                                                      noEffect,
		"if redis.call('exists', KEYS[1]) == 0 then return 0 end" + set:                                         noEffect,
		"if not redis.call('get', KEYS[1]) then return 0 end" + set:                                             noEffect,
		"if not redis.call('get', KEYS[1]) then return 0 else" + set + "end":                                    noEffect,
		"if redis.call('exists', KEYS[1]) == 1 then redis.call('incr', KEYS[2]) end" + set:                      noEffect,
		"if redis.call('exists', KEYS[1]) == 0 then redis.call('incr', KEYS[2]) end" + set:                      noEffect,
		"if redis.call('exists', KEYS[1]) == 2 then" + set + "end":                                              noEffect,
		"local there = redis.call('exists', KEYS[1]) == 1" + set + "return there":                               noEffect,
		set + "if redis.call('exists', KEYS[1]) == 1 then return 1 end return 0":                                noEffect,
	} {
		if p := classify([]byte(text)); p.effect != want {
			t.Errorf("%s: effect %d, want %d", text, p.effect, want)
		}
	}
}

// Names that stand for joins of themselves double what they stand for.
func TestTreesAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ head, again string }{
		"join":  {"local a = KEYS[1]", " a = a..a local b = a a = nil local a = b"},
		"local": {"local a = KEYS[1]", " local a = a..a"},
		"table": {"local a = KEYS[1]", " local a = {a, a}"},
		"call":  {"local a = KEYS[1]", " local a = redis.call('get', a, a)"},
		"mixed": {"local a = KEYS[1]", " local a = {a..a, redis.call('get', a)}"},
	} {
		text := tt.head + strings.Repeat(tt.again, 40) + " return redis.call('set', a, ARGV[1], 'NX')"
		r, ok := readLua([]byte(text))
		if !ok {
			t.Fatalf("%s: not read", name)
		}
		all := []ref{r.vars["a"], r.vars["b"]}
		for _, c := range r.calls {
			all = append(all, c.ref)
		}
		for _, v := range all {
			if n := nodes(v, 1000); n > maxNodes {
				t.Fatalf("%s: %d nodes", name, n)
			}
		}
		if p := classify([]byte(text)); p.effect != noEffect {
			t.Errorf("%s: an effect on %+v", name, p.key)
		}
	}
	if p := classify([]byte("local a = KEYS[1]" + strings.Repeat(" local a = a..a", 4) + " return redis.call('set', a, ARGV[1], 'NX')")); p.effect != acquires {
		t.Error("a short join is not followed")
	}
}

func readLua(text []byte) (*luaReader, bool) {
	toks, ok := tokenize(text)
	r, read := readTokens(toks)
	return r, ok && read
}

func TestListsAreBounded(t *testing.T) {
	for name, again := range map[string]string{
		"calls":   " redis.call('set', KEYS[1], ARGV[1])",
		"tests":   " x = not v",
		"returns": " if x then return 1 end",
		"all":     " if not v and v ~= ARGV[1] then redis.call('set', KEYS[1], ARGV[1]) return 1 end",
	} {
		const head = "local v = redis.call('get', KEYS[1]) "
		const tail = " if redis.call('set', KEYS[1], ARGV[1], 'NX') then return 1 end return 0"
		r, ok := readLua([]byte(head + strings.Repeat(again, 300) + tail))
		if ok || max(len(r.calls), len(r.tests), len(r.returns)) != maxListed {
			t.Errorf("%s: %d calls, %d tests, %d returns", name, len(r.calls), len(r.tests), len(r.returns))
		}
		if p := classify([]byte(head + strings.Repeat(again, 100) + tail)); p.effect != acquires {
			t.Errorf("%s: a hundred are too many", name)
		}
	}
}

// nodes counts a tree, and stops beyond the limit.
func nodes(v ref, limit int) int {
	n := 1
	for _, p := range v.parts {
		if n > limit {
			return n
		}
		n += nodes(p, limit-n)
	}
	return n
}

func TestResolveStopsAtTheLongestArgument(t *testing.T) {
	p := classify([]byte("local a = KEYS[1] local a = a..a local a = a..a return redis.call('set', a..a, ARGV[1], 'NX')"))
	dst, ok := p.key.resolve(nil, [][]byte{make([]byte, maxArg-1)}, nil, 1)
	if ok || len(dst) > 2*maxArg {
		t.Errorf("%v, %d bytes", ok, len(dst))
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{compareAndDelete, compareAndExpire, acquireWithFence, "[==[", "--[[", `"\`, strings.Repeat("(", 100), strings.Repeat("{", 100), "for i,k in ipairs(KEYS) do"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, q := classify([]byte(text)), classify([]byte(text))
		if p.effect != q.effect || !p.key.equal(q.key) && p.effect != noEffect {
			t.Errorf("two answers: %+v, %+v", p, q)
		}
		if p.effect != noEffect && (!p.key.isText() || !p.token.isText()) {
			t.Errorf("an effect on an unclear key: %+v", p)
		}
	})
}
