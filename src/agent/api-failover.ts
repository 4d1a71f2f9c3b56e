import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Transport } from "../api/transport.ts";
import type { ApiAddress } from "../cluster/api-server-hosts.ts";
import { type ApiRoute, addressRoutes } from "../cluster/failover-transport.ts";

/**
 * The way to the API server when its usual address does not lead there: an agent that starts while nothing serves the service's address must
 * still learn what to serve. Addresses that worked are kept on disk.
 */
export interface FailoverOptions {
  usual(): Transport;
  /** By an address kept. */
  at(address: ApiAddress): Transport;
  /** Where the addresses are kept. */
  file: string;
}

/** The usual way first. The addresses are read each time: this life may have learnt some. */
export function apiRoutes({ usual, at, file }: FailoverOptions): ApiRoute[] {
  return [{ name: "usual", open: usual }, ...addressRoutes(readAddresses(file), at)];
}

export function saveAddresses(file: string, addresses: readonly ApiAddress[]): void {
  if (addresses.length === 0 || JSON.stringify(readAddresses(file)) === JSON.stringify(addresses)) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(addresses)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function readAddresses(file: string): ApiAddress[] {
  try {
    const read: unknown = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(read) ? (read as ApiAddress[]) : [];
  } catch {
    return [];
  }
}
