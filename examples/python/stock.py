#!/usr/bin/env python3
"""A shop's reservation service: units of an item are set aside for orders.

One row counts what is reserved. Several of these processes take orders at once, so each
order is booked under a lease lock in Redis: read the row, talk to the carrier, write the row.

The environment configures it:

  REDIS_URL      redis://127.0.0.1:6379/0
  DATABASE_URL   postgres://postgres@127.0.0.1:5432/postgres
  FENCE          none    the lock alone protects the row                       (none)
                 write   each grant issues a fence, compared when writing
                 claim   the fence is claimed when reading, and must still stand when writing
  LEASE_MS       lifetime of the lock                                          (500)
  CARRIER_MS     what the carrier takes to answer                              (20)
  DURATION_S     how long to take orders                                       (10)

At its end it prints one JSON line: the orders and units that it believes are booked, and
the orders that a fence turned away. Needs redis (4.2 or newer) and asyncpg; on Debian
python3-redis and python3-asyncpg.
"""
import asyncio
import json
import os
import random
import sys
import time
import uuid

import asyncpg
import redis.asyncio
from redis.exceptions import RedisError

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
DATABASE_URL = os.environ.get("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")
FENCE = os.environ.get("FENCE", "none")
LEASE_MS = int(os.environ.get("LEASE_MS", "500"))
CARRIER_MS = int(os.environ.get("CARRIER_MS", "20"))
DURATION_S = float(os.environ.get("DURATION_S", "10"))

LOCK = "lock:stock:1"
FENCES = "fence:stock:1"

# Lock and fence in one step, or a late fence could overtake an early one.
ACQUIRE_FENCED = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return nil
"""

RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""


class Lock:
    """A lease: the key is ours until it expires, or until it is released."""

    def __init__(self, client):
        self.client = client
        self.token = uuid.uuid4().hex
        self.fence = None

    async def take(self):
        if FENCE == "none":
            return await self.client.set(LOCK, self.token, nx=True, px=LEASE_MS)
        self.fence = await self.client.eval(ACQUIRE_FENCED, 2, LOCK, FENCES, self.token, LEASE_MS)
        return self.fence is not None

    async def __aenter__(self):
        while not await self.take():
            await asyncio.sleep(0.005)
        return self.fence

    async def __aexit__(self, *_):
        await self.client.eval(RELEASE, 1, LOCK, self.token)


async def reserved(pg, fence):
    """What is reserved so far; None when a newer fence has claimed the row."""
    if FENCE == "claim":
        return await pg.fetchval(
            "UPDATE stock SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING reserved", fence)
    return await pg.fetchval("SELECT reserved FROM stock WHERE id = 1")


async def store(pg, units, fence):
    """Writes what is reserved now. False when a fence turned the write away."""
    if FENCE == "claim":
        done = await pg.execute("UPDATE stock SET reserved = $1 WHERE id = 1 AND fence = $2", units, fence)
    elif FENCE == "write":
        done = await pg.execute(
            "UPDATE stock SET reserved = $1, fence = $2 WHERE id = 1 AND fence < $2", units, fence)
    else:
        done = await pg.execute("UPDATE stock SET reserved = $1 WHERE id = 1", units)
    return done == "UPDATE 1"


async def book(client, pg, units):
    """Books one order. False when it was turned away and must be taken again from the start."""
    async with Lock(client) as fence:
        before = await reserved(pg, fence)
        if before is None:
            return False
        await asyncio.sleep(CARRIER_MS / 1000)
        return await store(pg, before + units, fence)


async def create(pg):
    """Several processes may try at once; one is enough."""
    try:
        await pg.execute(
            "CREATE TABLE IF NOT EXISTS stock (id int PRIMARY KEY,"
            " reserved bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0)")
    except (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
        pass
    await pg.execute("INSERT INTO stock (id, reserved, fence) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING")


async def main():
    if FENCE not in ("none", "write", "claim"):
        sys.exit(f"FENCE={FENCE}: expected none, write or claim")
    client = redis.asyncio.from_url(REDIS_URL)
    pg = await asyncpg.connect(DATABASE_URL)
    await create(pg)
    believed = {"service": "stock", "fence": FENCE, "orders": 0, "units": 0, "turned_away": 0, "errors": 0}
    end = time.monotonic() + DURATION_S
    while time.monotonic() < end:
        units = random.randint(1, 3)
        try:
            if await book(client, pg, units):
                believed["orders"] += 1
                believed["units"] += units
            else:
                believed["turned_away"] += 1
        except (OSError, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError) as err:
            believed["errors"] += 1
            print(f"stock: {type(err).__name__}: {err}", file=sys.stderr)
            await asyncio.sleep(0.05)
            if pg.is_closed():
                pg = await asyncpg.connect(DATABASE_URL)
    print(json.dumps(believed), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
