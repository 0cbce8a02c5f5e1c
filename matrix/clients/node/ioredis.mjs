// Guards its work by a lock that is made by hand with ioredis.
import { randomUUID } from "node:crypto";
import Redis from "ioredis";
import { count, finish, lease, more, note, retry, sleep, start } from "./work.mjs";

const key = "lock:counter";
const redis = new Redis(process.env.REDIS_URL, {
  scripts: {
    renewLock: { numberOfKeys: 1, lua: 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end' },
    freeLock: { numberOfKeys: 1, lua: 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end' },
  },
});

await start();
while (more()) {
  const token = randomUUID();
  if ((await redis.set(key, token, "PX", lease, "NX")) !== "OK") {
    note("refused");
    await sleep(retry);
    continue;
  }
  note("granted");
  await count(1, {
    renew: async () => {
      if ((await redis.renewLock(key, token, lease)) !== 1) throw new Error("not ours");
    },
  });
  if ((await redis.freeLock(key, token)) === 1) note("released");
  else note("unreleased", "not ours");
  await sleep(2);
}
redis.disconnect();
await finish();
