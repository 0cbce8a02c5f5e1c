// Works on jobs of BullMQ. A job is locked by one worker, which renews the lock, and has a row of its own.
import { Queue, Worker } from "bullmq";
import Redis from "ioredis";
import { attempts, count, counts, finish, lease, note, renews, sections, sleep, start } from "./work.mjs";

const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
const queue = new Queue("count", { connection });

await start();
if (process.env.INSERT === "1") {
  await queue.addBulk(Array.from({ length: sections }, (_, i) => ({ name: "count", data: { row: i + 1 } })));
}
const worker = new Worker("count", async (job) => count(job.data.row), {
  connection,
  lockDuration: lease,
  stalledInterval: 700,
  skipStalledCheck: renews && attempts === 1, // so that what it sends of the stalled jobs' key are its renewals
});
worker.on("active", () => note("granted"));
worker.on("completed", () => note("released"));
worker.on("failed", (job, e) => note("unreleased", e.message));
worker.on("error", (e) => {
  console.error(e.message);
  counts.lost = 1;
});
const over = () => counts.released + counts.unreleased + counts.lost;
for (let waited = 0; (waited < 3000 && over() < counts.wrote) || (counts.wrote < sections && (await left())); waited += 30) await sleep(30);
await worker.close();
await queue.close();
connection.disconnect();
await finish();

async function left() {
  const n = await queue.getJobCounts("waiting", "active", "delayed", "prioritized");
  return Object.values(n).some((k) => k > 0);
}
