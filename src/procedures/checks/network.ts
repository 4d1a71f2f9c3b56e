import { CLUSTER_KINDS } from "../../api/cluster-kinds.ts";
import { PLATFORM_LIMITS } from "../../api/platform-limits.ts";
import { EBPF_PROBLEMS } from "../../api/validation/ebpf.ts";
import { kindOf } from "../cluster-facts.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { BEFORE_EBPF, type Check, fail, ok, skip, some, warn } from "./check.ts";
import { patchCommand } from "./commands.ts";

const ebpf = { for: BEFORE_EBPF, ebpfOnly: true, group: "network" } as const;

/** Of the kernel's list of ports: where VXLAN lives unless told, and where others put theirs. */
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
        ...asked.map(({ cidr, encapsulation }) => `pool ${cidr} of the installation travels in ${encapsulation}`),
      ];
      const { names } = seen;
      const name = stored[0]?.object.split(" ")[1];
      const pools = `${names.kinds.ipPool.plural}.${names.groups.stored.group}`;
      const patch = JSON.stringify({ spec: { ipipMode: "Never", vxlanMode: "CrossSubnet" } });
      return fail(some(evidence), name ? `kubectl patch ${pools} ${name} --type merge -p '${patch}'` : undefined);
    },
  },
  {
    code: "VXLAN_PORT_TAKEN",
    title: "Another program holds the VXLAN port",
    why: "Two programs cannot have one UDP port; the overlay's device would stay down, and pods on different nodes apart.",
    fix: "Give the overlay another port.",
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
    title: "Whether nodes reach each other by VXLAN was not proven",
    why: "eBPF forwards traffic to node ports by VXLAN; a fabric or firewall that drops it is seen only by trying.",
    fix: "Allow the VXLAN port between all nodes.",
    rule: PLATFORM_LIMITS.network.because,
    ...ebpf,
    run: (seen) => {
      const { agents } = seen.service;
      const unproven = agents.filter(({ report }) => !report.servicesProven);
      if (agents.length === 0 || seen.service.dataplaneConfiguration === undefined) {
        return skip(
          `UDP ${vxlanPort(seen)} between nodes cannot be seen from here; node agents prove it once they run`,
        );
      }
      if (unproven.length === agents.length) return skip("no node agent has tried yet");
      const evidence = unproven.map(({ node, pod }) => `node ${node}: pod ${pod} has not proven service routing`);
      return unproven.length > 0 ? warn(some(evidence)) : ok(`proven on ${agents.length} nodes`);
    },
  },
];

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
    reasons.set(name, `node ${name}: the platform's other orchestrator holds UDP ${port}`);
  }
  for (const { name } of said) reasons.set(name, `node ${name}: UDP ${port} is in use`);
  return [...reasons.values()];
}

function poolsAsked({ service, names }: Observation): { cidr?: string; encapsulation?: string }[] {
  const network = names.fields.linuxDataplane.replace(/\.linuxDataplane$/, "");
  const pools = fieldAt(service.installation, `${network}.ipPools`);
  return Array.isArray(pools) ? (pools as { cidr?: string; encapsulation?: string }[]) : [];
}
