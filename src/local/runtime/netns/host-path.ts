import { mkdirSync, type Stats, statSync, writeFileSync } from "node:fs";

/** What each type wants to find, as a kubelet words it when it is something else. */
const WANTED: Readonly<Record<string, { is(found: Stats): boolean; a: string }>> = {
  Directory: { is: (found) => found.isDirectory(), a: "directory" },
  DirectoryOrCreate: { is: (found) => found.isDirectory(), a: "directory" },
  File: { is: (found) => found.isFile(), a: "file" },
  FileOrCreate: { is: (found) => found.isFile(), a: "file" },
  Socket: { is: (found) => found.isSocket(), a: "socket file" },
  CharDevice: { is: (found) => found.isCharacterDevice(), a: "character device" },
  BlockDevice: { is: (found) => found.isBlockDevice(), a: "block device" },
};

/**
 * Checks a hostPath volume by its type, and creates what the type lets a kubelet create: directories with their parents, files without.
 * Without a type nothing is checked, and the container runtime makes a directory where there is nothing. Returns why it cannot be mounted.
 */
export function hostPathFailure(there: string, path: string, type: string): string | undefined {
  if (statSync(there, { throwIfNoEntry: false }) === undefined) {
    try {
      if (type === "" || type === "DirectoryOrCreate") mkdirSync(there, { recursive: true });
      if (type === "FileOrCreate") writeFileSync(there, "", { flag: "a" });
    } catch (error) {
      return `hostPath type check failed: ${(error as Error).message.replace(there, path)}`;
    }
  }
  if (type === "") return undefined;
  const wanted = WANTED[type];
  if (!wanted) return `hostPath type check failed: ${type} is an invalid volume type`;
  const found = statSync(there, { throwIfNoEntry: false });
  return found && wanted.is(found) ? undefined : `hostPath type check failed: ${path} is not a ${wanted.a}`;
}
