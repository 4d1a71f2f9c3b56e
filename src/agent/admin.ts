import { join } from "node:path";
import { TABLES, type Table, type TableName } from "../dataplane/contract.ts";
import { requestLine } from "../kit/line-socket.ts";
import { errors } from "./errors.ts";

/** Tables of the agent itself, in addition to those of its data plane. */
const OWN_TABLES = ["pods", "services", "settings", "problems", "switchover", "overlay", "bgp", "flows"] as const;
export const SHOWN_TABLES = [...TABLES, ...OWN_TABLES] as const;
export type ShownTable = (typeof SHOWN_TABLES)[number];

export interface AdminRequest {
  show: ShownTable;
}

export type AdminReply = { table: Table; dataplane: string | undefined } | { error: string };

export interface AdminSources {
  dataplane(): string | undefined;
  show(table: TableName): Promise<Table>;
  own: Record<(typeof OWN_TABLES)[number], () => Table>;
}

/** Answers `vendor node show`. */
export function adminService({ dataplane, show, own }: AdminSources): (question: unknown) => Promise<AdminReply> {
  return async (question) => {
    const { show: name } = question as AdminRequest;
    if (isOwn(name)) return { table: own[name](), dataplane: dataplane() };
    if ((TABLES as readonly string[]).includes(name)) return { table: await show(name), dataplane: dataplane() };
    return { error: `there is no table "${String(name)}"` };
  };
}

/** Names that users type for a table: `ip-sets` without the hyphen, and the earlier name of `switchover`. */
export function shownTable(text: string): ShownTable {
  if (text === "hand-over") return "switchover";
  const found = SHOWN_TABLES.find((name) => name === text || name.replaceAll("-", "") === text);
  if (!found) throw errors.AGENT_NO_TABLE(text, SHOWN_TABLES);
  return found;
}

export function adminSocket(runDir: string): string {
  return join(runDir, "admin.sock");
}

/** Asks the agent of this node; rejects with `AGENT_NOT_RUNNING` where there is none. */
export async function requestAgent(
  runDir: string,
  question: AdminRequest,
): Promise<{ table: Table; dataplane?: string }> {
  const path = adminSocket(runDir);
  let answer: AdminReply;
  try {
    answer = (await requestLine(path, question, 30_000)) as AdminReply;
  } catch (error) {
    throw errors.AGENT_NOT_RUNNING(path, error instanceof Error ? error.message : String(error));
  }
  if ("error" in answer) throw errors.AGENT_NO_TABLE(question.show, SHOWN_TABLES);
  const { table, dataplane } = answer;
  return dataplane === undefined ? { table } : { table, dataplane };
}

function isOwn(name: string): name is (typeof OWN_TABLES)[number] {
  return (OWN_TABLES as readonly string[]).includes(name);
}
