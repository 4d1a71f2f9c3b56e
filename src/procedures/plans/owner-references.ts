import type { Names } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import { VERSION_GATES } from "../../api/version-gates.ts";
import type { OwnedThroughV3 } from "../observation.ts";
import type { Step } from "../plan.ts";

const RULE =
  "Upgrade rule 5: (1) remove every OwnerReference whose apiGroup is the v3 group; (2) upgrade; (3) add new references with the new UIDs.";

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
  return { before: beforeUpgrade(owned, names, options.file), after: afterUpgrade(names, options) };
}

function beforeUpgrade(owned: readonly OwnedThroughV3[], names: Names, file: string | undefined): Step[] {
  const served = groupVersion(names.groups.served);
  const where = whereOf(owned);
  return [
    {
      id: "save-owner-references",
      action: "save-owner-references",
      inputs: { ...(file !== undefined && { file }) },
      title: `Save ${count(owned.length, "owner reference")} to ${served} resources`,
      where: file === undefined ? "the journal" : `the journal and ${file}`,
      because: RULE,
      risk: "none",
      reversible: true,
    },
    {
      id: "strip-owner-references",
      action: "strip-owner-references",
      inputs: {},
      title: `Remove the owner references to ${served} resources, and nothing else of the objects`,
      where,
      because: `${RULE} ${VERSION_GATES.resourceUids.because}`,
      risk: "low",
      reversible: true,
    },
  ];
}

/** The second half, which also stands alone when somebody else did the upgrade. */
export function afterUpgrade(names: Names, { file }: { file?: string } = {}): Step[] {
  const inputs = { ...(file !== undefined && { file }) };
  const served = groupVersion(names.groups.served);
  return [
    {
      id: "restore-owner-references",
      action: "restore-owner-references",
      inputs,
      title: `Add the owner references again, with the UIDs ${served} shows now`,
      where: "the objects they were taken from",
      because: RULE,
      risk: "low",
      reversible: true,
    },
    {
      id: "prove-owned-objects",
      action: "prove-owned-objects",
      inputs,
      title: "Prove that every object whose reference was saved is still the same object",
      where: "the objects they were taken from",
      because: "Errors 3: After an upgrade, resources owned through old v3 UIDs are garbage collected.",
      risk: "none",
      reversible: true,
    },
    {
      id: "forget-owner-references",
      action: "forget-owner-references",
      inputs: {},
      title: "Remove the saved copy from the cluster",
      where: names.namespaces.orchestratorSystem,
      because: "Nothing is left to add; the file and the journal keep the references.",
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

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}
