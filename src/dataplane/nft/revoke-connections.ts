/**
 * Connections that policy denies now. Their nf_conntrack entries stay, marked, and every packet of them is dropped, whichever side sends it:
 * without an entry the next packet of the other side would open a connection of its own, whose replies are what policy denies.
 */

import type { DataplaneModel, Packet } from "../../calc/model.ts";
import { evaluate } from "../../calc/policy/evaluate.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import type { NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { isNothing, type Touched } from "./affected-connections.ts";
import { Places } from "./places.ts";
import { CONNECTION_MARK } from "./ruleset.ts";

const UDP = 17;
const IPIP = 4;

/** Whether any connection is left that policy denies: then the next change may be the one that allows it again. */
export async function revokeConnections(
  model: DataplaneModel,
  touched: Touched & { anyDenied: boolean },
  { conntrack, netlink }: { conntrack: ConntrackPort; netlink: NetlinkPort },
): Promise<boolean> {
  const nothing = isNothing(touched);
  if (nothing && !touched.anyDenied) return false;
  const places = new Places(model, netlink);
  const { denied } = CONNECTION_MARK;
  const flows = await conntrack.list(nothing ? { mark: denied, markMask: denied } : {});
  let left = false;
  for (const flow of flows) {
    const packet = packetOf(flow);
    const isDenied = (flow.mark & denied) !== 0;
    if (touched.gone.has(packet.source) || touched.gone.has(packet.destination)) {
      conntrack.delete(flow.original);
      continue;
    }
    if (!isDenied && !isTouched(touched, places, packet)) continue;
    const deny = isForbidden(model, places, packet);
    left ||= deny;
    const mark = (deny ? flow.mark | denied : flow.mark & ~denied) >>> 0;
    if (mark !== flow.mark) conntrack.update(flow.original, { mark });
  }
  return left;
}

function isTouched({ all, endpoints }: Touched, places: Places, { source, destination }: Packet): boolean {
  if (all) return true;
  return [source, destination].some((address) => endpoints.has(places.podAt(address) ?? ""));
}

function isForbidden(model: DataplaneModel, places: Places, packet: Packet): boolean {
  const { source, destination } = packet;
  const path = { from: places.of(source), to: places.of(destination) };
  if (path.from.at === "host" && path.to.at === "host") return false;
  // Encapsulated traffic between nodes is evaluated by its inner packet.
  const inVxlan = packet.protocol === UDP && packet.destinationPort === model.settings.vxlan.port;
  const carried = inVxlan || packet.protocol === IPIP;
  if (carried && [source, destination].every((address) => places.podAt(address) === undefined)) return false;
  return evaluate(model, packet, path).action === "deny";
}

/** The packet as it was first seen: its final destination is the source of the reply tuple. */
function packetOf({ original, reply, destinationNat }: ConntrackEntry): Packet {
  const translated = destinationNat
    ? { originalDestination: original.destination, originalDestinationPort: original.destinationPort }
    : {};
  const common = {
    ipVersion: original.source.includes(":") ? (6 as const) : (4 as const),
    protocol: original.protocol,
    source: original.source,
    destination: reply.source,
  };
  if (original.icmp) return { ...common, icmpType: original.icmp.type, icmpCode: original.icmp.code };
  const ports = { sourcePort: original.sourcePort, destinationPort: reply.sourcePort };
  return { ...common, ...ports, ...translated };
}
