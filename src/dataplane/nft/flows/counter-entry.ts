/** The thread that counts: a bundle of its own, `flow-counter.js` next to the program. */
import { parentPort, workerData } from "node:worker_threads";
import { type CounterAnswer, type CounterOptions, type CounterOrder, EVENTS_MS } from "./counter-thread.ts";
import { FlowCounter } from "./flow-counter.ts";

const { sockets, directory, table } = workerData as CounterOptions;
const counter = new FlowCounter(sockets, { directory, table });
let failed: unknown;

// The kernel keeps only so many events: they are read between sweeps too.
const reading = setInterval(() => {
  try {
    counter.readEvents();
  } catch (error) {
    failed ??= error;
  }
}, EVENTS_MS);

parentPort!.on("message", ({ id, ...order }: CounterOrder) => {
  if (order.close) {
    clearInterval(reading);
    parentPort!.close();
    return;
  }
  let answer: CounterAnswer;
  try {
    if (failed !== undefined) throw failed;
    answer = { id, result: act(order) };
  } catch (error) {
    failed = undefined;
    answer = { id, failed: error instanceof Error ? error.message : String(error) };
  }
  parentPort!.postMessage(answer);
});

function act(order: Omit<CounterOrder, "id">) {
  if (order.load) return counter.load();
  if (order.read) return counter.read(order.read);
  if (order.commit) counter.commit(order.commit.texts, order.commit.next);
  return undefined;
}
