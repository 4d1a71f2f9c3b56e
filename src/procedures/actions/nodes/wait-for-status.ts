import type { Noun } from "../../../api/names.ts";
import { type Condition, groupVersion, type KubeObject, type ResourceKind } from "../../../api/object.ts";
import { isPartial, isReportedByAgents, isTerminal } from "../../../api/protocol/status-reasons.ts";
import { findCondition } from "../../../cluster/conditions.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Source, type Verdict } from "../objects/await-objects.ts";
import { kindOf, nameOf, readTarget, type Target } from "../objects/target.ts";
import { agentReports } from "./agents.ts";

export type WaitForStatusInputs = {
  /** Names of the status resources, `network` or `apiserver`, that must all say Available of what was last asked for. */
  statuses: readonly string[];
  /** Counts only what was said of the request as it stands: an operator that is no more may have said something of it before. */
  fresh?: true;
  /** Waited for instead: once this exists, no status matters. Until then, a refusal ends the wait with its reason. */
  enough?: Target;
};

/** Waits until the operator says that parts of the service work, as they were last asked for. */
export const waitForStatus: Action<WaitForStatusInputs> = {
  waits: true,
  needed: async () => true,
  apply: async () => {},
  confirm: awaitStatuses,
};

/** One status, for a wait on agents that must know another reason not to wait. */
export async function statusReader(
  name: string,
  work: Work,
): Promise<{ kind: ResourceKind; judge(status: KubeObject | undefined): Verdict }> {
  const generation = await generationBehind(name, work);
  const label = `${work.names.kinds.status.kind} ${name}`;
  return {
    kind: await statusKind(work),
    judge: (status) => (repeatsAgents(status) ? "done" : resultOf(label, status, generation)),
  };
}

/** What agents report themselves, and sooner: a status that repeats it may be of what they reported before. */
function repeatsAgents(status: KubeObject | undefined): boolean {
  const { conditions } = (status?.["status"] ?? {}) as { conditions?: Condition[] };
  return isReportedByAgents(findCondition(conditions, "Degraded")?.reason);
}

function anyRefuses(pods: readonly KubeObject[], { names }: Work): boolean {
  return [...agentReports(pods, names).values()].some(({ programs }) => typeof programs === "object");
}

async function statusKind({ names, client }: Work): Promise<ResourceKind> {
  const label = names.kinds.status.kind;
  const kind = await kindOf(client, { apiVersion: groupVersion(names.groups.operator), kind: label });
  if (kind === undefined) throw errors.STEP_TARGET_MISSING(`the kind ${label}`);
  return kind;
}

export async function awaitStatuses(inputs: WaitForStatusInputs, work: Work): Promise<void> {
  const label = work.names.kinds.status.kind;
  const kind = await statusKind(work);
  const wanted: { name: string; generation: number }[] = [];
  for (const name of inputs.statuses) wanted.push({ name, generation: await generationBehind(name, work) });
  const agents: Source = { kind: PODS, namespace: work.names.namespaces.system };
  const { enough } = inputs;
  const enoughs = enough ? [await sourceOf(enough, work)] : [];
  await awaitObjects(work, [{ kind }, agents, ...enoughs], ([statuses = [], pods = [], existing = []]) => {
    if (existing.length > 0) return "done";
    for (const { name, generation } of wanted) {
      const status = statuses.find(({ metadata }) => metadata.name === name);
      if (repeatsAgents(status) && !anyRefuses(pods, work))
        return { waitingFor: `${label} ${name} to observe that no agent refuses any more` };
      const verdict = resultOf(`${label} ${name}`, status, generation, inputs.fresh);
      if (verdict !== "done") return verdict;
    }
    return enough ? { waitingFor: `${nameOf(enough)} to exist` } : "done";
  });
}

async function sourceOf(target: Target, work: Work): Promise<Source> {
  const { name, namespace } = target;
  return { kind: await work.client.resourceFor(target), namespace, name };
}

/** The generation of the resource a status answers to; zero where there is none, so that any answer will do. */
async function generationBehind(status: string, work: Work): Promise<number> {
  const { statuses, kinds, groups, singleton } = work.names;
  const nouns: Partial<Record<string, Noun>> = {
    [statuses.apiServer]: "apiServer",
    [statuses.flowLogs]: "flowLogs",
    [statuses.flowUI]: "flowUI",
  };
  const { kind } = kinds[nouns[status] ?? "installation"];
  const request = await readTarget(work, { apiVersion: groupVersion(groups.operator), kind, name: singleton });
  return request?.metadata.generation ?? 0;
}

function resultOf(label: string, status: KubeObject | undefined, generation: number, fresh?: true): Verdict {
  const { conditions } = (status?.["status"] ?? {}) as { conditions?: Condition[] };
  const available = findCondition(conditions, "Available");
  const degraded = findCondition(conditions, "Degraded");
  if (available === undefined) return { waitingFor: `${label} to be reported` };
  // What it says of an older request is no answer to ours.
  if ((available.observedGeneration ?? (fresh ? 0 : generation)) < generation)
    return { waitingFor: `${label} to observe the change` };
  if (degraded?.status === "True" && !isPartial(degraded.reason)) {
    const why = `${degraded.message ?? ""} (${degraded.reason})`.trim();
    if (isTerminal(degraded.reason)) return { hopeless: errors.STEP_HOPELESS(label, why) };
    return { waitingFor: `${label}: ${why}` };
  }
  const progressing = findCondition(conditions, "Progressing");
  if (available.status === "True" && progressing?.status !== "True") return "done";
  return { waitingFor: `${label}: ${progressing?.message || available.message || "not available yet"}` };
}
