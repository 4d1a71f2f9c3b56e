import assert from "node:assert/strict";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { IpipLab, type NodeName, podAddress } from "./ipip-lab.ts";
import { CLOSED, OPEN, OVERLAY } from "./lab.ts";
import type { Connection } from "./pod.ts";

const IPIP = "ipip.vendor";
const MODES = {
  ipip: { ipipMode: "Always", vxlanMode: "Never" },
  ipipCrossSubnet: { ipipMode: "CrossSubnet", vxlanMode: "Never" },
  vxlan: { ipipMode: "Never", vxlanMode: "Always" },
  none: { ipipMode: "Never", vxlanMode: "Never" },
} as const;
const ORDER: readonly NodeName[] = ["far", "near", "beside"];

/** Why there is no story to tell. */
export function whyNoIpip(kernel: Kernel): string | undefined {
  const netns = kernel.netns.create(`vt-ipip-${process.pid}-try`);
  const netlink = kernel.netlink(netns);
  try {
    netlink.addIpip({ name: "try", local: "127.0.0.1" });
    return undefined;
  } catch {
    return "the kernel has no IPIP";
  } finally {
    netlink.close();
    netns.close();
    kernel.netns.delete(netns.name);
  }
}

/** IPIP of a pool, of its other subnets only, and the way from there to VXLAN and back with connections open. */
export async function poolsTravelInIpip(kernel: Kernel): Promise<string | undefined> {
  const missing = whyNoIpip(kernel);
  if (missing !== undefined) return missing;
  const lab = await IpipLab.open(kernel);
  try {
    await lab.setPool(MODES.ipip, undefined);
    await packetsAndPolicy(lab);
    await onlyNodesAreBelieved(lab);
    const open = await connections(lab);
    await lab.setPool(MODES.ipipCrossSubnet, undefined);
    assert.deepEqual([lab.device("near", "beside"), lab.device("near", "far")], ["eth0", IPIP]);
    for (const connection of open) await connection.answers();
    await toVxlanAndBack(lab, open);
    for (const connection of open) await connection.close();
    assert.deepEqual(await lab.remove("near"), [], "nothing is left on a node");
    return undefined;
  } finally {
    await lab.close();
  }
}

async function packetsAndPolicy(lab: IpipLab): Promise<void> {
  const { near } = lab.speakers;
  assert.deepEqual([lab.device("near", "beside"), lab.device("near", "far")], [IPIP, IPIP]);
  for (const to of ["beside", "far"] as const) {
    const connection = await near.open(podAddress(to), OPEN);
    // The kernel's TCP sends segments as long as the pod's MTU, not to be cut.
    await connection.answersAtLength();
    await connection.close();
    assert.equal(await near.tries(podAddress(to), CLOSED), "silence", `${to} lets in what policy denies`);
  }
  assert.equal(lab.cutPackets(), 0, "a full packet of a pod passes in one piece");
}

/** A router sends in IPIP what looks like a node's packet to a pod. */
async function onlyNodesAreBelieved(lab: IpipLab): Promise<void> {
  lab.forge(`${podAddress("far")}/32`, "far");
  assert.equal(await lab.speakers.router.tries(podAddress("far"), OPEN), "silence");
  assert.notEqual(await lab.counter("far", "in IPIP from no node"), 0);
}

function connections(lab: IpipLab): Promise<Connection[]> {
  const { near, beside, node } = lab.speakers;
  return Promise.all([
    near.open(podAddress("far"), OPEN),
    near.open(podAddress("beside"), OPEN),
    beside.open(podAddress("far"), OPEN),
    // The node's own, from its address in the tunnel.
    node.open(podAddress("far"), OPEN),
    node.open(podAddress("beside"), OPEN),
  ]);
}

/** Every node is ready for both before the first sends in the new one, and longer than the last sends in the old one. */
async function toVxlanAndBack(lab: IpipLab, open: readonly Connection[]): Promise<void> {
  for (const [from, to, old] of [
    [MODES.ipip, MODES.vxlan, "ipip"],
    [MODES.vxlan, MODES.ipip, "vxlan"],
  ] as const) {
    await lab.setPool(from, "ipip,vxlan");
    for (const node of ORDER) {
      await lab.setPool(to, "ipip,vxlan", [node]);
      for (const connection of open) await connection.answersAtLength();
    }
    await lab.setPool(to, undefined);
    assert.equal(lab.device("near", "far"), old === "ipip" ? OVERLAY : IPIP);
    assert.equal(lab.devices("near").includes(IPIP), old !== "ipip");
    for (const connection of open) await connection.answers();
  }
}
