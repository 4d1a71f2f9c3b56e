import type { FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";

/** Whether a reader may see flows of a namespace; asked with "" for what has no namespace. Undefined: the reader sees everything. */
export type Visible = ((namespace: string) => boolean) | undefined;

/** Which addresses of a flow may be shown, next to its key as its reader may see it. */
export interface VisibleKey {
  key: FlowKey;
  showsSource: boolean;
  showsDestination: boolean;
}

/**
 * A key as a reader may see it; undefined: not at all. A flow is seen from an end in a visible namespace. Of the other end there is its type,
 * namespace and name, and of policies that the reader may not see their kind, tier and action. Everything that queries, hints and counts
 * work on is this key, so that none of them says more.
 */
export function visibleKey(key: FlowKey, visible: (namespace: string) => boolean): VisibleKey | undefined {
  const { from, to, service } = key;
  const [seesFrom, seesTo] = [visible(from.namespace), visible(to.namespace)];
  if (!(seesFrom && from.namespace !== "") && !(seesTo && to.namespace !== "")) return undefined;
  const seen = (hits: readonly PolicyHit[]) => hits.map((hit) => (visible(hit.namespace) ? hit : redactedHit(hit)));
  const shown: { -readonly [K in keyof FlowKey]: FlowKey[K] } = {
    ...key,
    from: seesFrom ? from : redactedEnd(from),
    to: seesTo ? to : redactedEnd(to),
    policies: seen(key.policies),
    ...(key.pending && { pending: { ...key.pending, policies: seen(key.pending.policies) } }),
  };
  // Who asked knows the Service that it asked for; who answers only sees its own.
  if (service && !seesFrom && !visible(service.namespace)) delete shown.service;
  // The node is where the end is that reported.
  if (!(key.reporter === "Source" ? seesFrom : key.reporter === "Destination" ? seesTo : true)) shown.node = "";
  return {
    key: shown,
    // Both ends of a connection see an address outside of the cluster.
    showsSource: seesFrom || from.type === "Outside",
    showsDestination: seesTo || to.type === "Outside",
  };
}

function redactedEnd({ type, namespace, name }: FlowEnd): FlowEnd {
  return { type, namespace, name };
}

function redactedHit({ direction, kind, tier, action, staged }: PolicyHit): PolicyHit {
  return { direction, kind, tier, namespace: "", name: "", action, ...(staged && { staged }) };
}
