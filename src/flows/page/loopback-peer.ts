import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

/** The kernel's list of TCP sockets, of either family. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
const ROOT = 0;

/**
 * Whether the other end of a loopback connection is a program of this user, or of root: on a machine with several users, a port is open to all
 * of them. Only Linux says whose a socket is; elsewhere every user of the machine is let in.
 */
export function isOwnPeer(socket: Socket, own = process.getuid?.(), tables = TABLES): boolean {
  if (own === undefined || process.platform !== "linux") return true;
  const { remotePort, localPort } = socket;
  if (remotePort === undefined || localPort === undefined) return false;
  const users = tables.flatMap((table) => usersOf(textOf(table), remotePort, localPort));
  // Behind sudo, a browser is not root's.
  const caller = Number(process.env["SUDO_UID"] ?? Number.NaN);
  return users.some((user) => user === own || user === ROOT || (own === ROOT && user === caller));
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
