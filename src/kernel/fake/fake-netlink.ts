import { kernelError } from "../errors.ts";
import type { ForwardingEntry, Neighbour, NetlinkPort, RoutingRule } from "../netlink/netlink-port.ts";
import { existing, fakeLinks } from "./fake-links.ts";
import { fakeRoutes } from "./fake-routes.ts";
import { type FakeNamespace, type FakeState, notify } from "./fake-state.ts";

export function fakeNetlink(world: FakeState, namespace: FakeNamespace): NetlinkPort {
  return {
    ...fakeLinks(world, namespace),
    ...fakeRoutes(namespace),
    ...fakeRules(namespace),
    ...fakeNeighbours(namespace),
    ...fakeFilters(namespace),
    monitor: (onEvent) => {
      namespace.watchers.add(onEvent);
      return { close: () => void namespace.watchers.delete(onEvent) };
    },
    close: () => {},
  };
}

function fakeRules(namespace: FakeNamespace): Pick<NetlinkPort, "rules" | "addRule" | "deleteRule"> {
  const keyOf = (rule: RoutingRule) =>
    JSON.stringify([
      rule.family,
      rule.priority,
      rule.table,
      rule.mark,
      rule.mask,
      rule.source,
      rule.destination,
      rule.inputInterface,
    ]);
  const find = (rule: RoutingRule) => namespace.rules.find((other) => keyOf(other) === keyOf(rule));
  return {
    rules: () => [...namespace.rules].sort((a, b) => a.family - b.family || a.priority - b.priority),
    addRule: (rule) => {
      if (!find(rule)) namespace.rules.push(rule);
    },
    deleteRule: (rule) => {
      const found = find(rule);
      namespace.rules = namespace.rules.filter((other) => other !== found);
      return found !== undefined;
    },
  };
}

type NeighbourPart = Pick<
  NetlinkPort,
  "neighbours" | "replaceNeighbour" | "deleteNeighbour" | "forwarding" | "replaceForwarding" | "deleteForwarding"
>;

function fakeNeighbours(namespace: FakeNamespace): NeighbourPart {
  const isNeighbour = (a: Pick<Neighbour, "device" | "address">) => (b: Neighbour) =>
    a.device === b.device && a.address === b.address;
  const isEntry = (a: ForwardingEntry) => (b: ForwardingEntry) => a.device === b.device && a.mac === b.mac;
  return {
    neighbours: () => [...namespace.neighbours],
    replaceNeighbour: ({ device, address, mac }) => {
      existing(namespace, device);
      const neighbour: Neighbour = { device, address, mac, state: "permanent" };
      namespace.neighbours = [...namespace.neighbours.filter((other) => !isNeighbour(neighbour)(other)), neighbour];
      notify(namespace, { kind: "neighbour", change: "set", neighbour });
    },
    deleteNeighbour: (neighbour) => {
      const found = namespace.neighbours.find(isNeighbour(neighbour));
      namespace.neighbours = namespace.neighbours.filter((other) => other !== found);
      if (found) notify(namespace, { kind: "neighbour", change: "removed", neighbour: found });
      return found !== undefined;
    },
    forwarding: () => [...namespace.forwarding],
    replaceForwarding: (entry) => {
      if (existing(namespace, entry.device).kind !== "vxlan") throw kernelError(`forwarding of ${entry.mac}`, "EINVAL");
      namespace.forwarding = [...namespace.forwarding.filter((other) => !isEntry(entry)(other)), entry];
    },
    deleteForwarding: (entry) => {
      const found = namespace.forwarding.find(
        (other) => isEntry(entry)(other) && other.destination === entry.destination,
      );
      namespace.forwarding = namespace.forwarding.filter((other) => other !== found);
      return found !== undefined;
    },
  };
}

type FilterPart = Pick<NetlinkPort, "addClsact" | "deleteClsact" | "filters" | "replaceFilter" | "deleteFilter">;

function fakeFilters(namespace: FakeNamespace): FilterPart {
  return {
    addClsact: (device) => {
      existing(namespace, device);
      namespace.clsact.add(device);
    },
    deleteClsact: (device) => {
      namespace.filters = namespace.filters.filter((filter) => filter.device !== device);
      return namespace.clsact.delete(device);
    },
    filters: (device, direction) =>
      namespace.filters.filter((filter) => filter.device === device && filter.direction === direction),
    replaceFilter: ({ device, direction, name, program, priority = 1, handle = 1 }) => {
      existing(namespace, device);
      if (!namespace.clsact.has(device))
        throw kernelError(`filter ${name} on ${device}`, "EINVAL", "Parent Qdisc doesn't exists");
      const made = { device, direction, name, priority, handle, programId: program.info.id };
      namespace.filters = [
        ...namespace.filters.filter(
          (other) =>
            other.device !== device ||
            other.direction !== direction ||
            other.priority !== priority ||
            other.handle !== handle,
        ),
        made,
      ];
    },
    deleteFilter: ({ device, direction, priority, handle }) => {
      const found = namespace.filters.find(
        (other) =>
          other.device === device &&
          other.direction === direction &&
          other.priority === priority &&
          other.handle === handle,
      );
      namespace.filters = namespace.filters.filter((other) => other !== found);
      return found !== undefined;
    },
  };
}
