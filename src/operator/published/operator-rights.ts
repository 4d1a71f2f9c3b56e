import type { Names } from "../../api/names.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { FOREIGN_ELSEWHERE } from "../../api/tables/foreign-cni.ts";
import { DELEGATION } from "../render/aggregated-api.ts";
import {
  apiServerRights,
  flowLogsRights,
  kubeControllersRights,
  nodeAgentRights,
  type Rights,
  stored,
} from "../render/component-rules.ts";
import { leaseRules, READ, type Rule, rule, WRITE } from "../render/rbac.ts";
import { mergeRules } from "./merge-rules.ts";
import { everyRenderedName, type RenderedNames } from "./rendered-names.ts";

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
 * Kubernetes lets no subject grant rights it does not have, so the operator has all that its components have, in addition to its own. What runs
 * or configures pods it may make in the system namespace only; of what it makes outside, it may change only what has the names it gives.
 */
export function operatorRights(names: Names): OperatorRights {
  const components = componentRights(names);
  const { outside, inside } = makingOf(names);
  return {
    everywhere: mergeRules([
      ...ownKinds(names),
      ...components.flatMap(({ everywhere }) => everywhere),
      stored(names, ["dataplaneConfiguration", "ipPool", "clusterInformation"], [...READ, ...WRITE]),
      ...outside,
      rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
      // CNI plugins of others, by their names.
      rule("apps", ["daemonsets"], READ, [...FOREIGN_ELSEWHERE]),
      rule("config.openshift.io", ["clusterversions", "networks", "infrastructures"], READ),
      // Without any rights in the system namespace: whether another operator looks after the cluster, and a word to it.
      rule("", ["configmaps"], ["get", "patch"], [ACTIVE_OPERATOR]),
      rule(RBAC, ["clusterroles"], ["bind"], [DELEGATION.clusterRole, systemRoleName(names)]),
    ]),
    ownNamespace: mergeRules([
      rule("", ["secrets"], [...READ, "create", "update", "patch"]),
      rule("", ["secrets"], ["delete"], [AUTHORITY]),
      rule("", ["configmaps"], READ),
      rule("apps", ["deployments"], READ),
      ...leaseRules(names.workloads.operator),
    ]),
    systemNamespace: mergeRules([
      ...inside,
      rule("", ["secrets"], [...READ, ...WRITE]),
      rule("", ["events"], READ),
      rule("apps", ["replicasets"], READ),
      rule("", ["pods/eviction"], ["create"]),
      ...components.flatMap(({ atHome }) => atHome),
    ]),
    orchestratorNamespace: mergeRules([
      rule("", ["configmaps"], READ),
      rule("apps", ["daemonsets"], READ),
      rule("apps", ["daemonsets"], ["patch"], [names.serviceProxy.daemonSet]),
      rule(RBAC, ["roles"], ["bind"], [DELEGATION.role.name]),
    ]),
  };
}

const ACTIVE_OPERATOR = "active-operator";
/** The Secret of the operator's certificate authority. */
const AUTHORITY = "vendor-ca";

export function systemRoleName({ workloads }: Names): string {
  return `${workloads.operator}-system`;
}

function componentRights(names: Names): Rights[] {
  const kinds = Object.keys(CLUSTER_KINDS) as ClusterKind[];
  return [
    ...kinds.map((kind) => nodeAgentRights(names, kind)),
    kubeControllersRights(names),
    apiServerRights(names),
    flowLogsRights(names),
  ];
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

/** What can be made before the operator has rights in the system namespace, and must still be removable after. */
const RIGHTS = ["serviceaccounts", "roles", "rolebindings"];

/** A right to create cannot be limited to a name; the rights to change and to remove can. */
function makingOf(names: Names): { outside: Rule[]; inside: Rule[] } {
  const rendered = everyRenderedName(names);
  const isOutside = ({ plural, namespaced }: RenderedNames) => !namespaced || RIGHTS.includes(plural);
  return {
    outside: rendered
      .filter(isOutside)
      .flatMap(({ group, plural, objects }) => [
        rule(group, [plural], [...READ, "create"]),
        rule(group, [plural], ["update", "patch", "delete"], objects),
      ]),
    inside: rendered
      .filter((row) => !isOutside(row))
      .map(({ group, plural }) => rule(group, [plural], [...READ, ...WRITE])),
  };
}
