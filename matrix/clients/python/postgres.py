"""Guards its work by a lock in Postgres that is made by hand, with psycopg2. LOCK is advisory,
row (of a table of locks) or lease (a row with an owner and a time)."""
import os
import time
import uuid

import psycopg2

import work

db = psycopg2.connect(work.DATABASE_URL)
work.ready()
work.wait("START_FILE")
counts = work.Counts()


def rows(sql, *args):
    with db.cursor() as c:
        c.execute(sql, args)
        return c.rowcount


def value(sql, *args):
    with db.cursor() as c:
        c.execute(sql, args)
        return c.fetchone()[0]


def one(n):
    if n != 1:
        raise LookupError("not ours")


def refused():
    counts.note("refused")
    time.sleep(work.RETRY)


def section(renew=None):
    counts.note("granted")
    try:
        work.count(db, counts, renew)
    except work.Lost:
        pass


def advisory():
    """A session's lock, with two numbers for a key."""
    if not value("SELECT pg_try_advisory_lock(%s, %s)", 47, 11):
        return refused()
    section()
    counts.note("released" if value("SELECT pg_advisory_unlock(%s, %s)", 47, 11) else "unreleased")


def row():
    """The lock of a row, waited for, until the end of the transaction."""
    value("SELECT name FROM locks WHERE name = %s FOR UPDATE", "counter")
    section()
    db.commit()
    counts.note("released")


def lease():
    """A row that names its owner and the end of its time."""
    owner = uuid.uuid4().hex
    ms = int(work.LEASE * 1000)
    won = rows("UPDATE locks SET owner = %s, locked_until = now() + %s * interval '1 ms'"
               " WHERE name = %s AND (owner IS NULL OR locked_until < now())", owner, ms, "counter")
    if won == 0:
        return refused()
    section(lambda: one(rows("UPDATE locks SET locked_until = now() + %s * interval '1 ms'"
                             " WHERE name = %s AND owner = %s AND locked_until > now()", ms, "counter", owner)))
    free = rows("UPDATE locks SET owner = NULL, locked_until = NULL WHERE name = %s AND owner = %s", "counter", owner)
    counts.note("released" if free == 1 else "unreleased")


turn = {"advisory": advisory, "row": row, "lease": lease}[os.environ["LOCK"]]
db.autocommit = turn is not row
while counts.more():
    turn()
    time.sleep(0.002)
counts.finish()
