/** The cluster the node is in, as objects: what the planes are told is calculated from these, as an agent would. */
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { podNetworkAnnotations } from "../../src/api/protocol/pod-network.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { ModelDelta } from "../../src/calc/model.ts";
import { PORT } from "./load.ts";

export const NODE = { name: "node-1", address: "172.31.0.1" } as const;
/** Pods of the node that send nothing: their policies are in the kernel beside those of the pods that do. */
export const NEIGHBOURS = 20;
const POD_CIDR = "10.9.0.0/16";
const APPS = 100;
/** Together 40 rules for each direction of each of the two pods, of which the last one matches. */
const APPLYING = { policies: 8, rules: 5 };

export interface BenchPod {
  name: string;
  address: string;
  mac: string;
  labels: Record<string, string>;
}

export const CLIENT: BenchPod = benchPod("client", 2, { measured: "yes", role: "client" });
export const SERVER: BenchPod = benchPod("server", 3, { measured: "yes", role: "server" });
export const NEIGHBOUR_PODS = Array.from({ length: NEIGHBOURS }, (_, at) =>
  benchPod(`neighbour-${at}`, 10 + at, { app: `app-${at}` }),
);

/** `idle`: none of the policies selects the two pods that speak. `applying`: eight of them do. */
export type Policies = { count: number; variant: "idle" | "applying" };

/** What the node's planes have to do, all of it in one delta. */
export function modelFor({ count, variant }: Policies): ModelDelta {
  const calculator = createCalculator(NODE.name, vendorNames);
  for (const object of [...cluster(), ...policies({ count, variant })]) calculator.set(object);
  calculator.inSync();
  return calculator.takeDelta()!;
}

function benchPod(name: string, number: number, labels: Record<string, string>): BenchPod {
  return { name, address: `10.9.0.${number}`, mac: `02:00:0a:09:00:${number.toString(16).padStart(2, "0")}`, labels };
}

function* cluster(): Generator<KubeObject> {
  const { group, version } = vendorNames.groups.stored;
  yield { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } };
  yield {
    ...{ apiVersion: "v1", kind: "Node", metadata: { name: NODE.name } },
    status: { addresses: [{ type: "InternalIP", address: NODE.address }] },
  };
  const pool = { cidr: POD_CIDR, natOutgoing: true, vxlanMode: "Never" };
  yield { apiVersion: `${group}/${version}`, kind: "IPPool", metadata: { name: "pods" }, spec: pool };
  for (const one of [CLIENT, SERVER, ...NEIGHBOUR_PODS]) yield pod(one, NODE.name);
  for (let app = NEIGHBOURS; app < APPS; app++) {
    yield pod({ ...benchPod(`remote-${app}`, app, { app: `app-${app}` }), address: `10.9.1.${app}` }, "node-2");
  }
}

function pod({ name, address, mac, labels }: BenchPod, nodeName: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels, annotations: podNetworkAnnotations([address], mac) },
    spec: { nodeName, containers: [{ name: "main" }] },
    status: { phase: "Running", podIPs: [{ ip: address }] },
  };
}

function* policies({ count, variant }: Policies): Generator<KubeObject> {
  const applying = variant === "applying" ? APPLYING.policies : 0;
  for (let at = 0; at < applying; at++) yield applyingPolicy(at);
  for (let at = applying; at < count; at++) {
    const from = [{ podSelector: { matchLabels: { app: `app-${(at * 7 + 1) % APPS}` } } }];
    yield networkPolicy(`other-${at}`, {
      podSelector: { matchLabels: { app: `app-${at % APPS}` } },
      ingress: [{ from, ports: [{ port: 8000 + (at % 50) }] }],
    });
  }
}

function applyingPolicy(at: number): KubeObject {
  const rules = Array.from({ length: APPLYING.rules }, (_, rule) => at * APPLYING.rules + rule);
  return networkPolicy(`measured-${at}`, {
    podSelector: { matchLabels: { measured: "yes" } },
    policyTypes: ["Ingress", "Egress"],
    ingress: rules.map((rule) => ({ from: [peer(rule)], ports: [port(rule)] })),
    egress: rules.map((rule) => ({ to: [peer(rule)], ports: [port(rule)] })),
  });
}

/** Prefixes, and after every four of them one selector. */
function peer(rule: number): object {
  if (isLast(rule)) return { podSelector: { matchLabels: { measured: "yes" } } };
  if (rule % APPLYING.rules === APPLYING.rules - 1) return { podSelector: { matchLabels: { app: `app-${rule}` } } };
  return { ipBlock: { cidr: `192.168.${rule}.0/24` } };
}

function port(rule: number): object {
  return { protocol: "TCP", port: isLast(rule) ? PORT : 8000 + rule };
}

function isLast(rule: number): boolean {
  return rule === APPLYING.policies * APPLYING.rules - 1;
}

function networkPolicy(name: string, spec: object): KubeObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace: "default" }, spec };
}
