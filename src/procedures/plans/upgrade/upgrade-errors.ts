import { defineErrors } from "../../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why upgrade and flows make no plan. */
export const errors = defineErrors({
  UPGRADE_NOTHING_INSTALLED: {
    say: () => "the service is not installed",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_VERSION_UNKNOWN: {
    args: ["evidence"],
    say: (evidence: string) => `the installed version is unknown: ${evidence}`,
    fix: () => "give it with --from, such as --from v3.27.2",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TOOL_OTHER_VERSION: {
    args: ["tool", "target"],
    say: (tool: string, target: string) => `vendorctl ${tool} does not upgrade to ${target}`,
    fix: (_tool, target) => `use vendorctl ${target}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_OTHER_METHOD: {
    args: ["asked", "method"],
    say: (asked: string, method: string) => `the service was installed by ${method} and cannot be upgraded by ${asked}`,
    fix: (_asked, method) => `omit --method, or use --method ${method}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_FLAG_OF_OTHER_METHOD: {
    args: ["flag", "method"],
    say: (flag: string, method: string) => `${flag} has no effect on an installation by ${method}`,
    fix: (flag) => `omit ${flag}`,
    exitCode: USAGE,
  },
  UPGRADE_BASE_MISSING: {
    args: ["file", "version"],
    say: (file: string, version: string) =>
      `the published ${file} of ${version} is unknown, so your edits cannot be found`,
    fix: () => "give that version's published file with --base FILE",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_EDITS_CLASH: {
    args: ["paths"],
    say: (paths: readonly string[]) =>
      `${paths.length === 1 ? "one of your edits" : `${paths.length} of your edits`} conflict with the new version: ${paths.join("; ")}`,
    fix: (paths: readonly string[]) =>
      `resolve each: ${paths.map((path) => `--take '${path.replace(/ \(.*$/s, "")}=mine|new'`).join(" ")}; or give an edited file with --manifest`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TAKE_UNKNOWN: {
    args: ["path"],
    say: (path: string) => `--take names ${path}, which is no conflict`,
    fix: () => "omit --take to list the conflicts",
    exitCode: USAGE,
  },
  UPGRADE_ETCD_UNSET: {
    args: ["key", "map"],
    say: (key: string, map: string) => `${key} of ConfigMap ${map} is not set: node agents would not find etcd`,
    fix: (key) => `give the manifest with your ${key} with --manifest FILE`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_CHART_PENDING: {
    args: ["release", "status"],
    say: (release: string, status: string) => `the Helm release ${release} is ${status} and cannot be upgraded`,
    fix: (release) => `helm rollback ${release}`,
    exitCode: CHECK_FAILED,
  },
  FLOWS_NEED_OPERATOR: {
    say: () => "flow logs need the operator, which is not installed",
    fix: () => "move from plain manifests to the operator first; see docs/guide/upgrade.md",
    exitCode: CHECK_FAILED,
  },
  FLOWS_NOT_ENABLED: {
    say: () => "neither flow logs nor the flow UI is enabled",
    exitCode: CHECK_FAILED,
  },
});
