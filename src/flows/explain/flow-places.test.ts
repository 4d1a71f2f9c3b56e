import { expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { outside, workload } from "../flow.fixture.ts";
import { flowPlaces } from "./flow-places.ts";

function pod(app: string, name: string, ips: string[], phase = "Running"): KubeObject {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${app}-5d8f`, uid: app, controller: true };
  return {
    ...{ apiVersion: "v1", kind: "Pod", spec: { nodeName: "node-1" } },
    metadata: { name, namespace: "shop", labels: { "pod-template-hash": "5d8f" }, ownerReferences: [owner] },
    status: { phase, podIPs: ips.map((ip) => ({ ip })) },
  } as KubeObject;
}

const set = {
  apiVersion: "v1",
  kind: "GlobalNetworkSet",
  metadata: { name: "bank" },
  spec: { nets: ["192.0.2.0/24"] },
};
const node = {
  ...{ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } },
  status: {
    addresses: [
      { type: "Hostname", address: "a" },
      { type: "InternalIP", address: "172.16.0.1" },
    ],
  },
};
const objects = new Map<InputName, KubeObject[]>([
  [
    "pods",
    [
      pod("web", "web-1", ["10.0.0.1", "fd00::1"]),
      pod("web", "web-2", ["10.0.0.2"]),
      pod("six", "six-1", ["fd00::6"]),
      pod("done", "done-1", ["10.0.0.9"], "Succeeded"),
    ],
  ],
  ["globalNetworkSets", [set as KubeObject]],
  ["nodes", [node as KubeObject]],
]);
const web = workload("shop", "web");
const none = { sources: [], destinations: [] };
const addresses = (places: ReturnType<typeof flowPlaces>) =>
  "unknown" in places ? places.unknown : [places.from.address, places.to.address];

it("addresses that the flow was counted with come before others of the workload", () => {
  const to = { sources: [], destinations: ["10.0.0.2"] };
  expect(addresses(flowPlaces({ from: outside, to: web }, { ...to, sources: ["203.0.113.7"] }, objects))).toEqual([
    "203.0.113.7",
    "10.0.0.2",
  ]);
});

it("both ends have one family, and a workload that speaks to itself does so with another pod", () => {
  expect(addresses(flowPlaces({ from: web, to: workload("shop", "six") }, none, objects))).toEqual([
    "fd00::1",
    "fd00::6",
  ]);
  expect(addresses(flowPlaces({ from: web, to: web }, none, objects))).toEqual(["10.0.0.1", "10.0.0.2"]);
});

it("nodes have their addresses, and network sets one of each prefix", () => {
  const from = { type: "Node", namespace: "", name: "node-1" } as const;
  const to = { type: "NetworkSet", namespace: "", name: "bank" } as const;
  expect(addresses(flowPlaces({ from, to }, none, objects))).toEqual(["172.16.0.1", "192.0.2.0"]);
});

it("an end that is gone, or that has no address that is known, is named", () => {
  expect(addresses(flowPlaces({ from: workload("shop", "done"), to: web }, none, objects))).toBe("from");
  expect(addresses(flowPlaces({ from: web, to: outside }, none, objects))).toBe("to");
  const six = { sources: [], destinations: ["2001:db8::1"] };
  expect(addresses(flowPlaces({ from: workload("shop", "web", {}), to: outside }, six, objects))).toEqual([
    "fd00::1",
    "2001:db8::1",
  ]);
});
