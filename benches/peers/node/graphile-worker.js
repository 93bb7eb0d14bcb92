// Graphile Worker with its local queue and with completions in batches.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { main } from "./case.js";

const OPEN = "select count(*) from graphile_worker._private_jobs";

await main(async (jobs) => {
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ connectionString: jobs.url, logger });
  await utils.migrate();
  for (const batch of jobs.batches()) {
    await utils.addJobs(
      batch.map((n) => ({
        identifier: "noop",
        payload: { n },
        ...(jobs.ordered && { queueName: jobs.key(n) }),
      })),
    );
  }
  await utils.release();

  // The next job of a key comes with the next fetch, so a higher concurrency is faster there.
  const [concurrentJobs, pollInterval] = jobs.ordered ? [400, 10] : [24, 100];
  await jobs.start();
  const runner = await run({
    preset: {
      worker: {
        connectionString: jobs.url,
        maxPoolSize: 10,
        concurrentJobs,
        pollInterval,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    logger,
    noHandleSignals: true,
    parsedCronItems: [],
    taskList: { noop: ({ n }) => jobs.handle(n) },
  });
  const outcome = await jobs.stop(
    OPEN,
    `local queue 500, concurrency ${concurrentJobs}, completions in batches after 0 ms`,
  );
  await runner.stop();
  return outcome;
});
