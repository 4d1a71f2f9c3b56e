import type { Program } from "../../cluster/program.ts";

/** Programs by the name they have after `vendor`; loaded only when one is started. */
export type ProgramTable = Readonly<Record<string, () => Promise<Program>>>;

export const PROGRAMS: ProgramTable = {
  operator: async () => (await import("../../operator/program.ts")).operatorProgram,
  controllers: async () => (await import("../../controllers/program.ts")).controllersProgram,
  apiserver: async () => (await import("../../v3api/program.ts")).apiServerProgram,
  "flow-logs": async () => (await import("../../flows/program.ts")).flowLogsProgram,
  "pre-delete": async () => (await import("../../operator/pre-delete.ts")).preDeleteProgram,
  "flow-ui": async () => (await import("../../flows/page/program.ts")).flowUIProgram,
};

/** Programs of a node itself. They work on a kernel, so only a process of their own runs them, never the embedded cluster's. */
export const NODE_PROGRAMS: ProgramTable = {
  node: async () => (await import("../../agent/program.ts")).nodeProgram,
  overlay: async () => (await import("../../agent/separate-overlay/program.ts")).overlayProgram,
  bgp: async () => (await import("../../agent/bgp/program.ts")).bgpProgram,
  "node-init": async () => (await import("../../agent/node-init.ts")).nodeInitProgram,
  "policy-sidecar": async () => (await import("../../sidecar/program.ts")).sidecarProgram,
  "cni-install": async () => (await import("../../cni/install.ts")).cniInstallProgram,
};
