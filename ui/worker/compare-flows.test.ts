import { expect, it } from "vitest";
import { flowRow, workload } from "../../src/flows/flow.fixture.ts";
import type { Flow } from "../api/flow.ts";
import { compareFlows, countsOf, mostOfEach } from "./compare-flows.ts";

type Key = Parameters<typeof flowRow>[0];

function flow(key: Key, counts: Partial<Flow> = {}): Flow {
  const { key: whole, more: _, ...row } = flowRow({ verdict: "Allow", policies: [], ...key });
  return { ...row, ...whole, metadata: { name: "id" }, lastSeen: "", ...counts };
}

const seen = (before: Flow[], after: Flow[]) =>
  compareFlows(before, after).map(({ from, port, difference, before: one, after: other }) => [
    ...[`${from.name}:${port}`, difference, one?.verdict, other?.verdict],
  ]);

it("tells pairs that are the same, gone and new from those with another verdict", () => {
  const [same, gone, fresh, changed] = [1, 2, 3, 4].map((port) => ({ port }));
  expect(
    seen(
      [flow(same as Key), flow(gone as Key), flow(changed as Key)],
      [flow(same as Key), flow(fresh as Key), flow({ ...changed, verdict: "Deny" })],
    ),
  ).toEqual([
    ["web:4", "changed", "allow", "deny"],
    ["web:3", "new", undefined, "allow"],
    ["web:2", "gone", "allow", undefined],
    ["web:1", "same", "allow", "allow"],
  ]);
});

it("does not take more traffic for a difference", () => {
  const [pair] = compareFlows([flow({}, { started: 1 })], [flow({}, { started: 1_000, node: "node-2" })]);
  expect(pair).toMatchObject({
    ...{ difference: "same", before: { connections: 1 }, after: { connections: 1_000 } },
  });
});

it("says partly where some of a pair was denied", () => {
  const port = { port: 1 };
  expect(seen([flow(port)], [flow(port), flow({ ...port, verdict: "Deny" })])).toEqual([
    ["web:1", "changed", "allow", "partly"],
  ]);
});

it("believes the end where it arrives: what left may be denied there, and is counted once", () => {
  const source = { port: 1, reporter: "Source" } as const;
  const destination = { port: 1, reporter: "Destination" } as const;
  const [pair] = compareFlows(
    [flow(source, { started: 7 }), flow(destination, { started: 7 })],
    [flow(source, { started: 7 }), flow({ ...destination, verdict: "Deny" }, { started: 0 })],
  );
  expect(pair).toMatchObject({
    ...{ difference: "changed", before: { verdict: "allow", connections: 7 }, after: { verdict: "deny" } },
  });
});

it("shows those of most connections first, as many of each as are read, and counts all", () => {
  const many = Array.from({ length: 25 }, (_, at) => flow({ port: at + 1 }, { started: at }));
  const pairs = compareFlows([], [...many, flow({ from: workload("shop", "cart"), port: 1 })]);
  expect(countsOf(pairs)).toEqual({ changed: 0, new: 26, gone: 0, same: 0 });
  expect(mostOfEach(pairs, 20)).toHaveLength(20);
  expect(pairs[0]?.port).toBe(25);
});
