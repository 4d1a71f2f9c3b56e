import type { Names } from "../../api/names.ts";
import { serviceProxySettings } from "../../api/protocol/kube-proxy-mode.ts";
import { parkedBy, viewServiceProxy } from "../../api/protocol/kube-proxy-view.ts";
import type { Workload } from "../../api/workload-objects.ts";
import { fieldAt } from "../field-at.ts";
import type { SeenProxy } from "../observation.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/** Where the infrastructure-as-code tool keeps what it makes a cluster from. */
const CLUSTER_CONFIGURATION = "cluster-configuration";

export function seeProxy(seen: ClusterObjects, names: Names): SeenProxy {
  const { daemonSets, configMaps } = seen;
  const daemonSet = daemonSets.find(
    ({ metadata }) =>
      metadata.name === names.serviceProxy.daemonSet && metadata.namespace === names.namespaces.orchestratorSystem,
  );
  const clusterConfiguration = configMaps.find(({ metadata }) => metadata.name === CLUSTER_CONFIGURATION);
  if (!daemonSet) {
    return {
      daemonSet,
      mode: "unknown",
      modeEvidence: `there is no DaemonSet ${names.serviceProxy.daemonSet}`,
      owner: undefined,
      parked: undefined,
      pods: { wanted: 0, ready: 0 },
      clusterConfiguration,
    };
  }
  const { mode, evidence } = serviceProxySettings(daemonSet, configMaps, names);
  const view = viewServiceProxy(daemonSet, names);
  const owner = view.is === "absent" ? undefined : view.owner;
  return {
    daemonSet,
    mode,
    modeEvidence: evidence,
    owner: owner && { who: owner.who, evidence: `metadata of the DaemonSet: ${owner.who}`, how: owner.how },
    parked: parkedHow(daemonSet, seen, names),
    pods: {
      wanted: daemonSet.status?.desiredNumberScheduled ?? 0,
      ready: daemonSet.status?.numberReady ?? 0,
    },
    clusterConfiguration,
  };
}

/** A person and the operator use the same label; whose it is shows in who was asked to manage the proxy. */
function parkedHow(proxy: Workload, seen: ClusterObjects, names: Names): SeenProxy["parked"] {
  const label = parkedBy(proxy, names);
  if (label === undefined) return undefined;
  if (label === names.labels.managedParkServiceProxy.key) return "by-operator";
  const installation = seen.ours.installation.find(({ metadata }) => metadata.name === names.singleton);
  return fieldAt(installation, names.fields.serviceProxyManagement) === "Enabled" ? "by-operator" : "by-hand";
}
