// The business of these services: a row in Postgres is read, something is done that takes
// time, and the row is written. What guards it is each service's own affair. The environment says
// how much, as in ../go/work.
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const number = (name, otherwise) => (process.env[name] ? Number(process.env[name]) : otherwise);

export { sleep };
export const lease = number("LEASE_MS", 5000);
export const sections = number("SECTIONS", 10);
export const renews = process.env.RENEW === "1";
export const attempts = number("ATTEMPTS", 0);
export const retry = number("RETRY_MS", 5);
const think = number("THINK_MS", 2);

const db = new pg.Client({ connectionString: process.env.DATABASE_URL });

export const counts = { granted: 0, refused: 0, renewed: 0, unrenewed: 0, released: 0, unreleased: 0, lost: 0, wrote: 0 };

export function note(name, why) {
  if (why) console.error(`${name}: ${why}`);
  counts[name]++;
}

export const more = () =>
  counts.granted < sections && (attempts === 0 || counts.granted + counts.refused < attempts);

export async function wait(name) {
  const file = process.env[name];
  for (let i = 0; file && i < 2000 && !existsSync(file); i++) await sleep(10);
}

export async function start() {
  await db.connect();
  if (process.env.READY_FILE) writeFileSync(process.env.READY_FILE, "");
  await wait("START_FILE");
}

export async function finish() {
  await db.end();
  console.log(JSON.stringify(counts));
}

// count does one section's work. renew may be missing; signal tells that the lock is gone.
export async function count(id, { renew, signal } = {}) {
  const { rows } = await db.query("SELECT value FROM counter WHERE id = $1", [id]);
  await sleep(think);
  if (renews && renew) {
    try {
      await renew();
    } catch (e) {
      return note("unrenewed", e);
    }
    note("renewed");
  }
  await wait("WAIT_FILE");
  if (signal?.aborted) return note("lost", signal.error ?? signal.reason);
  await db.query("UPDATE counter SET value = $1 WHERE id = $2", [Number(rows[0].value) + 1, id]);
  note("wrote");
}
