import type { Program } from "../../cluster/program.ts";

/** Programs by the name they have after `vendor`; loaded only when one is started. */
export type ProgramTable = Readonly<Record<string, () => Promise<Program>>>;

export const PROGRAMS: ProgramTable = {
  "flow-logs": async () => (await import("../../flows/stand-in.ts")).flowLogsStandIn,
  "flow-ui": async () => (await import("../../flows/stand-in.ts")).flowUIStandIn,
};
