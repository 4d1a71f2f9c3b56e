import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { POLICY_SYNC_DRIVER } from "../../api/protocol/policy-sync.ts";
import { imageFor } from "../render/image.ts";
import { RESTRICTED_CONTAINER } from "../render/pod-parts.ts";
import { printDocument } from "./print-yaml.ts";

/** Versions of the mesh whose injector reads its configuration differently, and how. */
export const MESH_VERSIONS = [
  { version: "1.1.0", format: "template" },
  { version: "1.5", format: "template" },
  { version: "1.10", format: "templates" },
  { version: "1.15", format: "templates" },
] as const;

type Mesh = (typeof MESH_VERSIONS)[number];

/** In the sidecar's container. The volume has the socket of the node's agent for this pod, and nothing else. */
const SOCKET_DIR = "/var/run/nodeagent";
const SHARED_DIR = "/var/run/vendor-policy";

/** The mesh injector's config map: every pod it touches also gets the sidecar that holds it to policy for HTTP. */
export function sidecarInjector(mesh: Mesh, version: string, names: Names): KubeObject {
  const containers = [sidecar(version, names)];
  const proxy = { name: names.manifests.meshProxyContainer, volumeMounts: [SHARED_MOUNT] };
  const config =
    mesh.format === "template"
      ? { policy: "enabled", template: printDocument({ containers, volumes: VOLUMES }) }
      : {
          policy: "enabled",
          defaultTemplates: ["sidecar", names.dialect],
          // A template is merged into the pod by the names of containers: the mesh's own proxy gets the volume with the sidecar's socket.
          templates: {
            [names.dialect]: printDocument({ spec: { containers: [proxy, ...containers], volumes: VOLUMES } }),
          },
        };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "mesh-sidecar-injector",
      namespace: "mesh-system",
      labels: { "mesh-version": mesh.version },
    },
    data: { config: printDocument(config) },
  };
}

const SHARED_MOUNT = { name: "vendor-policy", mountPath: SHARED_DIR };

/** Asks the agent on its node for policy, and answers the mesh's proxy in the same pod. */
function sidecar(version: string, { manifests }: Names): object {
  return {
    name: manifests.sidecarContainer,
    image: imageFor({}, version),
    command: ["vendor", "policy-sidecar"],
    env: [
      { name: "POLICY_SOCKET", value: `${SOCKET_DIR}/socket` },
      { name: "LISTEN_SOCKET", value: `${SHARED_DIR}/policy.sock` },
    ],
    // The sidecar writes the file when it has policy and has answered itself.
    readinessProbe: { exec: { command: ["test", "-e", `${SHARED_DIR}/ready`] }, periodSeconds: 5 },
    resources: { requests: { cpu: "10m", memory: "64Mi" } },
    // Whole here: the pod is not ours, and may be where Pod Security is `restricted`.
    securityContext: { ...RESTRICTED_CONTAINER, runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    volumeMounts: [SHARED_MOUNT, { name: "vendor-nodeagent", mountPath: SOCKET_DIR, readOnly: true }],
  };
}

const VOLUMES = [
  { name: "vendor-policy", emptyDir: { medium: "Memory" } },
  { name: "vendor-nodeagent", csi: { driver: POLICY_SYNC_DRIVER, readOnly: true } },
];
