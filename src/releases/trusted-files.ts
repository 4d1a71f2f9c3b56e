import { errors } from "./errors.ts";
import { digestOf } from "./open-release-files.ts";
import type { ReleaseFiles } from "./release-files.ts";

export interface ManifestTrust {
  /** Digests that files from the network may have, with or without `sha256:` before them. */
  sha256?: readonly string[];
  /** Take what the address serves, whatever it is. */
  insecure?: boolean;
}

const DIGEST = /^(?:sha256:)?([0-9a-f]{64})$/i;

/**
 * Files of an address that the user vouches for. What is applied with the rights of an administrator comes from this tool, from a file of
 * the user's own, or over https with a digest the user gives; anything else only when the user says that it may be anyone's.
 */
export function trustedFiles(files: ReleaseFiles, manifestUrl: string, trust: ManifestTrust): ReleaseFiles {
  const { protocol, hash } = new URL(manifestUrl);
  const given = [...(trust.sha256 ?? []), ...(/^#sha256=(.+)$/.exec(hash)?.[1]?.split(",") ?? [])];
  const pins = new Set(given.map((text) => hexOf(text)));
  if (protocol !== "file:" && !trust.insecure && (protocol !== "https:" || pins.size === 0)) {
    throw errors.MANIFEST_NOT_PINNED(manifestUrl);
  }
  if (pins.size === 0) return files;
  return {
    ...files,
    async read(name) {
      const text = await files.read(name);
      const digest = digestOf(text);
      if (!pins.has(hexOf(digest))) throw errors.MANIFEST_OTHER_DIGEST(name, digest);
      return text;
    },
  };
}

function hexOf(text: string): string {
  const hex = DIGEST.exec(text.trim())?.[1];
  if (hex === undefined) throw errors.MANIFEST_DIGEST_UNUSABLE(text);
  return hex.toLowerCase();
}
