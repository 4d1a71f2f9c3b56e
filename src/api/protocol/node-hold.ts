import type { KubeObject } from "../object.ts";

/** On a node's own configuration that holds it back. Records what was there: nothing at all, or everything but the field. */
const HOLD_ANNOTATION = "procedures.vendor.io/held-by-switch";
export type NodeHold = "configuration-made" | "field-added";

/** A word of another release counts as the one that leaves more behind: the field goes, the configuration stays. */
export function nodeHold(configuration: KubeObject | undefined): NodeHold | undefined {
  const word = configuration?.metadata.annotations?.[HOLD_ANNOTATION];
  if (word === undefined) return undefined;
  return word === "configuration-made" ? word : "field-added";
}

/** Whether this configuration of a node holds it back for a switch, rather than by the user's choice. */
export const isHold = (configuration: KubeObject | undefined): boolean => nodeHold(configuration) !== undefined;

export const holdAnnotations = (was: NodeHold): Record<string, string> => ({ [HOLD_ANNOTATION]: was });

/** For a merge patch that ends the hold. */
export const releaseAnnotations = (): Record<string, null> => ({ [HOLD_ANNOTATION]: null });
