import {
  addressOf,
  behindExtensions,
  ICMP,
  ICMPV6,
  isError,
  OVERLAY_PORT,
  type Packet,
  parseFrame,
  shownPacket,
  TCP,
  UDP,
} from "./parse-frame.ts";
import type { Delivery } from "./raw-sockets.ts";

/** What the policy of one end admits: everything, nothing, or connections to these ports, `6/8080`. */
export type Admits = "all" | "none" | readonly string[];
export const [OPEN_TCP, OPEN_UDP] = [8080, 9090];
export const OPEN_PORTS = [`${TCP}/${OPEN_TCP}`, `${UDP}/${OPEN_UDP}`];

/** The pod that sends now. Only one does at a time, so that what a masquerade hides is still known to be its. */
export interface Speaker {
  name: string;
  addresses: readonly string[];
  egress: Admits;
}

/** Where frames are heard. */
export interface Place {
  name: string;
  addresses: readonly string[];
  ingress: Admits;
  /** Who is on this link, and speaks for itself there. Of a node's raw sockets: all that are on any of its links, with any link-local address. */
  neighbour: { mac: string; addresses: readonly string[]; linkLocal?: true };
  /** Addresses a masquerade gives to the speaker's packets on their way here. */
  masquerade: readonly string[];
  /** Nodes whose tunnel passes here. */
  tunnelsFrom: readonly string[];
}

/** What may be said between neighbours without any policy: listener reports, solicitations, advertisements. Not a router's messages. */
const NEIGHBOUR_TALK = new Set([130, 131, 132, 133, 135, 136, 143]);
const [IPV4, IPV6, ARP] = [0x0800, 0x86dd, 0x0806];

/**
 * Says of what was heard whether policy admits it, from its own bytes. It knows the policies as the test wrote them and nothing of what the
 * data planes calculate.
 */
export class FrameVerdict {
  /** Connections that policy admits and that were heard: what belongs to them is admitted, too. */
  readonly #connections = new Set<string>();
  /** Where first fragments go that the speaker may send, `6/8080`: the ports that later ones have, too. */
  readonly #fragments = new Map<string, Set<string>>();
  /** Connections the speaker began by its own egress policy: what it says about them may leave, whoever else denies them. */
  readonly #begun = new Set<string>();

  /**
   * Notes what is sent. A first fragment or the beginning of a connection may be admitted by policy and still be lost, such as with a bad
   * checksum; what belongs to it is admitted all the same.
   */
  sends(frame: Buffer, speaker: Speaker): void {
    const { packet } = parseFrame(frame);
    if (!packet || !speaker.addresses.includes(packet.source)) return;
    const { source, destination, protocol, sport, dport, fragment } = packet;
    if (fragment?.later || !admits(speaker.egress, packet)) return;
    this.#begun.add(connection(protocol, [source, sport], [destination, dport]));
    if (fragment) this.#saveFirst(packet, fragment.id);
  }

  #saveFirst(packet: Packet, id: number): void {
    const key = fragmentKey(packet, id);
    const ports = this.#fragments.get(key) ?? new Set();
    this.#fragments.set(key, ports.add(portOf(packet)));
  }

  /** Why a frame must not be heard; undefined where it may be. */
  ofFrame(frame: Buffer, place: Place, speaker: Speaker): string | undefined {
    const { etherType, sourceMac, packet, sender } = parseFrame(frame);
    if (sourceMac !== place.neighbour.mac) return `from ${sourceMac}, which is not the neighbour`;
    if (etherType === ARP) {
      const isOwn = sender?.mac === place.neighbour.mac && place.neighbour.addresses.includes(sender.address);
      return isOwn ? undefined : `ARP for ${sender?.address} at ${sender?.mac}`;
    }
    if (etherType !== IPV4 && etherType !== IPV6) return `ethertype 0x${etherType.toString(16)}`;
    const why = packet ? this.ofPacket(packet, place, speaker) : "a packet without a header";
    return why && `${why} (${frame.subarray(0, 160).toString("hex")})`;
  }

  ofDelivery({ family, protocol, source, bytes }: Delivery, place: Place, speaker: Speaker): string | undefined {
    // IPv6 delivers a packet once for each of its headers.
    const packet = behindExtensions({ family, protocol, source: addressOf(source), destination: place.name }, bytes);
    // The raw socket does not say to which of the node's addresses it was.
    if (packet.inner && place.addresses.includes(packet.inner.source)) packet.inner.source = place.name;
    return this.ofPacket(packet, place, speaker);
  }

  ofPacket(packet: Packet, place: Place, speaker: Speaker): string | undefined {
    const { neighbour, masquerade } = place;
    const isLinkLocal = packet.source === "::" || packet.source.startsWith("fe80:");
    const isNeighbour =
      neighbour.addresses.includes(packet.source) || (neighbour.linkLocal !== undefined && isLinkLocal);
    if (isNeighbour && packet.protocol === ICMPV6 && NEIGHBOUR_TALK.has(packet.type ?? -1)) return undefined;
    if (packet.protocol === UDP && packet.dport === OVERLAY_PORT) return this.#ofTunnel(packet, place, speaker);
    if (!speaker.addresses.includes(packet.source) && !masquerade.includes(packet.source)) {
      return `a source that ${speaker.name} does not own: ${shownPacket(packet)}`;
    }
    if (this.#isAdmitted(packet, speaker, place.ingress)) return undefined;
    return `denied by policy: ${shownPacket(packet)}`;
  }

  /** Nodes carry packets to each other; what is inside has to be the speaker's own. */
  #ofTunnel(packet: Packet, place: Place, speaker: Speaker): string | undefined {
    if (!place.tunnelsFrom.includes(packet.source)) return `to the overlay port: ${shownPacket(packet)}`;
    if (packet.innerTagged) return `a VLAN tag in the tunnel: ${shownPacket(packet)}`;
    if (!packet.inner) return `no packet in the tunnel: ${shownPacket(packet)}`;
    if (this.#isAnswer(packet.inner)) return undefined;
    return this.ofPacket(packet.inner, { ...place, ingress: "all", masquerade: [] }, speaker);
  }

  #isAdmitted(packet: Packet, speaker: Speaker, ingress: Admits): boolean {
    const { source, destination, protocol, sport, dport, fragment } = packet;
    const policies = [speaker.egress, ingress];
    if (fragment?.later && policies.some((one) => one !== "all")) {
      const ports = [...(this.#fragments.get(fragmentKey(packet, fragment.id)) ?? [])];
      return ports.some((port) => policies.every((one) => admitsPort(one, port)));
    }
    if (isError(packet) && this.#isAboutKnown(packet, ingress)) return true;
    if (!policies.every((one) => admits(one, packet))) return false;
    this.#connections.add(connection(protocol, [source, sport], [destination, dport]));
    if (fragment) this.#saveFirst(packet, fragment.id);
    return true;
  }

  /** From the other end of a connection that policy admits, or an error about one. */
  #isAnswer(packet: Packet): boolean {
    const { protocol, source, sport, destination, dport, inner } = packet;
    if (!isError(packet)) return this.#connections.has(connection(protocol, [destination, dport], [source, sport]));
    if (!inner) return false;
    // Only the first fragment has ports: an error about a later one belongs to the packet they are both of.
    if (inner.fragment?.later) return this.#fragments.has(fragmentKey(inner, inner.fragment.id));
    const [from, to] = [
      [inner.source, inner.sport],
      [inner.destination, inner.dport],
    ] as const;
    return this.#connections.has(connection(inner.protocol, from, to));
  }

  /** It quotes an answer that its receiver gave in a connection that policy admits. */
  #isAboutKnown({ destination, inner }: Packet, ingress: Admits): boolean {
    if (!inner || inner.source !== destination) return false;
    const { protocol, source, sport, dport } = inner;
    const about = connection(protocol, [inner.destination, dport], [source, sport]);
    return this.#connections.has(about) || (ingress === "all" && this.#begun.has(about));
  }
}

function admits(policy: Admits, packet: Packet): boolean {
  return admitsPort(policy, portOf(packet));
}

function admitsPort(policy: Admits, port: string): boolean {
  return policy === "all" || (policy !== "none" && policy.includes(port));
}

function portOf({ protocol, dport }: Packet): string {
  return `${protocol}/${dport}`;
}

/** Not by protocol: of IPv6 each fragment names the first header behind it, which may be an extension. */
function fragmentKey({ source, destination }: Packet, id: number): string {
  return `${source} ${destination} ${id}`;
}

type End = readonly [address: string, port: number | undefined];

function connection(protocol: number, from: End, to: End): string {
  return [protocol === ICMP ? "icmp" : protocol, ...from, ...to].join(" ");
}
