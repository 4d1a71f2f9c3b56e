import { VERSION_GATES } from "../../api/version-gates.ts";
import type { Observation } from "../observation.ts";
import { brief, type UpgradeFacts } from "./upgrade.ts";
import type { UpgradePath } from "./upgrade-path.ts";

/** What to know that no step does. */
export function upgradeNotes(observation: Observation, path: UpgradePath, facts: UpgradeFacts): string[] {
  return [
    ...editNotes(facts),
    ...takeOverNotes(facts),
    ...gateNotes(observation, path),
    ...recommendations(observation),
    `Upgrade rule 2: remove older command-line tools everywhere and install ${path.to}; older ones must not be used after the upgrade. Check with: vendorctl version`,
  ];
}

function editNotes({ merged }: UpgradeFacts): string[] {
  if (!merged) return [];
  const { edits, comments, dropped, editsFrom, objects } = merged;
  const kept = comments === 0 ? "" : `, and ${comments} of your comments`;
  const found =
    edits.length === 0 && comments === 0
      ? `No edits were found in ${editsFrom}.`
      : `${edits.length} edits are carried over from ${editsFrom}${kept}:`;
  const holdsSecrets = objects.some(({ kind }) => kind === "Secret");
  return [
    found,
    ...edits.map(({ path, from, to }) => {
      if (path.startsWith("Secret/")) return `  ${path}: stays as you have it`;
      if (to === undefined) return `  ${path}: removed, as you had it`;
      return `  ${path}: ${brief(to, path)}${from === undefined ? "" : ` instead of ${brief(from, path)}`}`;
    }),
    ...dropped.map(
      (object) =>
        `${object} is not in the new version's file; it stays as it is, and may be deleted when nothing needs it.`,
    ),
    ...(holdsSecrets ? ["This plan holds the contents of a Secret: a saved copy of it must be kept like one."] : []),
  ];
}

/** One line for all objects of which the same fields are taken from the same owner: definitions mostly are. */
function takeOverNotes({ takeOvers }: UpgradeFacts): string[] {
  const alike = new Map<string, string[]>();
  for (const { object, owner, fields } of takeOvers) {
    const what = `${fields.length === 1 ? "1 field" : `${fields.length} fields`} of ${owner} ${fields.length === 1 ? "is" : "are"} taken over (force-conflicts): ${fields.join(", ")}`;
    alike.set(what, [...(alike.get(what) ?? []), object]);
  }
  return [...alike].map(([what, objects]) => `${objects.join(", ")}: ${what}`);
}

/** Each gate that is passed is a step or a word. */
function gateNotes({ names, v3, service, owned }: Observation, { gates }: UpgradePath): string[] {
  const { temporaryUpgradePolicy: temporary } = names.hostEndpoints;
  const hasTemporary = v3.globalNetworkPolicies.some(
    ({ metadata }) => metadata.name.replace(/^default\./, "") === temporary,
  );
  const none = owned !== undefined && owned.length === 0;
  return [
    ...(hasTemporary
      ? [
          `Upgrade rule 4: the policy ${temporary} is still there. Review its traffic logs, add the global network policies you need, then delete it: vendorctl migrate host-endpoints shows what would bite.`,
        ]
      : []),
    ...(gates.includes("resourceUids") && service.datastore !== "etcd" && none
      ? [
          `${VERSION_GATES.resourceUids.version} is passed: UIDs of v3 resources change. Nothing is owned through them, so there is nothing to save.`,
        ]
      : []),
    ...(gates.includes("flowLogs") && service.method !== "manifest"
      ? [
          `${VERSION_GATES.flowLogs.version} is passed: flow logs and their page are available. Enable them with: vendorctl flows enable --ui`,
        ]
      : []),
    ...(service.injectors.length > 0
      ? [
          "Sidecars are versioned like the rest; older ones go on working meanwhile. Update them with: vendorctl migrate sidecars --mesh-version VERSION",
        ]
      : []),
  ];
}

function recommendations({ service }: Observation): string[] {
  return [
    ...(service.datastore === "etcd"
      ? [
          "Upgrade rule 3: with the etcd datastore, an upgrade to the orchestrator API datastore is recommended; eBPF needs it.",
        ]
      : []),
    ...(service.method === "manifest"
      ? ["Upgrade rule 3: with the plain manifest install, an upgrade to the operator is recommended."]
      : []),
  ];
}
