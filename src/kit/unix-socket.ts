import { chmodSync, closeSync, constants, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import type { Server } from "node:net";
import { basename, dirname } from "node:path";

/**
 * Listens at `path`, replacing an earlier socket: a process that was killed leaves its socket behind. `mode` says who may connect.
 * What it returns removes the socket, unless another server has replaced it; it does not close the server.
 */
export async function listenAtSocket(server: Server, path: string, mode: number): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true });
  // The path of a socket may have about a hundred characters. By its descriptor the path of any directory is short.
  const descriptor = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  const directory = `/proc/self/fd/${descriptor}`;
  try {
    // Closing a server deletes the file of the name it was opened with: under the final name that may be the socket of our successor by then.
    const opening = `${directory}/.${process.pid}`;
    rmSync(opening, { force: true });
    await listening(server, opening);
    chmodSync(opening, mode);
    const { ino } = statSync(opening);
    renameSync(opening, `${directory}/${basename(path)}`);
    return () => {
      if (statSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
    };
  } finally {
    closeSync(descriptor);
  }
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
