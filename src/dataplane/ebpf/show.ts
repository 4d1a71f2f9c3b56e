import type { DataplaneModel } from "../../calc/model.ts";
import {
  CONNTRACK_FLAG,
  CONNTRACK_STATE,
  type ConntrackEntry,
  conntrackEntryLayout,
  counterLayout,
  FORWARD_PATH,
  fiveTupleLayout,
  HOOK,
  REASON,
} from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../kernel/kernel-time.ts";
import type { Table, TableName } from "../contract.ts";
import { addressText } from "./net-bytes.ts";

export interface ShownState {
  interfaces: { name: string; ifindex: number; epoch: number; slots: readonly [arrive: number, leave: number] }[];
  /** Undefined while nothing is loaded. */
  map(name: string): BpfMap | undefined;
}

type Show = (model: DataplaneModel, state: ShownState) => Table;

const SHOW = {
  endpoints: showEndpoints,
  policies: showPolicies,
  "ip-sets": showSets,
  routes: showRoutes,
  conntrack: showConntrack,
  counters: showCounters,
} as const satisfies Record<TableName, Show>;

export function showTable(name: TableName, model: DataplaneModel, state: ShownState): Table {
  const { columns, rows } = SHOW[name](model, state);
  return { columns, rows: rows.sort((a, b) => (a.join("\0") < b.join("\0") ? -1 : 1)) };
}

function showEndpoints(model: DataplaneModel, { interfaces }: ShownState): Table {
  const byName = new Map(interfaces.map((one) => [one.name, one]));
  const places = [
    ...[...model.endpoints.values()].map(({ id, interfaceName, addresses }) => ({ id, interfaceName, addresses })),
    ...interfaces
      .filter(({ name }) => ![...model.endpoints.values()].some(({ interfaceName }) => interfaceName === name))
      .map(({ name }) => ({ id: "(node)", interfaceName: name, addresses: [] })),
  ];
  return {
    columns: ["endpoint", "interface", "number", "addresses", "from it", "to it", "epoch"],
    rows: places.map(({ id, interfaceName, addresses }) => {
      const held = byName.get(interfaceName);
      const numbers = held ? [String(held.ifindex), ...held.slots.map(slotText), String(held.epoch)] : [];
      const [ifindex = "absent", arrive = "-", leave = "-", epoch = "-"] = numbers;
      return [id, interfaceName, ifindex, addresses.join(" "), arrive, leave, epoch];
    }),
  };
}

function slotText(slot: number): string {
  return slot === 0 ? "-" : `program ${slot}`;
}

function showPolicies({ policies }: DataplaneModel): Table {
  return {
    columns: ["policy", "tier", "order", "ingress rules", "egress rules"],
    rows: [...policies.values()].map(({ id, tier, order, ingress, egress }) => [
      ...[id, tier, order === null ? "last" : String(order)],
      ...[String(ingress.length), String(egress.length)],
    ]),
  };
}

function showSets({ ipSets }: DataplaneModel): Table {
  return {
    columns: ["set", "kind", "members", "stands for"],
    rows: [...ipSets.values()].map(({ id, kind, members, meaning }) => [id, kind, String(members.length), meaning]),
  };
}

function showRoutes({ routes }: DataplaneModel): Table {
  return {
    columns: ["to", "kind", "node", "via", "encapsulation"],
    rows: [...routes.values()].map(({ cidr, kind, node, nextHop, interfaceName, encapsulation }) => [
      ...[cidr, kind, node ?? "-"],
      ...[nextHop ?? interfaceName ?? "-", encapsulation],
    ]),
  };
}

function showConntrack(_model: DataplaneModel, { map }: ShownState): Table {
  const now = kernelTime();
  const entries = map("flows")?.entries() ?? [];
  return {
    columns: ["protocol", "from", "to", "direction", "state", "goes", "packets", "idle", "becomes"],
    rows: entries.map(([key, value]) => {
      const { src, dst, sport, dport, protocol } = fiveTupleLayout.read(key);
      const flow = conntrackEntryLayout.read(value);
      return [
        String(protocol),
        ...[endText(src, sport), endText(dst, dport)],
        (flow.flags & CONNTRACK_FLAG.CT_REPLY) !== 0 ? "reply" : "opened",
        ...[nameOf(CONNTRACK_STATE, flow.state, "CT_"), nameOf(FORWARD_PATH, flow.path, "PATH_"), String(flow.packets)],
        `${(now - flow.lastSeen) / 1_000_000_000n}s`,
        becomesText(flow),
      ];
    }),
  };
}

/** What its packets are translated to. */
function becomesText({ flags, to }: ConntrackEntry): string {
  if ((flags & CONNTRACK_FLAG.CT_NAT) === 0) return "-";
  const { src, sport, dst, dport } = to;
  return `${endText(src, sport)} > ${endText(dst, dport)}`;
}

function endText(address: Uint8Array, port: number): string {
  const text = addressText(address);
  return text.includes(":") ? `[${text}]:${port}` : `${text}:${port}`;
}

/** Only what happened: most reasons never do. */
function showCounters(_model: DataplaneModel, { map }: ShownState): Table {
  const counters = map("counters");
  const rows: string[][] = [];
  for (const [hook, hookNumber] of valuesOf(HOOK, "HOOK_")) {
    for (const [reason, number] of valuesOf(REASON, "PASS_", "DROP_", "REJECT_")) {
      const index = Buffer.alloc(4);
      index.writeUInt32LE(hookNumber * REASON.REASONS + number);
      const { packets, bytes } = sumOf(counters?.lookup(index));
      if (packets > 0n) rows.push([hook, reason, String(packets), String(bytes)]);
    }
  }
  return { columns: ["hook", "reason", "packets", "bytes"], rows };
}

/** Every processor counts for itself. */
function sumOf(value: Buffer | undefined): { packets: bigint; bytes: bigint } {
  const sum = { packets: 0n, bytes: 0n };
  for (let at = 0; at < (value?.length ?? 0); at += counterLayout.size) {
    const { packets, bytes } = counterLayout.read(value!.subarray(at, at + counterLayout.size));
    sum.packets += packets;
    sum.bytes += bytes;
  }
  return sum;
}

function valuesOf(names: Record<string, number>, ...prefixes: string[]): [string, number][] {
  return Object.entries(names).flatMap(([name, number]) => {
    const prefix = prefixes.find((one) => name.startsWith(one));
    return prefix === undefined ? [] : [[readable(prefix === "HOOK_" ? name.slice(5) : name), number]];
  });
}

/** The readable name of a number of an enumeration, without the prefix its names have; limits in it are none of its names. */
export function nameOf(names: Record<string, number>, number: number, prefix: string): string {
  const isName = (one: string) => names[one] === number && one.startsWith(prefix) && one !== "FIRST_DROP";
  const name = Object.keys(names).find(isName) ?? `${prefix}${number}`;
  return readable(name.slice(prefix.length));
}

function readable(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}
