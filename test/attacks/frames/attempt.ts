import { type Payload, tcp, udp } from "../../ebpf/frames.ts";
import { type Ethernet, ethernet, packet, TYPE } from "./build-frame.ts";

/** Frames of one attempt, in order: most are one frame, fragments are several. */
export interface Malformed {
  name: string;
  frames: Buffer[];
  /** A `virtio_net_hdr`: the sender leaves checksums or segmentation to the next device. */
  offload?: Buffer;
}

/** Who sends to whom in one family. `others` are addresses the sender does not own. */
export interface Ends {
  source: string;
  destination: string;
  ethernet: Ethernet;
  others: Readonly<Record<string, string>>;
  /** Of a pod that hears: frames can be addressed past the router. */
  victimMac: string;
}

/** No policy of the test admits it. */
export const CLOSED = 22;
export const FROM = 4321;
export const SYN = tcp(FROM, CLOSED);
export const KNOCK = udp(FROM, CLOSED, "knock, knock");
export const HOST_LINK_LOCAL = "fe80::ecee:eeff:feee:eeee";

export const typeOf = (bytes: Buffer): number => (bytes[0]! >> 4 === 6 ? TYPE.v6 : TYPE.v4);

export function entry({ ethernet: link }: Ends, name: string, ...packets: Buffer[]): Malformed {
  return { name, frames: packets.map((bytes) => ethernet(link, typeOf(bytes), bytes)) };
}

export const ask = (ends: Ends, payload: Payload, more: object = {}) =>
  packet(ends.source, ends.destination, payload, more);
