package pgwire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A step is a statement of a script with its parameters, and what it does to a
// lease; "" if nothing.
type step struct {
	sql    string
	params []string
	want   string
}

func does(want, sql string, params ...string) step { return step{sql, params, want} }

// leaseScripts are what libraries and people send, in the order in which they do.
var leaseScripts = []struct {
	name, setup string
	steps       []step
}{
	{"ShedLock", "create table shedlock (name text primary key, lock_until timestamp, locked_at timestamp, locked_by text)", []step{
		does("acquire granted new guarded n a until=2000-01-01T00:01:40Z", "INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET lock_until = $2, locked_at = $3, locked_by = $4 WHERE shedlock.lock_until <= $3", "job", "2000-01-01 00:01:40", "2000-01-01 00:00:00", "a"),
		does("acquire refused new guarded n b until=2000-01-01T00:01:41Z", "INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET lock_until = $2, locked_at = $3, locked_by = $4 WHERE shedlock.lock_until <= $3", "job", "2000-01-01 00:01:41", "2000-01-01 00:00:01", "b"),
		does("renew done guarded n a until=2000-01-01T00:02:00Z", "UPDATE shedlock SET lock_until = $1 WHERE name = $2 AND locked_by = $3 AND lock_until > $4", "2000-01-01 00:02:00", "job", "a", "2000-01-01 00:00:01"),
		does("renew not-held guarded n b until=2000-01-01T00:02:00Z", "UPDATE shedlock SET lock_until = $1 WHERE name = $2 AND locked_by = $3 AND lock_until > $4", "2000-01-01 00:02:00", "job", "b", "2000-01-01 00:00:01"),
		does("acquire granted new guarded n b until=2000-01-01T00:05:00Z", "UPDATE shedlock SET lock_until = $1, locked_at = $2, locked_by = $3 WHERE name = $4 AND lock_until <= $2", "2000-01-01 00:05:00", "2000-01-01 00:03:00", "b", "job"),
		does("release done guarded n b", "UPDATE shedlock SET lock_until = now() WHERE name = $1 AND locked_by = $2", "job", "b"),
		does("acquire refused new guarded n b until=2000-01-01T00:05:00Z 23505", "INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('job', '2000-01-01 00:05:00', '2000-01-01 00:03:00', 'b')"),
	}},
	{"ShedLock by the server's clock", "create table shedlock (name text primary key, lock_until timestamp, locked_at timestamp, locked_by text)", []step{
		does("acquire granted new guarded n a ttl=30s", "INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + cast($2 as interval), timezone('utc', CURRENT_TIMESTAMP), $3) ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + cast($2 as interval), locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3 WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)", "job", "30 seconds", "a"),
		does("release done guarded n a", "UPDATE shedlock SET lock_until = CASE WHEN locked_at + cast($1 as interval) > timezone('utc', CURRENT_TIMESTAMP) THEN locked_at + cast($1 as interval) ELSE timezone('utc', CURRENT_TIMESTAMP) END WHERE name = $2 AND locked_by = $3", "0 seconds", "job", "a"),
		does("", "UPDATE shedlock SET lock_until = CASE WHEN locked_by = 'b' THEN lock_until ELSE timezone('utc', CURRENT_TIMESTAMP) + cast($1 as interval) END WHERE name = $2 AND locked_by = $3", "30 seconds", "job", "b"),
	}},
	{"goose", "create table goose_lock (lock_id bigint primary key, locked bool default false, locked_at timestamptz, locked_by text, lease_expires_at timestamptz)", []step{
		does("acquire granted new guarded 1 a ttl=30s", "INSERT INTO goose_lock (lock_id, locked, locked_at, locked_by, lease_expires_at) VALUES ($1, true, now(), $2, now() + $3::interval) ON CONFLICT (lock_id) DO UPDATE SET locked = true, locked_at = now(), locked_by = $2, lease_expires_at = now() + $3::interval WHERE goose_lock.locked = false OR goose_lock.lease_expires_at < now() RETURNING locked_by", "1", "a", "30 seconds"),
		does("acquire refused new guarded 1 b ttl=30s", "INSERT INTO goose_lock (lock_id, locked, locked_at, locked_by, lease_expires_at) VALUES ($1, true, now(), $2, now() + $3::interval) ON CONFLICT (lock_id) DO UPDATE SET locked = true, locked_at = now(), locked_by = $2, lease_expires_at = now() + $3::interval WHERE goose_lock.locked = false OR goose_lock.lease_expires_at < now() RETURNING locked_by", "1", "b", "30 seconds"),
		does("renew done guarded 1 a ttl=15s", "UPDATE goose_lock SET lease_expires_at = now() + $1::interval WHERE lock_id = $2 AND locked_by = $3 AND locked = true RETURNING locked_by", "00:00:15", "1", "a"),
		does("release done guarded 1 a", "UPDATE goose_lock SET locked = false, locked_at = NULL, locked_by = NULL, lease_expires_at = NULL WHERE lock_id = $1 AND locked_by = $2 RETURNING lock_id", "1", "a"),
	}},
	{"River", "create table river_leader (elected_at timestamptz not null, expires_at timestamptz not null, leader_id text not null, name text primary key default 'default')", []step{
		does("", "DELETE FROM river_leader WHERE expires_at < coalesce($1::timestamptz, now())", "2000-01-01 00:00:00Z"),
		does("acquire granted new guarded * a ttl=10s", "INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ($1, coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now()) + make_interval(secs => $3)) ON CONFLICT (name) DO NOTHING RETURNING elected_at, expires_at, leader_id, name", "a", "2000-01-01 00:00:00Z", "10"),
		does("acquire refused new guarded * b ttl=10s", "INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ($1, coalesce($2::timestamptz, now()), coalesce($2::timestamptz, now()) + make_interval(secs => $3)) ON CONFLICT (name) DO NOTHING RETURNING elected_at, expires_at, leader_id, name", "b", "2000-01-01 00:00:00Z", "10"),
		does("renew done guarded * a ttl=10s", "UPDATE river_leader SET expires_at = coalesce($1::timestamptz, now()) + make_interval(secs => $2) WHERE elected_at = $3::timestamptz AND expires_at >= coalesce($1::timestamptz, now()) AND leader_id = $4 RETURNING elected_at", "2000-01-01 00:00:00Z", "10", "2000-01-01 00:00:00Z", "a"),
		does("release done guarded * a", "WITH currently_held AS (DELETE FROM river_leader WHERE leader_id = $1 RETURNING *) SELECT count(*) FROM currently_held", "a"),
	}},
	{"Spring", "create table INT_LOCK (LOCK_KEY char(36), REGION varchar(100), CLIENT_ID char(36), EXPIRED_AFTER timestamp, primary key (LOCK_KEY, REGION))", []step{
		does("acquire refused guarded k,r me until=2000-01-01T00:01:00Z", "UPDATE INT_LOCK SET CLIENT_ID=$1, EXPIRED_AFTER=$2 WHERE REGION=$3 AND LOCK_KEY=$4 AND (CLIENT_ID=$5 OR EXPIRED_AFTER<$6)", "me", "2000-01-01 00:01:00", "r", "k", "me", "2000-01-01 00:00:00"),
		does("acquire granted new guarded k,r me until=2000-01-01T00:01:00Z", "INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, EXPIRED_AFTER) VALUES ($1, $2, $3, $4)", "r", "k", "me", "2000-01-01 00:01:00"),
		does("renew done guarded k,r me until=2000-01-01T00:02:00Z", "UPDATE INT_LOCK SET EXPIRED_AFTER=$1 WHERE REGION=$2 AND LOCK_KEY=$3 AND CLIENT_ID=$4", "2000-01-01 00:02:00", "r", "k", "me"),
		does("release done guarded k,r me", "DELETE FROM INT_LOCK WHERE REGION=$1 AND LOCK_KEY=$2 AND CLIENT_ID=$3", "r", "k", "me"),
	}},
	{"Laravel", "create table cache_locks (key varchar primary key, owner varchar, expiration int)", []step{
		does("acquire granted new guarded k o until=2027-01-15T08:00:00Z", `insert into "cache_locks" ("key", "owner", "expiration") values ($1, $2, $3)`, "k", "o", "1800000000"),
		does("acquire refused guarded k p until=2027-01-15T08:00:00Z", `update "cache_locks" set "owner" = $1, "expiration" = $2 where "key" = $3 and ("owner" = $4 or "expiration" <= $5)`, "p", "1800000000", "k", "p", "1700000000"),
		does("release not-held guarded k p", `delete from "cache_locks" where "key" = $1 and "owner" = $2`, "k", "p"),
		does("release done guarded k o", `delete from "cache_locks" where "key" = $1 and "owner" = $2`, "k", "o"),
	}},
	{"Liquibase", "create table databasechangeloglock (ID int primary key, LOCKED bool, LOCKGRANTED timestamp, LOCKEDBY varchar(255)); insert into databasechangeloglock values (1, false)", []step{
		does("acquire granted new guarded 1 host", "UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'host', LOCKGRANTED = NOW() WHERE ID = 1 AND LOCKED = FALSE"),
		does("acquire refused new guarded 1 other", "UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'other', LOCKGRANTED = '2000-01-01 00:00:00.0' WHERE ID = 1 AND LOCKED = FALSE"),
		does("release done 1", "UPDATE databasechangeloglock SET LOCKED = FALSE, LOCKEDBY = NULL, LOCKGRANTED = NULL WHERE ID = 1"),
	}},
	{"pglock", `create table locks (name varchar primary key, record_version_number bigint, data bytea, owner varchar)`, []step{
		does("acquire granted new guarded n fence=7", `INSERT INTO "locks" ("name", "record_version_number", "data", "owner") VALUES ($1, $2, 'd', 'o') ON CONFLICT ("name") DO UPDATE SET "record_version_number" = CASE WHEN COALESCE("locks"."record_version_number" = $3, TRUE) THEN $2 ELSE "locks"."record_version_number" END, "owner" = CASE WHEN COALESCE("locks"."record_version_number" = $3, TRUE) THEN 'o' ELSE "locks"."owner" END RETURNING "record_version_number", "data", "owner"`, "n", "7", "0"),
		does("acquire refused new guarded n", `INSERT INTO "locks" ("name", "record_version_number", "data", "owner") VALUES ($1, $2, 'd', 'o') ON CONFLICT ("name") DO UPDATE SET "record_version_number" = CASE WHEN COALESCE("locks"."record_version_number" = $3, TRUE) THEN $2 ELSE "locks"."record_version_number" END, "owner" = CASE WHEN COALESCE("locks"."record_version_number" = $3, TRUE) THEN 'o' ELSE "locks"."owner" END RETURNING "record_version_number", "data", "owner"`, "n", "8", "0"),
		does("renew done guarded n", `UPDATE "locks" SET "record_version_number" = $1 WHERE "name" = $2 AND "record_version_number" = $3`, "9", "n", "7"),
		does("release done guarded n", `UPDATE "locks" SET "record_version_number" = NULL WHERE "name" = $1 AND "record_version_number" = $2`, "n", "9"),
	}},
	{"taken again by its owner", `create table lock_keys (key varchar primary key, token varchar, expiration int)`, []step{
		does("acquire granted new guarded k a ttl=5m0s coarse", "INSERT INTO lock_keys (key, token, expiration) VALUES ($1, $2, CAST(EXTRACT(epoch FROM NOW()) AS INT) + 300)", "k", "a"),
		does("acquire granted guarded k a ttl=5s coarse", "UPDATE lock_keys SET expiration = CAST(EXTRACT(epoch FROM NOW()) AS INT) + 5, token = $1 WHERE key = $2 AND (token = $3 OR expiration <= CAST(EXTRACT(epoch FROM NOW()) AS INT))", "a", "k", "a"),
		does("acquire refused guarded k b ttl=5s coarse", "UPDATE lock_keys SET expiration = CAST(EXTRACT(epoch FROM NOW()) AS INT) + 5, token = $1 WHERE key = $2 AND (token = $1 OR expiration <= CAST(EXTRACT(epoch FROM NOW()) AS INT))", "b", "k"),
		does("acquire refused new guarded k c ttl=5s coarse", "UPDATE lock_keys SET expiration = floor(extract(epoch from now())) + 5, token = $1 WHERE key = $2 AND (token = $3 OR expiration <= extract(epoch from now())::bigint)", "c", "k", "stale"),
		does("release done guarded k a", "DELETE FROM lock_keys WHERE key = $1 AND token = $2", "k", "a"),
	}},
	{"names that say nothing", "create table tenancy (what text primary key, who text, till timestamptz); insert into tenancy values ('x', null, 'epoch')", []step{
		does("acquire granted new guarded x a until=2099-01-01T00:00:30Z", "update tenancy set who = $1, till = $2 where what = $3 and till < $4", "a", "2099-01-01 00:00:30Z", "x", "2099-01-01 00:00:00Z"),
		does("acquire refused new guarded x b until=2099-01-01T00:00:40Z", "update tenancy set who = $1, till = $2 where what = $3 and till < $4", "b", "2099-01-01 00:00:40Z", "x", "2099-01-01 00:00:10Z"),
		does("renew done guarded x a until=2099-01-01T00:01:00Z", "update tenancy set till = $1 where what = $2 and who = $3", "2099-01-01 00:01:00Z", "x", "a"),
		does("release done guarded x a", "update tenancy set who = null where what = $1 and who = $2", "x", "a"),
		does("acquire refused new guarded x c ttl=1m30s", "update tenancy set who = $1, till = now() + interval '1 minute' + interval '30 seconds' where what = $2 and (who is null and till is null or till < now())", "c", "x"),
		does("release done x", "delete from tenancy where what = $1", "x"),
	}},
	{"a fence that the lease counts", "create table lease (name text primary key, holder text, expires_at timestamptz, fence bigint default 0); insert into lease (name) values ('x')", []step{
		does("acquire granted new guarded x a ttl=2s fence=1", "UPDATE lease SET holder = $1, expires_at = now() + $2 * interval '1 second', fence = fence + 1 WHERE name = $3 AND (holder IS NULL OR expires_at < now()) RETURNING fence", "a", "2", "x"),
		does("acquire refused new guarded x b ttl=2s", "UPDATE lease SET holder = $1, expires_at = now() + $2 * interval '1 second', fence = fence + 1 WHERE name = $3 AND (holder IS NULL OR expires_at < now()) RETURNING fence", "b", "2", "x"),
		does("renew done guarded x a ttl=2s", "UPDATE lease SET expires_at = now() + make_interval(secs => $1) WHERE name = $2 AND holder = $3", "2", "x", "a"),
		does("renew done x ttl=2s", "UPDATE lease SET expires_at = now() + ($1 || ' seconds')::interval WHERE name = $2", "2", "x"),
		does("release done x", "UPDATE lease SET holder = NULL WHERE name = $1", "x"),
	}},
	{"heartbeats", "create table task (id int primary key, picked bool, picked_by text, last_heartbeat timestamptz, version int); insert into task values (1, false, null, null, 5)", []step{
		does("acquire granted new guarded 1 w", "update task set picked = $1, picked_by = $2, last_heartbeat = $3, version = version + 1 where picked = $4 and id = $5 and version = $6", "true", "w", "2000-01-01 00:00:00Z", "false", "1", "5"),
		does("acquire refused new guarded 1 w", "update task set picked = $1, picked_by = $2, last_heartbeat = $3, version = version + 1 where picked = $4 and id = $5 and version = $6", "true", "w", "2000-01-01 00:00:00Z", "false", "1", "5"),
		does("renew done guarded 1 6", "update task set last_heartbeat = $1 where id = $2 and version = $3", "2000-01-01 00:00:05Z", "1", "6"),
		does("acquire granted new guarded 1 v ttl=5m0s", "update task set picked_by = $1, last_heartbeat = now() where id = $2 and last_heartbeat < now() - interval '5 minutes'", "v", "1"),
		does("release done guarded 1 v", "update task set picked = $1, picked_by = null where id = $2 and picked_by = $3", "false", "1", "v"),
	}},
	{"a queue", "create table jobs (id int primary key, state text default 'available', attempt int default 0, attempted_by text, attempted_at timestamptz); insert into jobs (id) values (1), (2)", []step{
		does("acquire granted new guarded 1 w fence=1", "WITH locked AS (SELECT id FROM jobs WHERE state = 'available' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE jobs SET state = 'running', attempt = attempt + 1, attempted_by = $1, attempted_at = now() FROM locked WHERE jobs.id = locked.id RETURNING jobs.id, jobs.attempt", "w"),
		does("renew done guarded 1 w", "UPDATE jobs SET attempted_at = now() WHERE id = $1 AND attempted_by = $2", "1", "w"),
		does("", "UPDATE jobs SET attempt = attempt WHERE id = 1"),
		does("release done guarded 1 1", "UPDATE jobs SET state = $1 WHERE id = $2 AND attempt = $3", "completed", "1", "1"),
		does("acquire granted new guarded 2 w fence=1", "UPDATE jobs SET state = 'running', attempt = attempt + 1, attempted_by = $1 WHERE id = (SELECT id FROM jobs WHERE state = 'available' FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id, attempt", "w"),
		does("acquire refused new guarded ? w", "UPDATE jobs SET state = 'running', attempt = attempt + 1, attempted_by = $1 WHERE id = (SELECT id FROM jobs WHERE state = 'available' FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id, attempt", "w"),
		does("release done 2", "DELETE FROM jobs WHERE id = $1", "2"),
	}},
	{"what is none", "create table things (id int primary key, name text, owner_id int, token text, body text, version int, last_seen timestamptz, expires_at timestamptz, updated_at timestamptz, status text); insert into things values (1, 'a', 1, 't', 'b', 1, now(), now(), now(), 'new')", []step{
		does("", "update things set body = $1, version = $2 where id = $3 and version = $4", "c", "2", "1", "1"),
		does("", "update things set body = $1, version = $2 where id = $3 and version < $2", "c", "3", "1"),
		does("", "update things set body = $1, updated_at = $2 where id = $3 and updated_at < $2", "c", "2000-01-01 00:00:00Z", "1"),
		does("", "update things set body = $1, updated_at = $2 where id = $3 and updated_at < $4", "c", "2000-01-01 00:00:00Z", "1", "2000-01-01 00:00:00Z"),
		does("", "update things set last_seen = now() where id = $1", "1"),
		does("", "update things set last_seen = now(), body = 'x' where id = $1 and last_seen < now() - interval '5 minutes'", "1"),
		does("", "update things set expires_at = now() + interval '1 hour' where token = $1", "t"),
		does("", "update things set status = 'paid', updated_at = now() where id = $1 and status = 'new'", "1"),
		does("", "delete from things where id = $1 and owner_id = $2", "9", "1"),
		does("", "delete from things where expires_at < now() - interval '1 day'"),
		does("", "insert into things (id, name, token, expires_at) values ($1, 'n', $2, now() + interval '1 hour')", "5", "t"),
		does("", "insert into things (id, name, expires_at) values ($1, $2, now()) on conflict (id) do update set name = excluded.name, expires_at = excluded.expires_at", "5", "t"),
		does("", "update things set body = 'c', owner_id = 5 where id = 1"),
		does("", "truncate things"),
	}},
}

// Each script says the same in the simple protocol, where the parameters are
// literals, and in the extended one.
func TestLeases(t *testing.T) {
	for _, script := range leaseScripts {
		for _, way := range []string{"simple", "extended", "prepared"} {
			for _, version := range []int{15, 18} {
				t.Run(fmt.Sprint(script.name, "/", way, version), func(t *testing.T) { runLeases(t, script.setup, script.steps, way, version) })
			}
		}
	}
}

func runLeases(t *testing.T, setup string, steps []step, way string, version int) {
	w := dial(t, version)
	w.startup(196608, "user", "postgres", "database", "postgres", "TimeZone", "UTC")
	w.until('Z')
	w.quiet("execute 'create temp table x (); " + strings.ReplaceAll(strings.ReplaceAll(setup, "'", "''"), "create ", "create temp ") + "'")
	for _, s := range steps {
		n := len(w.pl.marks)
		switch way {
		case "simple":
			w.send(q(inlined(s.sql, s.params)))
		case "extended":
			w.send(p("", s.sql), ds(""), b("", "", s.params...), e(""), syn)
		case "prepared":
			w.send(q("prepare s as "+s.sql), q("execute s"+literals(s.params)), q("deallocate s"))
			w.until('Z')
			w.until('Z')
		}
		if got := w.until('Z'); strings.Contains(got, "E:42") || strings.Contains(got, "E:22") {
			t.Fatalf("%s: %s", s.sql, got)
		}
		if got := w.leased(w.pl.marks[n:], s); got != s.want {
			t.Errorf("%s\n got %s\nwant %s", inlined(s.sql, s.params), got, s.want)
		}
	}
}

func inlined(sql string, params []string) string {
	for i := len(params); i > 0; i-- {
		sql = strings.ReplaceAll(sql, fmt.Sprintf("$%d", i), "'"+params[i-1]+"'")
	}
	return sql
}

func literals(params []string) string {
	if len(params) == 0 {
		return ""
	}
	return "('" + strings.Join(params, "', '") + "')"
}

// leased writes down what became of leases, with the values that keys and tokens
// stand for.
func (w *tap) leased(marks []wire.Mark, s step) string {
	var out []string
	for _, m := range marks {
		op := m.Op
		if m.Kind != wire.Reply || !strings.HasPrefix(op.Key, "lease:") {
			continue
		}
		line := fmt.Sprint(op.Kind, " ", op.Outcome)
		for _, f := range []struct {
			is   bool
			word string
		}{{op.NX, "new"}, {op.Guarded, "guarded"}} {
			if f.is {
				line += " " + f.word
			}
		}
		line += " " + guess(op.Key, s)
		if op.Token.Known() {
			line += " " + of(op.Token, s)
		}
		if op.TTL != 0 {
			line += " ttl=" + op.TTL.String()
		}
		if op.Coarse {
			line += " coarse"
		}
		if op.Until != 0 {
			line += " until=" + unixTime(op.Until)
		}
		if op.HasFence {
			line += fmt.Sprint(" fence=", op.Fence)
		}
		if op.Err != "" {
			line += " " + op.Err
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func candidates(s step) []string {
	return append([]string{"job", "b", "host", "other", "1", "2", "x", "w", "n", "6", "v"}, s.params...)
}

func of(v lock.Value, s step) string {
	for _, c := range candidates(s) {
		if hasher.Of([]byte(c)).Hash == v.Hash {
			return c
		}
	}
	return v.Hash
}

// guess says which values a lease's key stands for.
func guess(key string, s step) string {
	hash := key[strings.LastIndexByte(key, ':')+1:]
	cell := func(column, v string) lock.Cell { return lock.Cell{Column: column, Value: hasher.Of([]byte(v))} }
	for _, column := range []string{"name", "lock_id", "key", "id", "what"} {
		for _, c := range candidates(s) {
			if hash == cellsKey(hasher, []lock.Cell{cell(column, c)}) {
				if column == "name" && c == "job" {
					return "n"
				}
				return c
			}
		}
	}
	if hash == cellsKey(hasher, []lock.Cell{cell("lock_key", "k"), cell("region", "r")}) {
		return "k,r"
	}
	return hash
}

func unixTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
