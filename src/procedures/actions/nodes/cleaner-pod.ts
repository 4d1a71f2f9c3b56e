import type { KubeObject } from "../../../api/object.ts";

/** Pods that clean nodes are in a namespace of their own: those of the service are removed before. */
export const CLEANUP_NAMESPACE = "vendor-cleanup";
const MANAGED_BY = { key: "app.kubernetes.io/managed-by", value: "vendorctl" } as const;
/** On a pod: the node that it cleans. A name of a node can be too long for a label. */
const CLEANED_NODE = "procedures.vendor.io/node";

/** What cleaning a node needs to know, from how its agent was installed. */
export type CleanNodesInputs = {
  image: string;
  nodes: string[];
  cni: { binDir: string; confDir: string };
};

export function cleanupNamespace(): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: CLEANUP_NAMESPACE,
      labels: { [MANAGED_BY.key]: MANAGED_BY.value, "pod-security.kubernetes.io/enforce": "privileged" },
    },
  };
}

export function isOurNamespace({ metadata }: KubeObject): boolean {
  return metadata.labels?.[MANAGED_BY.key] === MANAGED_BY.value;
}

/** `clean-0`: the place of the node in the plan. */
export const cleanerName = (at: number): string => `clean-${at}`;

/** Directories are mounted by their parents: a mount point cannot be deleted. Unmounting must reach the node. */
const VOLUMES = [
  { name: "run", path: "/var/run", at: "/host/run", propagation: "Bidirectional" },
  { name: "lib", path: "/var/lib", at: "/host/lib" },
  { name: "bpffs", path: "/sys/fs/bpf", at: "/sys/fs/bpf", propagation: "HostToContainer" },
] as const;

/** Bound to its node by name, in the node's network, tolerating everything: it runs without scheduler, CNI or ready node. */
export function cleanerPod(inputs: CleanNodesInputs, at: number): KubeObject {
  const node = inputs.nodes[at] as string;
  const cni = [
    { name: "cni-bin-dir", path: inputs.cni.binDir, at: "/host/cni/bin" },
    { name: "cni-conf-dir", path: inputs.cni.confDir, at: "/host/cni/conf" },
  ];
  const paths: { name: string; path: string; at: string; propagation?: string }[] = [...VOLUMES, ...cni];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: cleanerName(at),
      namespace: CLEANUP_NAMESPACE,
      annotations: { [CLEANED_NODE]: node },
    },
    spec: {
      nodeName: node,
      hostNetwork: true,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 5,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      priorityClassName: "system-node-critical",
      tolerations: [{ operator: "Exists" }],
      containers: [
        {
          name: "clean",
          image: inputs.image,
          imagePullPolicy: "IfNotPresent",
          command: ["vendor", "node", "remove", "--yes", "--wait", "60"],
          env: [
            { name: "RUN_DIR", value: "/host/run/vendor" },
            { name: "STATE_DIR", value: "/host/lib/vendor" },
          ],
          securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0 },
          volumeMounts: paths.map(({ name, at: mountPath, propagation }) => ({
            name,
            mountPath,
            ...(propagation && { mountPropagation: propagation }),
          })),
        },
      ],
      volumes: paths.map(({ name, path }) => ({ name, hostPath: { path, type: "DirectoryOrCreate" } })),
    },
  };
}
