import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { imageFor } from "../render/image.ts";
import { BRIEF_RESOURCES, RESTRICTED_CONTAINER } from "../render/pod-parts.ts";
import { printDocument } from "./print-yaml.ts";

/** Versions of the mesh whose injector reads its configuration differently, and how. */
export const MESH_VERSIONS = [
  { version: "1.1.0", format: "template" },
  { version: "1.5", format: "template" },
  { version: "1.10", format: "templates" },
  { version: "1.15", format: "templates" },
] as const;

type Mesh = (typeof MESH_VERSIONS)[number];

const SOCKET_DIR = "/var/run/nodeagent";
const SHARED_DIR = "/var/run/vendor-policy";

/** The mesh injector's config map: every pod it touches also gets the sidecar that holds it to policy for HTTP. */
export function sidecarInjector(mesh: Mesh, version: string, names: Names): KubeObject {
  const injected = { containers: [sidecar(version)], volumes: VOLUMES };
  const config =
    mesh.format === "template"
      ? { policy: "enabled", template: printDocument(injected) }
      : {
          policy: "enabled",
          defaultTemplates: ["sidecar", names.dialect],
          templates: { [names.dialect]: printDocument({ spec: injected }) },
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

/** Asks the agent on its node for policy, and answers the mesh's proxy in the same pod. */
function sidecar(version: string): object {
  return {
    name: "vendor-policy-sidecar",
    image: imageFor({}, version),
    command: ["vendor", "policy-sidecar"],
    env: [
      { name: "POLICY_SOCKET", value: `${SOCKET_DIR}/socket` },
      { name: "LISTEN_SOCKET", value: `${SHARED_DIR}/policy.sock` },
    ],
    resources: BRIEF_RESOURCES,
    securityContext: RESTRICTED_CONTAINER,
    volumeMounts: [
      { name: "vendor-policy", mountPath: SHARED_DIR },
      { name: "vendor-nodeagent", mountPath: SOCKET_DIR, readOnly: true },
    ],
  };
}

const VOLUMES = [
  { name: "vendor-policy", emptyDir: { medium: "Memory" } },
  { name: "vendor-nodeagent", hostPath: { path: SOCKET_DIR, type: "DirectoryOrCreate" } },
];
