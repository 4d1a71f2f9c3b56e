import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd } from "../../api/protocol/flow.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import { NetTable, toAddress, toNet } from "../../calc/nets.ts";
import type { Informer } from "../../cluster/informer.ts";
import { parseAddress } from "../../kit/ip.ts";

export interface FlowEndSources {
  pods: Informer<KubeObject>;
  nodes: Informer<KubeObject>;
  hostEndpoints: Informer<KubeObject>;
  networkSets: Informer<KubeObject>;
  globalNetworkSets: Informer<KubeObject>;
}

export interface FlowEnds {
  /** Whose address it is, or was until a moment ago. */
  of(address: string): FlowEnd;
  close(): void;
}

/** How long an address is still a deleted pod's: what it said last is read when its interval is over. */
const REMEMBERED_MS = 120_000;
const PRIVATE = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "127.0.0.0/8",
  "fc00::/7",
  "fe80::/10",
  "::1/128",
];

/** Who an address is, from the objects as they change: nothing is gone through when flows are named. */
export function flowEnds(sources: FlowEndSources, now: () => number): FlowEnds {
  const pods = new Owned(now);
  const nodes = new Owned(now);
  const hostEndpoints = new Owned(now);
  const sets = new Map<string, { nets: string[]; end: FlowEnd }>();
  const outside = outsideEnds();
  let table: NetTable<FlowEnd> | undefined;
  const setsOf = (informer: Informer<KubeObject>) =>
    informer.onChange(({ type, key, object }) => {
      const name = `${object.kind} ${key}`;
      if (type === "deleted") sets.delete(name);
      else sets.set(name, { nets: netsOf(object), end: networkSetEnd(object) });
      table = undefined;
    });
  const endings = [
    follow(sources.pods, pods, podAddresses, workloadEnd),
    follow(sources.nodes, nodes, nodeAddresses, ({ metadata }) => ({
      type: "Node",
      name: metadata.name,
      namespace: "",
    })),
    follow(sources.hostEndpoints, hostEndpoints, hostEndpointAddresses, hostEndpointEnd),
    setsOf(sources.networkSets),
    setsOf(sources.globalNetworkSets),
  ];
  const setOf = (address: string) => {
    if (!table) {
      table = new NetTable();
      for (const { nets, end } of sets.values()) for (const net of nets) table.add(net, end);
    }
    const parsed = parseAddress(address);
    return parsed && table.find(parsed);
  };
  return {
    of: (address) =>
      pods.get(address) ?? hostEndpoints.get(address) ?? nodes.get(address) ?? setOf(address) ?? outside(address),
    close() {
      for (const end of endings) end();
    },
  };
}

/** Addresses by their owner. An address that is free again is its last owner's for a while, unless another has it. */
class Owned {
  readonly #ends = new Map<string, { end: FlowEnd; owner: string; goneAt?: number }>();
  readonly #addresses = new Map<string, readonly string[]>();
  readonly #now: () => number;
  #gone: { address: string; at: number }[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  get(address: string): FlowEnd | undefined {
    return this.#ends.get(address)?.end;
  }

  set(owner: string, addresses: readonly string[], end: FlowEnd): void {
    for (const address of this.#addresses.get(owner) ?? [])
      if (!addresses.includes(address)) this.#leave(owner, address);
    for (const address of addresses) this.#ends.set(address, { end, owner });
    if (addresses.length > 0) this.#addresses.set(owner, addresses);
    else this.#addresses.delete(owner);
    this.#forget();
  }

  remove(owner: string): void {
    for (const address of this.#addresses.get(owner) ?? []) this.#leave(owner, address);
    this.#addresses.delete(owner);
    this.#forget();
  }

  #leave(owner: string, address: string): void {
    const known = this.#ends.get(address);
    if (known?.owner !== owner) return;
    known.goneAt = this.#now();
    this.#gone.push({ address, at: known.goneAt });
  }

  #forget(): void {
    const before = this.#now() - REMEMBERED_MS;
    while (this.#gone[0] && this.#gone[0].at < before) {
      const { address, at } = this.#gone.shift()!;
      if (this.#ends.get(address)?.goneAt === at) this.#ends.delete(address);
    }
  }
}

function follow(
  informer: Informer<KubeObject>,
  owned: Owned,
  addressesOf: (object: KubeObject) => string[],
  endOf: (object: KubeObject) => FlowEnd,
): () => void {
  return informer.onChange(({ type, key, object }) => {
    if (type === "deleted") owned.remove(key);
    else owned.set(key, addressesOf(object), endOf(object));
  });
}

interface PodLike {
  spec?: { hostNetwork?: boolean };
  status?: { podIP?: string; podIPs?: { ip?: string }[]; phase?: string };
}

/** Of a pod on its node's network they are the node's; of one that has ended they may be another's. */
function podAddresses(object: KubeObject): string[] {
  const { spec, status } = object as PodLike;
  if (spec?.hostNetwork || status?.phase === "Succeeded" || status?.phase === "Failed") return [];
  return addresses([status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)]);
}

function nodeAddresses(object: KubeObject): string[] {
  const { addresses: all = [] } = (object["status"] ?? {}) as { addresses?: { type?: string; address?: string }[] };
  return addresses(all.filter(({ type }) => type !== "Hostname").map(({ address }) => address));
}

function hostEndpointAddresses(object: KubeObject): string[] {
  return addresses(((object["spec"] ?? {}) as { expectedIPs?: string[] }).expectedIPs ?? []);
}

function addresses(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.flatMap((text) => (text ? (toAddress(text) ?? []) : [])))];
}

function netsOf(object: KubeObject): string[] {
  return (((object["spec"] ?? {}) as { nets?: string[] }).nets ?? []).flatMap((text) => toNet(text) ?? []);
}

function hostEndpointEnd({ metadata }: KubeObject): FlowEnd {
  return { type: "HostEndpoint", name: metadata.name, namespace: "", labels: metadata.labels ?? {} };
}

function networkSetEnd({ metadata }: KubeObject): FlowEnd {
  return {
    type: "NetworkSet",
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    labels: metadata.labels ?? {},
  };
}

function outsideEnds(): (address: string) => FlowEnd {
  const nets = new NetTable();
  for (const net of PRIVATE) nets.add(net, true);
  const ends = {
    private: { type: "Outside", name: "private", namespace: "" },
    public: { type: "Outside", name: "public", namespace: "" },
    unknown: { type: "Outside", name: "unknown", namespace: "" },
  } as const satisfies Record<string, FlowEnd>;
  return (address) => {
    const parsed = parseAddress(address);
    if (!parsed) return ends.unknown;
    return nets.find(parsed) ? ends.private : ends.public;
  };
}
