import type { TrafficRow } from "../../api/protocol/traffic-report.ts";

/** How much a procedure may cost the traffic that is measured meanwhile. */
export type Budget = {
  /** Connections lost, of each way. */
  connections: number;
  silenceMs: number;
  /** Datagrams without an answer, of each way, in percent; a few are allowed wherever any is. */
  datagramsPercent: number;
};

/**
 * One for each socket of a path: it has a client on each of three nodes, with a socket that stays and one that comes and goes. kube-proxy, when it
 * starts, deletes what the kernel knows of UDP to ports of other nodes, and what is under way finds no way back. Early in a run that is a large share.
 */
const ALWAYS_ALLOWED_DATAGRAMS = 6;

export const DEFAULT_BUDGET: Budget = { connections: 0, silenceMs: 1000, datagramsPercent: 0.1 };

/** The first way that cost more, in words with its figures; undefined where all is inside. */
export function overBudget(rows: readonly TrafficRow[], budget: Budget): string | undefined {
  for (const row of rows) {
    const cost = costOf(row, budget);
    if (cost !== undefined) return `${row.way} by ${row.protocol.toUpperCase()}: ${cost}`;
  }
  return undefined;
}

/** The paths that were healthy before: for one that was not, the cost of a change cannot be measured. */
export function healthyBefore(
  rows: readonly TrafficRow[],
  before: readonly TrafficRow[],
  budget: Budget,
): TrafficRow[] {
  const spoiled = before.filter((row) => !row.reached || costOf(row, budget) !== undefined);
  return rows.filter(({ way, protocol }) => !spoiled.some((row) => row.way === way && row.protocol === protocol));
}

/** Both data planes keep the client's address here; they differ for ports of nodes and for clients in the host network. */
const KEPT_BY_BOTH = /^(pod|service)-/;

/** The first path on which servers saw clients' own addresses before, and do no more. No budget allows that: policies would deny those clients. */
export function replacedAddress(
  rows: readonly TrafficRow[],
  before: readonly TrafficRow[],
  { switches }: { switches: true | undefined },
): string | undefined {
  const kept = (row: TrafficRow) =>
    before.some(({ way, protocol, replaced }) => {
      return way === row.way && protocol === row.protocol && replaced === 0;
    });
  const row = rows.find((one) => one.replaced > 0 && kept(one) && (!switches || KEPT_BY_BOTH.test(one.way)));
  return (
    row &&
    `${row.way}: the server saw another address than the client's own for ${row.replaced} of ${row.opened} connections`
  );
}

function costOf(row: TrafficRow, { connections, silenceMs, datagramsPercent }: Budget): string | undefined {
  if (row.lost > connections) {
    return `${row.lost} of ${row.opened} connections were lost; the budget is ${connections}`;
  }
  if (row.silenceMs > silenceMs) return `silent for ${row.silenceMs} ms; the budget is ${silenceMs} ms`;
  const most =
    datagramsPercent === 0 ? 0 : Math.max(ALWAYS_ALLOWED_DATAGRAMS, Math.floor((row.sent * datagramsPercent) / 100));
  if (row.unanswered > most) {
    return `${row.unanswered} of ${row.sent} datagrams were not answered; the budget is ${datagramsPercent} %`;
  }
  return undefined;
}

export const formatBudget = ({ connections, silenceMs, datagramsPercent }: Budget): string =>
  `at most ${connections} connections lost, ${silenceMs} ms of silence and ${datagramsPercent} % of datagrams, per path`;
