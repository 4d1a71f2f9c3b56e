import type { TrafficRow } from "../../../api/protocol/traffic-report.ts";
import { formatTable, type Table } from "../../printer.ts";

/** What traffic lost meanwhile, path by path. */
export function trafficText(rows: readonly TrafficRow[], width?: number): Promise<string> {
  return formatTable(trafficTable(rows), width);
}

function trafficTable(rows: readonly TrafficRow[]): Table {
  const columns = [
    "PATH",
    "PROTOCOL",
    "CONNECTIONS",
    "LOST",
    "CLIENT ADDRESS",
    "LONGEST SILENCE",
    "DATAGRAMS",
    "UNANSWERED",
  ];
  const cells = rows.map(({ way, protocol, opened, lost, replaced, silenceMs, sent, unanswered }) => {
    const counts =
      protocol === "tcp" ? [`${opened}`, `${lost}`, replaced === 0 ? "kept" : `${replaced} replaced`] : ["", "", ""];
    const datagrams = protocol === "udp" ? [`${sent}`, `${unanswered}`] : ["", ""];
    return [way, protocol.toUpperCase(), ...counts, `${silenceMs} ms`, ...datagrams];
  });
  return { columns, rows: cells, empty: "no traffic was measured" };
}
