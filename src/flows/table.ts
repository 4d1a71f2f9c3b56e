import type { FlowKey, PolicyHit } from "../api/protocol/flow.ts";
import { printableLine } from "../kit/printable.ts";
import { pairText, ruleName } from "./query/fields.ts";
import type { SeenFlow } from "./store/selection.ts";

/** What a row needs of a flow. */
export type TableFlow = Omit<SeenFlow, "resourceVersion">;

export interface FlowColumn {
  name: string;
  description: string;
  /** As Kubernetes has it: 0 is always shown, 1 with `-o wide`. */
  priority: 0 | 1;
  /** One line of plain text: names and labels come from users, so what would move a cursor is shown as its code. */
  text(flow: TableFlow): string;
}

/** The table of flows, for kubectl and for vendorctl. */
export const FLOW_COLUMNS: readonly FlowColumn[] = [
  column("WHEN", "When it was counted last.", ({ lastSeen }) => whenText(lastSeen)),
  column("VERDICT", "What happened to it.", ({ key }) => key.verdict.toLowerCase()),
  column("FROM", "Who began.", ({ key }) => endText(key.from)),
  column("TO", "Who was spoken to.", ({ key }) => endText(key.to)),
  column("PORT", "The destination's port and the protocol; * stands for several.", ({ key }) => portText(key)),
  column("DECIDED-BY", "The rule that decided last, as queries find it.", ({ key }) => decidedBy(key)),
  column("BYTES", "In both directions.", ({ bytes, replyBytes }) => bytesText(bytes + replyBytes)),
  column("CONNECTIONS", "That began.", ({ started }) => String(started)),
  column("PENDING", "What would happen if staged policies were enforced.", ({ key }) => pendingText(key), 1),
  column("REASON", "Why a denied flow was dropped.", ({ key }) => key.reason ?? "", 1),
  column("SERVICE", "The Service that was asked for.", ({ key }) => serviceText(key), 1),
  column("NODE", "Where it was counted.", ({ key }) => key.node, 1),
  column("PLANE", "The data plane that carried it.", ({ key }) => key.dataplane.toLowerCase(), 1),
  column("ADDRESSES", "Of both ends.", (flow) => addressesText(flow), 1),
  column("ID", "What it is explained by: vendorctl flows explain ID.", ({ id }) => id, 1),
];

function column(name: string, description: string, text: (flow: TableFlow) => string, priority: 0 | 1 = 0): FlowColumn {
  return { name, description, priority, text: (flow) => printableLine(text(flow)) || "-" };
}

function whenText(time: number): string {
  return Number.isFinite(time) && Math.abs(time) < 8.64e15 ? new Date(time).toISOString().replace(/\.\d+Z$/, "Z") : "";
}

export function endText({ namespace, name }: FlowKey["from"]): string {
  return pairText({ namespace, name: name || "*" });
}

const WITH_PORTS = /^(?:tcp|udp|sctp)$/i;

export function portText({ port, protocol }: Pick<FlowKey, "port" | "protocol">): string {
  if (port === 0 && !WITH_PORTS.test(protocol)) return protocol;
  return `${port || "*"}/${protocol}`;
}

/** The last step that decided: a packet that is allowed was allowed at every end, and the last one is where it arrived. */
function decidedBy({ policies }: FlowKey): string {
  return decisionText(policies);
}

/** Empty: nothing decided. */
function decisionText(policies: readonly PolicyHit[]): string {
  const decided = policies.findLast(({ action }) => action === "Allow" || action === "Deny");
  return decided ? hitText(decided) : "";
}

/** `deny by pay/lock#ingress[2]`: what would happen if staged policies were enforced. */
function pendingText({ pending }: FlowKey): string {
  if (!pending) return "";
  const decided = decisionText(pending.policies);
  return `${pending.verdict.toLowerCase()}${decided && ` by ${decided}`}`;
}

export function hitText(hit: PolicyHit): string {
  if (hit.kind === "EndOfTier") return `end of tier ${hit.tier}`;
  if (hit.kind === "NoProfile") return "no profile";
  if (hit.kind === "Profile") return hit.name ? `profile ${hit.name}` : "a profile";
  // A policy that the reader may not see has no name here.
  if (hit.name === "") return `${hit.kind} of tier ${hit.tier}`;
  return pairText({ namespace: hit.namespace, name: hit.rule === undefined ? hit.name : ruleName(hit) });
}

function serviceText({ service }: FlowKey): string {
  return service ? `${pairText(service)}:${service.port}` : "";
}

function addressesText({ sourceAddresses, destinationAddresses, more }: TableFlow): string {
  if (sourceAddresses.length + destinationAddresses.length === 0) return "";
  const list = (addresses: readonly string[]) => addresses.join(",") || "-";
  return `${list(sourceAddresses)} > ${list(destinationAddresses)}${more ? " …" : ""}`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Three digits at most, as a query takes it. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1_000, unit + 1];
  const text = unit === 0 || value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text}${UNITS[unit]}`;
}
