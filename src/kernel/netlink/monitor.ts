import { CodedError } from "../../kit/errors.ts";
import { type Watch, whenReadable } from "../sys.ts";
import { ADDRESS_MESSAGE, readAddress } from "./addresses.ts";
import { LINK_MESSAGE, readLink } from "./links.ts";
import { isForPeople, NEIGHBOUR_MESSAGE, readNeighbour } from "./neighbours.ts";
import { NetlinkSocket, PROTOCOL } from "./netlink.ts";
import type { NetlinkMessage } from "./netlink-message.ts";
import type { NetlinkEvent } from "./netlink-port.ts";
import { ROUTE_MESSAGE, readRoute } from "./routes.ts";

/** Groups of the route family, as bits: links, neighbours, addresses and routes of both IP families. */
const GROUPS = 0x1 | 0x4 | 0x10 | 0x40 | 0x100 | 0x400;

/** Reports changes in the namespace the calling thread is in. */
export function monitorHere(onEvent: (event: NetlinkEvent) => void): Watch {
  const socket = new NetlinkSocket(PROTOCOL.route, GROUPS);
  let open = true;
  const watch = whenReadable(socket.fd, () => {
    const messages = socket.notifications();
    const events = messages === "lost" ? [LOST] : messages.flatMap(eventOrLost);
    for (const event of events) if (open) onEvent(event);
  });
  return {
    close: () => {
      if (!open) return;
      open = false;
      watch.close();
      socket.close();
    },
  };
}

const LOST = { kind: "lost" } as const;

/** A message that cannot be read is a change that was missed: whoever follows lists everything again. */
function eventOrLost(message: NetlinkMessage): NetlinkEvent[] {
  try {
    return eventOf(message);
  } catch (error) {
    if (error instanceof CodedError) return [LOST];
    throw error;
  }
}

function eventOf(message: NetlinkMessage): NetlinkEvent[] {
  switch (message.type) {
    case LINK_MESSAGE.set:
      return [{ kind: "link", change: "set", link: readLink(message) }];
    case LINK_MESSAGE.remove:
      return [{ kind: "link", change: "removed", link: readLink(message) }];
    case ADDRESS_MESSAGE.set:
      return [{ kind: "address", change: "set", address: readAddress(message) }];
    case ADDRESS_MESSAGE.remove:
      return [{ kind: "address", change: "removed", address: readAddress(message) }];
    case ROUTE_MESSAGE.set:
      return [{ kind: "route", change: "set", route: readRoute(message) }];
    case ROUTE_MESSAGE.remove:
      return [{ kind: "route", change: "removed", route: readRoute(message) }];
    case NEIGHBOUR_MESSAGE.set:
    case NEIGHBOUR_MESSAGE.remove: {
      if (!isForPeople(message)) return [];
      const change = message.type === NEIGHBOUR_MESSAGE.set ? "set" : "removed";
      return [{ kind: "neighbour", change, neighbour: readNeighbour(message) }];
    }
    default:
      return [];
  }
}
