"""Guards its work by the Lock of redis.asyncio."""
import asyncio
import os

import asyncpg
import redis.asyncio
from redis.exceptions import LockError

import work


async def wait(name):
    for _ in range(2000):
        if work.there(os.environ.get(name)):
            return
        await asyncio.sleep(0.01)


async def section(db, counts, lock):
    value = await db.fetchval(work.READ)
    await asyncio.sleep(work.THINK)
    if work.RENEW:
        try:
            await lock.extend(work.LEASE, replace_ttl=True)
        except LockError as e:
            counts.note("unrenewed", e)
            return
        counts.note("renewed")
    await wait("WAIT_FILE")
    await db.execute("UPDATE counter SET value = $1 WHERE id = 1", value + 1)
    counts.note("wrote")


async def main():
    client = redis.asyncio.from_url(work.REDIS_URL)
    db = await asyncpg.connect(work.DATABASE_URL)
    work.ready()
    await wait("START_FILE")
    counts = work.Counts()
    while counts.more():
        lock = client.lock("lock:counter", timeout=work.LEASE)
        if not await lock.acquire(blocking=False):
            counts.note("refused")
            await asyncio.sleep(work.RETRY)
            continue
        counts.note("granted")
        await section(db, counts, lock)
        try:
            await lock.release()
            counts.note("released")
        except LockError as e:
            counts.note("unreleased", e)
        await asyncio.sleep(0.002)
    await db.close()
    await client.close()
    counts.finish()


asyncio.run(main())
