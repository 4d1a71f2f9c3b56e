import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { CodedError } from "../../kit/errors.ts";
import { lockDirectory } from "./directory-lock.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { errors } from "./errors.ts";
import { sortNames } from "./journal-names.ts";

/** A directory of this machine, made when it does not exist, for this process alone. */
export async function openNodeDisk(path: string): Promise<Disk> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    refuseForeign(path, await readdir(path));
    return nodeDisk(path, await lockDirectory(path));
  } catch (error) {
    throw diskError(path, error);
  }
}

/** Also what the cluster keeps beside the store, and what a new file system has. */
const OURS = /^(?:(?:log|snapshot)-\d{10}(?:\.tmp)?|lock(?:\..+)?|keys\.json(?:\.new)?|lost\+found)$/;

/** A directory of something else is left alone: a path with a typing error must not be filled with our files. One that has a log is ours. */
function refuseForeign(path: string, names: readonly string[]): void {
  const { logs, snapshots } = sortNames(names);
  const foreign = names.find((name) => !OURS.test(name));
  if (foreign !== undefined && logs.length + snapshots.length === 0) throw errors.STORE_FOREIGN(path, foreign);
}

/** Why a directory cannot be used, in the words of its owner. */
export function diskError(path: string, error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return chooseError(path, code, message).from(error);
}

function chooseError(path: string, code: string | undefined, message: string): CodedError {
  switch (code) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return errors.STORE_NO_PERMISSION(path);
    case "ENOTDIR":
    case "EEXIST":
      return errors.STORE_NOT_A_DIRECTORY(path);
    case "ENOSPC":
    case "EDQUOT":
      return errors.STORE_DISK_FULL(path);
    default:
      return errors.STORE_UNUSABLE(path, code ?? message);
  }
}

function nodeDisk(path: string, unlock: () => Promise<void>): Disk {
  return {
    path,
    list: () => readdir(path),
    read: (name) => readFile(join(path, name)),
    create: (name) => createFile(join(path, name)),
    truncate: (name, size) =>
      withOpen(join(path, name), "r+", async (file) => {
        await file.truncate(size);
        await file.sync();
      }),
    rename: (from, to) => rename(join(path, from), join(path, to)),
    remove: (name) => rm(join(path, name), { force: true }),
    syncDirectory: () => withOpen(path, "r", (directory) => directory.sync()),
    close: unlock,
  };
}

async function withOpen(path: string, flags: string, use: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags);
  try {
    await use(file);
  } finally {
    await file.close();
  }
}

async function createFile(path: string): Promise<DiskFile> {
  const file = await open(path, "wx", 0o600);
  let size = 0;
  return {
    append: async (bytes) => {
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written, size);
        written += bytesWritten;
        size += bytesWritten;
      }
    },
    sync: () => file.datasync(),
    close: () => file.close(),
  };
}
