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
}

/** What an installation comes to on this cluster. A default never asks for what the cluster cannot do: only people do. */
export function effectiveFor(observed: Observed, installation: Installation): Effective {
  const kind = installation.spec.clusterKind ?? clusterKindOf(observed) ?? "generic";
  const previous = installation.status?.computed as InstallationSpec | undefined;
  const context = { kind, podCidrs: podCidrs(observed), ...(previous ? { previous } : {}) };
  const spec = effectiveInstallation(installation.spec, context);
  const asked = installation.spec.vendorNetwork?.linuxDataplane;
  if (asked !== undefined || !CLUSTER_KINDS[kind].ebpfByDefault) return { kind, spec, note: undefined };
  const obstacle = obstacles(observed, installation.spec, kind)[0];
  const running = previous?.vendorNetwork?.linuxDataplane;
  if (obstacle === undefined || running === "BPF") return { kind, spec, note: undefined };
  const note = `${CLUSTER_KINDS[kind].title}: eBPF would be the default, but ${lowered(obstacle)} ${THEN}`;
  if (running !== undefined) return { kind, spec, note };
  const standard = {
    ...installation.spec,
    vendorNetwork: { ...installation.spec.vendorNetwork, linuxDataplane: "Nftables" as const },
  };
  return { kind, spec: effectiveInstallation(standard, context), note };
}

/** A cluster that runs is not changed to another data plane unasked. */
const THEN = `Once that is settled, enable eBPF: kubectl patch installation ${vendorNames.singleton} --type merge -p '{"spec":{"vendorNetwork":{"linuxDataplane":"BPF"}}}'`;

function obstacles(observed: Observed, spec: InstallationSpec, kind: ClusterKind): string[] {
  const platform: Problem[] = ebpfPlatformProblems({ ...clusterFacts(observed), kind });
  const ipip = spec.vendorNetwork?.ipPools?.find(({ encapsulation }) => encapsulation?.startsWith("IPIP"));
  const ports = spec.vendorNetwork?.hostPorts;
  return [
    ...platform.map(({ message }) => message),
    ...(ipip ? [`Pool ${ipip.cidr} uses IPIP.`] : []),
    ...(ports ? ["Host ports are enabled."] : []),
    ...(ENDPOINT_RULES[kind].needed && !apiEndpoint(observed, kind, true)
      ? [
          `No stable address of the API server is known: create ConfigMap ${namespaces.operator}/${endpointMap.name} with ${ENDPOINT_RULES[kind].address}.`,
        ]
      : []),
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

function endpointOf(map: KubeObject | undefined): { host: string; port: string } | undefined {
  const data = (map?.["data"] ?? {}) as Record<string, string | undefined>;
  const { hostKey, portKey } = endpointMap;
  const [host, port] = [data[hostKey], data[portKey]];
  return host && port ? { host, port } : undefined;
}

function lowered(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
