import type { HostEndpoint } from "../../api/resources/host-endpoint.ts";
import type { Informer } from "../../cluster/informer.ts";
import { isOurs } from "../stored-kinds.ts";
import type { StoredEndpoint } from "./endpoint-plan.ts";

/** Who has and who wants which endpoint, by node, so that a look at one node costs what that node has. */
export interface EndpointIndex {
  /** Ours, as they say which node they are for. */
  ofNode(node: string): StoredEndpoint[];
  /** Every node that has one of ours. */
  nodes(): string[];
  count(): number;
  /** The names a node wants from now on; a name wanted by two stays with the first. */
  claim(node: string, wanted: readonly HostEndpoint[]): void;
  isClaimedElsewhere(name: string, node: string): boolean;
  /** The nodes an endpoint concerns: the one it is for if it is ours, and the one that wants its name. */
  nodesOf(endpoint: StoredEndpoint): string[];
  setConflicts(node: string, count: number): void;
  conflicts(): number;
  stop(): void;
}

export function endpointIndex(informer: Informer<StoredEndpoint>): EndpointIndex {
  const byNode = new Map<string, Map<string, StoredEndpoint>>();
  const claims = new Map<string, string>();
  const claimsOf = new Map<string, string[]>();
  const conflictsOf = new Map<string, number>();
  let total = 0;

  const drop = (name: string, endpoint: StoredEndpoint) => {
    const ofNode = byNode.get(endpoint.spec.node);
    if (ofNode?.delete(name)) total--;
    if (ofNode?.size === 0) byNode.delete(endpoint.spec.node);
  };
  const add = (name: string, endpoint: StoredEndpoint) => {
    const ofNode = byNode.get(endpoint.spec.node) ?? new Map<string, StoredEndpoint>();
    if (!ofNode.has(name)) total++;
    byNode.set(endpoint.spec.node, ofNode.set(name, endpoint));
  };
  const stop = informer.onChange(({ type, key, object, old }) => {
    if (old) drop(key, old);
    if (type !== "deleted" && isOurs(object)) add(key, object);
  });

  return {
    ofNode: (node) => [...(byNode.get(node)?.values() ?? [])],
    nodes: () => [...byNode.keys()],
    count: () => total,
    claim(node, wanted) {
      for (const name of claimsOf.get(node) ?? []) claims.delete(name);
      const got = wanted.map(({ metadata }) => metadata.name).filter((name) => !claims.has(name));
      for (const name of got) claims.set(name, node);
      if (got.length > 0) claimsOf.set(node, got);
      else claimsOf.delete(node);
    },
    isClaimedElsewhere: (name, node) => (claims.get(name) ?? node) !== node,
    nodesOf(endpoint) {
      const claimed = claims.get(endpoint.metadata.name);
      const told = isOurs(endpoint) ? [endpoint.spec.node] : [];
      return claimed === undefined ? told : [...told, claimed];
    },
    setConflicts(node, count) {
      if (count > 0) conflictsOf.set(node, count);
      else conflictsOf.delete(node);
    },
    conflicts: () => [...conflictsOf.values()].reduce((sum, count) => sum + count, 0),
    stop,
  };
}
