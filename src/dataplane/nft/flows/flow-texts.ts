/** What rows are of, in the words of a `FlowSum`: addresses, verdict, the rules that decided. Asked of the model once for each row. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DataplaneModel, Packet, Policy, Profile } from "../../../calc/model.ts";
import { type Trace, trace } from "../../../calc/policy/evaluate.ts";
import type { NetlinkPort } from "../../../kernel/netlink/netlink-port.ts";
import type { FlowSum } from "../../flow-sums.ts";
import { Places } from "../places.ts";
import { reasonOf } from "../ruleset.ts";
import { ROW_KEY, ROW_KINDS, type RowKey, readRowKey } from "./row-key.ts";
import { ServicesAsked } from "./services-asked.ts";

/** What a sum is of; the rest of it are counts. */
export type FlowKey = Pick<
  FlowSum,
  "source" | "destination" | "destinationPort" | "protocol" | "service" | "verdict" | "reason" | "egress" | "ingress"
>;

const PORTED = [6, 17, 132];
const ICMP = [1, 58];
/** The event loop runs between so many milliseconds. */
const TURN_MS = 5;
const MOST_KNOWN = 200_000;

/** Of the model at this moment. */
export interface FlowModel {
  model: DataplaneModel;
  /** Another number after each change of it. */
  epoch: number;
  netlink: NetlinkPort;
  /** What a number in the sets of denials stands for. */
  causesOf(number: number): readonly string[];
}

interface Known {
  epoch: number;
  key: FlowKey;
  /** Whether each of its rules was found. */
  whole: boolean;
}

export class FlowTexts {
  private readonly known = new Map<string, Known>();
  private epoch = -1;
  private places: Places | undefined;
  private services: ServicesAsked | undefined;

  /** One for each key. */
  async textsOf(keys: Uint8Array, given: () => FlowModel): Promise<string[]> {
    const texts: string[] = [];
    let began = performance.now();
    for (let index = 0; index < keys.length / ROW_KEY; index++) {
      texts.push(JSON.stringify(this.keyOf(keys, index, given())));
      if (performance.now() - began < TURN_MS) continue;
      await nextTurn();
      began = performance.now();
    }
    return texts;
  }

  private keyOf(keys: Uint8Array, index: number, given: FlowModel): FlowKey {
    this.follow(given);
    const name = Buffer.from(keys.buffer, keys.byteOffset + index * ROW_KEY, ROW_KEY).toString("latin1");
    const before = this.known.get(name);
    if (before?.epoch === given.epoch) return before.key;
    const now = this.resolve(readRowKey(keys, index), given);
    // A pod that is gone, or a rule that no longer allows what it allowed: then what was known before is what happened.
    const chosen = !now.whole && before?.whole ? before : now;
    if (this.known.size >= MOST_KNOWN) this.known.clear();
    this.known.set(name, { ...chosen, epoch: given.epoch });
    return chosen.key;
  }

  private follow({ model, epoch, netlink }: FlowModel): void {
    if (this.epoch === epoch && this.places) return;
    this.epoch = epoch;
    this.places = new Places(model, netlink);
    this.services = new ServicesAsked(model.services.values());
  }

  private resolve(row: RowKey, given: FlowModel): Omit<Known, "epoch"> {
    const key = this.plainKey(row);
    const traced = row.coarse === undefined ? this.trace(row, given.model) : undefined;
    if (row.kind === ROW_KINDS.dropped) return this.dropped(key, given.causesOf(row.number), traced);
    const action = row.kind === ROW_KINDS.allowed ? "allow" : "deny";
    const { egress, ingress } = traced ?? {};
    if (traced?.verdict.action !== action) return { key, whole: false };
    const reason = action === "deny" ? deniedReason(traced) : undefined;
    const isOfPod = egress !== undefined || ingress !== undefined;
    return { key: { ...key, reason, egress, ingress }, whole: isOfPod };
  }

  private plainKey(row: RowKey): FlowKey {
    const { source, destination, asked, destinationPort, askedPort, protocol, coarse } = row;
    const hasPort = PORTED.includes(protocol) && coarse === undefined;
    const isTranslated = asked !== destination || askedPort !== destinationPort;
    const asksService = hasPort && isTranslated && row.kind !== ROW_KINDS.dropped;
    return {
      source: coarse === "addresses" ? "" : source,
      destination: coarse === "addresses" ? "" : destination,
      ...{ destinationPort: hasPort ? destinationPort : 0, protocol },
      service: asksService ? this.services!.find(protocol, asked, askedPort) : undefined,
      verdict: row.kind === ROW_KINDS.allowed ? "Allow" : "Deny",
      ...{ reason: undefined, egress: undefined, ingress: undefined },
    };
  }

  private trace(row: RowKey, model: DataplaneModel): Trace {
    const { source, destination } = row;
    return trace(model, packetOf(row), { from: this.places!.of(source), to: this.places!.of(destination) });
  }

  /** What dropped it is known; what was asked before is known only if the model says that it ends there too. */
  private dropped(key: FlowKey, causes: readonly string[], traced: Trace | undefined): Omit<Known, "epoch"> {
    const last = traced?.verdict.hits.at(-1);
    const isDenied = traced?.verdict.action === "deny";
    const cause = causes.find((one) => isDenied && one === last) ?? causes[0];
    if (cause === undefined) return { key, whole: false };
    const reason = reasonOf(cause);
    if (reason !== undefined) return { key: { ...key, reason }, whole: true };
    if (traced && isDenied && cause === last) {
      const { egress, ingress } = traced;
      return { key: { ...key, reason: deniedReason(traced), egress, ingress }, whole: true };
    }
    const end = this.endOf(cause, key);
    const isPods = this.places!.podAt(end === "egress" ? key.source : key.destination) !== undefined;
    return { key: { ...key, reason: isPods ? `policy_workload_${end}` : "policy_host", [end]: [cause] }, whole: true };
  }

  private endOf(cause: string, { source, destination }: FlowKey): "egress" | "ingress" {
    const [, direction] = cause.split(";");
    if (direction === "egress" || direction === "ingress") return direction;
    const [from, to] = [source, destination].map((address) => this.places!.podAt(address) !== undefined);
    return from && !to ? "egress" : "ingress";
  }
}

function deniedReason({ denied }: Trace): string | undefined {
  if (!denied) return undefined;
  return denied.of === "workload" ? `policy_workload_${denied.end}` : "policy_host";
}

function packetOf(row: RowKey): Packet {
  const { source, destination, protocol, sourcePort, destinationPort, asked, askedPort } = row;
  const common = { ipVersion: source.includes(":") ? (6 as const) : (4 as const), protocol, source, destination };
  if (row.kind === ROW_KINDS.dropped) {
    return PORTED.includes(protocol) ? { ...common, destinationPort } : common;
  }
  if (ICMP.includes(protocol)) return { ...common, icmpType: destinationPort >> 8, icmpCode: destinationPort & 0xff };
  if (!PORTED.includes(protocol)) return common;
  const isTranslated = asked !== destination || askedPort !== destinationPort;
  return {
    ...{ ...common, destinationPort, sourcePort },
    ...(isTranslated ? { originalDestination: asked, originalDestinationPort: askedPort } : {}),
  };
}

const asking = new WeakMap<Policy | Profile, boolean>();

/** Whether a rule asks for the port of who opened a connection: else connections that differ in nothing but that are one row. */
export function asksSourcePorts({ policies, profiles }: DataplaneModel): boolean {
  for (const table of [policies, profiles]) {
    for (const owner of table.values()) {
      const known = asking.get(owner) ?? [...owner.ingress, ...owner.egress].some(asksSourcePort);
      asking.set(owner, known);
      if (known) return true;
    }
  }
  return false;
}

function asksSourcePort(rule: Policy["ingress"][number]): boolean {
  return (rule.srcPorts ?? rule.notSrcPorts ?? rule.srcNamedPortSets ?? rule.notSrcNamedPortSets) !== undefined;
}
