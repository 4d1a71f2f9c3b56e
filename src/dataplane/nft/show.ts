import type { DataplaneModel } from "../../calc/model.ts";
import type { ConntrackEntry, ConntrackTuple } from "../../kernel/conntrack/conntrack-port.ts";
import type { NftObject } from "../../kernel/nft/nft-port.ts";
import type { Table, TableName } from "../contract.ts";
import { policiesTable, routesTable, setsTable, sortedTable } from "../model-tables.ts";
import type { Written } from "./transaction.ts";

export interface Shown {
  model: DataplaneModel;
  written: Written;
  conntrack(): Promise<ConntrackEntry[]>;
  /** Everything nft lists of our table. */
  listed(): Promise<NftObject[]>;
}

type Show = (shown: Shown) => Table | Promise<Table>;

const SHOW = {
  endpoints: endpointsTable,
  policies: ({ model }) => policiesTable(model),
  "ip-sets": ({ model }) => setsTable(model),
  routes: ({ model }) => routesTable(model),
  conntrack: conntrackTable,
  counters: countersTable,
} as const satisfies Record<TableName, Show>;

export async function showTable(table: TableName, shown: Shown): Promise<Table> {
  return sortedTable(await SHOW[table](shown));
}

function endpointsTable({ model, written }: Shown): Table {
  const chainOf = (map: string, name: string) =>
    written.sets.get(map)?.elements.get(`"${name}"`)?.replace("goto ", "chain ") ?? "-";
  const pods = [...model.endpoints.values()].map(({ id, interfaceName, addresses }) => [
    ...[id, interfaceName, addresses.join(" ")],
    ...[chainOf("from-pod", interfaceName), chainOf("to-pod", interfaceName)],
  ]);
  const hosts = [...(written.sets.get("host-input")?.elements.keys() ?? [])].map((quoted) => {
    const name = quoted.slice(1, -1);
    return ["(node)", name, "", chainOf("host-input", name), chainOf("host-output", name)];
  });
  return { columns: ["endpoint", "interface", "addresses", "from it", "to it"], rows: [...pods, ...hosts] };
}

async function conntrackTable({ conntrack: flows }: Shown): Promise<Table> {
  return {
    columns: ["protocol", "from", "to", "answers from", "state", "forgotten in"],
    rows: (await flows()).map(({ original, reply, tcpState, seenReply, timeout }) => [
      ...[String(original.protocol), endText(original, "source"), endText(original, "destination")],
      ...[endText(reply, "source"), tcpState ?? (seenReply ? "answered" : "unanswered"), `${timeout}s`],
    ]),
  };
}

function endText(tuple: ConntrackTuple, side: "source" | "destination"): string {
  const [address, port] = [tuple[side], side === "source" ? tuple.sourcePort : tuple.destinationPort];
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

interface ListedRule {
  chain: string;
  comment?: string;
  expr?: { counter?: { packets: number; bytes: number } }[];
}

/** Rules that were met; by what they are for, which several chains may share. */
async function countersTable({ listed }: Shown): Promise<Table> {
  const sums = new Map<string, { packets: number; bytes: number }>();
  for (const object of await listed()) {
    const rule = object["rule"] as ListedRule | undefined;
    const counter = rule?.expr?.find((statement) => statement.counter)?.counter;
    if (!rule?.comment || !counter || counter.packets === 0) continue;
    const reason = rule.comment.replace(/^[0-9a-f]+\/\d+ ?/, "");
    const sum = sums.get(reason) ?? { packets: 0, bytes: 0 };
    sums.set(reason, { packets: sum.packets + counter.packets, bytes: sum.bytes + counter.bytes });
  }
  const rows = [...sums].map(([reason, { packets, bytes }]) => [reason, String(packets), String(bytes)]);
  return { columns: ["rule", "packets", "bytes"], rows };
}
