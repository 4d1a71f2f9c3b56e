import { createHash } from "node:crypto";
import { vendorNames } from "../../api/names.ts";

const LONGEST = 253;
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * `NODE[-TEMPLATE[-INTERFACE]]-auto-hep`. What would be too long, or no name at all (interfaces may have capitals and underscores),
 * becomes a hash of itself, so that it stays the same from one run to the next.
 */
export function endpointName(node: string, ...parts: readonly string[]): string {
  const { suffix } = vendorNames.hostEndpoints;
  const name = `${[node, ...parts].join("-")}${suffix}`;
  if (name.length <= LONGEST && OBJECT_NAME.test(name)) return name;
  const hash = createHash("sha256").update(name).digest("base64url").toLowerCase().replace(/[-_.]/g, "");
  return `${hash}${suffix}`;
}
