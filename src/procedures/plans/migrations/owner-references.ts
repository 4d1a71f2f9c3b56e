import type { Names } from "../../../api/names.ts";
import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import type { OwnedThroughV3 } from "../../observation.ts";
import type { Step } from "../../plan.ts";

const RULE =
  "From v3.28 on v3 resources have new UIDs, and the garbage collector deletes what a gone UID owns: references are removed before the upgrade and added again after it. See docs/guide/owner-references.md.";

/** What goes round an upgrade across v3.28. Both lists are empty where nothing is owned through v3. */
export interface OwnerReferenceSteps {
  before: Step[];
  after: Step[];
}

/**
 * Saves and strips before the upgrade; adds again, proves and forgets after it. The references themselves are not in the steps:
 * there may be thousands, and they are saved by the first step, in the journal, in the cluster and in `file`.
 */
export function ownerReferenceSteps(
  owned: readonly OwnedThroughV3[],
  names: Names,
  options: { file?: string } = {},
): OwnerReferenceSteps {
  if (owned.length === 0) return { before: [], after: [] };
  return { before: beforeUpgrade(owned, options.file), after: afterUpgrade(names, options) };
}

function beforeUpgrade(owned: readonly OwnedThroughV3[], file: string | undefined): Step[] {
  const where = whereOf(owned);
  return [
    {
      id: "save-owner-references",
      action: "save-owner-references",
      inputs: { ...(file !== undefined && { file }) },
      title: `Save the owner references`,
      where: file === undefined ? `the journal: ${where}` : `the journal and ${file}: ${where}`,
      because: RULE,
      risk: "none",
      reversible: true,
    },
    {
      id: "strip-owner-references",
      action: "strip-owner-references",
      inputs: {},
      title: `Remove the owner references`,
      where,
      because: `${RULE} ${VERSION_GATES.resourceUids.because}`,
      risk: "low",
      reversible: true,
    },
  ];
}

/** The second half, which also runs alone when another tool did the upgrade. */
export function afterUpgrade(names: Names, { file }: { file?: string } = {}): Step[] {
  const inputs = { ...(file !== undefined && { file }) };
  return [
    {
      id: "restore-owner-references",
      action: "restore-owner-references",
      inputs,
      title: `Restore the owner references`,
      where: "the objects that had them",
      because: RULE,
      risk: "low",
      reversible: true,
    },
    {
      id: "prove-owned-objects",
      action: "prove-owned-objects",
      inputs,
      title: "Verify that no owned object is lost",
      where: "the objects that had them",
      because:
        "After an upgrade to v3.28 or later, the garbage collector deletes objects owned by an old UID. See docs/guide/owner-references.md.",
      risk: "none",
      reversible: true,
    },
    {
      id: "forget-owner-references",
      action: "forget-owner-references",
      inputs: {},
      title: "Remove the saved owner references",
      where: names.namespaces.orchestratorSystem,
      because: "All are restored; the file and the journal still have them.",
      risk: "none",
      reversible: true,
    },
  ];
}

/** Kinds and how many of each: `ConfigMap (9000), Secret (12)`, the most first. */
function whereOf(owned: readonly OwnedThroughV3[]): string {
  const byKind = new Map<string, number>();
  for (const { kind } of owned) byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
  const sorted = [...byKind].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const shown = sorted.slice(0, 4).map(([kind, n]) => `${kind} (${n})`);
  return [...shown, ...(sorted.length > 4 ? [`${sorted.length - 4} more kinds`] : [])].join(", ");
}
