// A service that sells tickets: one row counts what is sold, and each sale is made under a
// lease lock in Redis. Its environment configures it: REDIS_URL, DATABASE_URL, FENCE (none,
// or claim: the fence is claimed when reading, and must still stand when writing).
const { randomUUID } = require('crypto');
const Redis = require('ioredis');
const { Client } = require('pg');

const LEASE_MS = 300;
const WORK_MS = 10;
const LASTS_MS = 2000;
const fenced = process.env.FENCE === 'claim';

// Lock and fence in one step, or a late fence could overtake an early one.
const ACQUIRE = `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2]) end return nil`;
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function sell(redis, pg) {
  const token = randomUUID();
  const fence = await redis.eval(ACQUIRE, 2, 'lock:tickets', 'fence:tickets', token, LEASE_MS);
  if (fence === null) return sleep(5);
  try {
    const read = fenced
      ? await pg.query('UPDATE tickets SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING sold', [fence])
      : await pg.query('SELECT sold FROM tickets WHERE id = 1');
    if (read.rowCount === 0) return;
    await sleep(WORK_MS);
    const sold = Number(read.rows[0].sold) + 1;
    if (fenced) await pg.query('UPDATE tickets SET sold = $1 WHERE id = 1 AND fence = $2', [sold, fence]);
    else await pg.query('UPDATE tickets SET sold = $1 WHERE id = 1', [sold]);
  } finally {
    await redis.eval(RELEASE, 1, 'lock:tickets', token);
  }
}

async function main() {
  const redis = new Redis(process.env.REDIS_URL);
  const pg = new Client({ connectionString: process.env.DATABASE_URL });
  await pg.connect();
  for (const end = Date.now() + LASTS_MS; Date.now() < end; ) await sell(redis, pg);
  await pg.end();
  await redis.quit();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
