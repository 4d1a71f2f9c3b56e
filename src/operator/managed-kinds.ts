import { type Noun, vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { placesOf } from "../api/resources/resource.ts";
import {
  API_SERVICES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CSI_DRIVERS,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NETWORK_POLICIES,
  POD_DISRUPTION_BUDGETS,
  PRIORITY_CLASSES,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from "../cluster/kinds.ts";
import { errors } from "./errors.ts";

/** Where a resource of ours is stored. */
export function storedKind(noun: Noun): ResourceKind {
  const resource = RESOURCES.find((each) => each.noun === noun);
  if (!resource) throw new TypeError(`no resource ${noun}`);
  return placesOf(resource, vendorNames).stored;
}

/**
 * Every kind the operator makes objects of, in the order they are made; removal goes the other way. So: what pods need exists
 * before the pods, an APIService is created last and deleted first, and roles outlive the pods that use them.
 */
export const MANAGED_KINDS: readonly ResourceKind[] = [
  NAMESPACES,
  PRIORITY_CLASSES,
  SERVICE_ACCOUNTS,
  CLUSTER_ROLES,
  CLUSTER_ROLE_BINDINGS,
  ROLES,
  ROLE_BINDINGS,
  SECRETS,
  CONFIG_MAPS,
  storedKind("ipPool"),
  storedKind("dataplaneConfiguration"),
  NETWORK_POLICIES,
  SERVICES,
  POD_DISRUPTION_BUDGETS,
  CSI_DRIVERS,
  DAEMON_SETS,
  DEPLOYMENTS,
  API_SERVICES,
];

export function managedKind(object: Pick<KubeObject, "apiVersion" | "kind">): ResourceKind {
  const found = MANAGED_KINDS.find((kind) => kind.kind === object.kind && groupVersion(kind) === object.apiVersion);
  if (!found) throw errors.KIND_NOT_MANAGED(object.kind, object.apiVersion);
  return found;
}

/** The place of an object in the order. The agent's rights, which the CNI plugin uses, come early, so that they go last. */
export function rankOf(object: KubeObject): number {
  const rank = MANAGED_KINDS.indexOf(managedKind(object));
  const rights = object.kind.includes("Role") || object.kind === "ServiceAccount";
  return rights && object.metadata.name === vendorNames.workloads.node ? AFTER_NAMESPACES : rank;
}

const AFTER_NAMESPACES = 0.5;

/** `Kind namespace/name`: the name of an object in messages, and its key. */
export function objectName({ kind, metadata }: Pick<KubeObject, "kind" | "metadata">): string {
  return `${kind} ${[metadata.namespace, metadata.name].filter(Boolean).join("/")}`;
}
