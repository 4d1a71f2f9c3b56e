import { BIRD_ROUTES } from "../../calc/bgp/bird-config.ts";
import { MAIN_TABLE, type NetlinkPort, type Route } from "../../kernel/netlink/netlink-port.ts";

/** Routes that our BIRD has learned. One of the user's own has another metric, unless it was given ours. */
export function birdRoutes(netlink: Pick<NetlinkPort, "routes">): Route[] {
  return netlink.routes({ table: MAIN_TABLE, ...BIRD_ROUTES });
}

/** BIRD leaves them in the kernel when it ends, for the one that is started after it; where none is, they lead nowhere for ever. */
export function removeBirdRoutes(netlink: Pick<NetlinkPort, "routes" | "deleteRoute">): string[] {
  const found = birdRoutes(netlink);
  for (const route of found) netlink.deleteRoute(route);
  return found.map(({ destination }) => `route to ${destination}`);
}
