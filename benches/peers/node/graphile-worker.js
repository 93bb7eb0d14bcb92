// Graphile Worker with its local queue and with completions in batches.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { main } from "./case.js";

const OPEN = "select count(*) from graphile_worker._private_jobs";
const env = (name, value) => Number(process.env[name] ?? value);

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

  const size = env("P_SIZE", 500);
  await jobs.start();
  const runner = await run({
    preset: {
      worker: {
        connectionString: jobs.url,
        maxPoolSize: env("P_CONN", 10),
        concurrentJobs: env("P_CONC", 100),
        pollInterval: env("P_POLL", 100),
        localQueue: size > 0 ? { size } : undefined,
        completeJobBatchDelay: env("P_DELAY", 0),
        failJobBatchDelay: env("P_DELAY", 0),
      },
    },
    logger,
    noHandleSignals: true,
    parsedCronItems: [],
    taskList: { noop: ({ n }) => jobs.handle(n) },
  });
  const outcome = await jobs.stop(OPEN, "");
  await runner.stop();
  return outcome;
});
