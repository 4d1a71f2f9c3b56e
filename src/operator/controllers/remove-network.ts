import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Installation, InstallationSpec } from "../../api/resources/installation.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { NAMESPACES } from "../../cluster/kinds.ts";
import { componentObjects, deleteObject, MANAGER } from "../apply.ts";
import { type Effective, effectiveFor } from "../effective.ts";
import { storedKind } from "../managed-kinds.ts";
import { nodeAgents, type Observed, theOne } from "../observed.ts";
import { absent, type Outcome, progressing } from "../outcome.ts";
import { type Phase, planDataplane, viewDataplane } from "../plan-dataplane.ts";
import { isOurs } from "../plan-ip-pools.ts";
import { dropFinalizer, type ReconcileContext } from "../reconcile-context.ts";
import { isOutOfPatience, removeComponent } from "../removal.ts";
import type { Component } from "../render/inputs.ts";
import { ACTIVE_OPERATOR } from "../single-operator.ts";
import { removeReports } from "../status.ts";
import { enterSystem } from "./enter-system.ts";
import { writeSettings } from "./network-outcome.ts";
import { removeLeftovers } from "./remove-leftovers.ts";

const OPTIONAL: readonly Component[] = ["apiserver", "flow-logs", "flow-ui"];

type Leaving = Installation & KubeObject;

/** Everything the installation brought goes, in the order in which nothing is cut off from what it still needs. */
export async function removeNetwork(
  observed: Observed,
  hands: ReconcileContext,
  installation: Leaving,
): Promise<Outcome> {
  const impatient = isOutOfPatience(installation, observed.now);
  const effective = effectiveFor(observed, installation);
  const system = hands.tools.live.get(NAMESPACES, { name: vendorNames.namespaces.system });
  if (system && !system.metadata.deletionTimestamp) await enterSystem(observed, hands, effective.kind);
  const waitingFor =
    othersLeft(hands) ??
    (await leaveEbpf(hands, effective, impatient)) ??
    (await removeComponent(hands, "network", { keep: belongsToNamespace, impatient })) ??
    (impatient ? undefined : poolsLeft(hands.observe())) ??
    (await removeSettings(hands));
  if (waitingFor) return progressing(waitingFor, 1_000);
  await removeLeftovers(hands);
  const closing = await removeNamespace(hands);
  if (closing) return progressing(closing, 1_000);
  await hands.leaveNamespace();
  // Nothing is left to do when the finalizer is gone: who waits for it may remove the operator right then.
  await removeReports(hands.tools, observed);
  await dropFinalizer(hands, storedKind("installation"), installation, vendorNames.finalizers.installation);
  return absent();
}

/** The optional parts see that the installation leaves, and go first: they live on its network. */
function othersLeft(hands: ReconcileContext): string | undefined {
  const left = OPTIONAL.filter((component) => componentObjects(hands.tools.live, component).length > 0);
  return left.length > 0 ? `${left.join(", ")} to be removed` : undefined;
}

/** The nodes are given back as they were found: the proxy serves again, and no program of ours is left in a kernel. */
async function leaveEbpf(
  hands: ReconcileContext,
  { kind, spec }: Effective,
  impatient: boolean,
): Promise<string | undefined> {
  const observed = hands.observe();
  if (!nodeAgents(observed) || impatient) return undefined;
  const view = viewDataplane(observed, "Nftables", kind);
  const managed = spec.vendorNetwork?.serviceProxyManagement === "Enabled";
  const planned = planDataplane(view);
  const blocked = planned.at === "proxyMissing" || (planned.at === "restoringProxy" && !managed);
  const phase: Phase = blocked ? { at: "disable" } : planned;
  const standard: InstallationSpec = { ...spec, vendorNetwork: { ...spec.vendorNetwork, linuxDataplane: "Nftables" } };
  await writeSettings(hands, observed, { kind, spec: standard }, phase);
  switch (phase.at) {
    case "restoringProxy":
      return phase.waitingFor;
    case "disable":
      return "eBPF to be disabled";
    case "leaving":
      return `the agents on ${[...phase.nodes, ...phase.held].join(", ")} to disable eBPF`;
    case "draining":
      return `connections that only eBPF carries to end on ${phase.nodes.join(", ")}`;
    default:
      return undefined;
  }
}

/**
 * The namespace goes last, and takes along the operator's own rights in it and its claim to the cluster. An operator that is started
 * again in the middle of a removal would create both again.
 */
function belongsToNamespace({ kind, metadata }: KubeObject): boolean {
  const rights = metadata.name === `${vendorNames.workloads.operator}-system`;
  return kind === "Namespace" || rights || (kind === "ConfigMap" && metadata.name === ACTIVE_OPERATOR.name);
}

function poolsLeft(observed: Observed): string | undefined {
  const left = observed.pools.filter(isOurs).map(({ metadata }) => metadata.name);
  return left.length > 0 ? `IP pools to be removed or released: ${left.join(", ")}` : undefined;
}

/** Our fields of the data plane configuration are removed; if no other manager has any in it, it is deleted. */
async function removeSettings({ tools, observe }: ReconcileContext): Promise<string | undefined> {
  const config = theOne(observe().dataplaneConfigurations);
  const entries = config?.metadata.managedFields ?? [];
  if (!config || !entries.some(({ manager }) => manager === MANAGER)) return undefined;
  if (entries.every(({ manager }) => manager === MANAGER)) {
    await deleteObject(tools, config);
    return "the data plane configuration to be deleted";
  }
  const { apiVersion, kind, metadata } = config;
  const nothing = { apiVersion, kind, metadata: { name: metadata.name } };
  const place = storedKind("dataplaneConfiguration");
  tools.live.wrote(
    place,
    await tools.client.apply(place, nothing, { fieldManager: MANAGER, force: true, signal: tools.signal }),
  );
  tools.onWrite("applied");
  return undefined;
}

async function removeNamespace({ tools }: ReconcileContext): Promise<string | undefined> {
  const { system } = vendorNames.namespaces;
  const namespace = tools.live.get(NAMESPACES, { name: system });
  if (!namespace) return undefined;
  await deleteObject(tools, namespace);
  // Asked, not only watched: the rights to watch may go with it.
  const gone = await tools.client.get(NAMESPACES, { name: system }).then(() => false, isNotFound);
  return gone ? undefined : `Namespace ${system} to be deleted`;
}
