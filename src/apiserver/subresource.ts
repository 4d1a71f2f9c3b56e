import type { Call, Reply } from "./call.ts";
import type { Core } from "./core.ts";

/** A subresource with a behaviour of its own. */
export interface Subresource {
  group: string;
  plural: string;
  name: string;
  /** What it speaks. */
  kind: { group: string; version: string; kind: string };
  verbs: readonly string[];
  handle(core: Core, call: Call, verb: string): Promise<Reply>;
}
