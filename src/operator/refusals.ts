import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Installation } from "../api/resources/installation.ts";
import { ebpfObjectProblems } from "../api/validation/ebpf.ts";
import { endpointMapProblems } from "../api/validation/endpoint-map.ts";
import type { Problem } from "../api/validation/problem.ts";
import { validateSet } from "../api/validation/validate-set.ts";
import { clusterFacts } from "./cluster-facts.ts";
import { apiEndpoint, type Effective } from "./effective.ts";
import type { Observed } from "./observed.ts";

/**
 * Evaluated by the part that can resolve it; or no reason to stop: what an older release stored does nothing, and the agents report
 * that it does (SETTINGS_WITHOUT_EFFECT).
 */
const NOT_OF_THE_NETWORK = new Set(["SERVICE_PROXY_CONFLICT", "VALUE_WITHOUT_EFFECT", "FIELD_REFUSED"]);

/**
 * Why the network cannot be what the installation asks for; nothing when it can. Evaluated with every default filled in, so that
 * what would go wrong is known before anything changes. `conntrackCount` are the objects in the cluster whose traffic eBPF would have
 * to carry on; they are asked for only on the way to eBPF.
 */
export function networkRefusals(
  observed: Observed,
  installation: Installation & KubeObject,
  effective: Effective,
  carried: readonly KubeObject[],
): Problem[] {
  const ebpf = effective.spec.vendorNetwork?.linuxDataplane === "BPF";
  const set = [
    { ...bare(installation), spec: effective.spec },
    ...(observed.endpointMap ? [inUsualPlace(observed.endpointMap, observed)] : []),
    ...observed.dataplaneConfigurations.map(bare),
  ];
  const address = apiEndpoint(observed, effective.kind, ebpf) !== undefined;
  const facts = { ...clusterFacts(observed) };
  return [
    ...validateSet(set, facts).filter(
      ({ code }) => !NOT_OF_THE_NETWORK.has(code) && !(code === "ENDPOINT_MAP_MISSING" && address),
    ),
    ...(ebpf ? ebpfObjectProblems([...foreignPools(observed, effective), ...carried]) : []),
  ];
}

/** Why the address of the API server cannot be read from its map. Whatever needs the address stays as it is meanwhile. */
export function endpointRefusals(observed: Observed): Problem[] {
  const { endpointMap: map } = observed;
  return map ? endpointMapProblems(inUsualPlace(map, observed), clusterFacts(observed)) : [];
}

/** The user's spec, without fields of the server. */
function bare(object: KubeObject): KubeObject {
  const { name, namespace, annotations } = object.metadata;
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name, ...(namespace ? { namespace } : {}), ...(annotations ? { annotations } : {}) },
    spec: object["spec"] ?? {},
  };
}

/** The map belongs into the operator's own namespace, whatever that is called. */
function inUsualPlace(map: KubeObject, { self }: Observed): KubeObject {
  if (map.metadata.namespace !== self.namespace) return map;
  return { ...map, metadata: { ...map.metadata, namespace: vendorNames.namespaces.operator } };
}

/** Pools the installation lists are validated as they will be; the others as they are. */
function foreignPools(observed: Observed, { spec }: Effective): KubeObject[] {
  const listed = new Set((spec.vendorNetwork?.ipPools ?? []).map(({ cidr }) => cidr));
  return observed.pools.filter((pool) => !listed.has(pool.spec.cidr));
}
