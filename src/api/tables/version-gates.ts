import { compareVersions, formatVersion, parseVersion, sameLine, type Version } from "./version.ts";

/** What changes for a cluster at a version. `id` is stable: plans and journals name gates by it. */
interface VersionGate {
  version: string;
  title: string;
  /** What an upgrade across the gate has to do. */
  consequence: string;
  because: string;
}

export const VERSION_GATES = {
  hostEndpointSteps: {
    version: "v3.14",
    title: "Host endpoints change their default",
    consequence:
      "A cluster that came from before v3.14 may still have the temporary policy allow-all-upgrade: review, replace, delete.",
    because: "Clusters from before v3.14 may still have the temporary policy of that upgrade.",
  },
  oldestUpgrade: {
    version: "v3.15",
    title: "Oldest version that upgrades directly",
    consequence: "An older cluster is first upgraded to v3.15 or later, with that version's own procedure.",
    because: "Upgrades go to v3.31, from v3.15 or later. See docs/guide/upgrade.md.",
  },
  resourceUids: {
    version: "v3.28",
    title: "UIDs of v3 resources change",
    consequence: "Owner references to v3 resources are removed before the upgrade and added again with the new UIDs.",
    because:
      "From v3.28 on v3 resources have new UIDs, which change with the upgrade. See docs/guide/owner-references.md.",
  },
  flowLogs: {
    version: "v3.30",
    title: "Flow logs and flow UI exist",
    consequence: "The FlowLogs and FlowUI resources may be created.",
    because: "Flow logs and the flow UI exist from v3.30 on. See docs/guide/operator.md#maintain.",
  },
  target: {
    version: "v3.31",
    title: "The version this procedure upgrades to",
    consequence: "The command-line tool of the new version replaces all older ones.",
    because: "vendorctl of the new version upgrades to it, and is used from then on. See docs/guide/upgrade.md.",
  },
} as const satisfies Record<string, VersionGate>;

export type GateId = keyof typeof VERSION_GATES;

/** The release whose manifests we install. */
export const INSTALLED_RELEASE = "v3.31.3";

/** Whether a version has what came with a gate. */
export function hasGate(version: Version, id: GateId): boolean {
  return !before(version, gateVersion(id));
}

/** The gates an upgrade goes through: above `from`, up to and including `to`. */
function gatesBetween(from: Version, to: Version): GateId[] {
  return (Object.keys(VERSION_GATES) as GateId[]).filter((id) => {
    const gate = gateVersion(id);
    return before(from, gate) && !before(to, gate);
  });
}

/** Why an upgrade is refused; printed by `explain` with the other codes. */
export const UPGRADE_PROBLEMS = {
  UPGRADE_VERSION_UNREADABLE: {
    title: "Not a version",
    why: "What an upgrade has to do depends on where it comes from and goes to.",
    fix: "Write a version such as v3.31.3.",
    rule: VERSION_GATES.target.because,
  },
  UPGRADE_FROM_TOO_OLD: {
    title: "The cluster is too old to upgrade directly",
    why: "Older versions store resources in a form that this upgrade does not read.",
    fix: "Upgrade to v3.15 or later first, with that version's own procedure.",
    rule: VERSION_GATES.oldestUpgrade.because,
  },
  UPGRADE_TARGET_UNKNOWN: {
    title: "Not the version this tool upgrades to",
    why: "Each version's tool knows the steps to its own version; another's may damage data.",
    fix: "Use vendorctl of the version you want.",
    rule: VERSION_GATES.target.because,
  },
  UPGRADE_BACKWARDS: {
    title: "A downgrade",
    why: "Newer versions may have written data older ones cannot read.",
    fix: "Choose the installed version, or a newer one.",
    rule: VERSION_GATES.target.because,
  },
} as const;

type UpgradeRefusal = keyof typeof UPGRADE_PROBLEMS;

export type UpgradeSupport =
  | { supported: true; from: Version; to: Version; gates: GateId[] }
  | { supported: false; code: UpgradeRefusal; message: string; fix: string; because: string };

/** Whether the upgrade procedure may take a cluster from one version to another. The same version is a repair, and allowed. */
export function supportsUpgrade(fromText: string, toText: string): UpgradeSupport {
  const from = parseVersion(fromText);
  const to = parseVersion(toText);
  if (!from || !to) {
    const unreadable = from ? toText : fromText;
    return refuse("UPGRADE_VERSION_UNREADABLE", `"${unreadable}" is not a version such as v3.31.3.`);
  }
  if (!sameLine(to, gateVersion("target"))) {
    const target = VERSION_GATES.target.version;
    return refuse("UPGRADE_TARGET_UNKNOWN", `This tool upgrades to ${target}, not to ${formatVersion(to)}.`);
  }
  if (before(from, gateVersion("oldestUpgrade"))) {
    const oldest = VERSION_GATES.oldestUpgrade.version;
    const message = `${formatVersion(from)} is older than ${oldest}, the oldest version that upgrades directly.`;
    return refuse("UPGRADE_FROM_TOO_OLD", message);
  }
  // A target given as a line is its newest release, so any release of the line may go to it.
  if (compareVersions(from, to) > 0 && !(to.patch === undefined && sameLine(from, to))) {
    const message = `${formatVersion(from)} is newer than ${formatVersion(to)}; an upgrade does not go back.`;
    return refuse("UPGRADE_BACKWARDS", message);
  }
  return { supported: true, from, to, gates: gatesBetween(from, to) };
}

function refuse(code: UpgradeRefusal, message: string): UpgradeSupport {
  const { fix, rule } = UPGRADE_PROBLEMS[code];
  return { supported: false, code, message, fix, because: rule };
}

function gateVersion(id: GateId): Version {
  return parseVersion(VERSION_GATES[id].version)!;
}

/** Whether a version lacks what came with a gate; a pre-release of the gate's own line already has it. */
function before(version: Version, gate: Version): boolean {
  return !sameLine(version, gate) && compareVersions(version, gate) < 0;
}
