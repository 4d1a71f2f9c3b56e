import { type Names, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { isHold } from "../protocol/node-hold.ts";
import { type ClusterKind, isClusterKind } from "../tables/cluster-kinds.ts";
import { SERVICE_PROXY } from "../tables/kube-proxy.ts";
import { kernelVerdict, PLATFORM_LIMITS, supportedArchitecture } from "../tables/platform-limits.ts";
import type { ClusterFacts, ObservedNode } from "./facts.ts";
import { type Problem, reporters } from "./problem.ts";

export const EBPF_PROBLEMS = {
  EBPF_KERNEL_TOO_OLD: {
    title: "A node's kernel is too old for eBPF",
    why: "The programs use kernel features that older kernels lack; the node would have no network.",
    fix: "Upgrade the node's operating system, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.kernel.because,
  },
  EBPF_ARCHITECTURE: {
    title: "A node's CPU is not supported",
    why: "The programs are built for little-endian x86-64 and arm64.",
    fix: "Remove the node from the cluster, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.architecture.because,
  },
  EBPF_MIXED_CLUSTER: {
    title: "Some nodes cannot run eBPF",
    why: "Nodes forward traffic to each other in a form that only eBPF nodes understand.",
    fix: "Make every node run Linux with eBPF, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.mixedClusters.because,
  },
  EBPF_NEEDS_KUBE_DATASTORE: {
    title: "eBPF on the etcd datastore",
    why: "The etcd datastore cannot watch Services, so they would stop with kube-proxy.",
    fix: "Move to the Kubernetes API datastore first.",
    rule: PLATFORM_LIMITS.datastore.because,
  },
  EBPF_IPIP_POOL: {
    title: "eBPF with an IPIP pool",
    why: "The eBPF data plane carries VXLAN only; pods on different nodes could not reach each other.",
    fix: "Change the pool to VXLAN or VXLANCrossSubnet before switching: vendorctl migrate encapsulation --to vxlan.",
    rule: PLATFORM_LIMITS.overlay.because,
  },
  EBPF_HOST_PORTS_SET: {
    title: "eBPF with host ports set",
    why: "eBPF always serves host ports; the setting is of the nftables data plane.",
    fix: `kubectl patch installation default --type merge -p '{"spec":{"vendorNetwork":{"hostPorts":null}}}'`,
    rule: "With eBPF hostPorts is null. See docs/guide/switch.md#to-ebpf.",
  },
  EBPF_FLOATING_IPS: {
    title: "eBPF with floating IPs",
    why: "The eBPF data plane does not translate floating IPs; their traffic would be lost.",
    fix: "Remove the floating IPs, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.floatingIPs.because,
  },
  EBPF_SCTP: {
    title: "eBPF with SCTP",
    why: "The eBPF data plane does not serve SCTP Services. It enforces rules with SCTP ports, but SCTP is not supported there.",
    fix: "Remove the SCTP services and rules, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.sctp.because,
  },
  EBPF_VLAN: {
    title: "eBPF on a tagged VLAN device",
    why: "The programs do not see the packets of tagged VLAN devices as they are.",
    fix: "Use the untagged device, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.vlan.because,
  },
  EBPF_CLUSTER_KIND: {
    title: "eBPF on a kind of cluster that is not supported",
    why: "On a managed service whose own CNI plugin is incompatible the two would conflict on every packet.",
    fix: "Use one of the supported kinds, or stay on the nftables data plane.",
    rule: PLATFORM_LIMITS.clusterKind.because,
  },
  SERVICE_PROXY_IPVS: {
    title: "kube-proxy runs in IPVS mode",
    why: "IPVS leaves addresses and virtual servers in the kernel that take traffic from eBPF after kube-proxy is gone.",
    fix: "Switch kube-proxy to iptables mode before disabling it.",
    rule: SERVICE_PROXY.eks.because,
  },
  SERVICE_PROXY_CONFLICT: {
    title: "kube-proxy conflicts with eBPF",
    why: "kube-proxy writes its rules and the agent removes them, without end; connections break in between.",
    fix: "Set spec.bpfServiceProxyIptablesCleanupEnabled to false in the data plane configuration default.",
    rule: "If kube-proxy runs, its rules must be kept; if it does not, they must be removed. See docs/guide/kube-proxy-replacement.md#if-kube-proxy-comes-back.",
  },
} as const;

export const ebpfProblem = reporters(EBPF_PROBLEMS);
const at = ebpfProblem;

/** Whether a cluster can run eBPF at all; `kind` may be a word we do not know. */
export function ebpfPlatformProblems(facts: Omit<ClusterFacts, "kind"> & { kind?: string }): Problem[] {
  const kind = facts.kind;
  const problems: Problem[] = [];
  if (kind !== undefined && !isClusterKind(kind)) {
    problems.push(at.EBPF_CLUSTER_KIND("spec.clusterKind", `"${kind}" is not a kind of cluster eBPF is supported on.`));
  }
  if (facts.datastore === "etcd") {
    problems.push(
      at.EBPF_NEEDS_KUBE_DATASTORE("spec.vendorNetwork.linuxDataplane", "eBPF cannot run on the etcd datastore."),
    );
  }
  if (facts.serviceProxyMode === "ipvs") {
    problems.push(at.SERVICE_PROXY_IPVS("mode", "kube-proxy runs in IPVS mode."));
  }
  const known = kind !== undefined && isClusterKind(kind) ? kind : undefined;
  return [...problems, ...(facts.nodes ?? []).flatMap((node) => nodeProblems(node, known))];
}

function nodeProblems(node: ObservedNode, kind: ClusterKind | undefined): Problem[] {
  if (node.operatingSystem === "windows") {
    return [at.EBPF_MIXED_CLUSTER("status.nodeInfo.operatingSystem", `Node ${node.name} runs Windows.`)];
  }
  const problems: Problem[] = [];
  if (!supportedArchitecture(node.architecture)) {
    const message = `Node ${node.name} has a CPU of type ${node.architecture || "unknown"}.`;
    problems.push(at.EBPF_ARCHITECTURE("status.nodeInfo.architecture", message));
  }
  const verdict = kernelVerdict(node, kind);
  if (!verdict.ok) {
    const message = `Node ${node.name} has ${node.osImage} with kernel ${node.kernelVersion}, which needs ${verdict.need}.`;
    problems.push(at.EBPF_KERNEL_TOO_OLD("status.nodeInfo.kernelVersion", message));
  }
  return problems;
}

/** What objects of the cluster eBPF could not carry on. */
export function ebpfObjectProblems(objects: readonly KubeObject[], names: Names = vendorNames): Problem[] {
  return objects.flatMap((object) => {
    const where = [object.metadata.namespace, object.metadata.name].filter(Boolean).join("/");
    const who = `${object.kind} ${where}`;
    const problems = sctpPaths(object).map((path) => at.EBPF_SCTP(path, `${who} uses SCTP.`));
    if (object.metadata.annotations?.[names.annotations.floatingIPs]) {
      problems.push(at.EBPF_FLOATING_IPS("metadata.annotations", `${who} has floating IPs.`));
    }
    return [...problems, ...specProblems(object, who, names)];
  });
}

function specProblems(object: KubeObject, who: string, names: Names): Problem[] {
  const spec = (object["spec"] ?? {}) as Record<string, unknown>;
  switch (object.kind) {
    case names.kinds.ipPool.kind:
      if (spec["ipipMode"] === undefined || spec["ipipMode"] === "Never") return [];
      return [at.EBPF_IPIP_POOL("spec.ipipMode", `${who} uses IPIP.`)];
    case names.kinds.hostEndpoint.kind:
      return isVlan(spec["interfaceName"])
        ? [at.EBPF_VLAN("spec.interfaceName", `${who} is the tagged VLAN device ${spec["interfaceName"]}.`)]
        : [];
    case names.kinds.dataplaneConfiguration.kind:
      return dataplaneProblems(object, spec, who);
    default:
      return [];
  }
}

function dataplaneProblems(object: KubeObject, spec: Record<string, unknown>, who: string): Problem[] {
  const problems: Problem[] = [];
  if (spec["floatingIPs"] === "Enabled") {
    problems.push(at.EBPF_FLOATING_IPS("spec.floatingIPs", `${who} enables floating IPs.`));
  }
  // One that a switch holds back for a while is on its way.
  if (object.metadata.name.startsWith("node.") && spec["bpfEnabled"] === false && !isHold(object)) {
    problems.push(at.EBPF_MIXED_CLUSTER("spec.bpfEnabled", `${who} disables eBPF on one node.`));
  }
  return problems;
}

/** The add-on manager keeps the proxy running, so its rules must be left alone. */
export function serviceProxyProblems(facts: ClusterFacts, iptablesCleanup: boolean | undefined): Problem[] {
  if (!facts.kind || SERVICE_PROXY[facts.kind].afterInstall.action !== "leave-its-rules-alone") return [];
  if (facts.serviceProxyMode === "none" || iptablesCleanup === false) return [];
  const message = "kube-proxy cannot be disabled on this kind of cluster, and its rules would be removed.";
  return [at.SERVICE_PROXY_CONFLICT("spec.bpfServiceProxyIptablesCleanupEnabled", message)];
}

/** `eth0.100` and `vlan100` are how Linux names tagged devices. */
function isVlan(name: unknown): boolean {
  return typeof name === "string" && /(^.+\.\d{1,4}$)|(^vlan\d{1,4}$)/.test(name);
}

/** Every `protocol: SCTP` (or its number) in a service's ports or a policy's rules. */
function sctpPaths(object: KubeObject): string[] {
  if (object.kind !== "Service" && !object.kind.endsWith("NetworkPolicy") && object.kind !== "Profile") return [];
  const found: string[] = [];
  const walk = (value: unknown, path: string): void => {
    if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(item, `${path}[${index}]`);
    else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        if (key === "protocol" && (item === "SCTP" || Number(item) === 132)) found.push(`${path}.${key}`);
        else walk(item, `${path}.${key}`);
      }
    }
  };
  walk(object["spec"], "spec");
  return found;
}
