import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { VERSION } from "../../src/api/tables/release.ts";
import { formatVersion, parseVersion } from "../../src/api/tables/version.ts";

/** The commit to upgrade from: by default the last one before identifiers, files and messages were renamed. */
export const EARLIER = process.env["EARLIER"] ?? "2848647";

/** Why there is no earlier commit to upgrade from; undefined when there is. */
export function whyNoEarlier(): string | undefined {
  const { status } = spawnSync("git", ["cat-file", "-e", `${EARLIER}^{commit}`], { stdio: "ignore" });
  return status === 0 ? undefined : `commit ${EARLIER} is not in the history of this checkout`;
}

/** A release made from an earlier commit: its programs, its vendorctl and its files. */
export interface EarlierRelease {
  /** Its checkout, with its packages, built. */
  root: string;
  vendorctl: string;
  version: string;
  /** For `--manifest-url`. */
  url: string;
  remove(): void;
}

export async function buildEarlier(): Promise<EarlierRelease> {
  const home = mkdtempSync(join(tmpdir(), "earlier-release-"));
  const root = join(home, "checkout");
  mkdirSync(root);
  try {
    const archive = join(home, "checkout.tar");
    await run("git", ["archive", "--format=tar", `--output=${archive}`, EARLIER], process.cwd());
    await run("tar", ["-xf", archive, "-C", root], home);
    await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], root);
    await run(process.execPath, ["tools/build.mjs"], root);
    return {
      ...{ root, vendorctl: join(root, "bin/vendorctl") },
      ...publish(root, join(home, "releases")),
      remove: () => rmSync(home, { recursive: true, force: true }),
    };
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
}

/** Its manifests as it published them. A commit of the same version as ours becomes the patch release before: an upgrade needs two versions. */
function publish(root: string, releases: string): { version: string; url: string } {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const own = `v${version}`;
  const published = own === VERSION ? patchBefore(own) : own;
  const folder = join(releases, published, "manifests");
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(join(root, "manifests")).filter((file) => file.endsWith(".yaml"))) {
    const text = readFileSync(join(root, "manifests", name), "utf8");
    writeFileSync(join(folder, name), text.replaceAll(own, published));
  }
  return { version: published, url: pathToFileURL(join(releases, published)).href };
}

function patchBefore(version: string): string {
  const parsed = parseVersion(version)!;
  return formatVersion({ ...parsed, patch: (parsed.patch ?? 1) - 1 });
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  await promisify(execFile)(command, args, { cwd, maxBuffer: 64 << 20 });
}
