import { existsSync, writeFileSync } from "node:fs";
import { errnoOf } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { type Link, MAIN_TABLE, type NetlinkPort, type Route } from "../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { PodRecord } from "./pod-records.ts";

/** What every pod sees as its gateway; the host side of each pod's interface answers to it. */
export const GATEWAYS = { v4: "169.254.1.1", v6: "fe80::ecee:eeff:feee:eeee" } as const;
const HOST_MAC = "ee:ee:ee:ee:ee:ee";
/** The protocol that marks our routes; inside the pod they look like static ones. */
const PROTOCOL = { ours: 80, byHand: 4 } as const;

/** Makes, checks and removes the pair of interfaces that connects a pod. */
export interface PodInterfaces {
  /** Both sides, of which the host's is down: no packet passes before `open`. Whatever was there under the name goes first. */
  make(record: PodRecord, forwarding: boolean): Promise<void>;
  /** Lets packets pass. */
  open(record: PodRecord): void;
  /** What is not as it was made; undefined: nothing. */
  problem(record: PodRecord): string | undefined;
  /** Gone already is fine. */
  remove(record: PodRecord): Promise<void>;
}

export function podInterfaces(kernel: Kernel, sysctlDir: string): PodInterfaces {
  const host = kernel.netlink();
  return {
    async make(record, forwarding) {
      await removeLink(host, record.interfaceName);
      withNetns(kernel, record.netns, (netns, inside) => {
        host.addVeth({
          name: record.interfaceName,
          mac: HOST_MAC,
          mtu: record.mtu,
          peer: { name: record.ifname, mac: record.mac, mtu: record.mtu, netns },
        });
        kernel.netns.run(netns, () => prepareInside(sysctlDir, record, forwarding));
        configureInside(inside, record);
      });
    },
    open(record) {
      const link = host.link(record.interfaceName);
      if (!link) throw new Error(`interface ${record.interfaceName} is gone`);
      // The address the host speaks to the pod from must be usable at once, not after it was asked for on the link.
      write(`${sysctlDir}/ipv6/conf/${record.interfaceName}/accept_dad`, "0");
      host.changeLink(link.index, { up: true });
      for (const address of record.addresses) {
        // A permanent entry: there is no resolution on the link, and no pod can answer for another.
        host.replaceNeighbour({ device: link.index, address, mac: record.mac });
        host.replaceRoute(hostRoute(link, address));
      }
    },
    problem(record) {
      const link = host.link(record.interfaceName);
      if (!link) return `the node has no interface ${record.interfaceName}`;
      if (!link.up) return `interface ${record.interfaceName} is down`;
      const reached = new Set(host.routes({ device: link.index }).map(({ destination }) => destination));
      const unreached = record.addresses.find((address) => !reached.has(prefix(address)));
      if (unreached) return `the node has no route to ${unreached}`;
      try {
        return withNetns(kernel, record.netns, (_netns, inside) => problemInside(inside, record));
      } catch (error) {
        if (errnoOf(error) === "ENOENT") return `there is no network namespace ${record.netns}`;
        throw error;
      }
    },
    remove: (record) => removeLink(host, record.interfaceName),
  };
}

function withNetns<T>(kernel: Kernel, path: string, act: (netns: Netns, inside: NetlinkPort) => T): T {
  const netns = kernel.netns.openPath(path);
  try {
    const inside = kernel.netlink(netns);
    try {
      return act(netns, inside);
    } finally {
      inside.close();
    }
  } finally {
    netns.close();
  }
}

/** Settings of the namespace we are in just now. */
function prepareInside(sysctlDir: string, { ifname, addresses }: PodRecord, forwarding: boolean): void {
  const v6 = addresses.some((address) => address.includes(":"));
  write(`${sysctlDir}/ipv4/ip_forward`, forwarding ? "1" : "0");
  write(`${sysctlDir}/ipv6/conf/all/disable_ipv6`, v6 ? "0" : "1");
  if (!v6) return;
  write(`${sysctlDir}/ipv6/conf/${ifname}/disable_ipv6`, "0");
  write(`${sysctlDir}/ipv6/conf/${ifname}/accept_dad`, "0");
  write(`${sysctlDir}/ipv6/conf/${ifname}/accept_ra`, "0");
  write(`${sysctlDir}/ipv6/conf/all/forwarding`, forwarding ? "1" : "0");
}

function configureInside(inside: NetlinkPort, { ifname, addresses }: PodRecord): void {
  const [loopback, link] = [inside.link("lo"), inside.link(ifname)];
  if (loopback && !loopback.up) inside.changeLink(loopback.index, { up: true });
  if (!link) throw new Error(`interface ${ifname} is gone`);
  inside.changeLink(link.index, { up: true });
  for (const address of addresses) inside.addAddress({ device: link.index, address: prefix(address) });
  for (const address of addresses) {
    const gateway = gatewayFor(address);
    inside.replaceNeighbour({ device: link.index, address: gateway, mac: HOST_MAC });
    inside.replaceRoute(defaultRoute(link.index, gateway));
  }
}

function problemInside(inside: NetlinkPort, { ifname, addresses, mac }: PodRecord): string | undefined {
  const link = inside.link(ifname);
  if (!link) return `the pod has no interface ${ifname}`;
  if (!link.up) return `interface ${ifname} of the pod is down`;
  if (link.mac !== mac) return `interface ${ifname} of the pod has MAC ${link.mac} instead of ${mac}`;
  const has = new Set(inside.addresses().map(({ device, address }) => `${device} ${address}`));
  const missing = addresses.find((address) => !has.has(`${link.index} ${prefix(address)}`));
  if (missing) return `the pod does not have address ${missing}`;
  const gateways = new Set(inside.routes({ device: link.index }).map(({ gateway }) => gateway));
  const cut = addresses.find((address) => !gateways.has(gatewayFor(address)));
  return cut && `the pod has no default route for ${cut}`;
}

async function removeLink(host: NetlinkPort, name: string): Promise<void> {
  const link = host.link(name);
  if (link) await host.deleteLink(link.index);
}

function hostRoute({ index }: Link, address: string): Route {
  return { destination: prefix(address), type: "unicast", table: MAIN_TABLE, protocol: PROTOCOL.ours, device: index };
}

function defaultRoute(device: number, gateway: string): Route {
  const destination = gateway === GATEWAYS.v6 ? "::/0" : "0.0.0.0/0";
  return { destination, type: "unicast", table: MAIN_TABLE, protocol: PROTOCOL.byHand, device, gateway, onlink: true };
}

function gatewayFor(address: string): string {
  return address.includes(":") ? GATEWAYS.v6 : GATEWAYS.v4;
}

function prefix(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}

/** A kernel without a family has none of its settings, and a pod that needs it fails at its addresses, which says more. */
function write(path: string, value: string): void {
  if (existsSync(path)) writeFileSync(path, value);
}
