import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../../api/object.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { placesOf } from "../../api/resources/resource.ts";
import type { Client } from "../../cluster/client.ts";
import { CLUSTER_ROLES, CRDS, PODS, ROLES } from "../../cluster/kinds.ts";
import type { WaitForRolloutInputs } from "../actions/nodes/wait-for-rollout.ts";
import type { WaitForStatusInputs } from "../actions/nodes/wait-for-status.ts";
import type { Expectation } from "../actions/objects/expectation.ts";
import type { Settle } from "../actions/objects/settle.ts";
import { type Target, targetOf } from "../actions/objects/target.ts";
import { type Right, rightsOn } from "./right.ts";

/** Where a kind is, by what the server has and by what the plan will install. */
export type KindOf = (type: { apiVersion: string; kind: string }) => ResourceKind | undefined;

/** What rights are found from. */
export interface RightsContext {
  names: Names;
  kindOf: KindOf;
}

export async function kindLookup(client: Client, names: Names): Promise<KindOf> {
  const ours = RESOURCES.flatMap((resource) => Object.values(placesOf(resource, names)));
  const all = [...(await client.resources()), ...ours];
  const byType = new Map(all.map((kind) => [`${groupVersion(kind)} ${kind.kind}`, kind]));
  return ({ apiVersion, kind }) => byType.get(`${apiVersion} ${kind}`);
}

export const WATCH = ["list", "watch"] as const;
const AGAIN = "if the object is there";
const ABSENT = "if the object is not there";

const place = ({ namespace, name }: Pick<Target, "namespace" | "name">) => ({ namespace, name });

function on(target: Target, verbs: readonly string[], context: RightsContext, sometimes?: string): Right[] {
  const kind = context.kindOf(target);
  if (kind === undefined) return [];
  return rightsOn(kind, verbs, { ...place(target), ...(sometimes !== undefined && { sometimes }) });
}

/** Server-side apply: it creates what is not there. CRDs are waited for. */
export function applyRights(object: KubeObject, context: RightsContext): Right[] {
  const target = targetOf(object);
  return [
    ...on(target, ["get"], context),
    ...on(target, ["patch"], context),
    ...on(target, ["create"], context, ABSENT),
    ...(object.kind === CRDS.kind ? on(target, WATCH, context) : []),
    ...grantRights(object, context),
  ];
}

/** Kubernetes lets no user grant rights they do not have, unless they may `escalate` or `bind`. */
function grantRights(object: KubeObject, context: RightsContext): Right[] {
  const { name, namespace } = object.metadata;
  const granting = { name, namespace };
  if (object.kind === CLUSTER_ROLES.kind) return rightsOn(CLUSTER_ROLES, ["escalate"], granting);
  if (object.kind === ROLES.kind) return rightsOn(ROLES, ["escalate"], granting);
  const ref = object["roleRef"] as { kind: string; name: string } | undefined;
  if (ref === undefined || context.kindOf(object) === undefined) return [];
  const kind = ref.kind === CLUSTER_ROLES.kind ? CLUSTER_ROLES : ROLES;
  // A RoleBinding asks for it in its own namespace, also for a ClusterRole.
  return rightsOn({ ...kind, namespaced: true }, ["bind"], { ...granting, name: ref.name });
}

/** Deleting, and waiting until it is gone. */
export function removeRights(target: Target, context: RightsContext): Right[] {
  return [...on(target, ["get"], context), ...on(target, ["delete", ...WATCH], context, AGAIN)];
}

/** As it was: replaced if it is there, created if it is gone. */
export function restoreRights(object: Target | KubeObject, context: RightsContext): Right[] {
  const target = "metadata" in object ? targetOf(object as KubeObject) : (object as Target);
  return [
    ...on(target, ["get"], context),
    ...on(target, ["create"], context, ABSENT),
    ...on(target, ["update"], context, AGAIN),
    ...("metadata" in object ? grantRights(object as KubeObject, context) : grantsOfTarget(target, context)),
  ];
}

/** Of a role that is known by its name only. Which role a binding has is not known then. */
function grantsOfTarget(target: Target, context: RightsContext): Right[] {
  const { kind, namespace } = target;
  if (kind === CLUSTER_ROLES.kind || kind === ROLES.kind) return on(target, ["escalate"], context);
  if (!kind.endsWith("RoleBinding")) return [];
  return [
    ...rightsOn({ ...CLUSTER_ROLES, namespaced: true }, ["bind"], { namespace }),
    ...(namespace === undefined ? [] : rightsOn(ROLES, ["bind"], { namespace })),
  ];
}

export function patchRights(target: Target, context: RightsContext): Right[] {
  return on(target, ["get", "patch"], context);
}

/** The first look ends at the first expectation that is not met. */
export function expectationRights(expectations: readonly Expectation[], context: RightsContext): Right[] {
  return expectations.flatMap(({ target }) => [
    ...on(target, ["get"], context, "if those before it are met"),
    ...on(target, WATCH, context),
  ]);
}

export function rolloutRights({ workload }: WaitForRolloutInputs, context: RightsContext): Right[] {
  return [...on(workload, ["get", ...WATCH], context), ...rightsOn(PODS, WATCH, { namespace: workload.namespace })];
}

export function statusRights({ statuses }: WaitForStatusInputs, { names }: RightsContext): Right[] {
  const { operator } = names.groups;
  const kinds = statuses.map((status) => {
    if (status === names.statuses.apiServer) return names.kinds.apiServer;
    if (status === names.statuses.flowLogs) return names.kinds.flowLogs;
    return status === names.statuses.flowUI ? names.kinds.flowUI : names.kinds.installation;
  });
  const ofGroup = (plural: string) => ({ group: operator.group, plural, namespaced: false });
  return [
    ...rightsOn(ofGroup(names.kinds.status.plural), WATCH),
    ...kinds.flatMap(({ plural }) => rightsOn(ofGroup(plural), ["get"], { name: names.singleton })),
    ...rightsOn(PODS, WATCH, { namespace: names.namespaces.system }),
  ];
}

export function settleRights(settle: Settle | undefined, context: RightsContext): Right[] {
  return [
    ...expectationRights(settle?.expect ?? [], context),
    ...(settle?.status ? statusRights(settle.status, context) : []),
    ...(settle?.encapsulation ? rightsOn(PODS, WATCH, { namespace: settle.encapsulation.namespace }) : []),
    ...(settle?.rollouts ?? []).flatMap((rollout) => rolloutRights(rollout, context)),
  ];
}
