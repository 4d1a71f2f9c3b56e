import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { inside, until, whyNoNodes } from "../agent/node-lab.ts";
import { frame, summed, udp, v4 } from "../ebpf/frames.ts";
import { type AttackLab, admit, attackLab, type Member, PLANES, pathOpens } from "./packet-lab.ts";

const why = whyNoNodes();
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const OVERLAY_PORT = 4789;
const VNI = 4096;
const SERVICE = { address: "10.96.0.50", port: 5000 };
/** A second network of the first node, by an interface that is no uplink. */
const SIDE = { node: "10.98.0.1", outside: "10.98.0.2" };

/** A packet in the tunnel, as a node would send it. */
function tunnelled(mac: string, inner: { source: string; destination: string; port: number; text: string }): Buffer {
  const header = Buffer.alloc(8);
  header[0] = 8;
  header.writeUIntBE(VNI, 4, 3);
  const packet = summed(
    v4({ source: inner.source, destination: inner.destination }, udp(7000, inner.port, inner.text)),
  );
  const ethernet = frame(packet);
  Buffer.from(mac.replaceAll(":", ""), "hex").copy(ethernet, 0);
  return Buffer.concat([header, ethernet]);
}

describe.skipIf(why !== undefined).each(PLANES)(`the overlay's port, $plane${why ? ` (${why})` : ""}`, ({ bpf }) => {
  let lab: AttackLab;
  let macs: string[];
  let fences = 0;
  beforeAll(async () => {
    lab = await attackLab(bpf);
    await admit(lab.nodes.client, { pod: "victim", from: ["far"] });
    await lab.actors.victim.udp("open", 4, 9090);
    for (const member of ["attacker", "far", "outside"] as const) {
      await lab.actors[member].udp("v4", 4);
      await lab.actors[member].udp("v6", 6);
    }
    macs = lab.nodes.nodes.map(({ netns }) => {
      const netlink = realKernel().netlink(netns);
      const { mac } = netlink.link("vxlan.vendor")!;
      netlink.close();
      return mac!;
    });
    await fence();
  });
  afterAll(() => lab?.close());

  /** What was sent before has arrived, or never will: a datagram that policy allows comes through the tunnel after it. */
  async function fence(): Promise<void> {
    const { far, victim } = lab.actors;
    const to = { actor: victim, socket: "open", address: lab.address("victim", 4), port: 9090 };
    await pathOpens({ actor: far, socket: "v4" }, to, `fence ${fences++}`);
  }

  /** What the victim hears that `far` did not send, although the inner packets say so. */
  async function injected(by: Member, text: string, address: string, port = OVERLAY_PORT): Promise<string[]> {
    const inner = { source: lab.address("far", 4), destination: lab.address("victim", 4), port: 9090, text };
    const said = await lab.actors[by].send("v4", address, port, tunnelled(macs[0]!, inner));
    expect(said).toBe("sent");
    await fence();
    return (await lab.actors.victim.heard("open")).filter((heard) => heard === text);
  }

  const addressOfTunnel = (node: number): string => {
    const netlink = realKernel().netlink(lab.nodes.nodes[node]!.netns);
    const { index } = netlink.link("vxlan.vendor")!;
    const found = netlink.addresses().find(({ device, address }) => device === index && !address.includes(":"))!;
    netlink.close();
    return found.address.replace(/\/.*/, "");
  };

  it("takes nothing from a pod, by the address of its node or of the tunnel", async () => {
    expect(await injected("attacker", "by the node", lab.nodes.nodes[0]!.addresses.v4)).toEqual([]);
    expect(await injected("attacker", "by the tunnel", addressOfTunnel(0))).toEqual([]);
  });

  it("takes nothing from a pod of another node, whose packets the masquerade makes a node's", async () => {
    await admit(lab.nodes.client, { pod: "victim", from: ["near", "far"] });
    // The inner source is a pod of the first node: the second believes it, as it would a packet of that node.
    await lab.actors.far.udp("open", 4, 9091);
    const [here, there] = [lab.address("near", 4), lab.address("far", 4)];
    for (const [text, address] of [
      ["by the other node", lab.nodes.nodes[1]!.addresses.v4],
      ["by its tunnel", addressOfTunnel(1)],
    ] as const) {
      const inner = { source: here, destination: there, port: 9091, text };
      await lab.actors.attacker.send("v4", address, OVERLAY_PORT, tunnelled(macs[1]!, inner));
    }
    const to = { actor: lab.actors.far, socket: "open", address: there, port: 9091 };
    await lab.actors.attacker.udp("fence", 4);
    await pathOpens({ actor: lab.actors.attacker, socket: "fence" }, to, "fence");
    expect((await lab.actors.far.heard("open")).filter((text) => text !== "fence")).toEqual([]);
    await admit(lab.nodes.client, { pod: "victim", from: ["far"] });
  });

  it("is not reached from a pod anywhere, in either family", async () => {
    for (const family of [4, 6] as const) {
      const socket = `v${family}`;
      const { attacker, outside } = lab.actors;
      await outside.udp(`overlay ${socket}`, family, OVERLAY_PORT);
      await outside.udp(`control ${socket}`, family, OVERLAY_PORT + 1);
      const to = { actor: outside, socket: `control ${socket}`, address: lab.address("outside", family) };
      await attacker.send(socket, to.address, OVERLAY_PORT, "by a pod");
      await pathOpens({ actor: attacker, socket }, { ...to, port: OVERLAY_PORT + 1 }, "fence");
      expect(await outside.heard(`overlay ${socket}`)).toEqual([]);
    }
  });

  it("takes nothing from a machine that is no node", async () => {
    expect(await injected("outside", "from outside", lab.nodes.nodes[0]!.addresses.v4)).toEqual([]);
  });

  it("takes what a machine of externalNodesList sends, as long as it is listed", async () => {
    const { client, nodes } = lab.nodes;
    const list = (externalNodesList: string[] | null) =>
      client.patch(SETTINGS, { name: "default" }, { type: "merge", patch: { spec: { externalNodesList } } });
    let sent = 0;
    const arrives = async () => (await injected("outside", `listed ${sent++}`, nodes[0]!.addresses.v4)).length;
    await list([`${lab.address("outside", 4)}/32`]);
    await expect.poll(arrives, { timeout: 60_000 }).toBe(1);
    await list(null);
    await expect.poll(arrives, { timeout: 60_000 }).toBe(0);
  });

  it("takes nothing by an interface that is no uplink", async () => {
    const [kernel, node] = [realKernel(), lab.nodes.nodes[0]!.netns];
    const [here, there] = [kernel.netlink(node), kernel.netlink(lab.nodes.outside.netns)];
    here.addVeth({ name: "side0", peer: { name: "side1", netns: lab.nodes.outside.netns } });
    for (const [netlink, name, address] of [
      [here, "side0", SIDE.node],
      [there, "side1", SIDE.outside],
    ] as const) {
      const { index } = netlink.link(name)!;
      netlink.changeLink(index, { up: true });
      netlink.addAddress({ device: index, address: `${address}/24` });
      netlink.close();
    }
    expect(await injected("outside", "by the side", SIDE.node)).toEqual([]);
  });

  it("is no backend of a Service", async () => {
    const node = lab.nodes.nodes[0]!;
    if (bpf) await serviceToOverlay(node.addresses.v4);
    else await proxyToOverlay(node.netns.name, node.addresses.v4);
    expect(await injected("attacker", "by a service", SERVICE.address, SERVICE.port)).toEqual([]);
  });

  /** As a tenant with `edit` writes it. */
  async function serviceToOverlay(address: string): Promise<void> {
    const { client } = lab.nodes;
    const metadata = { name: "tunnel", namespace: "default" };
    const port = { name: "", protocol: "UDP" };
    await client.create(SERVICES, {
      ...{ apiVersion: "v1", kind: "Service", metadata },
      spec: {
        ...{ type: "ClusterIP", clusterIP: SERVICE.address, clusterIPs: [SERVICE.address] },
        ports: [{ ...port, port: SERVICE.port, targetPort: OVERLAY_PORT }],
      },
    });
    await client.create(ENDPOINT_SLICES, {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": "tunnel" } },
      ports: [{ ...port, port: OVERLAY_PORT }],
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
    });
    await until(
      async () => (await lab.nodes.nodes[0]!.vendor("node", "show", "services")).includes(SERVICE.address),
      () => "the service is not served",
    );
  }

  /** What kube-proxy makes of such a Service. */
  async function proxyToOverlay(netns: string, address: string): Promise<void> {
    const rules = [
      "add table ip proxy",
      "add chain ip proxy services { type nat hook prerouting priority -100; }",
      `add rule ip proxy services ip daddr ${SERVICE.address} udp dport ${SERVICE.port} dnat to ${address}:${OVERLAY_PORT}`,
    ];
    const { ok, output } = await inside(netns, "nft", rules.join("; "));
    expect(ok, output).toBe(true);
  }
});
