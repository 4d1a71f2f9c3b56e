import { compareVersions, parseVersion, sameLine } from "../../../api/tables/version.ts";
import { type GateId, INSTALLED_RELEASE, supportsUpgrade } from "../../../api/tables/version-gates.ts";
import { CodedError } from "../../../kit/errors.ts";
import type { ManifestFile } from "../../../releases/published.ts";
import type { Observation } from "../../observation.ts";
import { typhaOf } from "../cluster-view.ts";
import { errors } from "./upgrade-errors.ts";

export type UpgradeMethod = "chart" | "operator" | "manifest";

/** What a person asked for. */
export interface UpgradeWishes {
  to?: string;
  /** Where the cluster does not say it. */
  from?: string;
  method?: UpgradeMethod;
  /** Flags that were given, for those that only fit one method. */
  given: { manifest: boolean; base: boolean; values: boolean; chart: boolean };
}

/** From where to where, how, and what lies between. */
export interface UpgradePath {
  from: string;
  to: string;
  method: UpgradeMethod;
  /** The published file that is merged and applied: none with a chart, whose tool has it. */
  file: ManifestFile | "policyAndNetworkingTypha" | "operator" | undefined;
  gates: readonly GateId[];
}

const CHECK_FAILED = 3;

/** The way an upgrade goes, or a coded refusal. Nothing but the observation and the flags decides it. */
export function upgradePath(observation: Observation, wishes: UpgradeWishes): UpgradePath {
  const { service, tool } = observation;
  if (service.method === "none") throw errors.UPGRADE_NOTHING_INSTALLED();
  const from = wishes.from ?? service.version;
  if (from === undefined) throw errors.UPGRADE_VERSION_UNKNOWN(service.versionEvidence);
  const to = target(wishes.to);
  const support = supportsUpgrade(from, to);
  if (!support.supported) {
    throw new CodedError(support.code, support.message, { fix: support.fix, exitCode: CHECK_FAILED });
  }
  const ours = parseVersion(tool.version);
  if (!ours || !sameLine(ours, support.to)) throw errors.UPGRADE_TOOL_OTHER_VERSION(tool.version, to);
  const { method } = service;
  if (wishes.method && wishes.method !== method) throw errors.UPGRADE_OTHER_METHOD(wishes.method, method);
  refuseFlags(method, wishes.given);
  return { from, to, method, file: fileOf(observation), gates: support.gates };
}

/** A line is its release that we have the files of; another release of it is one we do not have. */
function target(asked: string | undefined): string {
  const version = asked === undefined ? undefined : parseVersion(asked);
  const installed = parseVersion(INSTALLED_RELEASE)!;
  if (asked === undefined || (version && version.patch === undefined && sameLine(version, installed)))
    return INSTALLED_RELEASE;
  if (version && sameLine(version, installed) && compareVersions(version, installed) !== 0) {
    const fix = `omit --to, or use vendorctl ${asked}`;
    const message = `This tool has the files of ${INSTALLED_RELEASE}, not of ${asked}.`;
    throw new CodedError("UPGRADE_TARGET_UNKNOWN", message, { fix, exitCode: CHECK_FAILED });
  }
  return asked;
}

function refuseFlags(method: UpgradeMethod, given: UpgradeWishes["given"]): void {
  const wrong = [
    method === "chart" && given.manifest && "--manifest",
    method === "chart" && given.base && "--base",
    method !== "chart" && given.values && "--values",
    method !== "chart" && given.chart && "--chart",
  ].find((flag) => flag !== false);
  if (wrong) throw errors.UPGRADE_FLAG_OF_OTHER_METHOD(wrong, method);
}

function fileOf(observation: Observation): UpgradePath["file"] {
  const { method, variant, datastore } = observation.service;
  if (method === "chart") return undefined;
  if (method !== "manifest") return "operator";
  if (variant === "overlay") return datastore === "etcd" ? "policyAndOverlayEtcd" : "policyAndOverlay";
  if (datastore === "etcd") return "policyAndNetworkingEtcd";
  if (variant === "policy-only") return "policyOnly";
  const { policyAndNetworkingTypha } = observation.names.manifests;
  return policyAndNetworkingTypha && typhaOf(observation) ? "policyAndNetworkingTypha" : "policyAndNetworking";
}
