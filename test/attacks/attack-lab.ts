import { createSocket, type RemoteInfo } from "node:dgram";
import type { KubeObject } from "../../src/api/object.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { inside, type LabOptions, type LabPod, type NodeLab, nodeLab, whyNoNodes } from "../agent/node-lab.ts";

/** Why no attack can be tried here; undefined where it can. */
export const whyNoAttacks = whyNoNodes();

/** Both data planes: each attack is tried on each. */
export const DATAPLANES = [
  { dataplane: "nftables", bpf: false },
  { dataplane: "eBPF", bpf: true },
] as const;

/** Two real nodes without a tunnel, with agents that run. IPv4 is enough: what tenants write is the same in both families. */
export async function attackLab(options: Pick<LabOptions, "bpf"> & Partial<LabOptions>): Promise<NodeLab> {
  const lab = await nodeLab({ pools: [{ cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 }], ...options });
  await Promise.all(lab.nodes.map((node) => node.start()));
  return lab;
}

/** What a tenant with the right to edit its own pods does: a merge patch of the object. */
export async function tamper({ client }: NodeLab, pod: LabPod, metadata: object): Promise<void> {
  await client.patch(PODS, { namespace: "default", name: pod.name }, { type: "merge", patch: { metadata } });
}

/** What the kubelet does once a pod has its network. */
export async function writeStatus({ client }: NodeLab, pod: LabPod): Promise<void> {
  const podIPs = pod.addresses.map((ip) => ({ ip }));
  const status = { phase: "Running", podIP: pod.addresses[0], podIPs };
  await client.patch(
    PODS,
    { namespace: "default", name: pod.name },
    { type: "merge", patch: { status } },
    { subresource: "status" },
  );
}

/** A pod of Kubernetes' default deny, and who may reach it. */
export function onlyFrom(name: string, app: string, from: Record<string, string>): KubeObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace: "default" },
    spec: {
      podSelector: { matchLabels: { app } },
      policyTypes: ["Ingress"],
      ingress: [{ from: [{ podSelector: { matchLabels: from } }] }],
    },
  };
}

export const POLICIES = {
  group: "networking.k8s.io",
  version: "v1",
  kind: "NetworkPolicy",
  plural: "networkpolicies",
  namespaced: true,
} as const;

/** What is answered when a pod asks from a source address it gave itself; undefined: nothing. */
export async function requestAs(
  pod: LabPod,
  source: string,
  address: string,
  port: number,
): Promise<string | undefined> {
  await inside(pod.netns.name, "ip", "address", "replace", `${source}/32`, "dev", "eth0");
  const script = `
    const socket = require("node:net").connect({ host: "${address}", port: ${port}, localAddress: "${source}" });
    socket.setTimeout(2000, () => process.exit(1));
    socket.on("error", () => process.exit(1));
    socket.on("data", (text) => { process.stdout.write(text); process.exit(0); });
  `;
  const { ok, output } = await inside(pod.netns.name, process.execPath, "-e", script);
  return ok ? output.trim() : undefined;
}

/** A UDP socket in a pod, on a node or outside, that notes what it hears. */
export interface Ear {
  readonly heard: { text: string; from: RemoteInfo }[];
  send(text: string, address: string, port: number): void;
  close(): void;
}

const kernel = realKernel();

/** `answer`: what is sent back for each datagram; nothing where absent. */
export async function udp(on: Pick<LabPod, "netns">, port: number, answer?: string): Promise<Ear> {
  const socket = createSocket("udp4");
  const heard: Ear["heard"] = [];
  // What cannot be sent is not heard: the test says what that means.
  socket.on("error", () => {});
  socket.on("message", (bytes, from) => {
    heard.push({ text: String(bytes), from });
    if (answer !== undefined) socket.send(answer, from.port, from.address);
  });
  const fd = kernel.netns.bind(on.netns, { kind: "datagram", address: "0.0.0.0", port });
  await new Promise<void>((resolve) => socket.bind({ fd }, resolve));
  return {
    heard,
    send: (text, address, to) => socket.send(text, to, address, () => {}),
    close: () => socket.close(),
  };
}

/** The node's own routes, one per line. */
export async function routesOf(node: { netns: { name: string } }): Promise<string> {
  return (await inside(node.netns.name, "ip", "route", "show")).output;
}

export const ENDPOINT_SLICES = {
  group: "discovery.k8s.io",
  version: "v1",
  kind: "EndpointSlice",
  plural: "endpointslices",
  namespaced: true,
} as const;

/** As whoever may write in the namespace could write it. */
export function sliceOf(name: string, service: string, addresses: readonly string[], port: number): KubeObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: "http", port, protocol: "TCP" }],
  };
}
