import type { KubeObject } from "../object.ts";

/** On a node's own configuration that holds it back. Tells what was there: nothing at all, or everything but the field. */
const HELD_ANNOTATION = "procedures.vendor.io/held-by-switch";
export type Held = "configuration-made" | "field-added";

/** A word of another release counts as the one that leaves more behind: the field goes, the configuration stays. */
export function heldAs(configuration: KubeObject | undefined): Held | undefined {
  const word = configuration?.metadata.annotations?.[HELD_ANNOTATION];
  if (word === undefined) return undefined;
  return word === "configuration-made" ? word : "field-added";
}

/** Whether this configuration of a node holds it back for a switch, rather than by somebody's choice. */
export const isHold = (configuration: KubeObject | undefined): boolean => heldAs(configuration) !== undefined;

export const holdAnnotations = (was: Held): Record<string, string> => ({ [HELD_ANNOTATION]: was });

/** For a merge patch that ends the hold. */
export const releaseAnnotations = (): Record<string, null> => ({ [HELD_ANNOTATION]: null });
