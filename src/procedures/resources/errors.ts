import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;
const USAGE = 64;
const UNREACHABLE = 69;

/** What can be wrong with v3 resources, the files they come from and the datastore they are in. */
export const errors = defineErrors({
  RESOURCE_KIND_UNKNOWN: {
    args: ["kind", "known"],
    say: (kind: string, _known: string) => `there is no v3 resource "${kind}"`,
    fix: (_kind, known) => `use one of ${known}; for other kinds use kubectl`,
    exitCode: USAGE,
  },
  RESOURCE_NOT_FOUND: { args: ["name"], say: (name: string) => `${name} not found` },
  RESOURCE_INVALID: {
    args: ["name", "problems"],
    say: (name: string, problems: string) => `${name} cannot be stored: ${problems}`,
    fix: () => "vendorctl explain CODE   # the code in brackets",
  },
  RESOURCE_NOT_YOURS: {
    args: ["name", "why"],
    say: (name: string, why: string) => `${name} cannot be changed: ${why}`,
  },
  RESOURCE_TIER_MISSING: {
    args: ["name", "tier"],
    say: (name: string, tier: string) => `${name} cannot be changed: there is no tier ${tier}`,
    fix: () => "create the tier first, or in the same file",
  },
  RESOURCE_CONFLICT: {
    args: ["name", "fields"],
    say: (name: string, fields: string) => `${name} has fields of another field manager: ${fields}`,
    fix: () => "remove the fields from the file, or add --force-conflicts",
  },
  RESOURCE_OVERTAKEN: {
    args: ["name"],
    say: (name: string) => `${name} has changed meanwhile`,
    fix: () => "run the command again",
  },
  RESOURCE_LABEL_TAKEN: {
    args: ["name", "label", "value"],
    say: (name: string, label: string, value: string) =>
      `${name} already has the label ${label}, with value "${value}"`,
    fix: () => "add --overwrite to change it",
  },
  RESOURCE_PATCH_STRATEGIC: {
    say: () => "v3 resources do not support strategic merge patches",
    fix: () => "use --type merge, or --type json for one item of a list",
    exitCode: USAGE,
  },
  RESOURCE_PATCH_BAD: {
    args: ["problem"],
    say: (problem: string) => `the patch is not valid: ${problem}`,
    exitCode: USAGE,
  },
  RESOURCE_FILE_UNREADABLE: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file} cannot be read: ${problem}`,
    exitCode: USAGE,
  },
  RESOURCE_FILE_BAD: {
    args: ["file", "problem"],
    say: (file: string, problem: string) => `${file}: ${problem}`,
    fix: () => "nothing was changed; repair the file and run the command again",
    exitCode: USAGE,
  },
  RESOURCE_KIND_NOT_SERVED: {
    args: ["resource"],
    say: (resource: string) => `the server has no resource type "${resource}"; the installed version may be older`,
    fix: () => "vendorctl version",
    exitCode: CHECK_FAILED,
  },
  RESOURCES_NOT_SERVED: {
    args: ["group"],
    say: (group: string) =>
      `this cluster has no v3 resources: ${group} is not served, and its CRDs do not exist (for resources in etcd, add --datastore etcd)`,
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  TOOL_VERSION_MISMATCH: {
    args: ["tool", "mine", "cluster"],
    say: (tool: string, mine: string, cluster: string) =>
      `${tool} ${mine} does not write to a cluster of ${cluster}: a tool of another version may write data the cluster misreads`,
    fix: (_tool, _mine, cluster) => `use vendorctl of ${cluster}, or upgrade the cluster; reading works`,
    exitCode: CHECK_FAILED,
  },
  DATASTORE_CONFIG_BAD: {
    args: ["where", "problem"],
    say: (where: string, problem: string) => `${where}: ${problem}`,
    fix: () => "see docs/guide/resources.md for what the file and the flags take",
    exitCode: USAGE,
  },
  ETCD_UNREACHABLE: {
    args: ["endpoints", "problem"],
    say: (endpoints: string, problem: string) => `etcd does not answer at ${endpoints}: ${problem}`,
    fix: () => "check --etcd-endpoints, and --etcd-ca, --etcd-cert and --etcd-key",
    exitCode: UNREACHABLE,
  },
  ETCD_REFUSED: {
    args: ["problem"],
    say: (problem: string) => `etcd refused: ${problem}`,
    fix: () => "check that the client certificate may read and write the service's keys",
  },
  ETCD_VALUE_BAD: {
    args: ["key", "problem"],
    say: (key: string, problem: string) => `the value of ${key} in etcd cannot be read: ${problem}`,
    fix: (key) => `etcdctl get ${key}`,
  },
});
