import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { ClusterNode, ModelDelta, Route } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { emptyDelta } from "../../src/dataplane/model-delta.ts";
import { applyAndKeep, releaseHeld } from "../../src/dataplane/net/keep-translations.ts";
import { createNodeNetwork, type NodeNetwork } from "../../src/dataplane/net/node-network.ts";
import { createNatKeepalive } from "../../src/dataplane/switchover/nat-keepalive.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { LabPod } from "./lab-pod.ts";

const reason = whyNoNftables();
const OVERLAY = "vxlan.story";
const POD = "10.8.2.5";
const BLOCK = "10.8.2.0/26";
/** What kube-proxy does for a node port whose pod is on another node. */
const NODE_PORT = `add table ip story
add chain ip story to { type nat hook prerouting priority -100; }
add chain ip story from { type nat hook postrouting priority 100; }
add rule ip story to tcp dport 30080 dnat to ${POD}:80
add rule ip story from ip daddr ${POD} masquerade`;

describe.skipIf(reason)(`a connection by a node port to a pod of another node${reason ? ` (${reason})` : ""}`, () => {
  const kernel = realKernel();
  const namespaces: Netns[] = [];
  const networks: NodeNetwork[] = [];
  const inhabitants: LabPod[] = [];
  afterEach(async () => {
    for (const one of inhabitants.splice(0)) await one.stop();
    for (const network of networks.splice(0)) network.close();
    for (const netns of namespaces.splice(0)) {
      netns.close();
      kernel.netns.delete(netns.name);
    }
  });

  function namespace(name: string): Netns {
    const netns = kernel.netns.create(`vt-${process.pid}-kept-${name}`);
    namespaces.push(netns);
    kernel.netns.run(netns, () => writeFileSync("/proc/sys/net/ipv4/ip_forward", "1"));
    return netns;
  }

  /** An interface with an address, up, and a route to everything else by way of a gateway. */
  function connected(netns: Netns, name: string, address: string, gateway?: string): void {
    const netlink = kernel.netlink(netns);
    const device = netlink.link(name)!.index;
    netlink.changeLink(1, { up: true });
    netlink.changeLink(device, { up: true });
    netlink.addAddress({ device, address });
    const route = { destination: "0.0.0.0/0", type: "unicast", table: MAIN_TABLE, protocol: 3, device } as const;
    if (gateway !== undefined) netlink.replaceRoute({ ...route, gateway });
    netlink.close();
  }

  function wire(one: Netns, nameThere: string, other: Netns, nameHere: string): void {
    const netlink = kernel.netlink(one);
    netlink.addVeth({ name: nameThere, peer: { name: nameHere, netns: other } });
    netlink.close();
  }

  /** `learned`: the way to the block is not the agent's, but one that BGP has brought. */
  async function opened({ learned = false } = {}) {
    const [client, front, back, pod] = ["client", "front", "back", "pod"].map(namespace) as [
      Netns,
      Netns,
      Netns,
      Netns,
    ];
    wire(client, "eth0", front, "out");
    wire(front, "eth0", back, "eth0");
    wire(back, "to-pod", pod, "eth0");
    connected(client, "eth0", "203.0.113.9/24");
    connected(front, "out", "203.0.113.1/24");
    connected(front, "eth0", "172.30.0.1/24");
    connected(back, "eth0", "172.30.0.2/24");
    connected(back, "to-pod", "10.8.2.1/26");
    connected(pod, "eth0", `${POD}/26`, "10.8.2.1");
    const nft = kernel.nft(front);
    await nft.run(NODE_PORT);
    nft.close();
    networks.push(
      ...[front, back].map((netns, at) => {
        const network = createNodeNetwork({ kernel, overlay: OVERLAY, netns });
        network.apply(readyFor(at + 1, "none", learned));
        return network;
      }),
    );
    if (learned) learn(front);
    inhabitants.push(new LabPod(pod.name), new LabPod(client.name, []));
    await Promise.all(inhabitants.map(({ ready }) => ready));
    const asking = inhabitants[1]!;
    const holds = (name: string) => asking.order({ do: "hold", name, address: "203.0.113.1", port: 30080 });
    const says = (patience: number, name = "kept") => asking.order({ do: "say", name, patience });
    expect(await holds("kept")).toBe(true);
    return { front, holds, says };
  }

  function learn(netns: Netns): void {
    const netlink = kernel.netlink(netns);
    const route = { destination: BLOCK, type: "unicast", table: MAIN_TABLE, gateway: "172.30.0.2" } as const;
    netlink.replaceRoute({ ...route, protocol: 12, metric: 80 });
    netlink.close();
  }

  /** The block of the other node as it is reached by the first; both nodes are ready for VXLAN. */
  function readyFor(here: number, encapsulation: Route["encapsulation"] = "none", learned = false): ModelDelta {
    const none = { set: [], remove: [] };
    const nodes = [1, 2].map(
      (at): ClusterNode => ({
        ...{ name: `node-${at}`, local: at === here, addressV4: `172.30.0.${at}`, addressV6: null, dataplane: null },
        ...{ subnetV4: null, subnetV6: null, addresses: [] },
        vtep: { mac: `66:00:00:00:00:0${at}`, addressV4: `10.8.${at}.64`, addressV6: null },
      }),
    );
    const route: Route = {
      ...{ cidr: BLOCK, kind: "remote-workload", node: "node-2", interfaceName: null, encapsulation },
      ...{ sameSubnet: true, natOutgoing: false, inPool: true, tunnel: false },
      nextHop: encapsulation === "vxlan" ? "10.8.2.64" : learned ? null : "172.30.0.2",
    };
    return {
      ...{ inSync: true, ipSets: { set: [], change: [], remove: [] }, policies: none, profiles: none, endpoints: none },
      ...{ hostEndpoints: none, services: none, problems: none, nodes: { set: nodes, remove: [] } },
      settings: { ...new ModelCopy().settings, tunnels: ["vxlan"] },
      routes: { set: here === 1 ? [route] : [], remove: [] },
    };
  }

  it("goes on when the pool changes its tunnel, and its entry is bound to no device", async () => {
    const { front, says } = await opened();
    expect(await says(5_000)).toBe(true);
    const network = networks[0]!;
    expect(network.rerouted(readyFor(1))).toEqual([]);
    expect(network.rerouted(readyFor(1, "vxlan"))).toEqual([BLOCK]);
    await applyAndKeep(network, readyFor(1, "vxlan"), { kernel, table: "keep", netns: front });
    expect(network.rerouted(readyFor(1, "vxlan"))).toEqual([]);
    expect(await says(5_000)).toBe(true);
    // Nor does the kernel end it with the device.
    await network.remove();
    network.apply(readyFor(1));
    expect(await says(5_000)).toBe(true);
    expect(await tablesOf(front)).toEqual(["story"]);
  });

  it("goes on when BGP had brought its route, and the pool changes to a tunnel; after a restart of the agent as well", async () => {
    const { front, says } = await opened({ learned: true });
    const started = createNodeNetwork({ kernel, overlay: OVERLAY, netns: front });
    networks.push(started);
    expect(started.rerouted(readyFor(1, "vxlan"))).toEqual([BLOCK]);
    const network = networks[0]!;
    expect(network.rerouted(readyFor(1, "none", true))).toEqual([]);
    // Of a node whose tunnel address is not known yet, packets go on by the other route.
    const waiting = readyFor(1, "vxlan");
    const unknown = waiting.routes.set.map((route) => ({ ...route, nextHop: null }));
    expect(network.rerouted({ ...waiting, routes: { set: unknown, remove: [] } })).toEqual([]);
    network.apply({ ...waiting, routes: { set: unknown, remove: [] } });
    expect(network.rerouted(readyFor(1, "vxlan"))).toEqual([BLOCK]);
    await applyAndKeep(network, readyFor(1, "vxlan"), { kernel, table: "keep", netns: front });
    expect(network.rerouted(readyFor(1, "vxlan"))).toEqual([]);
    expect(await says(5_000)).toBe(true);
    // And back: packets follow the route that BGP has brought as soon as there is no tunnel.
    expect(network.rerouted(readyFor(1, "none", true))).toEqual([BLOCK]);
    await applyAndKeep(network, readyFor(1, "none", true), { kernel, table: "keep", netns: front });
    expect(await says(5_000)).toBe(true);
  });

  it("a block that is new holds no packets back", async () => {
    const { says } = await opened({ learned: true });
    const next: ModelDelta = { ...readyFor(1, "vxlan") };
    const fresh = next.routes.set.map((route) => ({ ...route, cidr: "10.8.3.0/26" }));
    expect(networks[0]!.rerouted({ ...next, routes: { set: fresh, remove: [] } })).toEqual([]);
    expect(await says(5_000)).toBe(true);
  });

  it("goes on when it began a moment before the route changes", async () => {
    const { front, holds, says } = await opened();
    const begun: unknown[] = [];
    const nft: typeof kernel.nft = (netns) => {
      const port = kernel.nft(netns);
      const run = async (commands: string) => {
        await port.run(commands);
        if (begun.length === 0) begun.push(await holds("late"));
      };
      return { ...port, run };
    };
    const options = { kernel: { nft, conntrack: kernel.conntrack }, table: "keep", netns: front };
    await applyAndKeep(networks[0]!, readyFor(1, "vxlan"), options);
    expect(begun).toEqual([true]);
    expect(await says(5_000, "late")).toBe(true);
  });

  it("goes on though the kernel does not list its connections at the first try", async () => {
    const { front, says } = await opened();
    await applyAndKeep(networks[0]!, readyFor(1, "vxlan"), { kernel: busyKernel(1), table: "keep", netns: front });
    expect(await says(5_000)).toBe(true);
  });

  it("loses no change of a route where the kernel lists none, and says that connections may be lost", async () => {
    const { front } = await opened();
    const options = { kernel: busyKernel(100), table: "keep", netns: front };
    await expect(applyAndKeep(networks[0]!, readyFor(1, "vxlan"), options)).rejects.toThrow("busy");
    expect(networks[0]!.rerouted(emptyDelta(true))).toEqual([]);
    const netlink = kernel.netlink(front);
    const overlay = netlink.link(OVERLAY)?.index;
    expect(netlink.routes({ table: MAIN_TABLE }).find(({ destination }) => destination === BLOCK)?.device).toBe(
      overlay,
    );
    netlink.close();
    expect(await tablesOf(front)).toEqual(["story"]);
  });

  it("a switchover that makes a table of its own at the same time keeps it", async () => {
    const { front } = await opened();
    const keepalive = createNatKeepalive({ kernel, table: "switchover", overlay: OVERLAY, netns: front });
    await Promise.all([
      applyAndKeep(networks[0]!, readyFor(1, "vxlan"), { kernel, table: "keep", netns: front }),
      keepalive.put(false, new ModelCopy()),
    ]);
    expect(await keepalive.state()).toBe("open");
    await keepalive.remove();
    keepalive.close();
  });

  it("an agent that was killed meanwhile leaves nothing that holds packets back", async () => {
    const { front, says } = await opened();
    const nft = kernel.nft(front);
    await nft.run(`add table inet keep
add chain inet keep leaving { type filter hook postrouting priority 90; }
add rule inet keep leaving ct status snat drop`);
    nft.close();
    expect(await says(500)).toBe(false);
    await releaseHeld({ kernel, table: "keep", netns: front });
    expect(await tablesOf(front)).toEqual(["story"]);
  });

  it("would be ended by the kernel otherwise", async () => {
    const { says } = await opened();
    networks[0]!.apply(readyFor(1, "vxlan"));
    expect(await says(1_000)).toBe(false);
  });

  async function tablesOf(netns: Netns): Promise<string[]> {
    const nft = kernel.nft(netns);
    const names = (await nft.tables()).map(({ name }) => name);
    nft.close();
    return names;
  }

  function busyKernel(times: number) {
    let left = times;
    const conntrack: typeof kernel.conntrack = (netns) => {
      const port = kernel.conntrack(netns);
      return { ...port, list: (filter) => (left-- > 0 ? Promise.reject(new Error("busy")) : port.list(filter)) };
    };
    return { nft: kernel.nft, conntrack };
  }
});
