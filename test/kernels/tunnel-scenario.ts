import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterNode, ModelDelta } from "../../src/calc/model.ts";
import { createEbpfDataplane, type EbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { allow, deltaOf, POD_B } from "../ebpf/packet-lab.ts";
import { routeTo, servicePort } from "../ebpf/service-lab.ts";
import { OPEN, OVERLAY } from "./lab.ts";
import { Speaker } from "./pod.ts";

const CLIENT = "203.0.113.9";
const FRONT = { address: "192.0.2.1", outside: "203.0.113.1", mac: "66:00:00:00:00:01" };
const BACK = { address: "192.0.2.2", mac: "66:00:00:00:00:02" };
const POD = { host: "venbbbbbbbbbbb", mac: "02:00:00:00:00:0b", gateway: "169.254.1.1" };

/**
 * A client asks a node port of one node, and a pod of another answers, which lets in nobody but that very client: so its address came through
 * the tunnel, and the answer went back by it.
 */
export async function clientsGoThroughTheTunnel(kernel: Kernel): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "vt-tunnel-"));
  kernel.mounts.ensure("bpf", directory);
  const names = ["client", "front", "back", "pod"] as const;
  const spaces = Object.fromEntries(
    names.map((role) => [role, kernel.netns.create(`vt-tunnel-${process.pid}-${role}`)]),
  ) as Record<(typeof names)[number], Netns>;
  const speakers: Speaker[] = [];
  const planes: EbpfDataplane[] = [];
  try {
    connect(kernel, spaces);
    for (const node of ["front", "back"] as const) {
      const plane = await createEbpfDataplane({
        ...{ kernel, netns: spaces[node], pinDirectory: `${directory}/${node}`, overlay: OVERLAY },
      });
      planes.push(plane);
      const { objects } = await plane.apply(modelOf(node));
      for (const { id, failed } of objects) if (failed) throw new Error(`${node} ${id}: ${failed.message}`);
    }
    const [client, pod] = [new Speaker(spaces.client), new Speaker(spaces.pod)];
    speakers.push(client, pod);
    await pod.listen(OPEN);
    const connection = await client.open(FRONT.outside, 30080);
    await connection.answers();
    await connection.close();
  } finally {
    for (const speaker of speakers) await speaker.close();
    for (const plane of planes) {
      await plane.remove();
      await plane.close();
    }
    for (const netns of Object.values(spaces)) {
      netns.close();
      kernel.netns.delete(netns.name);
    }
    kernel.mounts.unmount(directory);
    rmSync(directory, { recursive: true, force: true });
  }
}

function connect(kernel: Kernel, spaces: Record<"client" | "front" | "back" | "pod", Netns>): void {
  const { client, front, back, pod } = spaces;
  const inside = (netns: Netns, act: (netlink: NetlinkPort) => void) => {
    const netlink = kernel.netlink(netns);
    act(netlink);
    netlink.close();
  };
  const own = (netns: Netns, name: string, address: string) =>
    inside(netns, (netlink) => {
      const device = netlink.link(name)!.index;
      netlink.changeLink(device, { up: true });
      netlink.addAddress({ device, address });
    });
  inside(front, (netlink) => {
    netlink.addVeth({ name: "eth0", peer: { name: "eth0", netns: client } });
    netlink.addVeth({ name: "eth1", peer: { name: "eth0", netns: back } });
  });
  own(client, "eth0", `${CLIENT}/24`);
  own(front, "eth0", `${FRONT.outside}/24`);
  own(front, "eth1", `${FRONT.address}/24`);
  own(back, "eth0", `${BACK.address}/24`);
  for (const [netns, self, peer] of [
    [front, FRONT, BACK],
    [back, BACK, FRONT],
  ] as const) {
    kernel.netns.run(netns, () => writeFileSync("/proc/sys/net/ipv4/ip_forward", "1"));
    inside(netns, (netlink) => {
      netlink.addVxlan({
        name: OVERLAY,
        vni: 4096,
        port: 4789,
        local: self.address,
        mac: self.mac,
        mtu: 1450,
        learning: false,
      });
      const device = netlink.link(OVERLAY)!.index;
      netlink.changeLink(device, { up: true });
      netlink.replaceForwarding({ device, mac: peer.mac, destination: peer.address });
    });
  }
  inside(back, (netlink) => {
    netlink.addVeth({ name: POD.host, mac: "ee:ee:ee:ee:ee:ee", peer: { name: "eth0", mac: POD.mac, netns: pod } });
    const device = netlink.link(POD.host)!.index;
    netlink.changeLink(device, { up: true });
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 80, device } as const;
    netlink.replaceRoute({ ...route, destination: `${POD_B.v4}/32` });
  });
  own(pod, "eth0", `${POD_B.v4}/32`);
  inside(pod, (netlink) => {
    const device = netlink.link("eth0")!.index;
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 80, device } as const;
    netlink.replaceNeighbour({ device, address: POD.gateway, mac: "ee:ee:ee:ee:ee:ee" });
    netlink.replaceRoute({ ...route, destination: `${POD.gateway}/32` });
    netlink.replaceRoute({ ...route, destination: "0.0.0.0/0", gateway: POD.gateway });
  });
}

function modelOf(node: "front" | "back"): ModelDelta {
  const rules = { bIngress: [allow({ srcNets: [`${CLIENT}/32`] })] };
  const delta = deltaOf(rules);
  const isBack = node === "back";
  const pods = delta.endpoints.set.filter(({ interfaceName }) => isBack && interfaceName === POD.host);
  const backend = `${isBack ? "*" : ""}${POD_B.v4}:${OPEN}`;
  return {
    ...delta,
    endpoints: { set: pods, remove: [] },
    nodes: { set: [nodeOf("front", FRONT, !isBack), nodeOf("back", BACK, isBack)], remove: [] },
    routes: {
      set: [
        ...(isBack ? [] : [routeTo(`${POD_B.v4}/32`, "remote-workload", "back")]),
        routeTo(`${FRONT.address}/32`, isBack ? "remote-host" : "local-host", "front"),
        routeTo(`${BACK.address}/32`, isBack ? "local-host" : "remote-host", "back"),
      ],
      remove: [],
    },
    services: { set: [servicePort("web", [backend], { clusterAddress: "10.96.0.10", nodePort: 30080 })], remove: [] },
  };
}

function nodeOf(name: string, { address, mac }: { address: string; mac: string }, local: boolean): ClusterNode {
  return {
    ...{ name, local, addressV4: address, addressV6: null, subnetV4: null, subnetV6: null, dataplane: "BPF" },
    addresses: [`${address}/32`],
    vtep: { mac, addressV4: address, addressV6: null },
  };
}
