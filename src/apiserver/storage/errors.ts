import { defineErrors } from "../../kit/errors.ts";
import type { Stored } from "./store.ts";

/** What can go wrong with a data directory, as the person who owns it reads it. */
export const errors = defineErrors({
  STORE_NOT_A_DIRECTORY: {
    means: "The data directory given for an embedded cluster is a file.",
    example: ["/tmp/data"],
    say: (path: string) => `the data directory ${path} is not a directory`,
    fix: () => "give the path of a directory, or of one that does not exist yet",
  },
  STORE_FOREIGN: {
    means:
      "The data directory given for an embedded cluster has files of something else in it. Nothing was written there.",
    example: ["/srv/data", "notes.txt"],
    say: (path: string, file: string) =>
      `the directory ${path} is not a data directory: it has other files, such as ${file}`,
    fix: () => "give an empty directory, one that does not exist yet, or one that a cluster has used before",
  },
  STORE_NO_PERMISSION: {
    means: "The embedded API server may not read and write its data directory.",
    example: ["/var/lib/data"],
    say: (path: string) => `no permission to read and write the data directory ${path}`,
    fix: (path: string) => `give this user the directory (chown, chmod u+rwx ${path}) or choose another`,
  },
  STORE_DISK_FULL: {
    means:
      "The embedded API server could not store a change because the disk is full. Everything it acknowledged before is stored.",
    example: ["/var/lib/data"],
    say: (path: string) => `the disk under the data directory ${path} is full`,
    fix: () => "free some space, then start the server again; everything acknowledged is still there",
  },
  STORE_UNUSABLE: {
    means: "The embedded API server cannot use its data directory.",
    example: ["/mnt/data", "input/output error"],
    say: (path: string, reason: string) => `the data directory ${path} cannot be used: ${reason}`,
    fix: () => "check the disk and the path, or choose another directory",
  },
  STORE_LOCKED: {
    means: "Another process uses the data directory. Two servers on one directory would damage it.",
    example: ["/var/lib/data", 4711],
    say: (path: string, pid: number) => `the data directory ${path} is in use by process ${pid}`,
    fix: (_path: string, pid: number) => `stop process ${pid} first, or choose another directory`,
  },
  STORE_CORRUPT: {
    means:
      "A file of an embedded cluster's data directory is damaged. The server does not start, and has changed nothing.",
    example: ["log.1", 4096, "the checksum differs"],
    say: (file: string, offset: number, what: string) => `${file} is damaged at byte ${offset}: ${what}`,
    fix: () => "restore the data directory from a copy; nothing was changed, so the file can still be examined",
  },
  STORE_INCOMPLETE: {
    means: "A file of an embedded cluster's data directory is missing. The server does not start.",
    example: ["/var/lib/data", "log.1"],
    say: (path: string, missing: string) => `the data directory ${path} lacks its file ${missing}`,
    fix: () => "restore the data directory from a copy",
  },
  STORE_WRITE_FAILED: {
    means: "The embedded API server could not write to its disk. It answers reads and refuses writes from then on.",
    example: ["/var/lib/data", "input/output error"],
    say: (path: string, reason: string) =>
      `writing to the data directory ${path} failed (${reason}); the store is now read-only`,
    fix: () => "free or repair the disk, then start the server again; everything acknowledged is still there",
  },
  STORE_BACKLOG: {
    means: "The embedded API server gets writes faster than its disk stores them, and refuses more for now.",
    example: [10000],
    say: (waiting: number) => `${waiting} writes are waiting for the disk; no more are taken until it catches up`,
    fix: () => "write more slowly, or put the data directory on a faster disk",
  },
  STORE_CLOSED: {
    means: "A request reached the embedded API server while it was shutting down.",
    say: () => "the store is closed",
    fix: () => "start the server again",
  },
});

/** The object is not at the revision the caller read. A handler answers 409. */
export class StoreConflict extends Error {
  /** What is stored now; undefined when nothing is. */
  readonly current: Stored | undefined;

  constructor(resource: string, name: string, expect: number | "absent", current: Stored | undefined) {
    const found = current === undefined ? "absent" : `at revision ${current.revision}`;
    super(`${resource} ${name} was expected ${expect === "absent" ? expect : `at revision ${expect}`} and is ${found}`);
    this.name = "StoreConflict";
    this.current = current;
  }
}

/** What happened after this revision is no longer kept, or the revision never became durable. A handler answers 410. */
export class Gone extends Error {
  readonly revision: number;
  /** The oldest revision that can be asked for. */
  readonly oldest: number;

  constructor(revision: number, oldest: number) {
    super(`revision ${revision} is gone; the oldest one kept is ${oldest}`);
    this.name = "Gone";
    this.revision = revision;
    this.oldest = oldest;
  }
}
