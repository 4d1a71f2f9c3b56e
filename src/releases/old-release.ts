import {
  compareVersions,
  formatVersion,
  parseVersion,
  type Since,
  sameLine,
  type Version,
} from "../api/tables/version.ts";

/** The newest release of every line whose manifests we know, oldest first. */
const NEWEST_OF_LINE = [
  "v3.14.2",
  "v3.15.5",
  "v3.16.10",
  "v3.17.6",
  "v3.18.6",
  "v3.19.4",
  "v3.20.6",
  "v3.21.6",
  "v3.22.5",
  "v3.23.5",
  "v3.24.6",
  "v3.25.2",
  "v3.26.5",
  "v3.27.5",
  "v3.28.5",
  "v3.29.6",
  "v3.30.4",
].map((text) => parseVersion(text)!);
const OLDEST = NEWEST_OF_LINE[0]!;
const NEWEST = NEWEST_OF_LINE.at(-1)!;

export interface OldRelease {
  /** What its images are tagged with. */
  tag: string;
  /** Whether it had what came with this line. */
  hasSince(line: Since): boolean;
}

export type ReleaseFound =
  | { is: "known"; release: OldRelease }
  | { is: "unreadable" }
  | { is: "tooOld"; version: string; oldest: string }
  | { is: "notOlder"; version: string; newest: string };

/** A line alone, `v3.27`, is its newest release; a release is taken as it was named. */
export function findRelease(text: string): ReleaseFound {
  const asked = parseVersion(text);
  if (!asked) return { is: "unreadable" };
  const line = { major: asked.major, minor: asked.minor };
  const writtenLine = (version: Version) => formatVersion({ major: version.major, minor: version.minor });
  if (compareVersions(line, OLDEST) < 0 && !sameLine(line, OLDEST)) {
    return { is: "tooOld", version: formatVersion(asked), oldest: writtenLine(OLDEST) };
  }
  if (compareVersions(line, NEWEST) > 0 && !sameLine(line, NEWEST)) {
    return { is: "notOlder", version: formatVersion(asked), newest: writtenLine(NEWEST) };
  }
  const version = asked.patch === undefined ? (NEWEST_OF_LINE.find((known) => sameLine(known, asked)) ?? asked) : asked;
  const hasSince = (since: Since) => compareVersions(line, parseVersion(since)!) >= 0;
  return { is: "known", release: { tag: formatVersion(version), hasSince } };
}
