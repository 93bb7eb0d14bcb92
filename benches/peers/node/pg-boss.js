// pg-boss, fetching and completing in large batches.

import { PgBoss } from "pg-boss";
import { main } from "./case.js";

const OPEN = "select count(*) from pgboss.job where state < 'completed'";
const QUEUE = "noop";
const env = (name, value) => Number(process.env[name] ?? value);

await main(async (jobs) => {
  const boss = new PgBoss({ connectionString: jobs.url, max: env("P_CONN", 10) });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(QUEUE, { policy: jobs.ordered ? "key_strict_fifo" : "standard" });
  for (const batch of jobs.batches()) {
    await boss.insert(
      QUEUE,
      batch.map((n) => ({ data: { n }, ...(jobs.ordered && { singletonKey: jobs.key(n) }) })),
    );
  }

  await jobs.start();
  await boss.work(
    QUEUE,
    {
      batchSize: env("P_BATCH", 1000),
      localConcurrency: env("P_CONC", 2),
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
    },
    async (batch) => {
      for (const { data } of batch) jobs.handle(data.n);
    },
  );
  const outcome = await jobs.stop(OPEN, "");
  await boss.stop({ graceful: false });
  return outcome;
});
