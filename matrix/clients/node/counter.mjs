// Adds one to a row of Postgres, again and again, under a lock of redlock 5. It is configured by its environment:
//
//   REDIS_URL, DATABASE_URL
//   LEASE_MS    lifetime of the lock (500)
//   FENCED      0: no fence; 1: compared when writing; claim: claimed when reading (0)
//   HEARTBEAT   1: using() rather than acquire(), which extends the lock by itself (0)
//   WORK_MS     what is done between read and write (20)
//   DURATION_S  how long to go on (10)
//
// At its end it prints one JSON line: the writes that were acknowledged, those that its fence turned away,
// the sections that gave up their lock, and other errors.
import { setTimeout as sleep } from "node:timers/promises";
import Redis from "ioredis";
import pg from "pg";
import Redlock, { ExecutionError } from "redlock";

const { REDIS_URL, DATABASE_URL, FENCED = "0", HEARTBEAT = "0" } = process.env;
const number = (name, otherwise) => Number(process.env[name] ?? otherwise);
const lease = number("LEASE_MS", 500);
const work = number("WORK_MS", 20);

const redis = new Redis(REDIS_URL);
const db = new pg.Pool({ connectionString: DATABASE_URL });
const redlock = new Redlock([redis], { retryCount: 20, retryDelay: 10, retryJitter: 5, automaticExtensionThreshold: lease / 2 });
redlock.on("error", () => {}); // each refusal of an attempt

await redis.ping(); // the time that connecting takes is no lock's
await db.query("SELECT 1");
const did = { writes: 0, rejected: 0, lost: 0, errors: 0 };

for (const end = Date.now() + number("DURATION_S", 10) * 1000; Date.now() < end; ) {
  try {
    await locked(add);
  } catch (e) {
    if (e instanceof ExecutionError) continue; // not granted in time, or gone before its release
    did.errors++;
    console.error(e);
  }
}
redis.disconnect();
await db.end();
console.log(JSON.stringify(did));

async function locked(routine) {
  if (HEARTBEAT === "1") return redlock.using(["lock:counter"], lease, routine);
  const lock = await redlock.acquire(["lock:counter"], lease);
  try {
    return await routine();
  } finally {
    await lock.release();
  }
}

async function add(signal) {
  const fence = FENCED === "0" ? undefined : await redis.incr("fence:counter");
  const value = await read(fence);
  if (value === undefined) return did.rejected++;
  await sleep(work);
  if (signal?.aborted) return did.lost++;
  return (await write(value + 1, fence)) ? did.writes++ : did.rejected++;
}

async function read(fence) {
  const { rows } =
    FENCED === "claim"
      ? await db.query("UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value", [fence])
      : await db.query("SELECT value FROM counter WHERE id = 1");
  return rows.length === 1 ? Number(rows[0].value) : undefined;
}

async function write(value, fence) {
  const { rowCount } =
    FENCED === "claim"
      ? await db.query("UPDATE counter SET value = $1 WHERE id = 1 AND fence = $2", [value, fence])
      : FENCED === "1"
        ? await db.query("UPDATE counter SET value = $1, fence = $2 WHERE id = 1 AND fence < $2", [value, fence])
        : await db.query("UPDATE counter SET value = $1 WHERE id = 1", [value]);
  return rowCount === 1;
}
