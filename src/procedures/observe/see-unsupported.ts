import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { nodeInterfaces } from "../../api/protocol/node-interfaces.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { foreignCni } from "../../api/tables/foreign-cni.ts";
import { ebpfObjectProblems } from "../../api/validation/ebpf.ts";
import type { Problem } from "../../api/validation/problem.ts";
import { writeWarnings } from "../../api/validation/write-warnings.ts";
import type { SeenUnsupported } from "../observation.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

const WHAT: Readonly<Record<string, SeenUnsupported["what"]>> = {
  EBPF_SCTP: "sctp",
  EBPF_FLOATING_IPS: "floating-ip",
  EBPF_VLAN: "vlan",
  EBPF_IPIP_POOL: "ipip",
  EBPF_MIXED_CLUSTER: "mixed",
  EBPF_LOG_RULE: "log-rule",
  HTTP_RULE_WITHOUT_SIDECARS: "http-rule",
  POOL_WITHOUT_CONTROLLER: "idle-pool",
};

/** Whatever eBPF could not carry on, or this cluster does not do: objects by the rules of `src/api/validation`, nodes and other people's network plugins. */
export function seeUnsupported(seen: ClusterObjects, kind: ClusterKind, names: Names): SeenUnsupported[] {
  const { ours } = seen;
  const objects = [
    ...seen.services,
    ...seen.policies,
    ...ours.networkPolicy,
    ...ours.globalNetworkPolicy,
    ...ours.profile,
    ...ours.hostEndpoint,
    ...ours.ipPool,
    ...ours.dataplaneConfiguration,
  ];
  return [
    ...objects.flatMap((object) =>
      firstOfEach(object, [...ebpfObjectProblems([object], names), ...warnings(object, seen)]),
    ),
    ...seen.nodes.flatMap(ofNode),
    ...foreignPlugins(seen, kind, names),
  ];
}

/** As if the cluster ran eBPF: the checks know which data plane each is about. */
function warnings(object: KubeObject, { ours }: ClusterObjects): Problem[] {
  const [dataplane] = ours.dataplaneConfiguration;
  const spec = { ...(dataplane?.["spec"] as object | undefined), bpfEnabled: true };
  return writeWarnings(object, {
    dataplaneConfiguration: dataplane && { ...dataplane, spec },
    kubeControllersConfiguration: ours.kubeControllersConfiguration[0],
  });
}

function firstOfEach(object: KubeObject, problems: readonly Problem[]): SeenUnsupported[] {
  const found = new Map<SeenUnsupported["what"], SeenUnsupported>();
  for (const { code, message, path } of problems) {
    const what = WHAT[code];
    if (!what || found.has(what)) continue;
    const evidence = `${message.replace(`${nameOf(object)} `, "").replace(/\.$/, "")} (${path})`;
    found.set(what, { what, object: nameOf(object), evidence });
  }
  return [...found.values()];
}

function ofNode(node: KubeObject): SeenUnsupported[] {
  const { nodeInfo } = (node["status"] ?? {}) as { nodeInfo?: { operatingSystem?: string; osImage?: string } };
  const system = nodeInfo?.operatingSystem ?? node.metadata.labels?.["kubernetes.io/os"];
  const windows: SeenUnsupported[] =
    system === "windows"
      ? [{ what: "windows", object: nameOf(node), evidence: `runs ${nodeInfo?.osImage || "Windows"}` }]
      : [];
  const tagged = nodeInterfaces(node).filter(({ name, addresses }) => addresses.length > 0 && isTagged(name));
  return [
    ...windows,
    ...tagged.map(({ name, addresses }) => ({
      what: "vlan" as const,
      object: nameOf(node),
      evidence: `device ${name} is a tagged VLAN device with ${addresses.join(", ")}`,
    })),
  ];
}

/** `eth0.100` and `vlan100` are how Linux names tagged devices. */
function isTagged(name: string): boolean {
  return /^[a-z][a-z0-9]*\.\d{1,4}$|^vlan\d{1,4}$/.test(name);
}

function foreignPlugins(seen: ClusterObjects, kind: ClusterKind, names: Names): SeenUnsupported[] {
  const { cni: { type: cni } = {} } = (seen.ours.installation[0]?.["spec"] ?? {}) as InstallationSpec;
  return seen.daemonSets.flatMap((daemonSet) => {
    const evidence = foreignCni(daemonSet, kind, names, cni);
    return evidence ? [{ what: "foreign-cni" as const, object: nameOf(daemonSet), evidence }] : [];
  });
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ""}${metadata.name}`;
}
