/**
 * What an upgrade does to something that older releases had and this one has not.
 * `stays`: it is kept, and changes nothing. `changes`: this release does it its own way. `lost`: what it did ends, so it must be accepted by name.
 * `blocks`: the upgrade would fail or cut nodes off, so it must be changed first.
 */
export const FATES = ["blocks", "lost", "changes", "stays"] as const;
export type Fate = (typeof FATES)[number];

export interface Consequence {
  fate: Fate;
  why: string;
  /** What to do, or what to know where nothing is to be done. */
  todo: string;
}
