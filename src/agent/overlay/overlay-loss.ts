import type { CodedError } from "../../kit/errors.ts";
import { errors } from "../errors.ts";
import { type PairLoss, PROBES } from "./overlay-pair.ts";
import type { OverlayPeer } from "./overlay-peers.ts";

/** What the overlay loses between this node and another. */
export interface OverlayLoss extends PairLoss {
  node: string;
  /** Of this node, that the overlay's packets are sent from. */
  address: string;
  peer: OverlayPeer;
  port: number;
  /** Length of a `full` packet. */
  bytes: number;
}

/** What VXLAN puts around a packet: Ethernet, UDP, VXLAN, and the outer IP header of either family. */
const OVERHEAD = { v4: 50, v6: 70 } as const;

/** The same on both nodes when both know of the same loss. */
export function lossText(loss: OverlayLoss): string {
  const { from, to } = endsOf(loss);
  const packets = loss.size === "full" ? `packets of ${loss.bytes} bytes in ` : "";
  return `${from} to ${to} (${packets}${pathOf(loss)})`;
}

export function lossError(loss: OverlayLoss): CodedError {
  const { node, peer, bytes, direction, size } = loss;
  const { from, to } = endsOf(loss);
  if (size === "full") {
    const overhead = loss.address.includes(":") ? OVERHEAD.v6 : OVERHEAD.v4;
    return errors.OVERLAY_MTU(from, to, pathOf(loss), bytes, bytes + overhead);
  }
  const others = direction === "to" ? `probes of node ${peer.node} arrive` : `no probe of node ${peer.node} arrives`;
  return errors.OVERLAY_UNREACHABLE(
    from,
    to,
    pathOf(loss),
    `${PROBES} of ${PROBES} probes of node ${node} have no answer, ${others}`,
  );
}

function endsOf({ node, peer, direction }: OverlayLoss): { from: string; to: string } {
  return direction === "to" ? { from: node, to: peer.node } : { from: peer.node, to: node };
}

function pathOf({ address, peer, port, direction }: OverlayLoss): string {
  const [from, to] = direction === "to" ? [address, peer.address] : [peer.address, address];
  return `UDP ${port} from ${from} to ${to}`;
}
