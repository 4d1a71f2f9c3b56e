import { findRelease, type OldRelease } from "../../releases/old-release.ts";
import { errors } from "./errors.ts";

/** The release that was requested as installed. */
export function oldRelease(text: string): OldRelease {
  const found = findRelease(text);
  switch (found.is) {
    case "unreadable":
      throw errors.INSTALLED_VERSION_UNREADABLE(text);
    case "tooOld":
      throw errors.INSTALLED_VERSION_TOO_OLD(found.version, found.oldest);
    case "notOlder":
      throw errors.INSTALLED_VERSION_NOT_OLDER(found.version, found.newest);
    case "known":
      return found.release;
  }
}
