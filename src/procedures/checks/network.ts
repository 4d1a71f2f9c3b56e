import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import { PLATFORM_LIMITS } from "../../api/tables/platform-limits.ts";
import { EBPF_PROBLEMS } from "../../api/validation/ebpf.ts";
import { kindOf } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { BEFORE_EBPF, type Check, type Finding, fail, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";

const ebpf = { for: BEFORE_EBPF, ebpfOnly: true, group: "network" } as const;

/** Of the kernel's list of ports: the default of VXLAN, and a common alternative. */
const VXLAN_PORT = 4789;
const ANOTHER_VXLAN_PORT = 4799;

export const NETWORK_CHECKS: readonly Check[] = [
  {
    code: "EBPF_IPIP_POOL",
    ...EBPF_PROBLEMS.EBPF_IPIP_POOL,
    ...ebpf,
    run: (seen) => {
      const stored = seen.unsupported.filter(({ what }) => what === "ipip");
      const asked = poolsAsked(seen).filter(({ encapsulation }) => encapsulation?.startsWith("IPIP"));
      const evidence = [
        ...stored.map(({ object, evidence: why }) => `${object}: ${why}`),
        ...asked.map(({ cidr, encapsulation }) => `pool ${cidr} of the Installation uses ${encapsulation}`),
      ];
      const isInstalled = seen.service.method !== "none";
      return fail(
        some(evidence),
        isInstalled
          ? `${seen.names.dialect === "calico" ? "vendorctl --names calico" : "vendorctl"} migrate encapsulation --to vxlan-cross-subnet`
          : undefined,
      );
    },
  },
  {
    code: "VXLAN_PORT_TAKEN",
    title: "VXLAN port is in use",
    why: "The VXLAN device cannot bind a UDP port that another program has; pods on different nodes could not connect.",
    fix: "Set spec.vxlanPort of the data plane configuration to a free port.",
    rule: PLATFORM_LIMITS.network.because,
    ...ebpf,
    run: (seen) => {
      const port = vxlanPort(seen);
      const holders = portHolders(seen, port);
      const { names } = seen;
      const other = port === ANOTHER_VXLAN_PORT ? VXLAN_PORT : ANOTHER_VXLAN_PORT;
      const fix = patchCommand(names, "dataplaneConfiguration", "spec.vxlanPort", other);
      return holders.length > 0 ? warn(some(holders), fix) : ok(`UDP ${port}`);
    },
  },
  {
    code: "VXLAN_BETWEEN_NODES",
    title: "VXLAN between nodes is not verified",
    why: "Pods of different nodes use VXLAN, and eBPF forwards NodePort traffic by it; only an attempt shows whether the network drops it.",
    fix: "Allow the VXLAN port (UDP 4789) between all nodes.",
    rule: PLATFORM_LIMITS.network.because,
    for: BEFORE_EBPF,
    group: "network",
    run: vxlanBetweenNodes,
  },
];

/** By what agents found with probes that they send each other through VXLAN. */
function vxlanBetweenNodes(seen: Observation): Finding {
  const { agents, dataplaneConfiguration } = seen.service;
  const port = vxlanPort(seen);
  if (agents.length === 0 || dataplaneConfiguration === undefined) {
    return skip(`UDP ${port} between nodes cannot be checked from here; node agents verify it once they run`);
  }
  const probing = agents.flatMap(({ node, pod, report: { overlay } }) => (overlay ? [{ node, pod, ...overlay }] : []));
  if (probing.length === 0) return skip("no node agent reports probes through VXLAN");
  const losses = [...new Set(probing.flatMap((one) => one.losses))].sort();
  if (losses.length > 0) {
    const evidence = losses.map((loss) => `packets are lost from node ${loss}`);
    return warn(some(evidence), `Allow UDP ${port} and packets of that size between these nodes.`);
  }
  const times = probing.flatMap(({ verifiedSince }) => verifiedSince ?? []).sort();
  if (agents.length === 1) return ok("there is one node");
  if (times.length === 0) return skip("no node agent has verified it yet");
  const unverified = probing.filter(({ verifiedSince }) => verifiedSince === undefined);
  const evidence = unverified.map(({ node, pod }) => `node ${node}: pod ${pod} has not verified it yet`);
  const nodes = some(probing.map(({ node }) => node)).join(", ");
  return evidence.length > 0 ? warn(some(evidence)) : ok(`verified by probes of ${nodes} since ${times.at(-1)}`);
}

function vxlanPort(seen: Observation): number {
  const set = fieldAt(seen.service.dataplaneConfiguration, "spec.vxlanPort");
  return typeof set === "number" ? set : VXLAN_PORT;
}

/** Hints, not proofs: a platform known to hold the port, plugins that use it, and what nodes say of themselves. */
function portHolders(seen: Observation, port: number): string[] {
  const other = CLUSTER_KINDS[kindOf(seen)].otherOrchestrator;
  const swarm = seen.nodes.filter(({ labels }) => other !== undefined && labels[other.label] === other.value);
  const said = seen.nodes.filter(({ annotations }) =>
    Object.entries(annotations).some(
      ([key, value]) => key.endsWith("/ports-in-use") && value.split(",").includes(`${port}/UDP`),
    ),
  );
  const reasons = new Map<string, string>();
  for (const { name } of port === VXLAN_PORT ? swarm : []) {
    reasons.set(name, `node ${name}: the platform's other orchestrator uses UDP ${port}`);
  }
  for (const { name } of said) reasons.set(name, `node ${name}: UDP ${port} is in use`);
  return [...reasons.values()];
}

function poolsAsked({ service, names }: Observation): { cidr?: string; encapsulation?: string }[] {
  const network = names.fields.linuxDataplane.replace(/\.linuxDataplane$/, "");
  const pools = fieldAt(service.installation, `${network}.ipPools`);
  return Array.isArray(pools) ? (pools as { cidr?: string; encapsulation?: string }[]) : [];
}
