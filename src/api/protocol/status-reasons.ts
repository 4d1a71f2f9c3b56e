/**
 * Why a part of the service is Degraded, as the reason of its condition: the operator writes it, `vendorctl` decides by it whether waiting
 * makes sense. A reason is either declared here or is the code of a problem that validation found.
 */

import { EXPLANATIONS } from "../validation/explain.ts";
import { REFUSAL_CODES, type RefusalCode } from "./agent-report.ts";

/**
 * `terminal`: only a change by a person ends it. `transient`: it may end by itself, or by what another part does. `partial`: single objects are
 * not in effect, often through what their owners wrote; the part of the service works as far as this release has it.
 */
type Nature = "terminal" | "transient" | "partial";

const REASONS = {
  EbpfProgramsRefused: "terminal",
  CgroupPathNotWritable: "terminal",
  PoolFieldImmutable: "terminal",
  PoolOfAnother: "terminal",
  ServiceProxyIpvs: "terminal",
  ServiceProxyOfTool: "terminal",
  ServiceProxyOfAnother: "terminal",
  ServiceProxyCannotBeDisabled: "terminal",
  Forbidden: "terminal",
  RequestRefused: "terminal",
  PodErrImagePull: "terminal",
  PodImagePullBackOff: "terminal",
  PodInvalidImageName: "terminal",
  PodCreateContainerConfigError: "terminal",
  ServiceProxyConflict: "transient",
  ServiceProxyMissing: "transient",
  ServiceProxyParked: "transient",
  MapFull: "transient",
  WorkloadLimited: "partial",
  OverlayUnreachable: "partial",
  BgpDaemonDown: "partial",
  NodesUnroutable: "partial",
  NodeProblems: "partial",
  FlowNodesSilent: "partial",
  FlowDiskFailing: "partial",
  FlowExportFailing: "partial",
  EndpointUnanswered: "transient",
  DefinitionsMissing: "transient",
  APIServiceUnavailable: "transient",
  AddressDuplicate: "transient",
  NameNotDefault: "transient",
  RequestFailed: "transient",
  SecondOperator: "transient",
  PodCrashLoopBackOff: "transient",
  PodCreateContainerError: "transient",
  PodRunContainerError: "transient",
  PodFailing: "transient",
  PodFailed: "transient",
  PodNotReady: "transient",
  PodNotStarted: "transient",
  PodsNotCreated: "transient",
  NodeNotReady: "transient",
  CniConfigurationMissing: "transient",
  CniConfigurationShadowed: "transient",
  CniPluginOfAnother: "transient",
  PodUnschedulable: "transient",
} as const satisfies Record<string, Nature> & Record<RefusalCode, Nature>;

export type StatusReason = keyof typeof REASONS;

/** What the public system's operator writes, and our own wrote in earlier releases. */
const REASONS_OF_OTHERS: readonly string[] = [
  "InvalidConfigurationError",
  "ResourceValidationError",
  "MigrationError",
  "ImageSetError",
  "Misnamed",
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "CreateContainerConfigError",
];

/** Problems that end without a change of the object they are reported on: another object comes, or goes. */
const PASSING_PROBLEMS: ReadonlySet<string> = new Set([
  "FLOW_RESOURCES_TOO_EARLY",
  "FLOW_UI_NEEDS_LOGS",
  "NAME_NOT_DEFAULT",
  "SERVICE_PROXY_CONFLICT",
]);

const TERMINAL: ReadonlySet<string> = new Set([
  ...Object.entries(REASONS).flatMap(([reason, nature]) => (nature === "terminal" ? [reason] : [])),
  ...Object.keys(EXPLANATIONS).flatMap((code) => (PASSING_PROBLEMS.has(code) ? [] : [reasonOf(code)])),
  ...REASONS_OF_OTHERS,
]);

/** Whether a Degraded condition with this reason ends only when a person changes something. */
export function isTerminal(reason: string | undefined): boolean {
  return reason !== undefined && TERMINAL.has(reason);
}

/** Whether only single objects are not in effect: what waits for the service need not wait for them. */
export function isPartial(reason: string | undefined): boolean {
  return REASONS[reason as StatusReason] === "partial";
}

/** Whether a reason repeats what an agent reports itself, and sooner. */
export function isReportedByAgents(reason: string | undefined): boolean {
  return (REFUSAL_CODES as readonly (string | undefined)[]).includes(reason);
}

/** Conditions speak in CamelCase words: `EBPF_IPIP_POOL` is `EbpfIpipPool`. */
export function reasonOf(code: string): string {
  return code
    .toLowerCase()
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}
