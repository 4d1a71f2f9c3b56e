/**
 * A pod's share of nf_conntrack, which all pods of the node use. `ct count` would be exact, but it looks through all connections of the pod
 * for each new one (ADR 0023). So a token bucket for each pod bounds what it opens before the agent has counted, and a set holds the pods that
 * the agent found to have their share.
 */
import type { DataplaneModel } from "../../calc/model.ts";
import { addressOf } from "../../calc/nets.ts";
import type { ConntrackFill, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import { LIMITED_FROM, type LimitedWorkload } from "../contract.ts";
import { pod } from "./base-chains.ts";
import { type Condition, denialOf, type NftChain, type NftRule, type NftSet, type Ruleset } from "./ruleset.ts";

/** Of one address towards one destination; SNAT leaves out those below 1024. */
const SOURCE_PORTS = 64_512;
/** No pod gets more than half of them, so that others reach the destination, too. */
const PORT_LIMIT = SOURCE_PORTS / 2;
/** The kernel forgets no connection sooner, so a pod that keeps to its share never opens more than a tenth of it in a second. */
const SHORTEST_TIMEOUT_SECONDS = 10;
/** Behind policy, so that only what creates an entry counts. */
const PRIORITY = { forward: -2, input: -4 };
const FLOODING = "flooding-pods";
/** How long a bucket is kept of a pod that opens no connections. */
const BUCKET_SECONDS = 3_600;

export interface ConnectionLimit {
  /** Entries of nf_conntrack that connections of one pod may have; undefined: the kernel does not say how many there can be. */
  entries: number | undefined;
  /** Interfaces of the pods that have them. */
  flooding: ReadonlySet<string>;
  /** What comes from any pod. */
  fromPod: Condition;
}

function connectionLimit({ entries, flooding, fromPod }: ConnectionLimit): { chains: NftChain[]; sets: NftSet[] } {
  if (entries === undefined) return { chains: [], sets: [] };
  const burst = Math.min(entries, PORT_LIMIT);
  const perSecond = Math.max(1, Math.floor(entries / SHORTEST_TIMEOUT_SECONDS));
  // The kernel copies the limit into the element of each pod: another limit needs another set.
  const buckets = `new-connections-${perSecond}-${burst}`;
  const drop = (comment: string, condition: Condition): NftRule => ({
    ...{ when: [fromPod, condition], verdict: { is: "drop" }, comment, denial: denialOf("workload_limit") },
  });
  const rules: NftRule[] = [
    // One question for all packets but the first of a connection: most of what the limit costs is here.
    { when: [{ on: "newConnection", not: true }], verdict: { is: "accept" } },
    drop("the pod has its share of connections", { on: "interfaceSet", way: "in", set: FLOODING }),
    drop("the pod opens connections too fast", { on: "overRate", set: buckets, perSecond, burst }),
  ];
  const chain = (hook: "forward" | "input"): NftChain => ({
    ...{ name: `connection-limit-${hook}`, base: { type: "filter", hook, priority: PRIORITY[hook] }, rules },
  });
  const none = new Map<string, string>();
  const members = new Map([...flooding].sort().map((name) => [`"${name}"`, ""]));
  const common = { kind: "set", type: "ifname", interval: false } as const;
  return {
    chains: [chain("forward"), chain("input")],
    sets: [
      { ...common, name: FLOODING, elements: members },
      { ...common, name: buckets, elements: none, dynamic: BUCKET_SECONDS },
    ],
  };
}

export function withConnectionLimit({ chains, sets }: Ruleset, limit: ConnectionLimit): Ruleset {
  const more = connectionLimit(limit);
  return {
    chains: new Map([...chains, ...more.chains.map((chain) => [chain.name, chain] as const)]),
    sets: new Map([...sets, ...more.sets.map((set) => [set.name, set] as const)]),
  };
}

/** Counts as rarely as can be: while the whole table has less than one pod may have, no pod has. */
export class ConnectionShares {
  private readonly conntrack: ConntrackPort;
  private given = "";
  private found: LimitedWorkload[] = [];
  /** A large table takes long to read: at most a tenth of the time is spent on it. */
  private notBefore = 0;

  constructor(conntrack: ConntrackPort) {
    this.conntrack = conntrack;
  }

  get limited(): LimitedWorkload[] {
    return this.found;
  }

  /** What the rules shall hold. */
  limit(model: DataplaneModel): ConnectionLimit {
    const limit = this.current(model);
    this.given = textOf(limit);
    return limit;
  }

  /** Whether the limit is another one than was given last. */
  async check(model: DataplaneModel): Promise<boolean> {
    const fill = this.conntrack.fill();
    const limit = entriesOf(fill, model);
    const began = performance.now();
    const mayBeFlooded = limit !== undefined && fill.entries >= Math.min(limit, PORT_LIMIT) * LIMITED_FROM;
    if (!mayBeFlooded) this.found = [];
    else if (began >= this.notBefore) {
      this.found = limitedPods(await this.conntrack.list(), model, limit);
      this.notBefore = began + 10 * (performance.now() - began);
    }
    return textOf(this.current(model)) !== this.given;
  }

  private current(model: DataplaneModel): ConnectionLimit {
    const flooding = interfacesOf(this.found, model);
    return { entries: entriesOf(this.conntrack.fill(), model), flooding, fromPod: pod(model, "in") };
  }
}

/** Undefined: no limit. */
function entriesOf({ max }: ConntrackFill, { settings }: DataplaneModel): number | undefined {
  const percent = settings.workloadConntrackPercent;
  return max && percent < 100 ? Math.max(1, Math.floor((max * percent) / 100)) : undefined;
}

function textOf({ entries, flooding }: ConnectionLimit): string {
  return [entries ?? "none", ...[...flooding].sort()].join(" ");
}

type Listed = Awaited<ReturnType<ConntrackPort["list"]>>;

/** Pods that opened as much of nf_conntrack, or of the source ports towards one destination, as they may. */
function limitedPods(entries: Listed, model: DataplaneModel, limit: number): LimitedWorkload[] {
  const pods = new Map<string, string>();
  for (const { id, addresses } of model.endpoints.values()) for (const net of addresses) pods.set(addressOf(net), id);
  const opened = new Map<string, number>();
  const ports = new Map<string, Map<string, number>>();
  for (const { original, reply, sourceNat } of entries) {
    const pod = pods.get(original.source);
    if (pod === undefined) continue;
    opened.set(pod, (opened.get(pod) ?? 0) + 1);
    if (!sourceNat) continue;
    const destination = `${original.protocol} ${reply.source} ${reply.sourcePort}`;
    const counts = ports.get(pod) ?? new Map<string, number>();
    counts.set(destination, (counts.get(destination) ?? 0) + 1);
    ports.set(pod, counts);
  }
  return [...opened].flatMap(([id, count]): LimitedWorkload[] => {
    const most = [...(ports.get(id)?.values() ?? [])].reduce((a, b) => Math.max(a, b), 0);
    if (count >= limit * LIMITED_FROM) return [{ id, table: "nf_conntrack", entries: count, limit }];
    return most >= PORT_LIMIT * LIMITED_FROM ? [{ id, table: "source ports", entries: most, limit: PORT_LIMIT }] : [];
  });
}

function interfacesOf(limited: readonly LimitedWorkload[], { endpoints }: DataplaneModel): Set<string> {
  return new Set(limited.flatMap(({ id }) => endpoints.get(id)?.interfaceName ?? []));
}
