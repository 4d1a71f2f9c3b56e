import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Transport } from "../api/transport.ts";
import { isUnreachable } from "../cluster/failures.ts";
import type { Log } from "../kit/log.ts";

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

export interface ApiAddress {
  host: string;
  port: number;
}

interface Route {
  name: string;
  open: () => Transport;
}

export function failoverTransport(options: FailoverOptions, log: Log): Transport {
  const opened = new Map<string, Transport>();
  // Looked up each time the way in use leads nowhere: this life may have learnt addresses, too.
  const waysNow = (): Route[] => [
    { name: "usual", open: () => options.usual() },
    ...readAddresses(options.file).map((address) => ({
      name: `${address.host}:${address.port}`,
      open: () => options.at(address),
    })),
  ];
  let ways = waysNow();
  let current = 0;
  const transportOf = ({ name, open }: Route): Transport => {
    const transport = opened.get(name) ?? open();
    opened.set(name, transport);
    return transport;
  };
  return {
    async request(request) {
      for (let tried = 0; ; tried++) {
        const at = current;
        const way = ways[at % ways.length] as Route;
        try {
          return await transportOf(way).request(request);
        } catch (error) {
          if (!isUnreachable(error)) throw error;
          if (current === at) ways = waysNow();
          // Many requests fail at once: the first to notice moves on for all.
          if (current === at && ways.length > 1) {
            current = at + 1;
            log.warn(
              { from: way.name, to: ways[current % ways.length]?.name },
              "cannot reach the API server, trying another address",
            );
          }
          // What was sent may have been done: only what changes nothing is sent again.
          if (request.method !== "GET" || tried + 1 >= ways.length) throw error;
        }
      }
    },
    close() {
      for (const transport of opened.values()) transport.close();
    },
  };
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
