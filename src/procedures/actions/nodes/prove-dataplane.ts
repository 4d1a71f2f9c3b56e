import { dataplaneOf, type WrittenDataplane } from "../../../api/dataplane.ts";
import type { Names } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { Pod } from "../../../api/workload-objects.ts";
import { NODES, PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { fieldAt } from "../../field-at.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Verdict } from "../objects/await-objects.ts";
import { kindOf } from "../objects/target.ts";
import { agentReports, isAgent, isReady } from "./agents.ts";
import { awaitRollout } from "./wait-for-rollout.ts";
import { statusReader } from "./wait-for-status.ts";

export type ProveDataplaneInputs = {
  to: WrittenDataplane;
  /** Only these (default: every Linux node). With none at all only the operator's switch is waited for. */
  nodes?: readonly string[];
};

/**
 * Waits until Linux nodes' own agents say that they act with the data plane and, with eBPF, that services were reached through it.
 * Agents of the public system say nothing of the kind: there the operator's switch and ready agents have to do.
 */
export const proveDataplane: Action<ProveDataplaneInputs> = {
  waits: true,
  needed: async () => true,
  apply: async () => {},
  async confirm(inputs, work) {
    await awaitNodes(inputs, work);
    const everywhere = inputs.nodes === undefined;
    if (work.names.dialect === "calico" && everywhere) await awaitRollout({ workload: nodeAgents(work.names) }, work);
  },
};

/** `held`: the nodes have a choice of their own, so what is asked of all does not matter. */
export async function awaitNodes(inputs: ProveDataplaneInputs & { held?: true }, work: Work): Promise<void> {
  const { names, client } = work;
  const label = names.kinds.dataplaneConfiguration.kind;
  const configuration = await kindOf(client, { apiVersion: groupVersion(names.groups.stored), kind: label });
  if (!configuration) throw errors.STEP_TARGET_MISSING(`the kind ${label}`);
  const status = await statusReader(names.statuses.network, work);
  await awaitObjects(
    work,
    [
      { kind: configuration, name: names.singleton },
      { kind: NODES },
      { kind: PODS, namespace: names.namespaces.system },
      { kind: status.kind, name: names.statuses.network },
    ],
    ([configurations = [], nodes = [], pods = [], statuses = []]) => {
      const verdict = resultOf(inputs, { configurations, nodes, pods }, work);
      const network = status.judge(statuses[0]);
      const hopeless = verdict !== "done" && "waitingFor" in verdict && network !== "done" && "hopeless" in network;
      return hopeless && !inputs.held ? network : verdict;
    },
  );
}

function nodeAgents({ namespaces, workloads }: Names) {
  return { apiVersion: "apps/v1", kind: "DaemonSet", namespace: namespaces.system, name: workloads.node };
}

function resultOf(
  { to, nodes, held }: ProveDataplaneInputs & { held?: true },
  found: { configurations: KubeObject[]; nodes: KubeObject[]; pods: KubeObject[] },
  { names }: Work,
): Verdict {
  const ebpf = dataplaneOf(to) === "BPF";
  const agents = agentReports(found.pods, names);
  for (const [node, { programs }] of agents) {
    if (ebpf && typeof programs === "object")
      return { hopeless: errors.STEP_NODE_REFUSES_EBPF(node, programs.refused.why) };
  }
  const on = fieldAt(found.configurations[0], names.fields.ebpfEnabled) === true;
  if (on !== ebpf && !held) return { waitingFor: `eBPF to be ${ebpf ? "enabled" : "disabled"}` };
  const asked = found.nodes.filter(isLinux).filter(({ metadata }) => nodes?.includes(metadata.name) ?? true);
  if (names.dialect === "calico") return nodes === undefined ? "done" : readyAgents(asked, found.pods as Pod[], names);
  const wanted = ebpf ? names.dataplanes.ebpf : names.dataplanes.standard[0];
  const late = asked.filter(({ metadata }) => {
    const { dataplane, servicesProven } = agents.get(metadata.name) ?? {};
    return ebpf ? !(dataplane === "BPF" && servicesProven) : dataplane !== "Nftables" && dataplane !== "DrainingBPF";
  });
  if (late.length === 0) return "done";
  const proof = ebpf ? "verify Services in eBPF" : `run ${wanted}`;
  return { waitingFor: `${late.length} of ${asked.length} nodes to ${proof}: ${namesOf(late.map(nameOf))}` };
}

/** All that can be seen of an agent that does not say what it does. */
function readyAgents(nodes: readonly KubeObject[], pods: readonly Pod[], names: Names): Verdict {
  const ready = new Set(
    pods.filter((pod) => isAgent(pod, names) && isReady(pod)).map(({ spec }) => spec?.nodeName ?? ""),
  );
  const late = nodes.filter(({ metadata }) => !ready.has(metadata.name));
  return late.length === 0 ? "done" : { waitingFor: `the agents on ${namesOf(late.map(nameOf))} to be ready` };
}

function isLinux(node: KubeObject): boolean {
  const info = (node["status"] as { nodeInfo?: { operatingSystem?: string } } | undefined)?.nodeInfo;
  return (info?.operatingSystem ?? node.metadata.labels?.["kubernetes.io/os"] ?? "linux") === "linux";
}

const MOST_NAMED = 5;

const nameOf = ({ metadata }: KubeObject): string => metadata.name;

export function namesOf(nodes: readonly string[]): string {
  const more = nodes.length - MOST_NAMED;
  const shown = nodes.slice(0, MOST_NAMED);
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
