import { defineErrors } from "../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why upgrade and flows make no plan. */
export const errors = defineErrors({
  UPGRADE_NOTHING_INSTALLED: {
    say: () => "nothing of this service is installed",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_VERSION_UNKNOWN: {
    args: ["evidence"],
    say: (evidence: string) => `the version that runs is not known: ${evidence}`,
    fix: () => "say it with --from, such as --from v3.27.2",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TOOL_OTHER_VERSION: {
    args: ["tool", "target"],
    say: (tool: string, target: string) => `this is vendorctl ${tool}, which does not upgrade to ${target}`,
    fix: (_tool, target) => `use vendorctl ${target}: each version's tool knows the steps to its own version`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_OTHER_METHOD: {
    args: ["asked", "method"],
    say: (asked: string, method: string) => `it was installed by ${method}, and is not upgraded by ${asked}`,
    fix: (_asked, method) => `leave --method out, or say --method ${method}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_FLAG_OF_OTHER_METHOD: {
    args: ["flag", "method"],
    say: (flag: string, method: string) => `${flag} means nothing where the service was installed by ${method}`,
    fix: (flag) => `leave ${flag} out`,
    exitCode: USAGE,
  },
  UPGRADE_BASE_MISSING: {
    args: ["file", "version"],
    say: (file: string, version: string) =>
      `what ${version} published as ${file} is not known here, so your edits cannot be told from it`,
    fix: () => "give that version's file as you downloaded it with --base FILE",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_EDITS_CLASH: {
    args: ["paths"],
    say: (paths: readonly string[]) =>
      `${paths.length === 1 ? "one of your edits" : `${paths.length} of your edits`} cannot be made again without you: ${paths.join("; ")}`,
    fix: (paths: readonly string[]) =>
      `decide each: ${paths.map((path) => `--take '${path.replace(/ \(.*$/s, "")}=mine|new'`).join(" ")}; or give an edited file with --manifest`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TAKE_UNKNOWN: {
    args: ["path"],
    say: (path: string) => `--take names ${path}, which nobody needs to decide`,
    fix: () => "run without it to see what is to be decided",
    exitCode: USAGE,
  },
  UPGRADE_ETCD_UNSET: {
    args: ["key", "map"],
    say: (key: string, map: string) =>
      `${key} of the config map ${map} is not set: the node agents would not find etcd`,
    fix: (key) => `give the manifest with your ${key} with --manifest FILE`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_CHART_PENDING: {
    args: ["release", "status"],
    say: (release: string, status: string) =>
      `the chart release ${release} is ${status}, and the chart tool refuses to upgrade it`,
    fix: (release) => `helm rollback ${release}, or helm history ${release} to see why`,
    exitCode: CHECK_FAILED,
  },
  FLOWS_NEED_OPERATOR: {
    say: () => "flow logs are run by the operator, and there is none",
    fix: () => "move from plain manifests to the operator first: docs/guide/upgrade.md says how",
    exitCode: CHECK_FAILED,
  },
  FLOWS_NOT_ENABLED: {
    say: () => "neither flow logs nor their page are enabled",
    exitCode: CHECK_FAILED,
  },
});
