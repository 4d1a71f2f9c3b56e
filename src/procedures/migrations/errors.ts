import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** What can stop a migration. */
export const errors = defineErrors({
  OWNER_REFERENCES_COME_BACK: {
    args: ["group", "count", "example"],
    say: (group: string, count: number, example: string) =>
      `${count} owner reference${count === 1 ? "" : "s"} to ${group} came back after being removed, such as on ${example}`,
    fix: () => "stop the controller that writes them until the upgrade is over, then resume",
  },
  PROOF_FILE_UNWRITABLE: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file} cannot be written: ${problem}`,
    fix: () => "give another place with --save-to",
  },
  OWNED_OBJECTS_LOST: {
    args: ["count", "example"],
    say: (count: number, example: string) =>
      `${count} object${count === 1 ? "" : "s"} whose owner reference was saved ${count === 1 ? "is" : "are"} no longer the same: ${example}`,
    fix: () => "the saved references name each of them; restore them from your own backup",
  },
  OWNER_REFERENCES_NONE_SAVED: {
    say: () => "no owner references were saved in this cluster",
    fix: () => "run vendorctl migrate owner-references --phase before, ahead of the upgrade",
    exitCode: CHECK_FAILED,
  },
  OWNER_REFERENCES_TOO_LATE: {
    args: ["version"],
    say: (version: string) => `the cluster already runs ${version}, so its v3 UIDs do not change any more`,
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
    say: (where: string) => `the version of the service in this cluster is not known: ${where}`,
    fix: () => "check that the service is installed, and that this context may read its ClusterInformation",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_LABEL_CONFLICT: {
    args: ["conflicts"],
    say: (conflicts: string) => `node labels and host endpoint labels disagree: ${conflicts}`,
    fix: () => "decide which value holds, set it on both, and run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NODE_MISSING: {
    args: ["endpoints"],
    say: (endpoints: string) => `host endpoints name nodes that are not there: ${endpoints}`,
    fix: () => "delete those endpoints if the nodes are gone for good, and run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_NAME_TAKEN: {
    args: ["endpoints"],
    say: (endpoints: string) => `somebody's own host endpoints have names that automatic ones need: ${endpoints}`,
    fix: () => "rename or delete them, and run the command again",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINT_POLICIES_BITE: {
    args: ["what"],
    say: (what: string) => `policies would start to act on the nodes themselves: ${what}`,
    fix: () =>
      "run vendorctl plan migrate host-endpoints to see which; change the policies, or accept them with --accept-policies",
    exitCode: CHECK_FAILED,
  },
  HOST_ENDPOINTS_NEED_API: {
    say: () =>
      "automatic host endpoints are migrated on the API datastore only; this cluster keeps its resources in etcd",
    fix: () => "follow the same order by hand with vendorctl label, patch and delete, and --datastore etcd",
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
    say: (file: string, problem: string) => `${file} is not an injector's config map: ${problem}`,
    fix: () => "check --manifest-url",
  },
});
