"""Guards its work by redis-py's Lock."""
import time

import psycopg2
import redis
from redis.exceptions import LockError

import work

client = redis.Redis.from_url(work.REDIS_URL)
db = psycopg2.connect(work.DATABASE_URL)
db.autocommit = True
work.ready()
work.wait("START_FILE")
counts = work.Counts()
while counts.more():
    lock = client.lock("lock:counter", timeout=work.LEASE)
    if not lock.acquire(blocking=False):
        counts.note("refused")
        time.sleep(work.RETRY)
        continue
    counts.note("granted")
    try:
        work.count(db, counts, lambda: lock.extend(work.LEASE, replace_ttl=True))
    except work.Lost:
        pass
    try:
        lock.release()
        counts.note("released")
    except LockError as e:
        counts.note("unreleased", e)
    time.sleep(0.002)
counts.finish()
