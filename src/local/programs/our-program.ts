import { VERSION } from "../../api/tables/release.ts";
import { parseVersion, sameLine } from "../../api/tables/version.ts";
import type { Container } from "../controllers/workload-types.ts";

/** A container of ours: which program of the one image it runs, and of which release. */
export interface OurProgram {
  name: string;
  version: string;
}

/** `registry/path/prefixvendor:v3.31.3`. Releases before there was one image had one per program, named like it. */
const IMAGE = /(?:^|\/)(?:[^/:@]*vendor|apiserver):(v\d[^/:@]*)(?:@sha256:[0-9a-f]+)?$/;
const EXECUTABLE = "vendor";

/** The release an image of ours is of; undefined when it is not ours. */
export function imageRelease(image: string): string | undefined {
  return IMAGE.exec(image)?.[1];
}

/** The program a container asks for, whether or not we can run it; undefined when the image is not ours. */
export function ourProgram({ image = "", command, args }: Container): OurProgram | undefined {
  const version = imageRelease(image);
  const [executable, name, word] = [...(command ?? []), ...(args ?? [])];
  if (version === undefined || executable !== EXECUTABLE || name === undefined) return undefined;
  // `vendor node remove` and its like are commands, and end; `vendor node` alone is the agent.
  if (name === "node" && word !== undefined) return undefined;
  return { name, version };
}

/**
 * Only this release's programs are here to be run, and they stand in for other releases of their line: those differ by mended faults alone,
 * and each program reports the version it is configured with. The aggregated API has served the same kinds since the first release, and how it makes
 * UIDs follows that version, so this one can replace any older one.
 */
export function canRunInstead({ name, version }: OurProgram): boolean {
  const [theirs, ours] = [parseVersion(version), parseVersion(VERSION)];
  return name === "apiserver" || (theirs !== undefined && ours !== undefined && sameLine(theirs, ours));
}
