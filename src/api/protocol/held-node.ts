import type { KubeObject } from "../object.ts";

/** On a node's own configuration that holds it back. Says what was there: nothing at all, or everything but the field. */
export const HELD_ANNOTATION = "procedures.vendor.io/held-by-switch";
export type Held = "configuration-made" | "field-added";

export function heldAs(configuration: KubeObject | undefined): Held | undefined {
  return configuration?.metadata.annotations?.[HELD_ANNOTATION] as Held | undefined;
}

/** Whether this configuration of a node holds it back for a switch, rather than by somebody's choice. */
export const isHold = (configuration: KubeObject | undefined): boolean => heldAs(configuration) !== undefined;
