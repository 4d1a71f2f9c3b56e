import manifest from "../../../package.json" with { type: "json" };

/** Of this product: vendorctl and the programs that run in a cluster are released together. */
export const VERSION = `v${manifest.version}`;

/** The version a program speaks as. `VENDOR_VERSION` overrides it, so that one build can stand in for an older or a newer release. */
export function runningVersion(env: Readonly<Record<string, string | undefined>>): string {
  return env["VENDOR_VERSION"] || VERSION;
}
