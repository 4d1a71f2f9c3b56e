import type { Client } from "../../../cluster/client.ts";
import { isAlreadyExists, isNotFound } from "../../../cluster/failures.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { matchesSelector } from "../label-selector.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { ControllerRevision, DaemonSet, Node, Pod } from "../workload-types.ts";
import { planRevisions, type RevisionPlan } from "./controller-revisions.ts";
import { daemonPodSpec, pinnedTo, planDaemonSet, REVISION_HASH_LABEL } from "./daemon-set-plan.ts";
import { Expectations } from "./expectations.ts";
import { adoptPods } from "./pod-adoption.ts";
import { createPodControl, podFromTemplate } from "./pod-control.ts";
import { isNamespaceLeaving } from "./replica-set.ts";

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

export function daemonSetLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("daemonset-controller");
  const recorder = context.recorderFor({ component: "daemonset-controller" });
  const expectations = new Expectations(clock);
  const pods = createPodControl(client, recorder, expectations);

  const claim = async (daemonSet: DaemonSet): Promise<Pod[]> => {
    const owned = informers.podsByOwner.get(daemonSet.metadata.uid ?? "");
    const orphans = informers.orphanPods.get(daemonSet.metadata.namespace ?? "");
    const claims = adoptPods(daemonSet, daemonSet.spec.selector, owned, orphans);
    await pods.claim(daemonSet, claims);
    return [...claims.mine, ...claims.adopt];
  };

  return {
    name: "daemonset",
    workers: 4,
    watch(enqueue) {
      informers.daemonSets.onChange(({ key, type, object }) => {
        if (type === "deleted") expectations.forget(object.metadata.uid ?? "");
        enqueue(key);
      });
      informers.pods.onChange((change) => {
        expectations.observe(change);
        for (const pod of change.old ? [change.old, change.object] : [change.object]) {
          for (const key of daemonSetsFor(context, pod)) enqueue(key);
        }
      });
      informers.nodes.onChange(({ type, object, old }) => {
        if (type === "modified" && samePlace(object, old)) return;
        for (const { metadata } of informers.daemonSets.list()) enqueue(`${metadata.namespace}/${metadata.name}`);
      });
    },
    weight: (key) => informers.podsByOwner.count(informers.daemonSets.get(key)?.metadata.uid ?? ""),
    async reconcile(key) {
      const daemonSet = informers.daemonSets.get(key);
      if (!daemonSet) return undefined;
      const mine = await claim(daemonSet);
      const uid = daemonSet.metadata.uid ?? "";
      const revisions = planRevisions(daemonSet, informers.revisionsByOwner.get(uid), mine);
      const leaving = daemonSet.metadata.deletionTimestamp !== undefined;
      if (!leaving && (await keepRevisions(client, revisions)) === "collision") {
        const collisionCount = (daemonSet.status?.collisionCount ?? 0) + 1;
        const status = { ...daemonSet.status, collisionCount };
        await client.replace(DAEMON_SETS, { ...daemonSet, status }, { subresource: "status" });
        return undefined;
      }
      const nodes = informers.nodes.list();
      const settled = expectations.settled(uid);
      const plan = planDaemonSet({ daemonSet, nodes, pods: mine, hash: revisions.hash, settled, now: clock.now() });
      try {
        await pods.create(daemonSet, newPods(daemonSet, revisions.hash, plan.create));
        await pods.remove(daemonSet, plan.remove);
      } catch (error) {
        if (!isNamespaceLeaving(error)) throw error;
      } finally {
        // Also where pods cannot be created: the status counts those there are.
        if (!semanticEqual(daemonSet.status ?? {}, plan.status)) {
          await client.replace(DAEMON_SETS, { ...daemonSet, status: plan.status }, { subresource: "status" });
        }
      }
      return plan.recheckMs;
    },
  };
}

function newPods(daemonSet: DaemonSet, hash: string, nodes: readonly string[]): Pod[] {
  if (nodes.length === 0) return [];
  const spec = daemonPodSpec(daemonSet.spec.template);
  const template = podFromTemplate(daemonSet, daemonSet.spec.template);
  const labels: Record<string, string> = { ...template.metadata.labels, [REVISION_HASH_LABEL]: hash };
  const generation = daemonSet.metadata.annotations?.[TEMPLATE_GENERATION];
  if (generation) labels["pod-template-generation"] = generation;
  return nodes.map((node) => ({
    ...template,
    metadata: { ...template.metadata, labels },
    spec: pinnedTo(spec, node),
  }));
}

async function keepRevisions(client: Client, plan: RevisionPlan): Promise<"kept" | "collision"> {
  if (plan.create) {
    try {
      await client.create(CONTROLLER_REVISIONS, plan.create);
    } catch (error) {
      if (isNamespaceLeaving(error)) return "kept";
      if (!isAlreadyExists(error)) throw error;
      const there = await client.get<ControllerRevision>(CONTROLLER_REVISIONS, plan.create.metadata);
      return semanticEqual(there.data, plan.create.data) ? "kept" : "collision";
    }
  }
  if (plan.renumber) {
    const { revision, to } = plan.renumber;
    await client.replace(CONTROLLER_REVISIONS, { ...revision, revision: to });
  }
  for (const revision of plan.remove) {
    await client.delete(CONTROLLER_REVISIONS, revision.metadata).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
  return "kept";
}

/** What of a node decides whether daemons run on it; heartbeats and the like do not. */
function samePlace(a: Node, b: Node | undefined): boolean {
  return (
    b !== undefined &&
    semanticEqual(a.metadata.labels, b.metadata.labels) &&
    semanticEqual(a.spec?.taints, b.spec?.taints)
  );
}

function daemonSetsFor({ informers }: ControllerContext, pod: Pod): string[] {
  const owner = controllerOf(pod);
  if (owner) return owner.kind === "DaemonSet" ? [`${pod.metadata.namespace}/${owner.name}`] : [];
  return informers.daemonSets
    .list(pod.metadata.namespace)
    .filter((daemonSet) => matchesSelector(daemonSet.spec.selector, pod.metadata.labels))
    .map((daemonSet) => `${daemonSet.metadata.namespace}/${daemonSet.metadata.name}`);
}
