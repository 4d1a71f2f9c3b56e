import type { KubeObject } from "../../api/object.ts";
import { CLUSTER_KINDS } from "../../api/tables/cluster-kinds.ts";
import { CLEANUP_NAMESPACE, cleanerContainer, cleanerSpec, cleanerVolumes } from "../../api/tables/node-cleaner.ts";
import { BRIEF_RESOURCES, RESTRICTED_CONTAINER } from "../render/pod-parts.ts";

const NAME = "node-cleanup";

/** Cleans every node after an uninstall by kubectl or helm. A pod that is ready has cleaned its node, and listed that nothing is left. */
export function nodeCleanupObjects(image: string): KubeObject[] {
  const labels = { "k8s-app": NAME };
  const cleaner = { image, cni: CLUSTER_KINDS.generic.cniDirectories };
  // Stays, since a DaemonSet would start what ends again.
  const done = {
    name: "done",
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["sleep", "infinity"],
    resources: BRIEF_RESOURCES,
    securityContext: RESTRICTED_CONTAINER,
  };
  return [
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: CLEANUP_NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": "privileged" } },
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: NAME, namespace: CLEANUP_NAMESPACE, labels },
      spec: {
        selector: { matchLabels: labels },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "100%" } },
        template: {
          metadata: { labels },
          spec: {
            ...cleanerSpec,
            nodeSelector: { "kubernetes.io/os": "linux" },
            initContainers: [cleanerContainer(cleaner)],
            containers: [done],
            volumes: cleanerVolumes(cleaner),
          },
        },
      },
    },
  ];
}
