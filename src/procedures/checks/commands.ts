import type { Names, Noun } from "../../api/names.ts";
import { atPath } from "../plans/cluster-view.ts";

/** The command a person would type to set one field of a resource of ours. */
export function patchCommand(names: Names, noun: Noun, field: string, value: unknown): string {
  const { plural, stored } = names.kinds[noun];
  const operator = noun === "installation";
  const { group } = operator ? names.groups.operator : names.groups.stored;
  const resource = `${operator ? plural : (stored?.plural ?? plural)}.${group}`;
  const patch = JSON.stringify(atPath(field, value));
  return `kubectl patch ${resource} ${names.singleton} --type merge -p '${patch}'`;
}

export function deleteCommand(names: Names, noun: Noun, name: string): string {
  const { plural } = names.kinds[noun];
  return `kubectl delete ${plural}.${names.groups.stored.group} ${name}`;
}
