#!/usr/bin/env python3
"""A ledger of customers' orders: many tasks in one process, and a lock for each customer.

Each task takes an order of some customer, locks that customer, reads what the customer has
ordered so far, talks to the bank, and writes the new total. So one process holds several
locks at a time, and shares a pool of connections to Postgres among its tasks.

The environment configures it:

  REDIS_URL      redis://127.0.0.1:6379/0
  DATABASE_URL   postgres://postgres@127.0.0.1:5432/postgres
  GUARD          none      the lock alone protects the row                        (none)
                 version   the write wants the version that was read
  TASKS          how many tasks                                                   (4)
  CUSTOMERS      how many customers they serve                                    (4)
  LEASE_MS       lifetime of a lock                                               (500)
  BANK_MS        what the bank takes to answer                                    (20)
  DURATION_S     how long to take orders                                          (10)

At its end it prints one JSON line: the orders and units that it believes are booked, and
the orders that were turned away. Needs redis (4.2 or newer) and asyncpg; on Debian
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
GUARD = os.environ.get("GUARD", "none")
TASKS = int(os.environ.get("TASKS", "4"))
CUSTOMERS = int(os.environ.get("CUSTOMERS", "4"))
LEASE_MS = int(os.environ.get("LEASE_MS", "500"))
BANK_MS = int(os.environ.get("BANK_MS", "20"))
DURATION_S = float(os.environ.get("DURATION_S", "10"))

RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""


async def book(client, pool, customer, units):
    """Books one order under the customer's lock. False when it was turned away."""
    key, token = f"lock:customer:{customer}", uuid.uuid4().hex
    while not await client.set(key, token, nx=True, px=LEASE_MS):
        await asyncio.sleep(0.005)
    try:
        async with pool.acquire() as pg:
            ordered, version = await pg.fetchrow("SELECT ordered, version FROM customers WHERE id = $1", customer)
            await asyncio.sleep(BANK_MS / 1000)
            return await store(pg, customer, ordered + units, version)
    finally:
        await client.eval(RELEASE, 1, key, token)


async def store(pg, customer, ordered, version):
    """Writes the customer's total. False when somebody else has written since it was read."""
    if GUARD == "version":
        done = await pg.execute(
            "UPDATE customers SET ordered = $1, version = version + 1 WHERE id = $2 AND version = $3",
            ordered, customer, version)
    else:
        done = await pg.execute("UPDATE customers SET ordered = $1 WHERE id = $2", ordered, customer)
    return done == "UPDATE 1"


async def create(pg):
    """Several processes may try at once; one is enough."""
    try:
        await pg.execute(
            "CREATE TABLE IF NOT EXISTS customers (id int PRIMARY KEY,"
            " ordered bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0)")
    except (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
        pass
    await pg.execute("INSERT INTO customers (id) SELECT generate_series(1, $1::int) ON CONFLICT (id) DO NOTHING", CUSTOMERS)


async def task(client, pool, end, believed):
    while time.monotonic() < end:
        units = random.randint(1, 3)
        try:
            if await book(client, pool, random.randint(1, CUSTOMERS), units):
                believed["orders"] += 1
                believed["units"] += units
            else:
                believed["turned_away"] += 1
        except (OSError, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError) as err:
            believed["errors"] += 1
            print(f"orders: {type(err).__name__}: {err}", file=sys.stderr)
            await asyncio.sleep(0.05)


async def main():
    if GUARD not in ("none", "version"):
        sys.exit(f"GUARD={GUARD}: expected none or version")
    client = redis.asyncio.from_url(REDIS_URL)
    believed = {"service": "orders", "guard": GUARD, "orders": 0, "units": 0, "turned_away": 0, "errors": 0}
    async with asyncpg.create_pool(DATABASE_URL, min_size=TASKS, max_size=TASKS) as pool:
        async with pool.acquire() as pg:
            await create(pg)
        end = time.monotonic() + DURATION_S
        await asyncio.gather(*[task(client, pool, end, believed) for _ in range(TASKS)])
    print(json.dumps(believed), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
