import { createHash } from "node:crypto";
import type { FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";

/** One text for each key: the same whatever the order of labels, different whenever something of the key is. */
export function keyText(key: FlowKey): string {
  const { from, to, service, port, protocol, verdict, reason, policies, reporter, node, dataplane } = key;
  return JSON.stringify([
    endParts(from),
    endParts(to),
    service ? [service.namespace, service.name, service.port] : 0,
    port,
    protocol,
    verdict,
    reason ?? 0,
    policies.map(hitParts),
    reporter,
    node,
    dataplane,
  ]);
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
