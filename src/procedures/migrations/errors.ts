import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** What can stop a migration. */
export const errors = defineErrors({
  OWNER_REFERENCES_COME_BACK: {
    means: "Owner references are removed before an upgrade over v3.28, and a controller adds them again.",
    example: ["vendor.io", 2, "ConfigMap shop/notes"],
    say: (group: string, count: number, example: string) =>
      `${count} owner reference${count === 1 ? "" : "s"} to ${group} was added again after its removal, such as on ${example}`,
    fix: () => "stop the controller that adds them until the upgrade is done, then vendorctl resume",
  },
  PROOF_FILE_UNWRITABLE: {
    means: "The list of saved owner references cannot be written to the file given.",
    example: ["owners.json", "permission denied"],
    say: (file: string, problem: string) => `${file} cannot be written: ${problem}`,
    fix: () => "give another file with --save-to",
  },
  OWNED_OBJECTS_LOST: {
    means: "Objects that were owned by v3 resources were deleted or replaced during an upgrade.",
    example: [1, "ConfigMap shop/notes"],
    say: (count: number, example: string) =>
      `${count} object${count === 1 ? "" : "s"} whose owner reference was saved ${count === 1 ? "is" : "are"} not the same object any more: ${example}`,
    fix: () => "restore them from a backup; the saved references name each of them",
  },
  OWNER_REFERENCES_NONE_SAVED: {
    means: "Owner references can be restored only if they were saved before the upgrade.",
    say: () => "no owner references were saved in this cluster",
    fix: () => "run vendorctl migrate owner-references --phase before, before the upgrade",
    exitCode: CHECK_FAILED,
  },
  OWNER_REFERENCES_TOO_LATE: {
    means: "Owner references are saved before an upgrade over v3.28, and this cluster is beyond it.",
    example: ["v3.30.2"],
    say: (version: string) => `the cluster already runs ${version}, whose UIDs do not change any more`,
    fix: () => "there is nothing to save; use --phase after if references were removed before the upgrade",
    exitCode: CHECK_FAILED,
  },
  OWNER_REFERENCES_TOO_EARLY: {
    means: "Owner references are restored after the upgrade, and this cluster is not upgraded yet.",
    example: ["v3.27.5"],
    say: (version: string) => `the cluster still runs ${version}: its v3 UIDs have not changed yet`,
    fix: () => "upgrade first, then run the command again",
    exitCode: CHECK_FAILED,
  },
  CLUSTER_VERSION_UNKNOWN: {
    means: "A migration depends on the version that runs, and it cannot be read.",
    example: ["there is no ClusterInformation"],
    say: (where: string) => `the installed version is unknown: ${where}`,
    fix: () => "check that the service is installed, and that this context may read its ClusterInformation",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_LABEL_CONFLICT: {
    means: "Labels of a manual host endpoint move to its node, and the node has another value for one.",
    example: ["node-a: zone is a on the node and b on the host endpoint"],
    say: (conflicts: string) => `node labels and host endpoint labels conflict: ${conflicts}`,
    fix: () => "set the same value on both, then run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NODE_MISSING: {
    means: "A host endpoint is of a node that the cluster does not have.",
    example: ["old-node-eth0 (node old-node)"],
    say: (endpoints: string) => `host endpoints name nodes that do not exist: ${endpoints}`,
    fix: () => "delete those host endpoints, then run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NAME_TAKEN: {
    means: "A host endpoint of yours has the name that an automatic one would get.",
    example: ["node-a-auto-hep"],
    say: (endpoints: string) => `host endpoints of yours have the names of automatic ones: ${endpoints}`,
    fix: () => "rename or delete them, and run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_POLICIES_BITE: {
    means:
      "With automatic host endpoints, policies that select them apply to every node, and some of its traffic would be denied.",
    example: ["GlobalNetworkPolicy deny-all would deny SSH to node-a"],
    say: (what: string) => `policies would start to apply to nodes: ${what}`,
    fix: () => "change the policies, or add --accept-policies; to see them: vendorctl plan migrate host-endpoints",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINTS_NEED_API: {
    means: "Automatic host endpoints are kept in the Kubernetes datastore.",
    say: () => "host endpoints are migrated on the API datastore only; this cluster uses etcd",
    fix: () => "use vendorctl label, patch and delete with --datastore etcd; see docs/guide/host-endpoints.md",
    exitCode: CHECK_FAILED,
  },
  MESH_VERSION_UNKNOWN: {
    means: "A release has a sidecar injector for each mesh version it supports, and none for this one.",
    example: ["1.9", "1.10 to 1.15", "built in"],
    say: (version: string, _known: string, from: string) =>
      `the release (${from}) has no sidecar injector for mesh version ${version}`,
    fix: (_version, known) => `give --mesh-version one of ${known}`,
    exitCode: 64,
  },
  INJECTOR_TEMPLATE_FOREIGN: {
    means:
      "The injector's template in this cluster is not one that the published maps can replace. Nothing is changed.",
    example: ["ConfigMap istio-system/istio-sidecar-injector", "it has no container policy-sidecar"],
    say: (where: string, problem: string) => `the sidecar cannot be added to the template in ${where}: ${problem}`,
    fix: () =>
      "add the container and the volumes of the release's file to the template by hand; see docs/guide/sidecars.md",
    exitCode: CHECK_FAILED,
  },
  INJECTOR_MAP_BAD: {
    means: "The ConfigMap of a sidecar injector cannot be read.",
    example: ["sidecar-injector-1.15.yaml", "it has no template"],
    say: (file: string, problem: string) => `${file} is not a ConfigMap of the injector: ${problem}`,
    fix: () => "check --manifest-url",
  },
});
