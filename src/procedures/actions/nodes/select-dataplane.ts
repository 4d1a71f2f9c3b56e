import type { KubeObject } from "../../../api/object.ts";
import { compareVersions, parseVersion } from "../../../api/tables/version.ts";
import type { Action, Work } from "../../action.ts";
import { fieldAt } from "../../field-at.ts";
import { type MergePatchInputs, mergePatch } from "../objects/merge-patch.ts";
import { settled } from "../objects/settle.ts";
import { nameOf, readTarget, undefinedIfNotFound } from "../objects/target.ts";
import { awaitDrained } from "./await-drained.ts";

export type SelectDataplaneInputs = MergePatchInputs & {
  /** Dotted path of the field that selects the data plane. */
  field: string;
  /** The data plane that acts before the patch, in the operator's word: it may be there by default, with nothing written. */
  was: string;
};

const DRAINS_SINCE = { major: 3, minor: 31, patch: 3 };

type Before = { inverse: object };

/**
 * The merge patch that selects a data plane. On undo, the former one is first requested by its name and waited for: a field that is
 * absent again asks for nothing, because a default never changes what runs. Only then is the field as it was written.
 */
export const selectDataplane: Action<SelectDataplaneInputs, Before> = {
  needed: mergePatch.needed,
  before: mergePatch.before as NonNullable<Action<SelectDataplaneInputs, Before>["before"]>,
  apply: (inputs, work, before) => mergePatch.apply(inputs, work, before),
  confirm: async (inputs, work, before) => mergePatch.confirm?.(inputs, work, before),
  preview: async (inputs, work) => (await mergePatch.preview?.(inputs, work)) ?? [],
  async undo({ target, field, was, afterUndo }, work, { inverse }) {
    if (was !== work.names.dataplanes.ebpf && (await losesDrains(target, work))) await awaitDrained(work);
    if (!(await patched(target, withField(inverse, field, was), work))) return;
    await settled(afterUndo, work);
    if (fieldAt(inverse, field) !== null) return;
    await patched(target, inverse, work);
    await settled(afterUndo, work);
  },
};

/** Selecting a data plane restarts every agent, and an operator of before this release never ends a drain in which agents restart. */
async function losesDrains(target: MergePatchInputs["target"], work: Work): Promise<boolean> {
  const installation = await readTarget(work, target);
  const { version } = (installation?.["status"] ?? {}) as { version?: string };
  const installed = version === undefined ? undefined : parseVersion(version);
  return installed !== undefined && compareVersions(installed, DRAINS_SINCE) < 0;
}

async function patched(target: MergePatchInputs["target"], patch: object, work: Work): Promise<boolean> {
  const { client, signal } = work;
  const kind = await client.resourceFor(target);
  const done = await client
    .patch<KubeObject>(kind, target, { type: "merge", patch }, { signal })
    .catch(undefinedIfNotFound);
  if (done === undefined) work.say(`${nameOf(target)} does not exist; nothing to undo`);
  return done !== undefined;
}

/** A copy in which the field has this value. */
function withField(patch: object, field: string, value: unknown): object {
  const copy = structuredClone(patch) as Record<string, unknown>;
  const keys = field.split(".");
  const last = keys.pop() as string;
  let inner = copy;
  for (const key of keys) {
    const next = typeof inner[key] === "object" && inner[key] !== null ? inner[key] : {};
    inner[key] = next;
    inner = next as Record<string, unknown>;
  }
  inner[last] = value;
  return copy;
}
