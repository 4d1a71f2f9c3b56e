import type { FlowEnd, FlowKey, PolicyHit } from "../../src/api/protocol/flow.ts";
import { pairText, ruleName } from "../../src/flows/query/fields.ts";

/** Cells of a flow, in the words that `kubectl get flows` and queries have. */

/** `*`: several were merged. */
export function endText({ namespace, name }: Pick<FlowEnd, "namespace" | "name">): string {
  return pairText({ namespace, name: name || "*" });
}

const WITH_PORTS = /^(?:tcp|udp|sctp)$/i;

export function portText({ port, protocol }: Pick<FlowKey, "port" | "protocol">): string {
  if (port === 0 && !WITH_PORTS.test(protocol)) return protocol;
  return `${port || "*"}/${protocol}`;
}

/** The last step that decided: a packet that is allowed was allowed at every end, and the last one is where it arrived. */
export function decidedBy({
  policies,
  verdict,
  reason = "",
}: Pick<FlowKey, "policies" | "verdict" | "reason">): string {
  const decided = policies.findLast(({ action, staged }) => !staged && (action === "Allow" || action === "Deny"));
  if (decided) return stepText(decided);
  return verdict === "Deny" ? reason : "";
}

/** A rule, or the end that was reached without one. */
export function stepText(step: Pick<PolicyHit, "kind" | "tier" | "namespace" | "name" | "direction" | "rule">): string {
  if (step.kind === "EndOfTier") return `end of tier ${step.tier}`;
  if (step.kind === "NoProfile") return "no profile";
  if (step.kind === "Profile") return step.name ? `profile ${step.name}` : "a profile";
  // A policy that the reader may not see has no name here.
  if (step.name === "") return `${step.kind} of tier ${step.tier}`;
  const name = step.rule === undefined ? step.name : ruleName({ action: "Allow", ...step });
  return pairText({ namespace: step.namespace, name });
}

export function planeText(plane: FlowKey["dataplane"]): string {
  return plane === "BPF" ? "eBPF" : "nftables";
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Three digits; a non-breaking space holds the unit to them. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1_000, unit + 1];
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}\u00a0${UNITS[unit]}`;
}

/** By the clock of the reader. */
export function clockText(time: number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
