import type { BgpSession } from "../../calc/bgp/bgp-model.ts";
import type { Table } from "../../dataplane/contract.ts";
import type { ControlLine } from "./bird-control.ts";

/** One session as the daemon has it. */
export interface SessionState {
  name: string;
  from: string;
  peer: string;
  address: string;
  asNumber: number;
  node: string | null;
  /** The protocol's own words: `Established`, `Active`, ...; `unknown` while the daemon does not say. */
  state: string;
  /** When it became so, in the daemon's words. */
  since: string;
  imported: number;
  exported: number;
  /** Why it is not established, as far as the daemon knows. */
  reason: string;
}

/** What `show protocols all` says of the sessions that are wanted. */
export function sessionStates(sessions: readonly BgpSession[], lines: readonly ControlLine[]): SessionState[] {
  const blocks = new Map<string, string[]>();
  let block: string[] = [];
  for (const { text } of lines) {
    const header = /^(\S+)\s+BGP\s+\S+\s+(\S+)\s+(\S+(?: \d\d:\d\d:\d\d(?:\.\d+)?)?)/.exec(text);
    if (header) {
      block = [`since: ${header[3]}`];
      blocks.set(header[1] as string, block);
    } else if (/^\S+\s+\S+\s+\S+\s+(?:up|down|start|stop)\s/.test(text)) block = [];
    else block.push(text);
  }
  return sessions.map((session) => {
    const said = blocks.get(session.name)?.join("\n") ?? "";
    const read = (pattern: RegExp) => pattern.exec(said)?.[1]?.trim();
    return {
      name: session.name,
      from: session.from,
      peer: session.address.includes(":")
        ? `[${session.address}]:${session.port}`
        : `${session.address}:${session.port}`,
      address: session.address,
      asNumber: session.asNumber,
      node: session.node,
      state: read(/BGP state:\s+(\S+)/) ?? "unknown",
      since: read(/since: (.*)/) ?? "",
      imported: Number(read(/Routes:\s+(\d+) imported/) ?? 0),
      exported: Number(read(/(\d+) exported/) ?? 0),
      reason: read(/Last error:\s+(.*)/) ?? "",
    };
  });
}

export function isEstablished({ state }: SessionState): boolean {
  return state === "Established";
}

export function bgpTable(states: readonly SessionState[]): Table {
  return {
    columns: ["session", "peer", "as", "node", "from", "state", "since", "accepted", "announced", "reason"],
    rows: states.map((one) => [
      ...[one.name, one.peer, String(one.asNumber), one.node ?? "-", one.from, one.state, one.since || "-"],
      ...[String(one.imported), String(one.exported), one.reason || "-"],
    ]),
  };
}
