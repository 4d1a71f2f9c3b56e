import { defineErrors } from "../../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why upgrade and flows make no plan. */
export const errors = defineErrors({
  UPGRADE_NOTHING_INSTALLED: {
    means: "There is nothing to upgrade in this cluster.",
    say: () => "the service is not installed",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_VERSION_UNKNOWN: {
    means: "An upgrade depends on the version that runs, and nothing in the cluster shows it.",
    example: ["there is no ClusterInformation"],
    say: (evidence: string) => `the installed version is unknown: ${evidence}`,
    fix: () => "give it with --from, such as --from v3.27.2",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TOOL_OTHER_VERSION: {
    means: "An upgrade is done by the vendorctl of the version to upgrade to.",
    example: ["v3.30.4", "v3.31.3"],
    say: (tool: string, target: string) => `vendorctl ${tool} does not upgrade to ${target}`,
    fix: (_tool, target) => `use vendorctl ${target}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_OTHER_METHOD: {
    means: "An upgrade keeps the method the service was installed with, and --method names another.",
    example: ["chart", "manifest"],
    say: (asked: string, method: string) => `the service was installed by ${method} and cannot be upgraded by ${asked}`,
    fix: (_asked, method) => `omit --method, or use --method ${method}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_FLAG_OF_OTHER_METHOD: {
    means: "A flag was given that belongs to another method of installation.",
    example: ["--values", "manifest"],
    say: (flag: string, method: string) => `${flag} has no effect on an installation by ${method}`,
    fix: (flag) => `omit ${flag}`,
    exitCode: USAGE,
  },
  UPGRADE_BASE_MISSING: {
    means:
      "To find your edits, an upgrade compares the cluster with what the running version published, and that file is not known.",
    example: ["vendor.yaml", "v3.31.1"],
    say: (file: string, version: string) =>
      `the published ${file} of ${version} is unknown, so your edits cannot be found`,
    fix: () => "give that version's published file with --base FILE",
    exitCode: CHECK_FAILED,
  },
  UPGRADE_EDITS_CLASH: {
    means: "You and the new version changed the same field. Nothing was changed; you decide which value is used.",
    example: [
      ["Deployment/kube-system/vendor-kube-controllers:spec.replicas (both changed it: published 1, yours 3, new 2)"],
    ],
    say: (paths: readonly string[]) =>
      `${paths.length === 1 ? "one of your edits" : `${paths.length} of your edits`} conflict with the new version: ${paths.join("; ")}`,
    fix: (paths: readonly string[]) =>
      `resolve each: ${paths.map((path) => `--take '${path.replace(/ \(.*$/s, "")}=mine|new'`).join(" ")}; or give an edited file with --manifest`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_TAKE_UNKNOWN: {
    means: "--take decides a conflict, and there is none at this path.",
    example: ["Deployment/kube-system/x:spec.replicas"],
    say: (path: string) => `--take names ${path}, which is no conflict`,
    fix: () => "omit --take to list the conflicts",
    exitCode: USAGE,
  },
  UPGRADE_WOULD_LOSE: {
    means:
      "The cluster has objects, fields or variables that an upgrade or a migration does not carry. Nothing is changed until they are, or their loss is accepted by name.",
    example: [[], ["IPPool.spec.ipipMode"]],
    say: (blocking: readonly string[], losses: readonly string[]) =>
      [
        ...(blocking.length > 0 ? [`these must be changed first: ${blocking.join("; ")}`] : []),
        ...(losses.length > 0 ? [`these would be lost: ${losses.join("; ")}`] : []),
      ].join("; "),
    fix: (blocking, losses) =>
      blocking.length > 0
        ? "change them as the plan says"
        : `do what the plan says, or accept each: ${losses.map((name) => `--accept-loss ${name}`).join(" ")}`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_LOSS_UNKNOWN: {
    means: "--accept-loss accepts a loss by its name, and there is none of this name.",
    example: ["BGPPeers", ["BGPPeer"]],
    say: (name: string, _losses: readonly string[]) => `--accept-loss names ${name}, which is no loss of this plan`,
    fix: (_name, losses) => (losses.length === 0 ? "omit --accept-loss" : `the losses are: ${losses.join(", ")}`),
    exitCode: USAGE,
  },
  UPGRADE_ETCD_UNSET: {
    means: "The manifest for etcd still has the published text in place of the endpoints.",
    example: ["etcd_endpoints", "vendor-config"],
    say: (key: string, map: string) => `${key} of ConfigMap ${map} is not set: node agents would not find etcd`,
    fix: (key) => `give the manifest with your ${key} with --manifest FILE`,
    exitCode: CHECK_FAILED,
  },
  UPGRADE_CHART_PENDING: {
    means: "An earlier helm command on the release did not end.",
    example: ["vendor", "pending-upgrade"],
    say: (release: string, status: string) => `the Helm release ${release} is ${status} and cannot be upgraded`,
    fix: (release) => `helm rollback ${release}`,
    exitCode: CHECK_FAILED,
  },
  FLOWS_NEED_OPERATOR: {
    means: "Flow logs are a component of the operator, and this installation is from plain manifests.",
    say: () => "flow logs need the operator, which is not installed",
    fix: () => "vendorctl migrate operator",
    exitCode: CHECK_FAILED,
  },
  FLOWS_NOT_ENABLED: {
    means: "There is nothing to disable.",
    say: () => "neither flow logs nor the flow UI is enabled",
    exitCode: CHECK_FAILED,
  },
});
