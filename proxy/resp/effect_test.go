package resp

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// The scripts here are written in the shapes that lock libraries use; none is
// told by its text.
const (
	luaObtain = `if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3]) then return redis.status_reply('OK') end
		local n = tonumber(ARGV[2])
		if n > 0 and redis.call('getrange', KEYS[1], 0, n - 1) == string.sub(ARGV[1], 1, n) then
			return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3]) end`
	luaUntil = `local r = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2])
		redis.call('GET', KEYS[1]) return r`
	luaUntilAgain = `if redis.call('GET', KEYS[1]) == ARGV[1] then
		local r = redis.call('PEXPIREAT', KEYS[1], ARGV[2]) redis.call('GET', KEYS[1]) return r end return 0`
	luaUnique = `if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return -1 end
		if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
		redis.call('HSET', KEYS[2], 'msg', ARGV[3], 'state', 'pending', 'since', ARGV[4])
		redis.call('LPUSH', KEYS[3], ARGV[1]) return 1`
	luaUniqueDone = `if redis.call('LREM', KEYS[1], 0, ARGV[1]) == 0 then return redis.error_reply('NOT FOUND') end
		redis.call('DEL', KEYS[2])
		if redis.call('GET', KEYS[3]) == ARGV[1] then redis.call('DEL', KEYS[3]) end
		return redis.status_reply('OK')`
	luaExtendBy = `local t = redis.call('get', KEYS[1])
		if not t or t ~= ARGV[1] then return 0 end
		local left = redis.call('pttl', KEYS[1]) if left < 0 then return 0 end
		local n = ARGV[2] if ARGV[3] == '0' then n = ARGV[2] + left end
		redis.call('pexpire', KEYS[1], n) return 1`
	luaMany = `for _, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end
		for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return #KEYS`
	luaManyAgain = `for _, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return 0 end end
		for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end return #KEYS`
	luaManyOff = `local n = 0 for _, k in ipairs(KEYS) do
		if redis.call('get', k) == ARGV[1] then redis.call('del', k) n = n + 1 end end return n`
	luaOwnOrFree = `local v = redis.call('GET', KEYS[1])
		if v == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true
		elseif not v then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false`
	luaSetIfOwnOrFree = `local v = redis.call('get', KEYS[1])
		if not v or v == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
		return redis.error_reply('ERROR')`
	luaOffOrError = `local v = redis.call('get', KEYS[1])
		if not v then return redis.status_reply('OK') elseif v == ARGV[1] then return redis.call('del', KEYS[1])
		else return redis.error_reply('ERROR') end`
	luaAgainOrFree = `local v = redis.call('get', KEYS[1])
		if not v then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1
		elseif v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return -1`
	luaYesNo = `local v = redis.call('get', KEYS[1])
		if (not v and ARGV[3] == 'yes') or v == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`
	luaHashOn = `if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
		redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
		return redis.call('pttl', KEYS[1])`
	luaHashAgain = `local r = {} for i, k in ipairs(KEYS) do
		if redis.call('hexists', k, ARGV[i + 1]) == 1 then redis.call('pexpire', k, ARGV[1]) r[i] = 1 else r[i] = 0 end end return r`
	luaHashOff = `local done = redis.call('get', KEYS[3]) if done ~= false then return tonumber(done) end
		if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
		local n = redis.call('hincrby', KEYS[1], ARGV[3], -1)
		if n > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) redis.call('set', KEYS[3], 0, 'px', ARGV[5]) return 0 end
		redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1])
		redis.call('set', KEYS[3], 1, 'px', ARGV[5]) return 1`
	luaHashFenced = `if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
		redis.call('incr', KEYS[2]) redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1])
		return {-1, tonumber(redis.call('get', KEYS[2]))} end
		return {redis.call('pttl', KEYS[1]), -1}`
	luaReads = `local mode = redis.call('hget', KEYS[1], 'mode')
		if mode == false then redis.call('hset', KEYS[1], 'mode', 'read') redis.call('hset', KEYS[1], ARGV[2], 1)
			redis.call('set', KEYS[2] .. ':1', 1) redis.call('pexpire', KEYS[2] .. ':1', ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
		if mode == 'read' or (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1) then
			local n = redis.call('hincrby', KEYS[1], ARGV[2], 1) local key = KEYS[2] .. ':' .. n
			redis.call('set', key, 1) redis.call('pexpire', key, ARGV[1])
			redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1])) return nil end
		return redis.call('pttl', KEYS[1])`
	luaWrites = `local mode = redis.call('hget', KEYS[1], 'mode')
		if mode == false then redis.call('hset', KEYS[1], 'mode', 'write') redis.call('hset', KEYS[1], ARGV[2], 1)
			redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
		if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
			redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1]) return nil end
		return redis.call('pttl', KEYS[1])`
	luaReadsOff = `if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
		local n = redis.call('hincrby', KEYS[1], ARGV[2], -1)
		if n == 0 then redis.call('hdel', KEYS[1], ARGV[2]) end
		redis.call('del', KEYS[3] .. ':' .. (n + 1))
		if redis.call('hlen', KEYS[1]) > 1 then redis.call('pexpire', KEYS[1], ARGV[3]) return 0 end
		redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], ARGV[1]) return 1`
	luaJobLock = `local id = redis.call('rpoplpush', KEYS[1], KEYS[2]) if not id then return 0 end
		local opts = cmsgpack.unpack(ARGV[2])
		redis.call('set', ARGV[1] .. id .. ':lock', opts.token, 'PX', opts.lockDuration)
		redis.call('hset', ARGV[1] .. id, 'processedOn', '1') return {id}`
	luaJobAgain = `local tokens, ids, lost = cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3]), {}
		for i, id in ipairs(ids) do local key = ARGV[1] .. id .. ':lock'
			if redis.call('get', key) == tokens[i] then redis.call('set', key, tokens[i], 'PX', ARGV[4]) redis.call('srem', KEYS[1], id)
			else table.insert(lost, id) end end return lost`
	luaJobOff = `local opts = cmsgpack.unpack(ARGV[2]) local key = ARGV[1] .. opts.id .. ':lock'
		local v = redis.call('get', key)
		if v == opts.token then redis.call('del', key) redis.call('srem', KEYS[1], opts.id) elseif v then return -6 else return -2 end
		redis.call('zadd', KEYS[2], '1', opts.id) return 0`
	luaUniqueJob = `if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return ARGV[1] end
		if redis.call('hlen', KEYS[1]) >= tonumber(ARGV[4]) then return nil end
		redis.call('hset', KEYS[1], ARGV[1], ARGV[3]) redis.call('zadd', KEYS[2], ARGV[3], KEYS[1])
		if tonumber(ARGV[2]) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) end return ARGV[1]`
	luaUniqueJobOff = `if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
		redis.call('hdel', KEYS[1], ARGV[1])
		if redis.call('hlen', KEYS[1]) == 0 then redis.call('unlink', KEYS[1]) redis.call('zrem', KEYS[2], KEYS[1]) end return ARGV[1]`
	luaShared = `if redis.call('exists', KEYS[1]) == 1 then return 0 end
		redis.call('sadd', KEYS[2], ARGV[1]) if redis.call('pttl', KEYS[2]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[2], ARGV[2]) end return 1`
	luaSharedOff  = `return redis.call('srem', KEYS[1], ARGV[1])`
	luaSoleWriter = `if redis.call('scard', KEYS[2]) > 0 then return 0 end
		if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0`
	luaPermit = `local time = redis.call('time') local now = time[1] * 1000 + math.floor(time[2] / 1000)
		redis.call('zremrangebyscore', KEYS[1], '-inf', now)
		if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
		redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[3])
		redis.call('pexpire', KEYS[1], ARGV[2] * 3) return 1`
	luaPermitAgain = `local time = redis.call('time') local now = time[1] * 1000 + math.floor(time[2] / 1000)
		if redis.call('zscore', KEYS[1], ARGV[2]) == false then return 0 end
		redis.call('zadd', KEYS[1], 'XX', now + ARGV[1], ARGV[2]) redis.call('pexpire', KEYS[1], ARGV[1] * 3) return 1`
	luaPermitOff = `return redis.call('zrem', KEYS[1], ARGV[1])`
	luaOtherDB   = `redis.call('select', ARGV[1]) return redis.call('set', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3])`
	luaStoreOn   = `if redis.call('TYPE', KEYS[1]).ok == 'string' then return false end
		redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
		if redis.call('ZSCORE', KEYS[1], ARGV[2]) then
			if not redis.call('ZSCORE', KEYS[1], '__write__') and redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') > 1 then return false end
		elseif redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') > 0 then return false end
		redis.call('ZADD', KEYS[1], ARGV[1] + ARGV[3], ARGV[2]) redis.call('ZADD', KEYS[1], ARGV[1] + ARGV[3], '__write__')
		redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) return true`
	luaStoreOff = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
		if not redis.call('ZSCORE', KEYS[1], ARGV[2]) then return false end
		redis.call('ZREM', KEYS[1], ARGV[2]) redis.call('ZREM', KEYS[1], '__write__')
		local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
		if last ~= nil then redis.call('PEXPIREAT', KEYS[1], last) end return true`
	luaFair = `while true do local first = redis.call('lindex', KEYS[2], 0) if first == false then break end
			if tonumber(redis.call('zscore', KEYS[3], first)) <= tonumber(ARGV[4]) then redis.call('zrem', KEYS[3], first) redis.call('lpop', KEYS[2]) else break end end
		if redis.call('exists', KEYS[1]) == 0 and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
			redis.call('lpop', KEYS[2]) redis.call('zrem', KEYS[3], ARGV[2])
			redis.call('hset', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
		if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
			redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
		if redis.call('zscore', KEYS[3], ARGV[2]) ~= false then return 1 end
		local ttl = redis.call('pttl', KEYS[1])
		if redis.call('zadd', KEYS[3], ttl + ARGV[3] + ARGV[4], ARGV[2]) == 1 then redis.call('rpush', KEYS[2], ARGV[2]) end return ttl`
	luaSignal = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
		redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2])
		redis.call('del', KEYS[1]) return 0`
	luaAgainOrNX = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 'OK'
		else return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) end`
	luaLater = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT')
		else return redis.error_reply('NOT LOCKED') end`
	luaLimit  = `local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n`
	luaBucket = `local b = redis.call('hmget', KEYS[1], 'tokens', 'at') redis.call('hset', KEYS[1], 'tokens', ARGV[1], 'at', ARGV[2])
		redis.call('pexpire', KEYS[1], 1000) return b`
)

const tokA, tokB = "aaaaaaaa-0001", "bbbbbbbb-0002"

// A step is a call, or a plain command, and what it is to come to.
type step struct {
	line, text string
	keys, args []string
	want       string
	seen       string // by looks at the keys, if that differs; "-" for nothing
}

func (s step) but(seen string) step {
	s.seen = seen
	return s
}

func calling(text, keys, want string, args ...string) step {
	return step{text: text, keys: strings.Fields(keys), args: args, want: want}
}

func plainly(line string) step { return step{line: line} }

// tell has a shadow that knows of every key follow the steps.
func (l *lab) tell(steps []step) {
	l.t.Helper()
	for i, s := range steps {
		if s.line != "" {
			l.plain(s.line)
			continue
		}
		reply, e := l.call(s.text, s.keys, s.args...)
		if got := effects(e); got != inTokens(s.want) {
			l.t.Errorf("step %d: got\n  %s\nwant\n  %s\nreply %q", i, got, inTokens(s.want), reply)
		}
		for _, op := range e.Ops {
			if op.Evidence != lock.FromMonitor {
				l.t.Errorf("step %d: %+v", i, op)
			}
		}
	}
}

// inTokens puts tokens in place of their names.
func inTokens(want string) string {
	for name, text := range map[string]string{"A": tokA, "B": tokB, "AM": tokA + "meta", "C": "cccccccc-0003", "U": "user", "ONE": "1", "ZERO": "0"} {
		want = strings.ReplaceAll(want+" ", " "+name+" ", " "+tok(text)+" ")
		want = strings.TrimSuffix(want, " ")
	}
	return strings.ReplaceAll(want, ` "`, ` db0 "`)
}

// stories are the calls that libraries make, and what each does.
func stories() map[string][]step {
	const min, far = "60000", "4102444800000"
	return map[string][]step{
		"redsync": {
			plainly("SET k " + tokA + " EX 8 NX"),
			calling(compareAndExpire, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min),
			calling(compareAndExpire, "k", `renew "k" guarded B not-held`, tokB, min),
			calling(compareAndDelete, "k", `other "k" not-held`, tokB),
			calling(compareAndDelete, "k", `release "k" guarded A done`, tokA),
			calling(compareAndDelete, "k", `release "k" guarded A not-held`, tokA),
		},
		"redislock": {
			calling(luaObtain, "k", `acquire "k" nx AM ttl=1m0s granted`, tokA+"meta", "13", min),
			calling(luaObtain, "k", `acquire "k" nx B ttl=1m0s refused`, tokB, "13", min).but(`acquire "k" nx B refused`),
			calling(luaObtain, "k", `renew "k" guarded AM ttl=1m0s done`, tokA+"meta", "13", min),
			calling(luaObtain, "k", `store "k" A ttl=1m0s done`, tokA, "13", min),
		},
		"rueidislock": {
			calling(luaUntil, "k", `acquire "k" nx A granted until`, tokA, far),
			calling(luaUntil, "k", `acquire "k" nx B refused until`, tokB, far).but(`acquire "k" nx B refused`),
			calling(luaUntilAgain, "k", `renew "k" guarded A done until`, tokA, "4202444800000"),
			calling(luaUntilAgain, "k", `renew "k" guarded B not-held`, tokB, far),
			calling(compareAndDelete, "k", `release "k" guarded A done`, tokA),
		},
		"asynq": {
			calling(luaUnique, "u task pending", `acquire "u" nx A ttl=1m0s granted`, tokA, "60", "message", "1700000000"),
			calling(luaUnique, "u task2 pending", `acquire "u" nx B ttl=1m0s refused`, tokB, "60", "message", "1700000000").but(`acquire "u" nx B refused`),
			calling(luaUniqueDone, "pending task u", `release "u" guarded A done`, tokA),
		},
		"redis-py": {
			plainly("SET k " + tokA + " PX 60000 NX"),
			calling(luaExtendBy, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min, "1"),
			calling(compareAndDelete, "k", `release "k" guarded A done`, tokA),
			calling(luaExtendBy, "k", `renew "k" guarded A not-held`, tokA, min, "1"),
		},
		"node redlock": {
			calling(luaMany, "k l", `acquire "k" nx A ttl=1m0s granted; acquire "l" nx A ttl=1m0s granted`, tokA, min),
			calling(luaMany, "l m", `acquire "l" nx B refused`, tokB, min),
			calling(luaManyAgain, "k l", `renew "k" guarded A ttl=1m0s done; renew "l" guarded A ttl=1m0s done`, tokA, min),
			plainly("DEL l"),
			calling(luaManyAgain, "k l", `renew "k" guarded A not-held; renew "l" guarded A not-held`, tokA, min),
			calling(luaManyOff, "k l", `release "k" guarded A done; release "l" guarded A not-held`, tokA),
		},
		"Spring": {
			calling(luaOwnOrFree, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min),
			calling(luaOwnOrFree, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min),
			calling(luaOwnOrFree, "k", `acquire "k" nx B refused`, tokB, min),
			calling(strings.Replace(compareAndDelete, "DEL", "UNLINK", 1), "k", `release "k" guarded A done`, tokA),
		},
		"aioredlock": {
			calling(luaSetIfOwnOrFree, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min),
			calling(luaSetIfOwnOrFree, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min),
			calling(luaSetIfOwnOrFree, "k", `acquire "k" nx B refused`, tokB, min),
			calling(luaOffOrError, "k", `release "k" guarded A done`, tokA),
			calling(luaOffOrError, "k", `release "k" guarded A not-held`, tokA),
			calling(luaSetIfOwnOrFree, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min), // an extension that takes a lock anew
		},
		"RedLock.net": {
			plainly("SET k " + tokA + " PX 60000 NX"),
			calling(luaAgainOrFree, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min),
			plainly("DEL k"),
			calling(luaAgainOrFree, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min),
			calling(luaAgainOrFree, "k", `acquire "k" nx B refused`, tokB, min),
		},
		"redlock-rb": {
			calling(luaYesNo, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min, "yes"),
			calling(luaYesNo, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min, "no"),
			plainly("DEL k"),
			calling(luaYesNo, "k", `renew "k" guarded A not-held`, tokA, min, "no"),
			calling(luaYesNo, "k", `acquire "k" nx B ttl=1m0s granted`, tokB, min, "yes"),
			calling(luaYesNo, "k", `renew "k" guarded A not-held`, tokA, min, "no"),
		},
		"Redisson": {
			calling(luaHashOn, "k", `acquire "k" nx A ttl=1m0s granted member depth=1`, min, tokA),
			calling(luaHashOn, "k", `acquire "k" A ttl=1m0s granted member depth=2`, min, tokA),
			calling(luaHashOn, "k", `acquire "k" nx B refused member`, min, tokB),
			calling(luaHashAgain, "k l", `renew "k" guarded A ttl=1m0s done member`, min, tokA, tokB),
			calling(luaHashOff, "k ch latch1", `release "k" guarded A ttl=1m0s done member depth=1; store "latch1" ZERO ttl=5s done`, "0", min, tokA, "publish", "5000"),
			calling(luaHashOff, "k ch latch2", `release "k" guarded A done member; store "latch2" ONE ttl=5s done`, "0", min, tokA, "publish", "5000").but(`release "k" guarded A done member`),
			calling(luaHashOff, "k ch latch3", `release "k" guarded A not-held member`, "0", min, tokA, "publish", "5000"),
			calling(luaHashAgain, "k", `renew "k" guarded A not-held member`, min, tokA),
		},
		"Redisson, fenced": {
			calling(luaHashFenced, "k f", `acquire "k" nx A ttl=1m0s fencekey=f fence=1 granted member depth=1`, min, tokA),
			calling(luaHashFenced, "k f", `acquire "k" nx B refused member`, min, tokB),
		},
		"Redisson, readers and writers": {
			calling(luaReads, "k {k}:A", `acquire "k" nx A ttl=1m0s granted member shared; store "{k}:A:1" ONE ttl=1m0s done`, min, tokA, tokA+":w").but(`acquire "k" nx A ttl=1m0s granted member shared depth=1`),
			calling(luaReads, "k {k}:B", `acquire "k" nx B ttl=1m0s granted member shared depth=1; store "{k}:B:1" ONE ttl=1m0s done`, min, tokB, tokB+":w").but(`acquire "k" nx B ttl=1m0s granted member shared depth=1`),
			calling(luaReadsOff, "k ch {k}:A", `release "k" guarded A done member`, "0", tokA, min),
			calling(luaReadsOff, "k ch {k}:B", `release "k" guarded B done member`, "0", tokB, min),
			calling(luaWrites, "k", `acquire "k" nx A ttl=1m0s granted member`, min, tokA).but(`acquire "k" nx A ttl=1m0s granted member depth=1`),
			calling(luaWrites, "k", `acquire "k" nx B refused member`, min, tokB),
		},
		"sidekiq-unique-jobs": {
			calling(luaUniqueJob, "k all", `acquire "k" nx A ttl=1m0s granted member`, tokA, min, "1700000000", "1"),
			calling(luaUniqueJob, "k all", `acquire "k" nx B refused member`, tokB, min, "1700000000", "1"),
			calling(luaUniqueJobOff, "k all", `release "k" guarded A done member`, tokA),
			calling(luaUniqueJob, "k all", `acquire "k" nx A granted member`, tokA, "0", "1700000000", "1"),
			calling(luaUniqueJobOff, "k all", `release "k" guarded B not-held member`, tokB),
		},
		"a reader's set and a writer's key": {
			calling(luaShared, "w r", `acquire "r" nx A ttl=1m0s granted member`, tokA, min),
			calling(luaShared, "w r", `acquire "r" nx B granted member until`, tokB, "1"),
			calling(luaSoleWriter, "w r", `other "r" not-held`, tokA, min),
			calling(luaSharedOff, "r", `release "r" guarded A done member`, tokA),
			calling(luaSharedOff, "r", `release "r" guarded B done member`, tokB),
			calling(luaSoleWriter, "w r", `acquire "w" nx A ttl=1m0s granted`, tokA, min),
			calling(luaShared, "w r", `acquire "w" nx B refused`, tokB, min),
		},
		"Symfony": {
			calling(luaStoreOn, "k", `acquire "k" nx A granted member until`, "1700000000000", tokA, "300000000000"),
			calling(luaStoreOn, "k", `acquire "k" nx B refused member`, "1700000000000", tokB, "300000000000"),
			calling(luaStoreOn, "k", `renew "k" guarded A done member until`, "1700000000000", tokA, "300001000000"),
			calling(luaStoreOff, "k", `release "k" guarded A done member`, "1700000000000", tokA),
			calling(luaStoreOff, "k", `release "k" guarded A not-held member`, "1700000000000", tokA),
		},
		"Redisson, fair": {
			calling(luaFair, "k q z", `acquire "k" nx A ttl=1m0s granted member`, min, tokA, "5000", "1700000000000").but(`acquire "k" nx A ttl=1m0s granted member depth=1`),
			calling(luaFair, "k q z", `acquire "k" nx B refused member`, min, tokB, "5000", "1700000000000"),
			calling(luaFair, "k q z", `acquire "k" nx B refused member`, min, tokB, "5000", "1700000000000"),
			plainly("DEL k"),
			calling(luaFair, "k q z", `acquire "k" nx B ttl=1m0s granted member`, min, tokB, "5000", "1700000000000").but(`acquire "k" nx B ttl=1m0s granted member depth=1`),
		},
		"python-redis-lock": {
			plainly("SET k " + tokA + " NX EX 60"),
			calling(luaSignal, "k signal", `other "k" not-held`, tokB, min),
			calling(luaSignal, "k signal", `release "k" guarded A done`, tokA, min),
			calling(luaSignal, "k signal", `release "k" guarded A not-held`, tokA, min),
		},
		"go-zero": {
			calling(luaAgainOrNX, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min),
			calling(luaAgainOrNX, "k", `renew "k" guarded A ttl=1m0s done`, tokA, min),
			calling(luaAgainOrNX, "k", `acquire "k" nx B ttl=1m0s refused`, tokB, min).but(`acquire "k" nx B refused`),
		},
		"Elixir": {
			plainly("SET k " + tokA + " NX PX 60000"),
			calling(luaLater, "k", `renew "k" guarded A ttl=1m20s done`, tokA, "80000"),
			calling(luaLater, "k", `renew "k" guarded A ttl=1m0s not-held`, tokA, min).but(`renew "k" guarded A not-held`),
			calling(luaLater, "k", `renew "k" guarded B not-held`, tokB, min),
		},
		"permits": {
			calling(luaPermit, "k", `acquire "k" nx A granted member until`, "2", min, tokA),
			calling(luaPermit, "k", `acquire "k" nx B granted member until`, "2", min, tokB),
			calling(luaPermit, "k", `acquire "k" nx C refused member`, "2", min, "cccccccc-0003"),
			calling(luaPermitAgain, "k", `renew "k" guarded A done member until`, min, tokA),
			calling(luaPermitOff, "k", `release "k" guarded A done member`, tokA),
			calling(luaPermitOff, "k", `release "k" guarded A not-held member`, tokA),
			calling(luaPermitAgain, "k", `renew "k" guarded A not-held member`, min, tokA),
		},
		"blind": {
			plainly("SETNX k " + tokA),
			calling(`return redis.call('pexpire', KEYS[1], ARGV[1])`, "k", `renew "k" ttl=1m0s done`, min),
			calling(`return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])`, "k", `store "k" A ttl=1m0s done`, tokA, min).but(`renew "k" guarded A ttl=1m0s done`),
			calling(`return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])`, "k", `store "k" B ttl=1m0s done`, tokB, min),
			calling(`if redis.call('exists', KEYS[1]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[2]) end`, "k", `renew "k" ttl=1m0s done`, tokA, min),
			calling(`if redis.call('get', KEYS[1]) then return redis.call('del', KEYS[1]) end`, "k", `release "k" done`, tokA),
			calling(`return redis.call('del', KEYS[1])`, "k", `release "k" not-held`, tokA).but(`other "k" not-held`),
			calling(luaAgainOrNX, "k", `acquire "k" nx A ttl=1m0s granted`, tokA, min),
			calling(`redis.call('expire', KEYS[1], 0)`, "k", `release "k" done`),
			calling(`redis.call('set', KEYS[1], ARGV[1], 'NX') redis.call('expire', KEYS[1], 60)`, "k", `acquire "k" nx A ttl=1m0s granted`, tokA).but(`acquire "k" nx A granted until`),
			calling(`redis.call('set', KEYS[1], ARGV[1], 'NX') redis.call('expire', KEYS[1], 80)`, "k", `acquire "k" nx B refused; renew "k" ttl=1m20s done`, tokB).but(`renew "k" done until`),
			calling(`redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) redis.call('set', KEYS[1], ARGV[1], 'PX', 60000)`, "k", `release "k" guarded A done; store "k" A ttl=1m0s done`, tokA).but(`renew "k" guarded A done until`),
		},
		"one lock beside another": {
			plainly("SETNX k " + tokA),
			plainly("SETNX l " + tokB),
			calling(`if redis.call('exists', KEYS[2]) == 1 and redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], 60000) end`,
				"k l", `renew "k" guarded A ttl=1m0s done`, tokA).but(`renew "k" guarded A done until; renew "l" guarded A not-held`),
			calling(`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], 60000) redis.call('del', KEYS[1]) end`, "k", `release "k" guarded A done`, tokA),
			calling(`redis.call('exists', KEYS[1]) redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 60000) redis.call('hdel', KEYS[1], ARGV[1])`, "h", ``, tokA),
		},
		"no lock": {
			calling(luaLimit, "n", ``, "60"),
			calling(luaLimit, "n", ``, "60"),
			calling(`local n = redis.call('get', KEYS[1]) redis.call('incr', KEYS[1]) redis.call('expire', KEYS[1], ARGV[2]) return n`, "limit", ``, "1", "60").but(`acquire "limit" nx ONE ttl=1m0s granted`),
			calling(luaBucket, "b", ``, "10", "1700000000"),
			calling(`return redis.call('get', KEYS[1])`, "n", ``),
			calling(`redis.call('hset', KEYS[1], ARGV[1], ARGV[2]) redis.call('expire', KEYS[1], 60)`, "session", ``, "user", "name").but(`acquire "session" nx U granted member until`),
		},
	}
}

func TestEffectsOfScripts(t *testing.T) {
	eachStory(t, func(t *testing.T, l *lab, steps []step) {
		l.shadow.Whole()
		l.tell(steps)
	})
}
