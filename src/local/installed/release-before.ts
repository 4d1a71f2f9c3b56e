import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { vendorNames } from "../../api/names.ts";
import { formatVersion, parseVersion } from "../../api/tables/version.ts";
import { INSTALLED_RELEASE } from "../../api/tables/version-gates.ts";
import { openReleaseFiles } from "../../releases/open-release-files.ts";

/** A release of our own line whose programs this build can play, and where its files are. */
export interface ReleaseBefore {
  version: string;
  /** For `--manifest-url`. */
  url: string;
}

/** The files of the release before this one, as it would have published them: within a line they differ by the version they name. */
export async function writeReleaseBefore(releases: string): Promise<ReleaseBefore> {
  const { operator, operatorCrds, customResources } = vendorNames.manifests;
  const newest = parseVersion(INSTALLED_RELEASE)!;
  const version = formatVersion({ ...newest, patch: Math.max(0, (newest.patch ?? 0) - 1) });
  const folder = join(releases, version, "manifests");
  mkdirSync(folder, { recursive: true });
  const files = openReleaseFiles();
  for (const name of [operatorCrds, operator, customResources]) {
    const text = await files.read(name);
    writeFileSync(join(folder, name), text.replaceAll(INSTALLED_RELEASE, version));
  }
  return { version, url: pathToFileURL(join(releases, version)).href };
}
