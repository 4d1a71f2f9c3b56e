import type { KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../src/cluster/kinds.ts";

/** Somebody who answers; `ending` still serves while it goes, `failing` does not any more. */
interface LiveBackend {
  name: string;
  is?: "ending" | "failing";
}

interface LiveService {
  /** The last part of its addresses, of both families, and of its node ports. */
  at: number;
  backends: LiveBackend[];
  spec?: object;
  /** Whether a load balancer has its addresses. */
  balanced?: boolean;
}

/** Where somebody answers, of both families, and on which node; absent: outside of the cluster. */
export interface Place {
  addresses: readonly string[];
  port: number;
  node?: string;
}

const all = (...names: string[]): LiveBackend[] => names.map((name) => ({ name }));

/** One service for each thing a connection can meet. Backends: `one` is a pod of node-1, `two` of node-2, `three` of node-3. */
export const LIVE = {
  web: { at: 10, backends: all("one", "two", "three") },
  near: { at: 11, backends: all("one") },
  far: { at: 12, backends: all("two"), spec: { externalIPs: ["203.0.113.12", "2001:db8:20::12"] } },
  self: { at: 13, backends: all("caller") },
  none: { at: 14, backends: [], spec: { externalIPs: ["203.0.113.14", "2001:db8:20::14"] } },
  inbound: { at: 15, backends: all("one", "two"), spec: { externalTrafficPolicy: "Local" }, balanced: true },
  elsewhere: { at: 16, backends: all("two"), spec: { externalTrafficPolicy: "Local" } },
  internal: { at: 17, backends: all("one", "two"), spec: { internalTrafficPolicy: "Local" } },
  ranged: {
    ...{ at: 18, backends: all("one", "two"), balanced: true },
    spec: { loadBalancerSourceRanges: ["10.99.0.254/32", "fd99::254/128", "10.99.0.1/32"] },
  },
  sticky: { at: 19, backends: all("one", "two", "three"), spec: { sessionAffinity: "ClientIP" } },
  ending: { at: 20, backends: [{ name: "two", is: "ending" }] },
  leaving: { at: 21, backends: [{ name: "one" }, { name: "two", is: "ending" }] },
  failing: { at: 22, backends: [{ name: "two", is: "failing" }] },
  node: { at: 24, backends: all("node-2") },
  ownNode: { at: 25, backends: all("node-1") },
  abroad: { at: 26, backends: all("outside") },
  last: { at: 27, backends: all("one", "two", "three") },
} as const satisfies Record<string, LiveService>;

export type LiveName = keyof typeof LIVE;

const FAMILIES = [4, 6] as const;
const PREFIX = {
  4: { cluster: "10.96.0.", public: "203.0.113." },
  6: { cluster: "fd96::", public: "2001:db8:20::" },
} as const;

export function clusterAddress(name: LiveName, family: 4 | 6): string {
  return `${PREFIX[family].cluster}${LIVE[name].at}`;
}

/** Where those of them are that are not the cluster's own. */
export function publicAddress(name: LiveName, family: 4 | 6): string {
  return `${PREFIX[family].public}${LIVE[name].at}`;
}

export function nodePort(name: LiveName): number {
  return 30_000 + LIVE[name].at;
}

/** A second port of each service; on the pods it is the one after the first. */
export const SECOND = { port: 81, nodePort: (name: LiveName) => nodePort(name) + 100 };

/** Backends first, and `last` last: who sees each kind of object in order, and knows that one, knows all of them. */
export async function writeServices(client: Client, places: ReadonlyMap<string, Place>): Promise<void> {
  for (const name of Object.keys(LIVE) as LiveName[]) await write(client, name, places);
}

async function write(client: Client, name: LiveName, places: ReadonlyMap<string, Place>): Promise<void> {
  const service: LiveService = LIVE[name];
  for (const family of FAMILIES) await client.create(ENDPOINT_SLICES, slice(name, service, family, places));
  const { status, ...object } = serviceObject(name, service);
  await client.create(SERVICES, object as KubeObject);
  const at = { namespace: "default", name: objectName(name) };
  if (service.balanced)
    await client.patch(SERVICES, at, { type: "merge", patch: { status } }, { subresource: "status" });
}

function serviceObject(name: LiveName, { spec = {}, balanced = false }: LiveService): KubeObject {
  const clusterIPs = FAMILIES.map((family) => clusterAddress(name, family));
  const ingress = balanced ? FAMILIES.map((family) => ({ ip: publicAddress(name, family) })) : [];
  return {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: objectName(name), namespace: "default" } },
    spec: {
      ...{ type: balanced ? "LoadBalancer" : "NodePort", clusterIP: clusterIPs[0], clusterIPs },
      ...{ ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" },
      ports: [
        { name: "tcp", protocol: "TCP", port: 80, nodePort: nodePort(name) },
        { name: "udp", protocol: "UDP", port: 80, nodePort: nodePort(name) },
        { name: "second", protocol: "TCP", port: SECOND.port, nodePort: SECOND.nodePort(name) },
      ],
      ...spec,
    },
    status: { loadBalancer: { ingress } },
  } as KubeObject;
}

function slice(
  name: LiveName,
  { backends }: LiveService,
  family: 4 | 6,
  places: ReadonlyMap<string, Place>,
): KubeObject {
  const found = backends.map((backend) => ({ ...backend, place: places.get(backend.name)! }));
  const port = found[0]?.place.port ?? 0;
  const ports = [
    { name: "tcp", protocol: "TCP", port },
    { name: "udp", protocol: "UDP", port },
    { name: "second", protocol: "TCP", port: port + 1 },
  ];
  return {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: `IPv${family}` },
    metadata: {
      ...{ name: `${objectName(name)}-${family}`, namespace: "default" },
      labels: { "kubernetes.io/service-name": objectName(name) },
    },
    ports: found.length > 0 ? ports : [],
    endpoints: found.map(({ is, place }) => ({
      addresses: [place.addresses[family === 4 ? 0 : 1]],
      conditions: { ready: !is, serving: is !== "failing", terminating: is !== undefined },
      ...(place.node ? { nodeName: place.node } : {}),
    })),
  } as KubeObject;
}

function objectName(name: LiveName): string {
  return name.toLowerCase();
}
