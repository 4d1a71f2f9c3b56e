import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { settleOverlay, settlePeers } from "../../dataplane/net/overlay.ts";
import { RouteTable } from "../../dataplane/net/route-table.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { SEPARATE_OVERLAY } from "./names.ts";
import type { OverlayPlan } from "./overlay-plan.ts";

/** Makes the node as planned; what is there already is left alone, so that a restart changes nothing. */
export interface OverlayTarget {
  settle(plan: OverlayPlan): Promise<void>;
  close(): void;
}

export function overlayTarget(kernel: Kernel, netlink: NetlinkPort, run: string): OverlayTarget {
  const nft = kernel.nft();
  const routes = new RouteTable(netlink, SEPARATE_OVERLAY.protocol);
  let written: string | undefined;
  return {
    async settle(plan) {
      const device = plan.device && settleOverlay(netlink, SEPARATE_OVERLAY.device, plan.device);
      routes.wantOnly(
        plan.routes.map(({ route, overlay }) => (overlay && device ? { ...route, device: device.index } : route)),
      );
      // Before routes lead there.
      const stale = device && settlePeers(netlink, device.index, plan.peers);
      routes.resync();
      const [failure] = [...routes.write().values()];
      // No other program writes routes of this protocol: what is not desired is of a node that left, or of another configuration.
      routes.sweep();
      for (const address of stale?.neighbours ?? []) netlink.deleteNeighbour({ device: device!.index, address });
      for (const entry of stale?.forwarding ?? []) netlink.deleteForwarding(entry);
      if (!device) await removeDevice(netlink);
      if (written !== plan.rules) await nft.run(plan.rules);
      written = plan.rules;
      writeSubnetFile(run, plan.subnetFile);
      if (failure) throw failure;
    },
    close: () => nft.close(),
  };
}

/** All of it, for `vendor node remove`; gives what was there. */
export async function removeSeparateOverlay(kernel: Kernel): Promise<string[]> {
  const [netlink, nft] = [kernel.netlink(), kernel.nft()];
  const { table, protocol } = SEPARATE_OVERLAY;
  try {
    const tables = (await nft.tables()).filter(({ family, name }) => family === "inet" && name === table);
    for (const route of netlink.routes({ protocol })) netlink.deleteRoute(route);
    const device = await removeDevice(netlink);
    if (tables.length > 0) await nft.run(`delete table inet ${table}`);
    return device || tables.length > 0 ? ["the separate overlay"] : [];
  } finally {
    netlink.close();
    nft.close();
  }
}

async function removeDevice(netlink: NetlinkPort): Promise<boolean> {
  const link = netlink.link(SEPARATE_OVERLAY.device);
  return link?.kind === "vxlan" && (await netlink.deleteLink(link.index));
}

function writeSubnetFile(run: string, text: string): void {
  const path = join(run, SEPARATE_OVERLAY.subnetFile);
  if (textAt(path) === text) return;
  mkdirSync(run, { recursive: true });
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Largest packet that a pod may send through the overlay; undefined where none runs on this node. */
export function overlayMtu(run: string): number | undefined {
  const mtu = /^OVERLAY_MTU=(\d+)$/m.exec(textAt(join(run, SEPARATE_OVERLAY.subnetFile)) ?? "")?.[1];
  return mtu === undefined ? undefined : Number(mtu);
}
