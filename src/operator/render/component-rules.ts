import type { Names, Noun } from "../../api/names.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { placesOf } from "../../api/resources/resource.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { platformOf } from "./platform.ts";
import { leaseRules, READ, type Rule, rule } from "./rbac.ts";

/** What a program may do: in the whole cluster, and in its own namespace. Each verb is one the program uses. */
export interface Rights {
  everywhere: readonly Rule[];
  atHome: readonly Rule[];
}

/** Calculated in addition to what is enforced, for flow logs. */
const STAGED: readonly Noun[] = ["stagedNetworkPolicy", "stagedGlobalNetworkPolicy", "stagedKubernetesNetworkPolicy"];
const IPAM: readonly Noun[] = ["ipamBlock", "blockAffinity", "ipamHandle"];

export function nodeAgentRights(names: Names, kind: ClusterKind): Rights {
  const { constraints } = platformOf(kind);
  return {
    everywhere: [
      rule("", ["pods", "nodes", "services", "namespaces", "serviceaccounts"], READ),
      rule("discovery.k8s.io", ["endpointslices"], READ),
      rule("networking.k8s.io", ["networkpolicies"], READ),
      // Says that the network of its node works, how to reach it, and which addresses it gave its pods.
      rule("", ["nodes/status", "pods/status"], ["patch"]),
      // What happened to its node, and to pods on it.
      rule("", ["events"], ["create"]),
      stored(
        names,
        [
          "dataplaneConfiguration",
          "clusterInformation",
          "tier",
          "networkPolicy",
          "globalNetworkPolicy",
          ...STAGED,
          "networkSet",
          "globalNetworkSet",
          "profile",
          "hostEndpoint",
          "ipPool",
          "ipReservation",
          "ipamConfiguration",
          "bgpConfiguration",
          "bgpPeer",
          "bgpFilter",
          "nodeStatus",
        ],
        READ,
      ),
      stored(names, IPAM, [...READ, "create", "update", "delete"]),
      // Answers what is asked of its node.
      stored(names, ["nodeStatus"], ["patch"], "/status"),
      // Sees to it that the cluster has an identity, and says which version the nodes run.
      stored(names, ["clusterInformation"], ["create", "update", "patch"]),
      ...(constraints
        ? [rule("security.openshift.io", ["securitycontextconstraints"], ["use"], [constraints.privileged])]
        : []),
    ],
    // Says in its own pod's annotations what its node can do.
    atHome: [rule("", ["pods"], ["patch"])],
  };
}

/** It reads what it watches, and replaces whole objects at the version it has read. Of a Service's status it patches one condition, which is its own, and the addresses it has assigned. */
export function kubeControllersRights(names: Names): Rights {
  return {
    everywhere: [
      rule("", ["nodes", "pods", "namespaces", "serviceaccounts"], READ),
      // Before an address of a Service is released, the Service is read from the API server.
      rule("", ["services"], READ),
      rule("", ["services/status"], ["patch"]),
      // Where the API server names its own addresses.
      rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"], ["kubernetes"]),
      stored(names, ["dataplaneConfiguration", "ipPool", "ipReservation"], ["list", "watch"]),
      // What only people can mend is said as an event.
      rule("", ["events"], ["create"]),
      // Whether the datastore is locked, before each write.
      stored(names, ["clusterInformation"], ["get"]),
      stored(names, ["hostEndpoint", "profile"], [...READ, "create", "update", "delete"]),
      stored(names, IPAM, [...READ, "create", "update", "delete"]),
      stored(names, ["kubeControllersConfiguration"], [...READ, "create"]),
      stored(names, ["kubeControllersConfiguration"], ["update"], "/status"),
    ],
    // Reports duplicate and leaked addresses in its own pod's annotations. By the status: it must not change what another pod runs.
    atHome: [...leaseRules(names.workloads.kubeControllers), rule("", ["pods/status"], ["patch"])],
  };
}

/**
 * The stored kinds, and nothing else: who the callers are and what they may do is asked of the orchestrator, for which
 * `system:auth-delegator` is bound in addition. A patch by a caller is a replacement by us.
 */
export function apiServerRights(names: Names): Rights {
  return {
    everywhere: [
      stored(names, v3Nouns(), [...READ, "create", "update", "patch", "delete"]),
      stored(names, ["kubeControllersConfiguration", "nodeStatus"], ["update"], "/status"),
    ],
    atHome: [],
  };
}

/** What of ours decides the verdict of a packet. */
const EXPLAINED: readonly Noun[] = [
  ...(["tier", "networkPolicy", "globalNetworkPolicy", "networkSet", "globalNetworkSet", "profile"] as const),
  ...STAGED,
  ...(["hostEndpoint", "ipPool", "ipamBlock", "dataplaneConfiguration"] as const),
];

/** Who the callers are and what they may do is asked of the orchestrator, as for the v3 API. Of its own it says how collecting goes. */
export function flowLogsRights(names: Names): Rights {
  return {
    everywhere: [
      // Rules that no flow has met are found by what there is, and why a flow was denied is calculated of what decides policy.
      stored(names, EXPLAINED, ["list"]),
      rule("networking.k8s.io", ["networkpolicies"], ["list"]),
      rule("", ["pods", "nodes", "namespaces", "serviceaccounts"], ["list"]),
      rule("discovery.k8s.io", ["endpointslices"], ["list"]),
      rule(names.groups.operator.group, [names.kinds.flowLogs.plural], ["get"]),
      rule(names.groups.operator.group, [`${names.kinds.flowLogs.plural}/status`], ["patch"]),
    ],
    // How far flows are exported; names cannot be asked for when something is created.
    atHome: [
      rule("", ["configmaps"], ["get", "patch"], [`${names.workloads.flowLogs}-export`]),
      rule("", ["configmaps"], ["create"]),
    ],
  };
}

function v3Nouns(): Noun[] {
  return RESOURCES.filter(({ api }) => api === "v3").map(({ noun }) => noun);
}

export function stored(names: Names, nouns: readonly Noun[], verbs: readonly string[], subresource = ""): Rule {
  const plurals = RESOURCES.filter(({ noun }) => nouns.includes(noun)).map(
    (resource) => `${placesOf(resource, names).stored.plural}${subresource}`,
  );
  return rule(names.groups.stored.group, plurals, verbs);
}
