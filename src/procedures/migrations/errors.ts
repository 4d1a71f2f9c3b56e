import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** What can stop a migration. */
export const errors = defineErrors({
  OWNER_REFERENCES_COME_BACK: {
    args: ["group", "count", "example"],
    say: (group: string, count: number, example: string) =>
      `${count} owner reference${count === 1 ? "" : "s"} to ${group} was added again after its removal, such as on ${example}`,
    fix: () => "stop the controller that adds them until the upgrade is done, then vendorctl resume",
  },
  PROOF_FILE_UNWRITABLE: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file} cannot be written: ${problem}`,
    fix: () => "give another file with --save-to",
  },
  OWNED_OBJECTS_LOST: {
    args: ["count", "example"],
    say: (count: number, example: string) =>
      `${count} object${count === 1 ? "" : "s"} whose owner reference was saved ${count === 1 ? "is" : "are"} not the same object any more: ${example}`,
    fix: () => "restore them from a backup; the saved references name each of them",
  },
  OWNER_REFERENCES_NONE_SAVED: {
    say: () => "no owner references were saved in this cluster",
    fix: () => "run vendorctl migrate owner-references --phase before, before the upgrade",
    exitCode: CHECK_FAILED,
  },
  OWNER_REFERENCES_TOO_LATE: {
    args: ["version"],
    say: (version: string) => `the cluster already runs ${version}, whose UIDs do not change any more`,
    fix: () => "there is nothing to save; use --phase after if references were removed before the upgrade",
    exitCode: CHECK_FAILED,
  },
  OWNER_REFERENCES_TOO_EARLY: {
    args: ["version"],
    say: (version: string) => `the cluster still runs ${version}: its v3 UIDs have not changed yet`,
    fix: () => "upgrade first, then run the command again",
    exitCode: CHECK_FAILED,
  },
  CLUSTER_VERSION_UNKNOWN: {
    args: ["where"],
    say: (where: string) => `the installed version is unknown: ${where}`,
    fix: () => "check that the service is installed, and that this context may read its ClusterInformation",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_LABEL_CONFLICT: {
    args: ["conflicts"],
    say: (conflicts: string) => `node labels and host endpoint labels conflict: ${conflicts}`,
    fix: () => "set the same value on both, then run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NODE_MISSING: {
    args: ["endpoints"],
    say: (endpoints: string) => `host endpoints name nodes that do not exist: ${endpoints}`,
    fix: () => "delete those host endpoints, then run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NAME_TAKEN: {
    args: ["endpoints"],
    say: (endpoints: string) => `host endpoints of yours have the names of automatic ones: ${endpoints}`,
    fix: () => "rename or delete them, and run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_POLICIES_BITE: {
    args: ["what"],
    say: (what: string) => `policies would start to apply to nodes: ${what}`,
    fix: () => "change the policies, or add --accept-policies; to see them: vendorctl plan migrate host-endpoints",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINTS_NEED_API: {
    say: () => "host endpoints are migrated on the API datastore only; this cluster uses etcd",
    fix: () => "use vendorctl label, patch and delete with --datastore etcd; see docs/guide/host-endpoints.md",
    exitCode: CHECK_FAILED,
  },
  MESH_VERSION_UNKNOWN: {
    args: ["version", "known", "from"],
    say: (version: string, _known: string, from: string) =>
      `the release (${from}) has no sidecar injector for mesh version ${version}`,
    fix: (_version, known) => `give --mesh-version one of ${known}`,
    exitCode: 64,
  },
  INJECTOR_MAP_BAD: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file} is not a ConfigMap of the injector: ${problem}`,
    fix: () => "check --manifest-url",
  },
});
