import type { Names, Noun } from "../../api/names.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { placesOf } from "../../api/resources/resource.ts";
import {
  API_SERVICES,
  CONFIG_MAPS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  LEASES,
  NAMESPACES,
  NETWORK_POLICIES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  SERVICES,
} from "../../cluster/kinds.ts";
import { OBSERVED_NOUNS } from "../observe/cluster-objects.ts";
import { type Right, rightsOn } from "./right.ts";

const LIST = ["list"] as const;
const only = (sometimes: string) => ({ sometimes, optional: true }) as const;
const INSTALLED = only("if the service is installed");

/**
 * What `observe` reads, which every procedure and `check` begin with. The record of a chart is left out: it is a Secret, and only a cluster that has
 * a chart needs it (`planningRights`). So are the Secrets from which a lock is known better: without them the check says so.
 */
export function observationRights(names: Names): Right[] {
  const { namespaces, endpointMap, manifests, workloads, groups } = names;
  const system = { namespace: namespaces.orchestratorSystem };
  return [
    ...[NODES, NAMESPACES, CRDS, DAEMON_SETS, SERVICES, NETWORK_POLICIES, POD_DISRUPTION_BUDGETS].flatMap((kind) =>
      rightsOn(kind, LIST),
    ),
    ...rightsOn(CONFIG_MAPS, LIST, system),
    ...rightsOn(CONFIG_MAPS, ["get"], { namespace: "kube-public", name: "cluster-info" }),
    ...rightsOn(CONFIG_MAPS, LIST, { name: endpointMap.name }),
    ...rightsOn(CONFIG_MAPS, LIST, { name: manifests.sidecarInjectorMap }),
    ...rightsOn(DEPLOYMENTS, LIST, { name: workloads.operator }),
    ...rightsOn(API_SERVICES, ["get"], { name: `${groups.served.version}.${groups.served.group}` }),
    ...rightsOn(ENDPOINT_SLICES, LIST, { namespace: "default" }),
    ...rightsOn(LEASES, ["get"], { ...system, name: "vendorctl" }),
    ...rightsOn(LEASES, ["get"], { namespace: namespaces.operator, name: workloads.operator, optional: true }),
    ...rightsOn(PODS, LIST, { namespace: namespaces.operator, ...only("if the operator does not run") }),
    ...rightsOn(PODS, LIST, { namespace: namespaces.system, ...INSTALLED }),
    ...rightsOn(PODS, LIST, { ...system, ...only("if the service was installed with a manifest") }),
    ...OBSERVED_NOUNS.flatMap((noun) => ofNoun(names, noun)),
    ...["infrastructures", "networks"].flatMap((plural) =>
      rightsOn({ group: "config.openshift.io", plural, namespaced: false }, ["get"], {
        name: "cluster",
        ...only("on OpenShift"),
      }),
    ),
  ];
}

function ofNoun(names: Names, noun: Noun): Right[] {
  const resource = RESOURCES.find((each) => each.noun === noun);
  if (resource === undefined) return [];
  const { stored, served } = placesOf(resource, names);
  return [
    ...rightsOn(stored, LIST, INSTALLED),
    ...(resource.api === "v3" ? rightsOn(served, LIST, only("with the etcd datastore")) : []),
  ];
}

/** Reading the metadata of everything, to find what is owned through v3 resources. */
export function ownedRights(): Right[] {
  return [{ verb: "list", group: "*", resource: "*" }];
}
