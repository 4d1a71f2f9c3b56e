import { join } from "node:path";
import type { Table } from "../dataplane/contract.ts";
import { realKernel } from "../kernel/kernel.ts";
import type { ShownTable } from "./admin.ts";
import type { AgentDirectories } from "./config.ts";
import { podsTable } from "./own-tables.ts";
import { podRecords } from "./pods/pod-records.ts";

/** Routes of ours are marked so. */
const OUR_PROTOCOL = 80;

/** What can be seen without the agent; undefined for what only it knows. */
export async function showFromKernel(table: ShownTable, directories: AgentDirectories): Promise<Table | undefined> {
  switch (table) {
    case "pods":
      return podsTable(podRecords(join(directories.state, "pods")).list());
    case "routes":
      return kernelRoutes();
    case "conntrack":
      return await nfConntrackTable();
    default:
      return undefined;
  }
}

function kernelRoutes(): Table {
  const netlink = realKernel().netlink();
  try {
    const names = new Map(netlink.links().map(({ index, name }) => [index, name]));
    const rows = netlink
      .routes({ protocol: OUR_PROTOCOL })
      .map(({ destination, type, gateway, device }) => [
        destination,
        type,
        gateway ?? "-",
        names.get(device ?? 0) ?? "-",
      ]);
    return { columns: ["to", "type", "via", "interface"], rows: rows.sort((a, b) => (a.join() < b.join() ? -1 : 1)) };
  } finally {
    netlink.close();
  }
}

async function nfConntrackTable(): Promise<Table> {
  const conntrack = realKernel().conntrack();
  try {
    const rows = (await conntrack.list()).map(({ original, tcpState, mark, timeout }) => [
      String(original.protocol),
      `${original.source}:${original.sourcePort}`,
      `${original.destination}:${original.destinationPort}`,
      tcpState ?? "-",
      `0x${mark.toString(16)}`,
      `${timeout}s`,
    ]);
    return { columns: ["protocol", "from", "to", "state", "mark", "forgotten in"], rows: rows.sort() };
  } finally {
    conntrack.close();
  }
}
