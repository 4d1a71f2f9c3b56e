import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { ClusterNode, ModelDelta, Route } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { keepTranslations, LastEncapsulations } from "../../src/dataplane/net/keep-translations.ts";
import { createNodeNetwork, type NodeNetwork } from "../../src/dataplane/net/node-network.ts";
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

  async function opened() {
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
        network.apply(readyFor(at + 1));
        return network;
      }),
    );
    inhabitants.push(new LabPod(pod.name), new LabPod(client.name, []));
    await Promise.all(inhabitants.map(({ ready }) => ready));
    const asking = inhabitants[1]!;
    expect(await asking.order({ do: "hold", name: "kept", address: "203.0.113.1", port: 30080 })).toBe(true);
    return { front, says: (patience: number) => asking.order({ do: "say", name: "kept", patience }) };
  }

  /** The block of the other node as it is reached by the first; both nodes are ready for VXLAN. */
  function readyFor(here: number, encapsulation: Route["encapsulation"] = "none"): ModelDelta {
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
      nextHop: encapsulation === "vxlan" ? "10.8.2.64" : "172.30.0.2",
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
    const last = new LastEncapsulations();
    expect(last.changed(readyFor(1))).toEqual([]);
    const changed = last.changed(readyFor(1, "vxlan"));
    expect(changed).toEqual([BLOCK]);
    expect(await keepTranslations(changed, { kernel, table: "keep", netns: front })).toBe(1);
    networks[0]!.apply(readyFor(1, "vxlan"));
    expect(await says(5_000)).toBe(true);
    // Nor does the kernel end it with the device.
    await networks[0]!.remove();
    networks[0]!.apply(readyFor(1));
    expect(await says(5_000)).toBe(true);
    const nft = kernel.nft(front);
    expect((await nft.tables()).map(({ name }) => name)).toEqual(["story"]);
    nft.close();
  });

  it("would be ended by the kernel otherwise", async () => {
    const { says } = await opened();
    networks[0]!.apply(readyFor(1, "vxlan"));
    expect(await says(1_000)).toBe(false);
  });
});
