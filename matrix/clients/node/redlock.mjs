// Guards its work by redlock 5: with acquire, or with MODE=using by its using(), which renews by itself.
import Redis from "ioredis";
import Redlock from "redlock";
import { count, finish, lease, more, note, retry, sleep, start } from "./work.mjs";

const key = "lock:counter";
const redis = new Redis(process.env.REDIS_URL);
const redlock = new Redlock([redis], { retryCount: 0, automaticExtensionThreshold: lease / 2 });
redlock.on("error", () => {}); // each attempt's refusal; acquire tells the last

await start();
while (more()) {
  if (process.env.MODE === "using") await using();
  else await acquire();
}
redis.disconnect();
await finish();

async function acquire() {
  let lock;
  try {
    lock = await redlock.acquire([key], lease);
  } catch (e) {
    return refused();
  }
  note("granted");
  await count(1, { renew: async () => { lock = await lock.extend(lease); } });
  try {
    await lock.release();
    note("released");
  } catch (e) {
    note("unreleased", e.message);
  }
  await sleep(2);
}

async function using() {
  let entered = false;
  try {
    await redlock.using([key], lease, async (signal) => {
      entered = true;
      note("granted");
      await count(1, { signal });
    });
    note("released");
  } catch (e) {
    if (!entered) return refused();
    note("unreleased", e.message);
  }
  await sleep(2);
}

async function refused() {
  note("refused");
  await sleep(retry);
}
