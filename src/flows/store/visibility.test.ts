import { describe, expect, it } from "vitest";
import type { FlowRow } from "../../api/protocol/flow.ts";
import { flowBatch, type flowKey, flowRow, outside, policyHit, workload } from "../flow.fixture.ts";
import { parseQuery } from "../query/parse-query.ts";
import { FLOW_SORTS, FlowStore, RANKED_FIELDS } from "./flow-store.ts";
import type { FlowEvent } from "./flow-watch.ts";

/** The attacker: may list flows in `shop`, and asks everything that can be asked. */
const visible = (namespace: string) => namespace === "shop";
const NOW = Date.parse("2026-01-31T12:00:00Z");

/** Two worlds that differ in one thing the attacker may not know, and a query for each that would find it. */
const SECRETS: Record<string, { worlds: [FlowRow[], FlowRow[]]; queries: string[] }> = {
  "labels of the other end": {
    worlds: [[to({ labels: { secret: "a" } })], [to({ labels: { secret: "b", more: "x" } })]],
    queries: ["label:secret=a", "to.label:secret=b", "label:more", "-label:secret=a", "to.label:secret=*"],
  },
  "the kind of the other end": {
    worlds: [[to({ kind: "Deployment" })], [to({ kind: "StatefulSet" })]],
    queries: ["StatefulSet"],
  },
  "addresses of the other end": {
    worlds: [
      [flowRow({}, { destinationAddresses: ["10.1.0.1"] })],
      [flowRow({}, { destinationAddresses: Array.from({ length: 9 }, (_, host) => `10.2.0.${host}`), more: true })],
    ],
    queries: ["address:10.1.0.1", "address:10.2.0.0/16", "-address:10.0.0.0/8", "address:0.0.0.0/0"],
  },
  "names of its policies, and their rules": {
    worlds: [
      [flowRow({ policies: [policyHit({ name: "a", rule: 0 })] })],
      [flowRow({ policies: [policyHit({ name: "b", rule: 7, namespace: "audit" })] })],
    ],
    queries: [
      "policy:a",
      "policy:pay/*",
      "policy:audit/b",
      "rule:7",
      "rule:a#*",
      "policy:b rule:7",
      "audit",
      "-policy:a",
    ],
  },
  "names of policies without a namespace": {
    worlds: [
      [flowRow({ policies: [policyHit({ kind: "GlobalNetworkPolicy", name: "a", namespace: "" })] })],
      [flowRow({ policies: [policyHit({ kind: "GlobalNetworkPolicy", name: "b", namespace: "" })] })],
    ],
    queries: ["policy:a", "policy:/b", "a", "b"],
  },
  "the node of the other end": {
    worlds: [[flowRow({ node: "node-a" })], [flowRow({ node: "node-b" })]],
    queries: ["node:node-a", "node:*-b", "-node:node-a"],
  },
  "a Service that others asked for": {
    worlds: [
      [incoming({ service: { namespace: "pay", name: "a", port: "1" } })],
      [incoming({ service: { namespace: "pay", name: "b", port: "2" } })],
    ],
    queries: ["service:a", "service:pay/b", "service:*:2"],
  },
  "flows between others": {
    worlds: [
      [flowRow(), flowRow({ from: workload("pay", "x"), to: workload("pay", "y"), port: 1 }, { bytes: 5 })],
      [
        flowRow(),
        flowRow({ from: workload("pay", "z"), to: workload("bank", "y"), port: 2 }, { bytes: 7 }),
        flowRow({ from: outside, to: workload("bank", "y"), port: 3 }),
      ],
    ],
    queries: ["namespace:bank", "either:pay/x", "port:1", "port:2", "bytes:5", "from:/public", ""],
  },
  "how many flows look the same": {
    worlds: [
      [to({ labels: { v: "1" } }, { bytes: 100 }), to({ labels: { v: "2" } }, { bytes: 200 })],
      [to({ labels: { v: "3" } }, { bytes: 300, packets: 6, started: 6 })],
    ],
    queries: ["bytes:<250", "bytes:>250", "packets:6", "label:v=1", "label:v"],
  },
};

function to(some: Partial<ReturnType<typeof workload>>, counts: Partial<FlowRow> = {}): FlowRow {
  return flowRow({ to: { ...workload("pay", "db"), ...some } }, counts);
}

function incoming(some: Parameters<typeof flowKey>[0]): FlowRow {
  return flowRow({ from: workload("pay", "db"), to: workload("shop", "web"), ...some });
}

describe.each(Object.entries(SECRETS))("%s", (_name, { worlds, queries }) => {
  it("do not show in any answer, whatever is asked", async () => {
    const [one, other] = worlds.map((rows) => world(rows)) as [FlowStore, FlowStore];
    for (const query of ["", ...queries, ...queries.map((text) => `shop and (${text || "shop"})`)]) {
      expect(await answers(one, query), query).toEqual(await answers(other, query));
    }
  });

  it("show to who may see everything: the queries are the right ones", () => {
    const [one, other] = worlds.map((rows) => world(rows)) as [FlowStore, FlowStore];
    const found = (store: FlowStore) =>
      ["", ...queries].map((text) => JSON.stringify(store.list({ query: parseQuery(text) }).flows));
    expect(found(one)).not.toEqual(found(other));
  });
});

function world(rows: readonly FlowRow[]): FlowStore {
  const store = new FlowStore({ clock: { now: () => NOW } });
  store.add(flowBatch(rows, { until: NOW }));
  return store;
}

/** Everything a reader can ask with a query, without versions: those count every row of the server. */
async function answers(store: FlowStore, text: string): Promise<unknown> {
  const query = parseQuery(text);
  const asked = { query, visible };
  const known = ["shop", "pay", "", "bank"].map((namespace) => ({ ...policyHit({ namespace, name: "unused" }) }));
  return JSON.parse(
    JSON.stringify(
      [
        ...FLOW_SORTS.map((sort) => store.list({ ...asked, sort })),
        store.list({ ...asked, since: NOW - 60_000, until: NOW + 1 }),
        ...RANKED_FIELDS.map((field) => store.hints({ ...asked, field })),
        ...RANKED_FIELDS.map((by) => store.top({ ...asked, by })),
        store.statistics({ ...asked, by: "policy", known }),
        store.statistics({ ...asked, by: "rule", known }),
        await store.timeline({ ...asked, points: 10 }),
        await watched(store, asked),
      ],
      (name, value) => (name === "resourceVersion" ? undefined : value),
    ),
  );
}

async function watched(
  store: FlowStore,
  asked: Pick<Parameters<FlowStore["watch"]>[0], "query" | "visible">,
): Promise<FlowEvent[]> {
  const stop = new AbortController();
  const events: FlowEvent[] = [];
  // What is there comes at once; then the watch waits, and is ended.
  setImmediate(() => stop.abort());
  for await (const event of store.watch({ ...asked, signal: stop.signal })) events.push(event);
  return events;
}

it("a reader of a namespace sees flows with an end there, whole where they are its own", () => {
  const store = world([
    flowRow({
      reporter: "Source",
      policies: [
        policyHit({ direction: "Egress", namespace: "shop", name: "mine", action: "Allow" }),
        policyHit({ tier: "security" }),
      ],
    }),
    flowRow(
      { from: outside, to: workload("shop", "web") },
      { sourceAddresses: ["192.0.2.1"], destinationAddresses: ["10.0.0.1"] },
    ),
    flowRow({ from: workload("pay", "a"), to: workload("pay", "b") }),
  ]);
  const { flows, totals } = store.list({ visible, sort: "from" });
  expect(totals.flows).toBe(2);
  expect(flows[0]).toMatchObject({
    key: { from: outside, to: workload("shop", "web") },
    sourceAddresses: ["192.0.2.1"],
    destinationAddresses: ["10.0.0.1"],
  });
  expect(flows[1]).toMatchObject({
    key: {
      from: workload("shop", "web"),
      to: { type: "Workload", namespace: "pay", name: "db" },
      service: { name: "database" },
      node: "node-1",
      policies: [
        { namespace: "shop", name: "mine", rule: 2 },
        { kind: "NetworkPolicy", tier: "security", action: "Deny", namespace: "", name: "" },
      ],
    },
    sourceAddresses: ["10.244.1.7"],
    destinationAddresses: [],
  });
  expect(flows[1]?.key.to).not.toHaveProperty("labels");
  expect(flows[1]?.key.policies[1]).not.toHaveProperty("rule");
  expect(store.find({ id: flows[1]?.id as string, visible })?.key).toEqual(flows[1]?.key);
  expect(store.find({ id: store.list({}).flows[0]?.id as string, visible: () => false })).toBeUndefined();
});

it("a reader who may see nothing is not an unlimited one", () => {
  const store = world([flowRow(), flowRow({ from: outside, to: outside })]);
  expect(store.list({ visible: () => false }).totals.flows).toBe(0);
  // What has no namespace is nobody's own.
  expect(store.list({ visible: (namespace) => namespace === "" }).totals.flows).toBe(0);
});
