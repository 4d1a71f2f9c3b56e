import { Document, isNode } from "yaml";
import type { ProposedPolicy, ProposedRule } from "../../api/protocol/flow-proposal.ts";
import { printable, printableLine } from "../../kit/printable.ts";

/** Proposed policies as people read and apply them: vendorctl prints this text, and the page shows it. */

const BYTE_UNITS = ["bytes", "KB", "MB", "GB", "TB"];

/** As it is applied; over each rule stands what it rests on. */
export function policyText({ object, rules }: ProposedPolicy): string {
  // kubectl reads YAML 1.1, in which a plain `Off` is a boolean.
  const document = new Document(object, { compat: "yaml-1.1", aliasDuplicateObjects: false });
  for (const rule of rules) {
    const node = document.getIn(pathOf(rule), true);
    if (isNode(node)) node.commentBefore = ` ${commentOf(rule)}`;
  }
  return printable(document.toString({ lineWidth: 0 }));
}

/** `spec.ingress[0]` */
function pathOf({ path }: ProposedRule): (string | number)[] {
  return path
    .split(/[.[\]]+/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

function commentOf(rule: ProposedRule): string {
  return printableLine(`${rule.text}: ${restsOn(rule)}`);
}

function restsOn({ connections, packets, bytes, since, until, flows }: ProposedRule): string {
  if (flows === 0) return "not seen, and needed when answers are long";
  const counted = connections > 0 ? connectionsText(connections) : `${packets} packets and no connection`;
  return `${counted}, ${bytesText(bytes)}, ${timeText(since)} to ${timeText(until)}`;
}

export function connectionsText(connections: number): string {
  return connections === 1 ? "1 connection" : `${connections} connections`;
}

function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < BYTE_UNITS.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 ? value : value.toPrecision(value < 10 ? 2 : 3)} ${BYTE_UNITS[unit]}`;
}

/** To the second, in UTC. */
export function timeText(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+/, "");
}
