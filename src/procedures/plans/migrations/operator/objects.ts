import type { Names } from "../../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../../api/object.ts";
import { onMovedNodes } from "../../../../api/protocol/node-migration.ts";
import type { InstallationSpec } from "../../../../api/resources/installation.ts";
import { type Target, targetOf } from "../../../actions/objects/target.ts";
import type { Observation } from "../../../observation.ts";
import { type ManifestWorkload, manifestView } from "./manifest-view.ts";

const SUFFIX = "-before-operator";

/** Cluster-wide objects of the manifest that the operator has under the same name. */
function takenOver({ kind, metadata }: KubeObject, { workloads }: Names): boolean {
  return (
    ["ClusterRole", "ClusterRoleBinding"].includes(kind) &&
    [workloads.node, workloads.kubeControllers].includes(metadata.name)
  );
}

/** The rights of the manifest's accounts, under names that the operator does not take over. */
export function keptRights(objects: readonly KubeObject[], names: Names): KubeObject[] {
  return copiedRights(objects.filter((object) => takenOver(object, names)));
}

/** ClusterRoles and their bindings under names that no operator has; the accounts are the same. */
export function copiedRights(rights: readonly KubeObject[]): KubeObject[] {
  return rights.map((object) => {
    const { roleRef } = object as { roleRef?: { name: string } };
    const name = `${object.metadata.name}${SUFFIX}`;
    return { ...object, metadata: { name }, ...(roleRef ? { roleRef: { ...roleRef, name } } : {}) } as KubeObject;
  });
}

/** What goes at the end: the manifest's objects but those the operator has taken over, and those of an overlay that stays. */
export function removedTargets(objects: readonly KubeObject[], { names, service }: Observation): Target[] {
  const stays = service.variant === "overlay" ? overlayParts(names) : () => false;
  const left = objects.filter(
    (object) => !takenOver(object, names) && object.kind !== "CSIDriver" && !stays(object) && !isSecret(object),
  );
  return [...keptRights(objects, names), ...left].map(targetOf);
}

const isSecret = ({ kind }: KubeObject) => kind === "Secret";

/** The overlay keeps its account and its settings. */
function overlayParts({ workloads, manifests }: Names): (object: KubeObject) => boolean {
  return ({ kind, metadata }) =>
    (kind === "ConfigMap" && metadata.name === manifests.configMap) ||
    (metadata.name === workloads.overlayNode && kind !== "DaemonSet");
}

const OVERLAY = "overlay";

/** The overlay's container in a DaemonSet of its own, on nodes that the operator's agents run on; undefined where there is none. */
export function overlayDaemonSet({ names, service }: Observation): KubeObject | undefined {
  const agents = service.nodeAgents as ManifestWorkload | undefined;
  if (service.variant !== "overlay" || !agents) return undefined;
  const { initContainers: _, containers, volumes = [], ...pod } = agents.spec.template.spec;
  const overlay = containers.filter(({ name }) => name === OVERLAY) as { volumeMounts?: { name: string }[] }[];
  const mounted = new Set(overlay.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)));
  const name = `${names.workloads.overlayNode}-network`;
  const labels = { "k8s-app": name };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace: agents.metadata.namespace, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: agents.spec.updateStrategy,
      template: {
        metadata: { labels },
        spec: {
          ...pod,
          affinity: onMovedNodes(names),
          containers: overlay,
          volumes: volumes.filter((volume) => mounted.has(volume.name)),
        },
      },
    },
  } as KubeObject;
}

/** The operator's file, with its image from the manifest's registry, and the address of the API server where the manifest has one. */
export function operatorObjects(
  published: readonly KubeObject[],
  { imagePullSecrets = [] }: InstallationSpec,
  { names, service }: Observation,
): KubeObject[] {
  const { agent } = manifestView(service.nodeAgents ? [service.nodeAgents] : [], names);
  const { name, hostKey, portKey } = names.endpointMap;
  const address = (service.endpointMap?.["data"] ?? {}) as Record<string, string | undefined>;
  const map = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: names.namespaces.operator },
    data: { [hostKey]: address[hostKey], [portKey]: address[portKey] },
  };
  return published.flatMap((object) => {
    if (object.kind === "Namespace" && address[hostKey] && address[portKey]) return [object, map as KubeObject];
    if (object.kind !== "Deployment") return [object];
    const { spec } = object as ManifestWorkload;
    const containers = spec.template.spec.containers.map((one) =>
      agent?.image ? { ...one, image: agent.image } : one,
    );
    const pull = imagePullSecrets.length > 0 ? { imagePullSecrets } : {};
    const pod = { ...spec.template.spec, ...pull, containers };
    return [{ ...object, spec: { ...spec, template: { ...spec.template, spec: pod } } } as KubeObject];
  });
}

export function installationOf(spec: InstallationSpec, { groups, kinds, singleton }: Names): KubeObject {
  const { kind } = kinds.installation;
  return { apiVersion: groupVersion(groups.operator), kind, metadata: { name: singleton }, spec };
}
