import { compareVersions, parseVersion, sameLine } from "../tables/version.ts";
import { VERSION_GATES } from "../tables/version-gates.ts";

/** The version and the variant of a UUID are written in these bytes; they stay, so that the result is a UUID of the same kind. */
const KEPT_BYTES: readonly number[] = [6, 8];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The UID under which a version of the service shows the v3 resource that is stored as the object with this UID. Two objects
 * with one UID confuse the orchestrator's garbage collector, so from v3.28 on the two differ. The change is its own inverse:
 * the same call turns a v3 UID back into the stored one.
 */
export function v3Uid(crdUid: string, version: string): string {
  if (!UUID.test(crdUid)) throw new TypeError(`"${crdUid}" is not a UID`);
  if (!changesUids(version)) return crdUid;
  const bytes = Buffer.from(crdUid.replaceAll("-", ""), "hex");
  const hex = Buffer.from(bytes.map((byte, index) => (KEPT_BYTES.includes(index) ? byte : reversed(byte)))).toString(
    "hex",
  );
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A pre-release of v3.28 already has what v3.28 has. */
function changesUids(text: string): boolean {
  const version = parseVersion(text);
  const gate = parseVersion(VERSION_GATES.resourceUids.version);
  if (!version || !gate) throw new TypeError(`"${text}" is not a version such as v3.31.3`);
  return sameLine(version, gate) || compareVersions(version, gate) > 0;
}

function reversed(byte: number): number {
  let bits = 0;
  for (let i = 0; i < 8; i++) bits |= ((byte >> i) & 1) << (7 - i);
  return bits;
}
