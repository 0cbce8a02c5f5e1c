#!/bin/sh
# Guards its work by a lock in Postgres that is made by hand, with psql. LOCK is advisory, row, table
# (LOCK TABLE) or lease (a row with an owner and a time).
set -eu

wait_for() {
    [ -n "$1" ] || return 0
    n=0
    while [ ! -e "$1" ] && [ $n -lt 1000 ]; do sleep 0.02; n=$((n + 1)); done
}

work='SELECT value AS was FROM counter WHERE id = 1 \gset
SELECT :was + 1 AS next \gset
\! '"while [ -n '${WAIT_FILE:-}' ] && [ ! -e '${WAIT_FILE:-}' ]; do sleep 0.02; done"'
UPDATE counter SET value = :next WHERE id = 1;
\echo wrote'

advisory() {
    cat <<SQL
SELECT pg_try_advisory_lock(4711) AS got \\gset
\\if :got
\\echo granted
$work
SELECT pg_advisory_unlock(4711) AS gone \\gset
\\if :gone
\\echo released
\\else
\\echo unreleased
\\endif
\\else
\\echo refused
\\endif
SQL
}

table() {
    cat <<SQL
BEGIN;
LOCK TABLE locks IN ACCESS EXCLUSIVE MODE;
\\echo granted
$work
COMMIT;
\\echo released
SQL
}

row() {
    cat <<SQL
BEGIN;
SELECT name FROM locks WHERE name = 'counter' FOR UPDATE SKIP LOCKED;
\\if :ROW_COUNT
\\echo granted
$work
COMMIT;
\\echo released
\\else
\\echo refused
ROLLBACK;
\\endif
SQL
}

lease() {
    owner=$$-$1
    cat <<SQL
INSERT INTO lease (name, owner, expires_at) VALUES ('counter', '$owner', now() + interval '${LEASE_MS:-5000} ms')
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
  WHERE lease.expires_at < now() RETURNING owner = '$owner' AS got;
\\if :ROW_COUNT
\\echo granted
$work
DELETE FROM lease WHERE name = 'counter' AND owner = '$owner';
\\if :ROW_COUNT
\\echo released
\\else
\\echo unreleased
\\endif
\\else
\\echo refused
\\endif
SQL
}

[ -z "${READY_FILE:-}" ] || : >"$READY_FILE"
wait_for "${START_FILE:-}"
# Each attempt is written when the one before it has been seen to end.
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
mkfifo "$run/in"
stdbuf -oL psql -X -q -t -A -v ON_ERROR_STOP=1 -f "$run/in" "$DATABASE_URL" >"$run/out" &
exec 3>"$run/in"
count() { grep -c "^$1\$" "$run/out" || true; }
tried=0
while [ "$(count granted)" -lt "${SECTIONS:-10}" ]; do
    [ "${ATTEMPTS:-0}" -eq 0 ] || [ "$tried" -lt "$ATTEMPTS" ] || break
    tried=$((tried + 1))
    { "${LOCK:-advisory}" "$tried"; printf '\\echo end\n'; } >&3
    while kill -0 $! 2>/dev/null && [ "$(count end)" -lt "$tried" ]; do sleep 0.01; done
    kill -0 $! 2>/dev/null || break
done
exec 3>&-
wait $!
printf '{"granted":%d,"refused":%d,"renewed":0,"unrenewed":0,"released":%d,"unreleased":%d,"lost":0,"wrote":%d}\n' \
    "$(count granted)" "$(count refused)" "$(count released)" "$(count unreleased)" "$(count wrote)"
