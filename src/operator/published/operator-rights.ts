import { CLUSTER_KINDS, type ClusterKind } from "../../api/cluster-kinds.ts";
import type { Names } from "../../api/names.ts";
import { DELEGATION } from "../render/api-server.ts";
import { apiServerRights, kubeControllersRights, nodeAgentRights, type Rights } from "../render/component-rules.ts";
import { leaseRules, READ, type Rule, rule, WRITE } from "../render/rbac.ts";
import { mergeRules } from "./merge-rules.ts";
import { everyRenderedName } from "./rendered-names.ts";

const RBAC = "rbac.authorization.k8s.io";

/** The operator's rights, by where they hold. */
export interface OperatorRights {
  everywhere: Rule[];
  ownNamespace: Rule[];
  /** Bound by the operator itself once the namespace is there. */
  systemNamespace: Rule[];
  orchestratorNamespace: Rule[];
}

/**
 * The orchestrator lets nobody give rights they do not have, so the operator has all that its components have, beside its own. Of kinds
 * it makes objects of, it may change only those with the names it makes. Secrets it sees in two namespaces only.
 */
export function operatorRights(names: Names): OperatorRights {
  const components = componentRights(names);
  return {
    everywhere: mergeRules([
      ...ownKinds(names),
      ...components.flatMap(({ everywhere }) => everywhere),
      ...CLUSTER_READING,
      ...makingOf(names),
      rule(RBAC, ["clusterroles"], ["bind"], [DELEGATION.clusterRole, systemRoleName(names)]),
    ]),
    ownNamespace: mergeRules([
      rule("", ["secrets"], [...READ, "create", "update", "patch"]),
      rule("", ["configmaps"], READ),
      ...leaseRules(names.workloads.operator),
    ]),
    systemNamespace: mergeRules([
      rule("", ["secrets"], [...READ, ...WRITE]),
      ...components.flatMap(({ atHome }) => atHome),
    ]),
    orchestratorNamespace: mergeRules([
      rule("apps", ["daemonsets"], ["patch"], [names.serviceProxy.daemonSet]),
      rule(RBAC, ["roles"], ["bind"], [DELEGATION.role.name]),
    ]),
  };
}

export function systemRoleName({ workloads }: Names): string {
  return `${workloads.operator}-system`;
}

function componentRights(names: Names): Rights[] {
  const kinds = Object.keys(CLUSTER_KINDS) as ClusterKind[];
  return [...kinds.map((kind) => nodeAgentRights(names, kind)), kubeControllersRights(names), apiServerRights(names)];
}

/** Custom resources are the user's: the operator adds its finalizer and writes their status. Status resources are its own. */
function ownKinds({ groups, kinds }: Names): Rule[] {
  const { group } = groups.operator;
  const asked = [kinds.installation, kinds.apiServer, kinds.flowLogs, kinds.flowUI].map(({ plural }) => plural);
  const status = kinds.status.plural;
  const subresources = [...asked, status].map((plural) => `${plural}/status`);
  return [
    rule(group, asked, [...READ, "update", "patch"]),
    rule(group, [status], [...READ, ...WRITE]),
    rule(group, subresources, ["update", "patch"]),
  ];
}

/** What the operator looks at to know the cluster, and to say why something is not ready. */
const CLUSTER_READING: readonly Rule[] = [
  rule("", ["nodes", "namespaces", "pods", "services", "serviceaccounts", "configmaps", "events"], READ),
  rule("", ["events"], ["create", "patch"]),
  rule("apps", ["daemonsets", "deployments", "replicasets"], READ),
  rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
  rule("config.openshift.io", ["clusterversions", "networks", "infrastructures"], READ),
];

/** A right to create cannot be limited to a name; the rights to change and to remove can. */
function makingOf(names: Names): Rule[] {
  return everyRenderedName(names).flatMap(({ group, plural, objects }) => [
    rule(group, [plural], [...READ, "create"]),
    rule(group, [plural], ["update", "patch", "delete"], objects),
  ]);
}
