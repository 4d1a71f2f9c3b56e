import type { Dataplane } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Installation, InstallationSpec } from "../api/resources/installation.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../api/tables/cluster-kinds.ts";
import { effectiveInstallation } from "../api/tables/defaults.ts";
import { ENDPOINT_RULES } from "../api/tables/endpoint-rules.ts";
import { ebpfPlatformProblems } from "../api/validation/ebpf.ts";
import type { Problem } from "../api/validation/problem.ts";
import { clusterFacts, clusterKindOf, platformEndpoint, podCidrs } from "./cluster-facts.ts";
import type { Observed } from "./observed.ts";

const { namespaces, endpointMap } = vendorNames;

export interface Effective {
  kind: ClusterKind;
  /** The specification with every default filled in; it is kept in status, never in the user's spec. */
  spec: InstallationSpec;
  /** Why the nftables data plane runs where eBPF is the default, and what to do; stays as long as the reason does. */
  note: string | undefined;
  /** The nftables data plane runs only for want of an address of the API server: eBPF follows when one comes. Kept in status. */
  dataplaneFallback: typeof NO_ADDRESS | undefined;
  /** eBPF is new here, and comes by default. */
  follows: boolean;
}

const NO_ADDRESS = "EndpointMapMissing";

/**
 * What an installation comes to on this cluster. A default never asks for what the cluster cannot do: only people do. `refused`: why eBPF
 * cannot be, where that was found out by more than is looked at here.
 */
export function effectiveFor(observed: Observed, installation: Installation, refused?: string): Effective {
  const kind = installation.spec.clusterKind ?? clusterKindOf(observed) ?? "generic";
  const previous = installation.status?.computed as InstallationSpec | undefined;
  const context = { kind, podCidrs: podCidrs(observed), ...(previous ? { previous } : {}) };
  const withDataplane = (linuxDataplane: Dataplane): InstallationSpec =>
    effectiveInstallation(
      { ...installation.spec, vendorNetwork: { ...installation.spec.vendorNetwork, linuxDataplane } },
      context,
    );
  const asIs = { kind, note: undefined, dataplaneFallback: undefined, follows: false };
  const asked = installation.spec.vendorNetwork?.linuxDataplane;
  const running = previous?.vendorNetwork?.linuxDataplane;
  if (asked !== undefined || !CLUSTER_KINDS[kind].ebpfByDefault || running === "BPF")
    return { ...asIs, spec: effectiveInstallation(installation.spec, context) };
  const addressMissing = missingAddress(observed, kind);
  const others = refused === undefined ? obstacles(observed, installation.spec, kind) : [refused];
  const [obstacle] = [...others, ...addressMissing];
  const waits = installation.status?.dataplaneFallback === NO_ADDRESS;
  if (obstacle === undefined && (running === undefined || waits))
    return { ...asIs, spec: withDataplane("BPF"), follows: true };
  if (obstacle === undefined) return { ...asIs, spec: effectiveInstallation(installation.spec, context) };
  const follows = waits || (running === undefined && others.length === 0);
  const then = follows ? FOLLOWS : THEN;
  return {
    ...asIs,
    spec: withDataplane("Nftables"),
    note: `${CLUSTER_KINDS[kind].title}: eBPF would be the default, but ${lowered(obstacle)} ${then}`,
    dataplaneFallback: follows ? NO_ADDRESS : undefined,
  };
}

/** A cluster that runs is not changed to another data plane unasked, unless it lacked only the address from the start. */
const THEN = `Once that is settled, enable eBPF: kubectl patch installation ${vendorNames.singleton} --type merge -p '{"spec":{"vendorNetwork":{"linuxDataplane":"BPF"}}}'`;
const FOLLOWS =
  "eBPF follows by itself then; to keep the nftables data plane, set spec.vendorNetwork.linuxDataplane to Nftables.";

function obstacles(observed: Observed, spec: InstallationSpec, kind: ClusterKind): string[] {
  const platform: Problem[] = ebpfPlatformProblems({ ...clusterFacts(observed), kind });
  const ipip = spec.vendorNetwork?.ipPools?.find(({ encapsulation }) => encapsulation?.startsWith("IPIP"));
  const ports = spec.vendorNetwork?.hostPorts;
  return [
    ...platform.map(({ message }) => message),
    ...(ipip ? [`Pool ${ipip.cidr} uses IPIP.`] : []),
    ...(ports ? ["Host ports are enabled."] : []),
  ];
}

function missingAddress(observed: Observed, kind: ClusterKind): string[] {
  if (!ENDPOINT_RULES[kind].needed || apiEndpoint(observed, kind, true)) return [];
  const map = `${namespaces.operator}/${endpointMap.name}`;
  return [
    `No stable address of the API server is known: create ConfigMap ${map} with ${ENDPOINT_RULES[kind].address}.`,
  ];
}

/** The API server's real address: the endpoint map's; with eBPF and without a map, the one the platform itself reports. */
export function apiEndpoint(
  observed: Observed,
  kind: ClusterKind,
  ebpf: boolean,
): { host: string; port: string } | undefined {
  const told = endpointOf(observed.endpointMap);
  return told ?? (ebpf && !observed.endpointMap ? platformEndpoint(observed, kind) : undefined);
}

/** The address in the map; undefined where one of its keys is missing. */
export function endpointOf(map: KubeObject | undefined): { host: string; port: string } | undefined {
  const data = (map?.["data"] ?? {}) as Record<string, string | undefined>;
  const { hostKey, portKey } = endpointMap;
  const [host, port] = [data[hostKey], data[portKey]];
  return host && port ? { host, port } : undefined;
}

function lowered(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
