import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { addressesOn } from "./addresses.ts";
import { filtersOn } from "./filters.ts";
import { linksOn } from "./links.ts";
import { monitorHere } from "./monitor.ts";
import { neighboursOn } from "./neighbours.ts";
import { NetlinkSocket, PROTOCOL } from "./netlink.ts";
import type { NetlinkPort } from "./netlink-port.ts";
import { routesOn } from "./routes.ts";
import { rulesOn } from "./rules.ts";

/** Of a namespace, or of the one this thread is in. */
export function realNetlink(netns?: Netns): NetlinkPort {
  const there = <T>(act: () => T): T => (netns ? inside(netns.fd, act) : act());
  const open = () => there(() => new NetlinkSocket(PROTOCOL.route));
  const socket = open();
  return {
    ...linksOn(socket, open),
    ...addressesOn(socket),
    ...routesOn(socket),
    ...rulesOn(socket),
    ...neighboursOn(socket),
    ...filtersOn(socket),
    monitor: (onEvent) => there(() => monitorHere(onEvent)),
    close: () => socket.close(),
  };
}
