import type { KubeObject } from "../../api/object.ts";
import { POD_REQUESTS } from "../../api/protocol/pod-network.ts";
import { tunnelsFor } from "../../api/protocol/pool-tunnels.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { mayUse, poolOf, selects } from "../../ipam/pools.ts";
import { type Family, parseCidr, V4, V6 } from "../../kit/ip.ts";
import { errors } from "../errors.ts";

type Labels = Readonly<Record<string, string>>;

/** The pod or device that needs an address: what pools may select by. */
export interface PoolRequest {
  pod: KubeObject;
  namespace: KubeObject | undefined;
  nodeLabels: Labels;
}

/** Of each family, the pools to take from; none where the family is not given out. */
export interface ChosenPools {
  v4: Pool[];
  v6: Pool[];
  /** Addresses the pod asks for by name, instead of any. */
  addresses: string[];
}

/** Pools in the order they are tried: by name. A pod's own wish comes before its namespace's. */
export function choosePools(pools: readonly Pool[], { pod, namespace, nodeLabels }: PoolRequest): ChosenPools {
  const usable = [...pools]
    .filter((pool) => mayUse(pool, "Workload") && selects(pool.spec.nodeSelector, nodeLabels))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const asked = (annotation: string) =>
    listIn(pod, annotation, pod) ?? (namespace ? listIn(namespace, annotation, pod) : undefined);
  const namespaceLabels = namespace?.metadata.labels ?? {};
  const automatic = usable.filter(
    ({ spec }) => spec.assignmentMode !== "Manual" && selects(spec.namespaceSelector, namespaceLabels),
  );
  const ofFamily = (family: Family, annotation: string): Pool[] => {
    const wish = asked(annotation);
    const mine = (pool: Pool) => parseCidr(pool.spec.cidr)?.family === family;
    if (!wish) return automatic.filter(mine);
    return wish.map((text) => {
      const found = usable.find((pool) => mine(pool) && (pool.metadata.name === text || pool.spec.cidr === text));
      if (!found) throw errors.POD_ANNOTATION(nameOf(pod), annotation, text);
      return found;
    });
  };
  const chosen = {
    v4: ofFamily(V4, POD_REQUESTS.poolsV4),
    v6: ofFamily(V6, POD_REQUESTS.poolsV6),
    addresses: listIn(pod, POD_REQUESTS.addresses, pod) ?? [],
  };
  for (const address of chosen.addresses) {
    if (!poolOf(usable, address)) throw errors.POD_ANNOTATION(nameOf(pod), POD_REQUESTS.addresses, address);
  }
  if (chosen.addresses.length > 0)
    return { ...chosen, v4: usable.filter(ofV4), v6: usable.filter((one) => !ofV4(one)) };
  if (chosen.v4.length + chosen.v6.length === 0) throw errors.IPAM_NO_POOL(nameOf(pod));
  return chosen;
}

/** Pools whose packets may travel in a tunnel, for the node's own end of it. */
export function tunnelPools(pools: readonly Pool[], family: Family, nodeLabels: Labels): Pool[] {
  return pools
    .filter((pool) => tunnelsFor(pool).length > 0 && parseCidr(pool.spec.cidr)?.family === family)
    .filter((pool) => mayUse(pool, "Tunnel") && selects(pool.spec.nodeSelector, nodeLabels))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

function ofV4({ spec }: Pool): boolean {
  return parseCidr(spec.cidr)?.family === V4;
}

function listIn(object: KubeObject, annotation: string, pod: KubeObject): string[] | undefined {
  const text = object.metadata.annotations?.[annotation];
  if (!text) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.every((one) => typeof one === "string") && list.length > 0) return list;
  } catch {
    // Said below.
  }
  throw errors.POD_ANNOTATION(nameOf(pod), annotation, text);
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}
