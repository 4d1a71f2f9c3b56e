import { createHash } from "node:crypto";
import type { FlowEnd, FlowKey, FlowPending, FlowService, PolicyHit } from "../../api/protocol/flow.ts";

/** Ends and ways through policy are the same objects from batch to batch: what is slow about a key is done once for each. */
const partTexts = new WeakMap<object, string>();

/** One text for each key: the same whatever the order of labels, different whenever something of the key is. */
export function keyText(key: FlowKey): string {
  const { from, to, service, port, protocol, verdict, reason, policies, reporter, node, dataplane, pending } = key;
  const names = JSON.stringify([protocol, verdict, reason ?? 0, reporter, node, dataplane]);
  const asked = service ? partText(service, serviceParts) : "0";
  const way = partText(policies, wayParts);
  const staged = pending ? `,${partText(pending, pendingParts)}` : "";
  return `[${partText(from, endParts)},${partText(to, endParts)},${asked},${port},${way},${names}${staged}]`;
}

function partText<T extends object>(part: T, parts: (part: T) => unknown[]): string {
  let text = partTexts.get(part);
  if (text === undefined) {
    text = JSON.stringify(parts(part));
    partTexts.set(part, text);
  }
  return text;
}

function serviceParts({ namespace, name, port }: FlowService): unknown[] {
  return [namespace, name, port];
}

function pendingParts({ verdict, policies }: FlowPending): unknown[] {
  return [verdict, wayParts(policies)];
}

function wayParts(policies: readonly PolicyHit[]): unknown[] {
  return policies.map(hitParts);
}

/** The name of a flow in the API: a hash, so that it is the same in every process. Of a redacted key, so that it gives nothing away. */
export function flowId(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}

function endParts({ type, name, namespace, kind, labels }: FlowEnd): unknown[] {
  return [type, name, namespace, kind ?? 0, labels ? labelParts(labels) : 0];
}

function labelParts(labels: Readonly<Record<string, string>>): string[] {
  const names = Object.keys(labels);
  if (names.length > 1) names.sort();
  return names.flatMap((name) => [name, labels[name] as string]);
}

function hitParts({ direction, kind, tier, namespace, name, rule, action, staged }: PolicyHit): unknown[] {
  return [direction, kind, tier, namespace, name, rule ?? -1, action, staged ? 1 : 0];
}
