import { AGENT_SAYS } from "../../api/agent-report.ts";
import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { Pod } from "../../api/workload-objects.ts";
import { NODES, PODS } from "../../cluster/kinds.ts";
import type { Action, Work } from "../action.ts";
import { fieldAt } from "../field-at.ts";
import { awaitObjects, type Verdict } from "./await-objects.ts";
import { errors } from "./errors.ts";
import { kindOf } from "./target.ts";
import { awaitRollout } from "./wait-for-rollout.ts";

export type ProveDataplaneInputs = { to: "BPF" | "standard" };

/**
 * Waits until every Linux node's own agent says that it acts with the data plane and, with eBPF, that services were reached through it.
 * Agents of the public system say nothing of the kind: there the operator's switch and the finished roll-out have to do.
 */
export const proveDataplane: Action<ProveDataplaneInputs> = {
  waits: true,
  needed: async () => true,
  apply: async () => {},
  async confirm({ to }, work) {
    const { names, client } = work;
    const configuration = await kindOf(client, {
      apiVersion: groupVersion(names.groups.stored),
      kind: names.kinds.dataplaneConfiguration.kind,
    });
    if (!configuration) throw errors.STEP_TARGET_MISSING(`the kind ${names.kinds.dataplaneConfiguration.kind}`);
    await awaitObjects(
      work,
      [
        { kind: configuration, name: names.singleton },
        { kind: NODES },
        { kind: PODS, namespace: names.namespaces.system },
      ],
      ([configurations = [], nodes = [], pods = []]) => judge(to, { configurations, nodes, pods }, work),
    );
    if (names.dialect === "calico") await awaitRollout({ workload: nodeAgents(names) }, work);
  },
};

function nodeAgents({ namespaces, workloads }: Names) {
  return { apiVersion: "apps/v1", kind: "DaemonSet", namespace: namespaces.system, name: workloads.node };
}

function judge(
  to: ProveDataplaneInputs["to"],
  found: { configurations: KubeObject[]; nodes: KubeObject[]; pods: KubeObject[] },
  { names }: Work,
): Verdict {
  const ebpf = to === "BPF";
  const agents = new Map(
    (found.pods as Pod[])
      .filter((pod) => isAgent(pod, names) && pod.metadata.deletionTimestamp === undefined)
      .map((pod) => [pod.spec?.nodeName ?? "", pod.metadata.annotations ?? {}]),
  );
  for (const [node, says] of agents) {
    const refused = /^refused:\s*(.*)$/s.exec(says[AGENT_SAYS.programs] ?? "")?.[1];
    if (ebpf && refused !== undefined) return { hopeless: errors.STEP_NODE_REFUSES_EBPF(node, refused) };
  }
  const on = fieldAt(found.configurations[0], names.fields.ebpfEnabled) === true;
  if (on !== ebpf) return { waitingFor: `eBPF to be turned ${ebpf ? "on" : "off"}` };
  if (names.dialect === "calico") return "done";
  const wanted = ebpf ? names.dataplanes.ebpf : names.dataplanes.standard[0];
  const late = found.nodes.filter(isLinux).filter(({ metadata }) => {
    const says = agents.get(metadata.name) ?? {};
    const acts = says[AGENT_SAYS.dataplane] === wanted;
    return !(acts && (!ebpf || says[AGENT_SAYS.serviceRouting] === "proven"));
  });
  if (late.length === 0) return "done";
  const proof = ebpf ? "prove that services are reached through eBPF" : `act with ${wanted}`;
  return { waitingFor: `${late.length} of ${found.nodes.length} nodes to ${proof}: ${namesOf(late)}` };
}

function isAgent({ metadata }: KubeObject, { workloads }: Names): boolean {
  return (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "DaemonSet" && name === workloads.node);
}

function isLinux(node: KubeObject): boolean {
  const info = (node["status"] as { nodeInfo?: { operatingSystem?: string } } | undefined)?.nodeInfo;
  return (info?.operatingSystem ?? node.metadata.labels?.["kubernetes.io/os"] ?? "linux") === "linux";
}

const MOST_NAMED = 5;

function namesOf(nodes: readonly KubeObject[]): string {
  const more = nodes.length - MOST_NAMED;
  const shown = nodes.slice(0, MOST_NAMED).map(({ metadata }) => metadata.name);
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
