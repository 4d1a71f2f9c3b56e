import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type CniDeletion, DELETIONS_DIRECTORY, deletionFile, readDeletionFile } from "../../api/protocol/cni.ts";

/**
 * DELs that the plugin answered while no agent listened, to be carried out. A runtime may reuse the container id after a DEL, so a note says nothing
 * about what was added since: every ADD carries out the note of its interface first, and every DEL drops it.
 */
export interface NotedDeletions {
  list(): CniDeletion[];
  has(deletion: CniDeletion): boolean;
  drop(deletion: CniDeletion): void;
}

/** Read from disk each time: the plugin writes them. */
export function notedDeletions(runDirectory: string): NotedDeletions {
  const directory = join(runDirectory, DELETIONS_DIRECTORY);
  const pathOf = (deletion: CniDeletion) => join(directory, deletionFile(deletion));
  return {
    list() {
      const names = existsSync(directory) ? readdirSync(directory) : [];
      return names.flatMap((name) => readDeletionFile(name) ?? []);
    },
    has: (deletion) => existsSync(pathOf(deletion)),
    drop: (deletion) => rmSync(pathOf(deletion), { force: true }),
  };
}
