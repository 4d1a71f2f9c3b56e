import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

/** The kernel's list of TCP sockets, of either family. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

/**
 * Whether the other end of a loopback connection is a program of one of these users: on a machine with several, a port is open to all of
 * them. Only Linux says whose a socket is; elsewhere every user of the machine is let in.
 */
export function isPeerOf(users: readonly number[], { remotePort, localPort }: Socket): boolean {
  if (process.platform !== "linux") return true;
  if (remotePort === undefined || localPort === undefined) return false;
  return TABLES.flatMap((table) => usersOf(textOf(table), remotePort, localPort)).some((user) => users.includes(user));
}

/** Users of sockets from one port to another: of the peer's, not of ours, which has the ports the other way round. */
function usersOf(table: string, from: number, to: number): number[] {
  const port = (value: number) => value.toString(16).toUpperCase().padStart(4, "0");
  const [local, remote] = [`:${port(from)}`, `:${port(to)}`];
  return table.split("\n").flatMap((line) => {
    const [, source, destination, , , , , user] = line.trim().split(/\s+/);
    return source?.endsWith(local) && destination?.endsWith(remote) ? [Number(user)] : [];
  });
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
