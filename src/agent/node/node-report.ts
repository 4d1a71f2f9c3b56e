import type { Condition, KubeObject } from "../../api/object.ts";
import { type DataplaneAnnouncement, dataplaneAnnotation } from "../../api/protocol/agent-report.ts";
import { type NodeInterface, nodeInterfacesAnnotations } from "../../api/protocol/node-interfaces.ts";
import { nodeNetworkAnnotations } from "../../api/protocol/node-network.ts";
import { isPodInterface } from "../../api/protocol/pod-network.ts";
import type { Settings } from "../../calc/model.ts";
import type { Client } from "../../cluster/client.ts";
import { NODES } from "../../cluster/kinds.ts";
import type { InterfaceAddress, Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { V4, V6 } from "../../kit/ip.ts";
import type { AgentConfig } from "../config.ts";
import { errors } from "../errors.ts";
import { detectAddress } from "./detect-address.ts";

/** The node's end of the overlay, as far as there is one. */
export interface TunnelFacts {
  v4: string | undefined;
  v6: string | undefined;
  mac: string | undefined;
}

/** What the Node should say of its network; null where it should say nothing. */
export function nodeAnnotations(
  config: Pick<AgentConfig, "autodetection"> & Pick<Settings, "podInterfacePrefixes">,
  netlink: Pick<NetlinkPort, "links" | "addresses" | "routes">,
  node: KubeObject,
  tunnel: TunnelFacts,
): Record<string, string | null> {
  const isOwn = ({ name }: Link) => !isPodInterface(name, config.podInterfacePrefixes);
  const [links, addresses] = [netlink.links().filter(isOwn), netlink.addresses()];
  const on = { links, addresses, routes: netlink.routes(), node };
  const { v4: methodV4, v6: methodV6 } = config.autodetection;
  const v4 = detectAddress(methodV4, V4, on);
  const v6 = methodV6 === undefined ? undefined : detectAddress(methodV6, V6, on);
  if (!v4 && !v6) throw errors.AGENT_NO_ADDRESS("IPv4", methodV4);
  const ends = { tunnelAddressV4: tunnel.v4, tunnelAddressV6: tunnel.v6, tunnelMac: tunnel.mac };
  return {
    ...nodeNetworkAnnotations({ addressV4: v4, addressV6: v6, ...ends }),
    ...nodeInterfacesAnnotations(ownInterfaces(links, addresses)),
  };
}

/** Writes only what differs: every node follows every Node. */
export async function reportNode(
  client: Client,
  node: KubeObject,
  annotations: Readonly<Record<string, string | null>>,
  condition: Condition | undefined,
): Promise<boolean> {
  const has = node.metadata.annotations ?? {};
  const differs = Object.entries(annotations).filter(([key, value]) => (has[key] ?? null) !== value);
  const news = condition && conditionOf(node, condition.type)?.status !== condition.status ? condition : undefined;
  if (differs.length === 0 && !news) return false;
  const patch = {
    ...(differs.length > 0 ? { metadata: { annotations: Object.fromEntries(differs) } } : {}),
    ...(news ? { status: { conditions: [news] } } : {}),
  };
  await client.patch(NODES, node.metadata, { type: "strategic", patch }, { subresource: "status" });
  return true;
}

/** Whatever the Node is known to say: a cache may be older than what was announced last. */
export async function announceDataplane(
  client: Client,
  name: string,
  announcement: DataplaneAnnouncement,
  signal: AbortSignal,
): Promise<void> {
  const patch = { metadata: { annotations: dataplaneAnnotation(announcement) } };
  await client.patch(NODES, { name }, { type: "merge", patch }, { subresource: "status", signal });
}

/** The orchestrator puts nothing on a node whose network is not there. */
export function networkCondition(name: string, now: number): Condition & { lastHeartbeatTime: string } {
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
  return {
    type: "NetworkUnavailable",
    status: "False",
    reason: "VendorIsUp",
    message: `${name} is running on this node`,
    lastTransitionTime: time,
    lastHeartbeatTime: time,
  };
}

function conditionOf(node: KubeObject, type: string): Condition | undefined {
  const { conditions = [] } = (node["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find((one) => one.type === type);
}

function ownInterfaces(links: readonly Link[], addresses: readonly InterfaceAddress[]): NodeInterface[] {
  return links
    .filter(({ name }) => name !== "lo")
    .map(({ name, index }) => ({
      name,
      addresses: addresses
        .filter(({ device }) => device === index)
        .map(({ address }) => address.split("/")[0] as string),
    }))
    .filter((one) => one.addresses.length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
