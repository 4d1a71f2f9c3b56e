import type { FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import type { DecidedEnd } from "./ask-nodes.ts";
import type { FlowPlaces } from "./flow-places.ts";

type Ends = Pick<FlowKey, "from" | "to">;

/** "shop/web", "node a", "a public address". */
export function nameOf({ type, namespace, name }: FlowEnd): string {
  if (type === "Outside") return `a ${name} address`;
  if (type === "Node") return `node ${name}`;
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** "shop/web to pay/db on TCP port 5432". */
export function pairText({ from, to, protocol, port }: FlowKey): string {
  const on = port === 0 ? `by ${protocol}` : `on ${protocol} port ${port}`;
  return `${nameOf(from)} to ${nameOf(to)} ${on}`;
}

/** Why there is nothing to ask about. */
export function placesUnknown({ unknown }: Extract<FlowPlaces, { unknown: string }>, key: Ends): string {
  if (unknown === "family") return "The two ends have no addresses of one family any more.";
  const end = key[unknown];
  return end.type === "Workload"
    ? `${nameOf(end)} has no pods with an address any more.`
    : `No address of ${nameOf(end)} is known.`;
}

export function protocolUnknown({ protocol }: Pick<FlowKey, "protocol">): string {
  return `${protocol} is no protocol that policy can be asked about.`;
}

export const NO_END = "Neither end is in the cluster any more.";

const POLICY_UNKNOWN = "the workload is not known here";

/** The node does not know a pod that its own object says is there. */
export function isLost({ because, verdict }: DecidedEnd): boolean {
  return verdict === "Deny" && because === POLICY_UNKNOWN;
}

export function lostText({ direction }: DecidedEnd, { from, to }: Ends): string {
  return `${nameOf(direction === "Egress" ? from : to)} has no address that the cluster gave it.`;
}

export function countedAt({ reporter }: Pick<FlowKey, "reporter">): readonly PolicyHit["direction"][] {
  return reporter === "Source" ? ["Egress"] : reporter === "Destination" ? ["Ingress"] : ["Egress", "Ingress"];
}

/** What decided. */
export function lastHit(hits: readonly PolicyHit[]): PolicyHit | undefined {
  return hits.at(-1);
}
