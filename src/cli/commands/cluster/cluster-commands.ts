/** What `vendorctl cluster …` needs from the embedded cluster: types only, so that nothing of it is loaded until a command runs. */
export type ClusterCommands = typeof import("../../../local/commands.ts");
export type { ClusterSummary, UpOptions } from "../../../local/commands.ts";
