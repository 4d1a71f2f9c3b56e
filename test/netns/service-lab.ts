import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceBackend, ServicePort } from "../../src/calc/model.ts";
import { plainServicePort } from "../../src/calc/testing/service-port.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";
import type { RunOnNode } from "../../src/local/runtime/netns/kube-proxy/service-writers.ts";
import { runCommand } from "../../src/local/runtime/netns/run-command.ts";
import { answerIn, type Listener } from "./sockets.ts";

/** One node, two pods behind it, and two hosts in front of it: enough for every way a service is asked. */
export interface ServiceLab {
  node: Netns;
  pods: Record<"here" | "there", Netns>;
  client: Netns;
  stranger: Netns;
  run: RunOnNode;
  close(): void;
}

export const kernel = realKernel();
/** Namespaces of a story are its own: it need not wait for others on this machine who write rules in theirs. */
const XTABLES_LOCKFILE = join(tmpdir(), `xtables-${process.pid}.lock`);
process.env["XTABLES_LOCKFILE"] = XTABLES_LOCKFILE;
/** Pods answer here. */
const POD_PORT = 8080;
export const CLUSTER_CIDRS = ["10.66.0.0/16", "fd66::/48"];
export const NODE_ADDRESSES = ["192.0.2.1", "2001:db8:77::1", "198.51.100.1", "2001:db8:88::1"];
const POD_ADDRESSES = { here: ["10.66.1.11", "fd66:0:0:1::11"], there: ["10.66.2.12", "fd66:0:0:2::12"] } as const;
/** The node, as each pod sees it. */
const GATEWAYS = { here: ["10.66.1.1", "fd66:0:0:1::1"], there: ["10.66.2.1", "fd66:0:0:2::1"] } as const;
const CLIENT_ADDRESSES = ["192.0.2.2", "2001:db8:77::2"];
const LENGTHS = ["/24", "/64"] as const;

export async function startServiceLab(): Promise<ServiceLab> {
  const id = `sl${process.pid}-${randomBytes(2).toString("hex")}`;
  const made: Netns[] = [];
  const listeners: Listener[] = [];
  const make = (name: string): Netns => {
    const netns = kernel.netns.create(`${id}-${name}`);
    made.push(netns);
    kernel.netns.run(netns, () => writeFileSync("/proc/sys/net/ipv6/conf/default/accept_dad", "0"));
    const links = kernel.netlink(netns);
    links.changeLink(links.link("lo")!.index, { up: true });
    links.close();
    return netns;
  };
  const node = make("node");
  kernel.netns.run(node, () => {
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    writeFileSync("/proc/sys/net/ipv6/conf/all/forwarding", "1");
  });
  const inside = kernel.netlink(node);
  const plug = (name: string, gateways: readonly string[], addresses: readonly string[]): Netns => {
    const netns = make(name);
    inside.addVeth({ name, peer: { name: "eth0", netns } });
    const { index } = inside.link(name)!;
    inside.changeLink(index, { up: true });
    address(inside, index, gateways);
    const own = kernel.netlink(netns);
    const { index: eth0 } = own.link("eth0")!;
    own.changeLink(eth0, { up: true });
    address(own, eth0, addresses);
    for (const [i, destination] of ["0.0.0.0/0", "::/0"].entries()) {
      const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device: eth0 } as const;
      own.replaceRoute({ ...route, destination, gateway: gateways[i] as string });
    }
    own.close();
    return netns;
  };
  const pods = {
    here: plug("here", GATEWAYS.here, POD_ADDRESSES.here),
    there: plug("there", GATEWAYS.there, POD_ADDRESSES.there),
  };
  const client = plug("client", NODE_ADDRESSES.slice(0, 2), CLIENT_ADDRESSES);
  const stranger = plug("stranger", NODE_ADDRESSES.slice(2), ["198.51.100.2", "2001:db8:88::2"]);
  // Without a way to everywhere, packets to a service's address would end before any rule could refuse them.
  for (const [i, destination] of ["0.0.0.0/0", "::/0"].entries()) {
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, destination } as const;
    inside.replaceRoute({ ...route, gateway: CLIENT_ADDRESSES[i] as string, device: inside.link("client")!.index });
  }
  inside.close();
  for (const [name, netns] of Object.entries(pods)) {
    listeners.push(await answerIn(netns, name, { tcp: [POD_PORT], udp: [POD_PORT] }));
  }
  return {
    ...{ node, pods, client, stranger },
    run: (command, input = "") =>
      runCommand(["ip", "netns", "exec", node.name, ...command], { input, env: { XTABLES_LOCKFILE } }),
    close() {
      for (const listener of listeners) listener.close();
      rmSync(XTABLES_LOCKFILE, { force: true });
      for (const netns of made) {
        netns.close();
        kernel.netns.delete(netns.name);
      }
    },
  };
}

function address(links: ReturnType<typeof kernel.netlink>, device: number, addresses: readonly string[]): void {
  for (const [i, one] of addresses.entries()) links.addAddress({ device, address: `${one}${LENGTHS[i]}` });
}

const ADDRESSES = { 4: { cluster: "10.96.0.10", at: 0 }, 6: { cluster: "fd96::10", at: 1 } } as const;

export function backend(pod: keyof typeof POD_ADDRESSES, family: 4 | 6): ServiceBackend {
  const local = pod === "here";
  const place = POD_ADDRESSES[pod][ADDRESSES[family].at];
  return { address: place, port: POD_PORT, local, node: local ? "node" : "elsewhere" };
}

/** A service port as the model says it: both pods answer unless told. */
export function servicePort(change: Partial<ServicePort> = {}): ServicePort {
  const { family = 4, protocol = 6 } = change;
  return plainServicePort({
    ...{ id: `shop/web:http/${protocol === 6 ? "tcp" : "udp"}/${family}`, clusterAddress: ADDRESSES[family].cluster },
    clusterBackends: [backend("here", family), backend("there", family)],
    ...change,
  });
}

export function rowsOf(...rows: ServicePort[]): Map<string, ServicePort> {
  return new Map(rows.map((row) => [row.id, row]));
}

/** How a connection ends: who answers, or the error, or nothing for so long that it is given up. */
export function connectFrom(netns: Netns, host: string, port: number, patienceMs = 700): Promise<string> {
  return new Promise((resolve) => {
    const socket = dial(kernel, netns, { host, port });
    const late = setTimeout(() => end("silence"), patienceMs);
    const end = (how: string) => {
      clearTimeout(late);
      socket.destroy();
      resolve(how);
    };
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.once("connect", () => end("connected"));
  });
}
