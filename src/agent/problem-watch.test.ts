import { expect, it } from "vitest";
import { fakeClock } from "../kit/fake-clock.ts";
import { watchProblems } from "./problem-watch.ts";

it("names a problem that stays, not one of a moment, until it is over", async () => {
  const clock = fakeClock();
  const stop = new AbortController();
  let [now, changes]: [string[][], number] = [[], 0];
  const lasting: string[] = [];
  const watch = watchProblems({
    problems: () => now,
    ...{ clock, signal: stop.signal },
    onChange: () => changes++,
    onLasting: (...words) => void lasting.push(words.join(" ")),
  });
  now = [["endpoint shop/web", "EBPF_INTERFACE_ABSENT", "there is no interface"]];
  await clock.advance(10_000);
  now = [["interface wg0", "EBPF_INTERFACE_NOT_ETHERNET", "no Ethernet headers"]];
  await clock.advance(15_000);
  expect([watch.lasting(), changes]).toEqual([[], 0]);
  await clock.advance(5_000);
  expect([watch.lasting(), changes]).toEqual([["interface wg0 EBPF_INTERFACE_NOT_ETHERNET"], 1]);
  expect(lasting).toEqual(["interface wg0 EBPF_INTERFACE_NOT_ETHERNET no Ethernet headers"]);
  now = [];
  await clock.advance(5_000);
  expect([watch.lasting(), changes]).toEqual([[], 2]);
  stop.abort();
  await watch.done;
});
