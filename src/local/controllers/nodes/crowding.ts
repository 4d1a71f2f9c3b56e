import { matchesSelector } from "../label-selector.ts";
import type { Node, Pod } from "../workload-types.ts";
import type { Candidates } from "./scheduling.ts";

/** How much a pod would rather not be on a node, by its preferred anti-affinity: the weight of a term for each pod it names in the node's domain. */
export function crowding(pod: Pod, candidates: Candidates): (node: Node) => number {
  const preferred = pod.spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const terms = preferred.map(({ weight, podAffinityTerm: { labelSelector, namespaces, topologyKey } }) => {
    const home = namespaces?.length ? namespaces : [pod.metadata.namespace];
    const domains = new Map<string | undefined, number>();
    for (const node of candidates.all()) {
      const domain = node.metadata.labels?.[topologyKey];
      const named = candidates
        .podsOn(node.metadata.name)
        .filter(({ metadata }) => home.includes(metadata.namespace) && matchesSelector(labelSelector, metadata.labels));
      domains.set(domain, (domains.get(domain) ?? 0) + named.length);
    }
    // A node without the label is in no domain.
    domains.delete(undefined);
    return { weight, topologyKey, domains };
  });
  return ({ metadata: { labels } }) =>
    terms.reduce((sum, { weight, topologyKey, domains }) => {
      return sum + weight * (domains.get(labels?.[topologyKey]) ?? 0);
    }, 0);
}
