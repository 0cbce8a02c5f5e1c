"""Guards its work by the lock of django-redis's cache."""
import time

import django
import psycopg2
from django.conf import settings
from redis.exceptions import LockError

import work

settings.configure(CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": work.REDIS_URL}})
django.setup()

from django.core.cache import cache  # noqa: E402

db = psycopg2.connect(work.DATABASE_URL)
db.autocommit = True
work.ready()
work.wait("START_FILE")
counts = work.Counts()
while counts.more():
    lock = cache.lock("counter", timeout=work.LEASE)
    if not lock.acquire(blocking=False):
        counts.note("refused")
        time.sleep(work.RETRY)
        continue
    counts.note("granted")
    try:
        work.count(db, counts, lock.reacquire)
    except work.Lost:
        pass
    try:
        lock.release()
        counts.note("released")
    except LockError as e:
        counts.note("unreleased", e)
    time.sleep(0.002)
counts.finish()
