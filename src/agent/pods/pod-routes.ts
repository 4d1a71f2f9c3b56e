import type { Calculator } from "../../calc/calculator.ts";
import { MAIN_TABLE, type NetlinkEvent, type NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import type { Watch } from "../../kernel/sys.ts";

/** This node's routes to single addresses, with the name of their interface. */
export function singleAddresses(
  netlink: Pick<NetlinkPort, "links" | "routes">,
): { address: string; interfaceName: string }[] {
  const names = new Map(netlink.links().map(({ index, name }) => [index, name]));
  return netlink.routes({ table: MAIN_TABLE, type: "unicast" }).flatMap(({ destination, device }) => {
    const interfaceName = device === undefined ? undefined : names.get(device);
    return interfaceName && isSingle(destination) ? [{ address: addressOf(destination), interfaceName }] : [];
  });
}

/**
 * Where another CNI plugin connects pods, its routes say which interface is whose: the calculation has them from now on, until closed. The
 * kernel alone is asked, since no tenant writes there.
 */
export function followPodRoutes(
  netlink: Pick<NetlinkPort, "links" | "routes" | "monitor">,
  calculator: Pick<Calculator, "setPodInterfaces">,
  changed: () => void,
): Watch {
  let scheduled = false;
  let closed = false;
  const read = () => {
    const found = new Map<string, string>();
    // The kernel lists the route it prefers first.
    for (const { address, interfaceName } of singleAddresses(netlink)) {
      if (!found.has(address)) found.set(address, interfaceName);
    }
    calculator.setPodInterfaces(found);
  };
  const watch = netlink.monitor((event) => {
    if (scheduled || !concerns(event)) return;
    scheduled = true;
    // One look for all that one pod's interface reports at once.
    setImmediate(() => {
      scheduled = false;
      if (closed) return;
      read();
      changed();
    });
  });
  read();
  return {
    close() {
      closed = true;
      watch.close();
    },
  };
}

function concerns(event: NetlinkEvent): boolean {
  if (event.kind === "route") return isSingle(event.route.destination);
  return event.kind === "link" || event.kind === "lost";
}

function isSingle(destination: string): boolean {
  return destination.endsWith(destination.includes(":") ? "/128" : "/32");
}

function addressOf(destination: string): string {
  return destination.slice(0, destination.lastIndexOf("/"));
}
