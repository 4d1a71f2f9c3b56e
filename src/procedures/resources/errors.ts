import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;
const USAGE = 64;

/** What can be wrong with v3 resources, the files they come from and the datastore they are in. */
export const errors = defineErrors({
  RESOURCE_KIND_UNKNOWN: {
    means: "vendorctl get, apply, delete, label and patch work on v3 resources, and this is not one.",
    example: ["deployments", "networkpolicies, ippools, tiers"],
    say: (kind: string, _known: string) => `there is no v3 resource "${kind}"`,
    fix: (_kind, known) => `use one of ${known}; for other kinds use kubectl`,
    exitCode: USAGE,
  },
  RESOURCE_NOT_FOUND: {
    means: "There is no resource of this name.",
    example: ["IPPool blue"],
    say: (name: string) => `${name} not found`,
  },
  RESOURCE_INVALID: {
    means: "A resource does not meet the rules of its kind. Nothing was stored.",
    example: ["IPPool blue", "spec.cidr is not a CIDR [CIDR_INVALID]"],
    say: (name: string, problems: string) => `${name} cannot be stored: ${problems}`,
    fix: () => "vendorctl explain CODE   # the code in brackets",
  },
  RESOURCE_NOT_YOURS: {
    means: "A resource is managed by the service or the cluster, and is not changed by users.",
    example: ["Profile kns.shop", "it is made from a Namespace"],
    say: (name: string, why: string) => `${name} cannot be changed: ${why}`,
  },
  RESOURCE_TIER_MISSING: {
    means: "A policy belongs to a tier that does not exist.",
    example: ["NetworkPolicy shop/web", "security"],
    say: (name: string, tier: string) => `${name} cannot be changed: there is no tier ${tier}`,
    fix: () => "create the tier first, or in the same file",
  },
  RESOURCE_CONFLICT: {
    means: "A file sets fields that another field manager owns.",
    example: ["IPPool blue", "spec.disabled (kubectl-edit)"],
    say: (name: string, fields: string) => `${name} has fields of another field manager: ${fields}`,
    fix: () => "remove the fields from the file, or add --force-conflicts",
  },
  RESOURCE_OVERTAKEN: {
    means: "Another user or controller changed a resource between reading and writing it.",
    example: ["IPPool blue"],
    say: (name: string) => `${name} has changed meanwhile`,
    fix: () => "run the command again",
  },
  RESOURCE_LABEL_TAKEN: {
    means: "vendorctl label does not change a label that exists without --overwrite.",
    example: ["Node node-a", "zone", "a"],
    say: (name: string, label: string, value: string) =>
      `${name} already has the label ${label}, with value "${value}"`,
    fix: () => "add --overwrite to change it",
  },
  RESOURCE_PATCH_STRATEGIC: {
    means: "Like other custom resources, v3 resources take merge and JSON patches only.",
    say: () => "v3 resources do not support strategic merge patches",
    fix: () => "use --type merge, or --type json for one item of a list",
    exitCode: USAGE,
  },
  RESOURCE_PATCH_BAD: {
    means: "The text of a patch is not valid.",
    example: ["it is not JSON"],
    say: (problem: string) => `the patch is not valid: ${problem}`,
    exitCode: USAGE,
  },
  RESOURCE_FILE_UNREADABLE: {
    means: "A file given with -f does not exist or cannot be read.",
    example: ["policy.yaml", "ENOENT"],
    say: (file: string, problem: string) => `${file} cannot be read: ${problem}`,
    exitCode: USAGE,
  },
  RESOURCE_FILE_BAD: {
    means: "A file given with -f is not YAML or JSON of resources.",
    example: ["policy.yaml", "line 7: bad indentation"],
    say: (file: string, problem: string) => `${file}: ${problem}`,
    fix: () => "nothing was changed; repair the file and run the command again",
    exitCode: USAGE,
  },
  RESOURCE_KIND_NOT_SERVED: {
    means: "The installed version does not have this kind yet.",
    example: ["networksets"],
    say: (resource: string) => `the server has no resource type "${resource}"; the installed version may be older`,
    fix: () => "vendorctl version",
    exitCode: CHECK_FAILED,
  },
  RESOURCES_NOT_SERVED: {
    means: "The service is not installed in this cluster, or it keeps its resources in etcd.",
    example: ["vendor.io/v3"],
    say: (group: string) =>
      `this cluster has no v3 resources: ${group} is not served, and its CRDs do not exist (for resources in etcd, add --datastore etcd)`,
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  RESOURCES_IN_ETCD: {
    means: "The service keeps its resources in etcd, and the command was not given where that is.",
    example: ["https://10.0.0.1:2379"],
    say: (endpoints: string) => `this cluster keeps its v3 resources in etcd, at ${endpoints}`,
    fix: (endpoints) =>
      `add --datastore etcd --etcd-endpoints ${endpoints}, and for TLS --etcd-ca, --etcd-cert and --etcd-key`,
    exitCode: USAGE,
  },
  TOOL_VERSION_MISMATCH: {
    means: "A tool of another version may write data that the cluster misreads, so it only reads.",
    example: ["vendorctl", "v3.31.3", "v3.30.2"],
    say: (tool: string, mine: string, cluster: string) =>
      `${tool} ${mine} does not write to a cluster of ${cluster}: a tool of another version may write data the cluster misreads`,
    fix: (_tool, _mine, cluster) => `use vendorctl of ${cluster}, or upgrade the cluster; reading works`,
    exitCode: CHECK_FAILED,
  },
  DATASTORE_CONFIG_BAD: {
    means: "The file or the flags that say where resources are kept are not valid.",
    example: ["--datastore", "etcd needs --etcd-endpoints"],
    say: (where: string, problem: string) => `${where}: ${problem}`,
    fix: () => "see docs/guide/resources.md for what the file and the flags take",
    exitCode: USAGE,
  },
});
