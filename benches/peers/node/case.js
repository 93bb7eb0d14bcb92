// Code that every peer uses: the jobs to store, the handled jobs, and the end of a run.
// The same as ../src/case.rs and ../src/tally.rs.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const PATIENCE = 30_000;

export class Case {
  #seen;
  #last;
  #distinct = 0;
  #again = 0;
  #overtaken = 0;
  #started;
  #client;

  constructor({ url, ordered, records, keys }) {
    Object.assign(this, { url, ordered, records, keys });
    this.#seen = new Uint8Array(records);
    this.#last = new Int32Array(keys).fill(-1);
  }

  /** Lists of jobs to be stored one after the other; none holds a key twice. */
  *batches() {
    for (let start = 0; start < this.records; start += this.keys) {
      const length = Math.min(this.keys, this.records - start);
      yield Array.from({ length }, (_, index) => start + index);
    }
  }

  key(job) {
    return `key-${job % this.keys}`;
  }

  handle(job) {
    if (this.#seen[job]) {
      this.#again++;
      return;
    }
    this.#seen[job] = 1;
    this.#distinct++;
    const key = job % this.keys;
    if (this.ordered && this.#last[key] > job) this.#overtaken++;
    this.#last[key] = job;
  }

  /** To be called with the backlog stored and the worker not yet started. */
  async start() {
    this.#client = new pg.Client(this.url);
    await this.#client.connect();
    await this.#client.query("vacuum analyze");
    await this.#client.query("checkpoint");
    this.#started = performance.now();
  }

  /** Waits until everything is handled and `open`, a query for one number, gives 0. */
  async stop(open, note) {
    let [handled, since] = [0, performance.now()];
    const waiting = (what) => {
      if (this.#distinct > handled) [handled, since] = [this.#distinct, performance.now()];
      if (performance.now() - since > PATIENCE) throw new Error(what());
    };
    while (this.#distinct < this.records) {
      await sleep(1);
      waiting(() => `${this.records - this.#distinct} of ${this.records} jobs were never handled`);
    }
    for (;;) {
      const { rows } = await this.#client.query({ text: open, rowMode: "array" });
      const left = Number(rows[0][0]);
      if (left === 0) break;
      await sleep(1);
      waiting(() => `${left} jobs were handled and never completed`);
    }
    const seconds = (performance.now() - this.#started) / 1000;
    await this.#client.end();
    if (this.#overtaken > 0) {
      throw new Error(`${this.#overtaken} jobs were overtaken by a later job of their key`);
    }
    return { seconds, again: this.#again, note };
  }
}

/** Runs a peer with the case of the command line, and prints what came of it. */
export async function main(run) {
  let answer;
  try {
    answer = await run(new Case(JSON.parse(process.argv[2])));
  } catch (error) {
    answer = { error: error.message };
  }
  // A worker that did not stop must not keep the process alive.
  process.stdout.write(JSON.stringify(answer), () => process.exit());
}
