#!/usr/bin/env python3
"""Seats of a show, sold by several threads of one process, under a lock of Postgres.

A sale reads how many seats are taken, talks to the payment provider, and writes the new
number. What keeps the others out meanwhile is one of four locks that need no Redis.

The environment configures it:

  DATABASE_URL   postgres://postgres@127.0.0.1:5432/postgres
  LOCK           session        pg_advisory_lock, then its unlock                   (session)
                 transaction    pg_advisory_xact_lock; the transaction's end frees it
                 row            SELECT ... FOR UPDATE; likewise
                 lease          a row of seat_leases that says who, and until when
  THREADS        how many threads, each with a connection of its own                (2)
  LEASE_MS       lifetime of a lease                                                (500)
  PAYMENT_MS     what the payment provider takes to answer                          (20)
  DURATION_S     how long to sell                                                   (10)

At its end it prints one JSON line: the seats that it believes are sold. Needs psycopg;
on Debian python3-psycopg.
"""
import contextlib
import json
import os
import sys
import threading
import time
import uuid

import psycopg

DATABASE_URL = os.environ.get("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")
LOCK = os.environ.get("LOCK", "session")
THREADS = int(os.environ.get("THREADS", "2"))
LEASE_MS = int(os.environ.get("LEASE_MS", "500"))
PAYMENT_MS = int(os.environ.get("PAYMENT_MS", "20"))
DURATION_S = float(os.environ.get("DURATION_S", "10"))

TAKE = """
UPDATE seat_leases SET owner = %s, until = now() + %s * interval '1 millisecond'
WHERE name = 'show' AND (owner IS NULL OR until < now())
"""
FREE = "UPDATE seat_leases SET owner = NULL WHERE name = 'show' AND owner = %s"


@contextlib.contextmanager
def locked(db, cursor):
    """Holds the lock for the body, in the way that LOCK says."""
    if LOCK in ("transaction", "row"):
        db.autocommit = False
        if LOCK == "transaction":
            cursor.execute("SELECT pg_advisory_xact_lock(7)")
        yield
        db.commit()
        db.autocommit = True
    elif LOCK == "session":
        cursor.execute("SELECT pg_advisory_lock(7)")
        yield
        cursor.execute("SELECT pg_advisory_unlock(7)")
    else:
        owner = uuid.uuid4().hex
        while True:
            cursor.execute(TAKE, (owner, LEASE_MS))
            if cursor.rowcount == 1:
                break
            time.sleep(0.005)
        yield
        cursor.execute(FREE, (owner,))


def sell(db, cursor):
    with locked(db, cursor):
        cursor.execute("SELECT taken FROM seats WHERE id = 1" + (" FOR UPDATE" if LOCK == "row" else ""))
        taken = cursor.fetchone()[0]
        time.sleep(PAYMENT_MS / 1000)
        cursor.execute("UPDATE seats SET taken = %s WHERE id = 1", (taken + 1,))


def create():
    """Several processes may try at once; one is enough."""
    db = psycopg.connect(DATABASE_URL, autocommit=True)
    cursor = db.cursor()
    with contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
        cursor.execute("CREATE TABLE IF NOT EXISTS seats (id int PRIMARY KEY, taken bigint NOT NULL DEFAULT 0)")
    with contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
        cursor.execute("CREATE TABLE IF NOT EXISTS seat_leases (name text PRIMARY KEY, owner text, until timestamptz)")
    cursor.execute("INSERT INTO seats (id) VALUES (1) ON CONFLICT (id) DO NOTHING")
    cursor.execute("INSERT INTO seat_leases (name) VALUES ('show') ON CONFLICT (name) DO NOTHING")
    db.close()


def thread(end, sold, mutex):
    db = psycopg.connect(DATABASE_URL, autocommit=True)
    cursor = db.cursor()
    while time.monotonic() < end:
        sell(db, cursor)
        with mutex:
            sold["seats"] += 1
    db.close()


def main():
    if LOCK not in ("session", "transaction", "row", "lease"):
        sys.exit(f"LOCK={LOCK}: expected session, transaction, row or lease")
    create()
    sold, mutex, end = {"service": "seats", "lock": LOCK, "seats": 0}, threading.Lock(), time.monotonic() + DURATION_S
    threads = [threading.Thread(target=thread, args=(end, sold, mutex)) for _ in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(json.dumps(sold), flush=True)


if __name__ == "__main__":
    main()
