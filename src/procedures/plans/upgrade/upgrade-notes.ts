import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import { namesByKind } from "../../names-by-kind.ts";
import type { Observation } from "../../observation.ts";
import { brief, type UpgradeFacts } from "./upgrade.ts";
import type { UpgradePath } from "./upgrade-path.ts";

/** What to know that no step does. */
export function upgradeNotes(observation: Observation, path: UpgradePath, facts: UpgradeFacts): string[] {
  return [
    ...editNotes(facts, path),
    ...takeOverNotes(facts),
    ...gateNotes(observation, path),
    ...recommendations(observation),
    `After the upgrade, use vendorctl ${path.to} everywhere: an older one must not write to the cluster. Check with: vendorctl version`,
  ];
}

function editNotes({ merged }: UpgradeFacts, { from, to }: UpgradePath): string[] {
  if (!merged) return [];
  const { edits, comments, dropped, editsFrom, objects, file, baseGuessed } = merged;
  const kept = comments === 0 ? "" : `, and ${comments} of your comments`;
  const found =
    edits.length === 0 && comments === 0
      ? `No edits were found in ${editsFrom}.`
      : `${edits.length} ${edits.length === 1 ? "edit is" : "edits are"} carried over from ${editsFrom}${kept}:`;
  const holdsSecrets = objects.some(({ kind }) => kind === "Secret");
  return [
    found,
    ...edits.map(({ path, from, to }) => {
      if (path.startsWith("Secret/")) return `  ${path}: kept as you set it`;
      if (to === undefined) return `  ${path}: removed, as you did`;
      return `  ${path}: ${brief(to, path)}${from === undefined ? "" : ` instead of ${brief(from, path)}`}`;
    }),
    // Else a right that the new version needs would be kept away from it, as if the user had removed it.
    ...(baseGuessed && edits.length > 0
      ? [
          `${file} of ${from} is not built in, and was compared as if it differed from ${to} by the version alone. If an edit above is not yours, give the file as ${from} published it: --base FILE`,
        ]
      : []),
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
    const what = `${fields.length === 1 ? "1 field" : `${fields.length} fields`} of ${owner} ${fields.length === 1 ? "is" : "are"} taken over by force-conflicts: ${fields.join(", ")}`;
    alike.set(what, [...(alike.get(what) ?? []), object]);
  }
  return [...alike].map(([what, objects]) => `${namesByKind(objects)}: ${what}`);
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
          `The temporary policy ${temporary} of an upgrade from before v3.14 still exists and allows all traffic to and from nodes. Review its logs, add the global network policies you need, then delete it: vendorctl plan migrate host-endpoints shows what would be denied.`,
        ]
      : []),
    ...(gates.includes("resourceUids") && service.datastore !== "etcd" && none
      ? [
          `${VERSION_GATES.resourceUids.version} changes the UIDs of v3 resources. No object is owned by one, so there is nothing to save.`,
        ]
      : []),
    ...(gates.includes("flowLogs") && service.method !== "manifest"
      ? [
          `${VERSION_GATES.flowLogs.version} brings flow logs and the flow UI. Enable them with: vendorctl flows enable --ui`,
        ]
      : []),
    ...(service.injectors.length > 0
      ? [
          "Sidecars have the version of the service; older ones keep working. Update them with: vendorctl migrate sidecars --mesh-version VERSION",
        ]
      : []),
  ];
}

function recommendations({ service }: Observation): string[] {
  return [
    ...(service.datastore === "etcd"
      ? [
          "The etcd datastore is supported; the Kubernetes API datastore is recommended, and eBPF needs it: vendorctl migrate datastore",
        ]
      : []),
    ...(service.method === "manifest"
      ? [
          "An installation from plain manifests is supported; one by the operator is recommended: vendorctl migrate operator",
        ]
      : []),
  ];
}
