import type { Transport } from "../api/transport.ts";
import type { Log } from "../kit/log.ts";
import type { ApiAddress } from "./api-server-hosts.ts";
import { isUnreachable } from "./failures.ts";

/** A way to the API server; the name distinguishes it from the others. */
export interface ApiRoute {
  name: string;
  open(): Transport;
}

export function addressRoutes(addresses: readonly ApiAddress[], open: (address: ApiAddress) => Transport): ApiRoute[] {
  return addresses.map((address) => ({ name: `${address.host}:${address.port}`, open: () => open(address) }));
}

/**
 * To the API server by the first of the routes, and by the next when that one does not lead there. `routes` is asked for each request, so what
 * it reads may change: a new first route is used at once.
 */
export function failoverTransport(routes: () => ApiRoute[] | Promise<ApiRoute[]>, log: Log): Transport {
  const opened = new Map<string, Transport>();
  let first: string | undefined;
  let current: string | undefined;
  const transportOf = ({ name, open }: ApiRoute): Transport => {
    const transport = opened.get(name) ?? open();
    opened.set(name, transport);
    return transport;
  };
  const routesNow = async (): Promise<{ all: ApiRoute[]; at: number }> => {
    const all = await routes();
    if (all[0]?.name !== first) current = undefined;
    first = all[0]?.name;
    return {
      all,
      at: Math.max(
        0,
        all.findIndex(({ name }) => name === current),
      ),
    };
  };
  return {
    async request(request) {
      for (let tried = 1; ; tried++) {
        const { all, at } = await routesNow();
        const route = all[at] as ApiRoute;
        try {
          return await transportOf(route).request(request);
        } catch (error) {
          if (!isUnreachable(error)) throw error;
          const now = await routesNow();
          const next = now.all[(now.at + 1) % now.all.length] as ApiRoute;
          // Many requests fail at once: the first to notice moves on for all.
          if (now.all[now.at]?.name === route.name && next !== route) {
            current = next.name;
            log.warn({ from: route.name, to: next.name }, "cannot reach the API server, trying another address");
          }
          // What was sent may have been done: only what changes nothing is sent again.
          if (request.method !== "GET" || tried >= now.all.length) throw error;
        }
      }
    },
    close() {
      for (const transport of opened.values()) transport.close();
    },
  };
}
