import { StatusError } from "../../api/status.ts";
import { pathsOf } from "./field-set.ts";
import type { Owners } from "./managed-entries.ts";
import { displayPath } from "./path-element.ts";
import type { OwnershipConflict } from "./updater.ts";

/** The refusal of an apply, in the words Kubernetes' users and tools know. */
export function conflictError(conflict: OwnershipConflict, owners: Owners): StatusError {
  const byManager = [...conflict.conflicts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, set]) => ({ other: nameOf(id, owners), fields: pathsOf(set).map(displayPath) }));
  const causes = byManager.flatMap(({ other, fields }) =>
    fields.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${other}`, field })),
  );
  const message =
    causes.length === 1
      ? `Apply failed with 1 conflict: ${causes[0]!.message}: ${causes[0]!.field}`
      : `Apply failed with ${causes.length} conflicts: ${byManager.map(listed).join("\n")}`;
  return new StatusError(409, "Conflict", message, { causes });
}

function listed({ other, fields }: { other: string; fields: readonly string[] }): string {
  return [`conflicts with ${other}:`, ...fields.map((field) => `- ${field}`)].join("\n");
}

function nameOf(id: string, owners: Owners): string {
  const { manager, subresource, applied, version } = owners.get(id)!;
  const through = subresource === undefined ? "" : ` with subresource ${JSON.stringify(subresource)}`;
  const using = applied ? "" : ` using ${version}`;
  return `${JSON.stringify(manager)}${through}${using}`;
}
