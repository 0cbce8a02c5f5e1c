// Writes and reads through REDIS_URL with ioredis, alone, in a pipeline and in a
// subscription. NODE_EXTRA_CA_CERTS is what it trusts.
const assert = require("node:assert");
const { randomBytes } = require("node:crypto");
const Redis = require(process.env.IOREDIS + "/ioredis");

async function main() {
  const r = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: 1 });
  const value = randomBytes(1 << 20);
  assert.equal(await r.set("node", value, "PX", 60000, "NX"), "OK");
  assert.ok(value.equals(await r.getBuffer("node")));
  const p = r.multi();
  for (let n = 0; n < 100; n++) p.incr("node:n");
  assert.deepEqual((await p.exec()).map((x) => x[1]), Array.from({ length: 100 }, (_, n) => n + 1));
  const s = r.duplicate();
  const heard = new Promise((done) => s.on("message", (_, text) => done(text)));
  await s.subscribe("node:c");
  await r.publish("node:c", "hello");
  assert.equal(await heard, "hello");
  assert.equal(await r.del("node", "node:n"), 2);
  await Promise.all([r.quit(), s.quit()]);
  console.log("ok");
}
main().catch((e) => {
  console.error(e);
  process.exit(1);
});
