package fault

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// classes are the events by effect, in the order in which help shows them.
func classes() []string {
	return []string{"acquire", "refused", "renew", "release", "fence", "read", "write", "commit"}
}

// redisVerbs are the commands that an op can be made of: those on a key, and
// those that end or order a transaction.
func redisVerbs() []string {
	return strings.Fields(`
		SET SETNX SETEX PSETEX MSET MSETNX MSETEX GET GETSET GETDEL GETEX MGET
		DEL UNLINK DELEX DELIFEQ EXISTS TOUCH TYPE DUMP RESTORE RENAME RENAMENX COPY MOVE
		EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME PERSIST TTL PTTL
		INCR INCRBY INCRBYFLOAT DECR DECRBY APPEND STRLEN GETRANGE SETRANGE GETBIT SETBIT BITCOUNT BITFIELD
		EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO
		WATCH UNWATCH MULTI EXEC DISCARD WAIT WAITAOF SELECT PUBLISH SPUBLISH
		HSET HSETNX HMSET HGET HMGET HGETALL HDEL HEXISTS HINCRBY HINCRBYFLOAT HKEYS HVALS HLEN
		HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HTTL HPTTL HGETDEL HGETEX HSETEX
		LPUSH LPUSHX RPUSH RPUSHX LPOP RPOP LLEN LRANGE LINDEX LINSERT LSET LREM LTRIM LMOVE LPOS
		RPOPLPUSH BLPOP BRPOP BRPOPLPUSH BLMOVE LMPOP BLMPOP
		SADD SREM SISMEMBER SMISMEMBER SMEMBERS SCARD SPOP SRANDMEMBER SMOVE
		ZADD ZREM ZSCORE ZMSCORE ZCARD ZCOUNT ZRANK ZREVRANK ZRANGE ZRANGEBYSCORE ZREVRANGE
		ZREVRANGEBYSCORE ZINCRBY ZPOPMIN ZPOPMAX BZPOPMIN BZPOPMAX
		ZREMRANGEBYSCORE ZREMRANGEBYRANK
		XADD XDEL XLEN XRANGE XREVRANGE XREAD XREADGROUP XACK XCLAIM XAUTOCLAIM XGROUP XTRIM`)
}

// pgVerbs are the first words of the statements that an op can be made of.
func pgVerbs() []string {
	return strings.Fields(`
		SELECT INSERT UPDATE DELETE MERGE TRUNCATE COPY LOCK WITH VALUES TABLE
		BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE
		SET SHOW RESET DISCARD LISTEN NOTIFY UNLISTEN
		PREPARE EXECUTE DEALLOCATE DECLARE FETCH MOVE CLOSE CALL DO
		CREATE ALTER DROP COMMENT GRANT REVOKE REFRESH REINDEX CLUSTER VACUUM ANALYZE EXPLAIN CHECKPOINT`)
}

// nameless are the verbs whose ops carry neither a key nor a table, so that a
// glob on them could match nothing.
func nameless() []string {
	return strings.Fields(`
		MULTI EXEC DISCARD UNWATCH WAIT WAITAOF redis:SELECT
		BEGIN START ROLLBACK ABORT SAVEPOINT RELEASE pg:SET SHOW RESET LISTEN NOTIFY UNLISTEN
		PREPARE EXECUTE DEALLOCATE DECLARE FETCH pg:MOVE CLOSE CALL DO CHECKPOINT`)
}

func takesName(p lock.Protocol, event string) bool {
	n := nameless()
	return !slices.Contains(n, event) && !slices.Contains(n, string(p)+":"+event)
}

// defaultProto is the protocol that an event means when no prefix says so; ""
// when it is a class of both, or a verb of both that has no usual reading.
func defaultProto(event string) lock.Protocol {
	switch event {
	case "SET":
		return lock.Redis
	case "SELECT", "read", "write", "commit":
		return lock.Postgres
	}
	redis, pg := slices.Contains(redisVerbs(), event), slices.Contains(pgVerbs(), event)
	switch {
	case redis && !pg:
		return lock.Redis
	case pg && !redis:
		return lock.Postgres
	}
	return ""
}

func isClass(event string) bool { return slices.Contains(classes(), event) }

func isVerb(p lock.Protocol, event string) bool {
	return p != lock.Postgres && slices.Contains(redisVerbs(), event) ||
		p != lock.Redis && slices.Contains(pgVerbs(), event)
}

// known lists every event that a rule may name.
func known() []string {
	return slices.Concat(classes(), []string{tick}, redisVerbs(), pgVerbs())
}

// NamesTable reports whether the name of an event, as a rule writes it with or
// without its protocol, is that of a table and not of a key.
func NamesTable(event string) bool {
	proto, name, prefixed := strings.Cut(event, ":")
	if !prefixed {
		proto, name = string(defaultProto(event)), event
	}
	lockish := isClass(name) && defaultProto(name) == ""
	return lock.Protocol(proto) == lock.Postgres && !lockish
}
