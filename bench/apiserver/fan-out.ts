import { Connection, type Endpoint } from "./connection.ts";
import { configMap } from "./objects.ts";

const WATCHERS = 200;
const WARM_UP_WRITES = 20;
const WRITES = 100;
const NEWLINE = 10;

/** Milliseconds from sending a write until each of 200 watchers, each on a connection of its own, has the event. */
export async function fanOut(endpoint: Endpoint, writer: Connection, path: string) {
  const list = JSON.parse((await writer.expect("GET", `${path}?limit=1`)).toString()) as {
    metadata: { resourceVersion: string };
  };
  const round = new Round();
  const watchers: Connection[] = [];
  for (let i = 0; i < WATCHERS; i++) {
    const watcher = await Connection.open(endpoint);
    watchers.push(watcher);
    await watcher.watch(`${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}`, (bytes) => {
      // An event is a line; its last byte is the newline, and nothing else is under way.
      if (bytes.at(-1) === NEWLINE) round.arrived();
    });
  }
  const latencies: number[] = [];
  for (let write = 0; write < WARM_UP_WRITES + WRITES; write++) {
    const all = round.begin();
    await writer.expect("POST", path, configMap(`watched-${write}`, "value"));
    await all;
    if (write >= WARM_UP_WRITES) latencies.push(...round.latencies);
  }
  for (const watcher of watchers) watcher.close();
  latencies.sort((a, b) => a - b);
  return { watchP50: quantile(latencies, 0.5), watchP99: quantile(latencies, 0.99) };
}

/** One write on its way to everybody. */
class Round {
  latencies: number[] = [];
  #sent = 0;
  #done: () => void = () => {};

  begin(): Promise<void> {
    this.latencies = [];
    this.#sent = performance.now();
    return new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  arrived(): void {
    this.latencies.push(performance.now() - this.#sent);
    if (this.latencies.length === WATCHERS) this.#done();
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
