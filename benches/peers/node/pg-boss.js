// pg-boss, fetching and completing in large batches.

import { PgBoss } from "pg-boss";
import { main } from "./case.js";

const OPEN = "select count(*) from pgboss.job where state < 'completed'";
const QUEUE = "noop";

await main(async (jobs) => {
  const boss = new PgBoss({ connectionString: jobs.url, max: 10 });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(QUEUE, { policy: jobs.ordered ? "key_strict_fifo" : "standard" });
  for (const batch of jobs.batches()) {
    await boss.insert(
      QUEUE,
      batch.map((n) => ({ data: { n }, ...(jobs.ordered && { singletonKey: jobs.key(n) }) })),
    );
  }

  // A batch that is not full ends the burst, so a batch is not larger than the number of keys.
  const batchSize = jobs.ordered ? Math.min(400, jobs.keys) : 1000;
  const localConcurrency = jobs.ordered ? 1 : 4;
  await jobs.start();
  await boss.work(
    QUEUE,
    {
      batchSize,
      localConcurrency,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
    },
    async (batch) => {
      for (const { data } of batch) jobs.handle(data.n);
    },
  );
  const outcome = await jobs.stop(
    OPEN,
    `batch ${batchSize}, ${localConcurrency} workers, bursts${jobs.ordered ? ", key_strict_fifo" : ""}`,
  );
  await boss.stop({ graceful: false });
  return outcome;
});
