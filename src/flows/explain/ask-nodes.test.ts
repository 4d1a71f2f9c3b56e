import { expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { type AskedEnd, askNodes, packetOf } from "./ask-nodes.ts";
import type { FlowPlace } from "./flow-places.ts";

const STORED = "crd.vendor.io/v1";

function pod(name: string, node: string, ip: string): KubeObject {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "shop", labels: { app: name } } },
    ...{ spec: { nodeName: node }, status: { phase: "Running", podIPs: [{ ip }] } },
  };
}

function node(name: string, address: string): KubeObject {
  const addresses = [{ type: "InternalIP", address }];
  return { apiVersion: "v1", kind: "Node", metadata: { name }, status: { addresses } };
}

/** Node 2 has a host endpoint, whose policy is for forwarded packets too. */
const objects = new Map<InputName, KubeObject[]>([
  ["namespaces", [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } }]],
  ["nodes", [node("node-1", "172.16.0.1"), node("node-2", "172.16.0.2")]],
  ["pods", [pod("web", "node-1", "10.0.0.1"), pod("cart", "node-1", "10.0.0.2"), pod("db", "node-2", "10.0.0.3")]],
  [
    "hostEndpoints",
    [
      {
        ...{ apiVersion: STORED, kind: "HostEndpoint", metadata: { name: "two", labels: { uplink: "yes" } } },
        spec: { node: "node-2", interfaceName: "eth0", expectedIPs: ["172.16.0.2"] },
      },
    ],
  ],
  [
    "globalNetworkPolicies",
    [
      {
        ...{ apiVersion: STORED, kind: "GlobalNetworkPolicy", metadata: { name: "default.no-ssh" } },
        spec: {
          ...{ selector: "has(uplink)", applyOnForward: true, types: ["Ingress"] },
          ingress: [{ action: "Deny", protocol: "TCP", destination: { ports: [22] } }, { action: "Allow" }],
        },
      },
    ],
  ],
]);

const web: FlowPlace = { at: "workload", address: "10.0.0.1", node: "node-1", pod: "shop/web" };
const cart: FlowPlace = { at: "workload", address: "10.0.0.2", node: "node-1", pod: "shop/cart" };
const db: FlowPlace = { at: "workload", address: "10.0.0.3", node: "node-2", pod: "shop/db" };
const away: FlowPlace = { at: "outside", address: "203.0.113.7", node: undefined, pod: undefined };
const host: FlowPlace = { at: "host", address: "172.16.0.1", node: "node-1", pod: undefined };

function asked(from: FlowPlace, to: FlowPlace, port: number): readonly AskedEnd[] {
  return askNodes(objects, packetOf({ protocol: "TCP", port }, from, to)!, from, to);
}

const shown = (ends: readonly AskedEnd[]) =>
  ends.map(({ direction, verdict, steps }) => [direction, verdict, steps.map(({ of }) => of).join()]);

it("each end is asked on its own node, with the policy of the host endpoint on the way", () => {
  expect(shown(asked(web, db, 80))).toEqual([
    ["Egress", "Allow", "workload"],
    ["Ingress", "Allow", "host,workload"],
  ]);
  expect(shown(asked(away, db, 22))).toEqual([["Ingress", "Deny", "host"]]);
});

it("what stays on one node meets no policy of its interfaces", () => {
  expect(shown(asked(web, cart, 22))).toEqual([
    ["Egress", "Allow", "workload"],
    ["Ingress", "Allow", "workload"],
  ]);
});

it("a node reaches its own pods, and a pod itself, without a question", () => {
  expect(shown(asked(host, cart, 22))).toEqual([
    ["Egress", "Allow", ""],
    ["Ingress", "Allow", ""],
  ]);
  expect(shown(asked(web, web, 22)).map(([, verdict]) => verdict)).toEqual(["Allow", "Allow"]);
});

it("a protocol that is none cannot be asked about", () => {
  expect(packetOf({ protocol: "other", port: 0 }, web, db)).toBeUndefined();
  expect(packetOf({ protocol: "ICMP", port: 0 }, web, db)).toMatchObject({ protocol: 1, icmpType: 8 });
  expect(packetOf({ protocol: "47", port: 0 }, web, db)).toMatchObject({ protocol: 47 });
});
