import type { Direction } from "../../src/kernel/bpf/bpf-port.ts";
import { frame, MAC, type Payload, summed, TCP, tcp, udp, v4, v6 } from "../../test/ebpf/frames.ts";
import { type Interface, NODE, OUTSIDE, POD_A, POD_B, REMOTE } from "../../test/ebpf/packet-lab.ts";
import { PEER } from "../../test/ebpf/service-lab.ts";
import { BACKEND_PORT, DENIED_PORT, DNS, HTTP, OVERLAY_POD, SERVICE } from "./profile-lab.ts";

/** One packet at one hook. */
export interface Step {
  name: string;
  at: Interface;
  direction: Direction;
  /** Where it entered the node, for packets that leave. */
  from?: Interface;
  /** Of the connection with this port of the client. */
  frame(port: number): Buffer;
  /** What the program has to answer: another verdict measures something else. */
  verdict: "next" | "drop" | "redirect";
  /** Its connection is established: it can be repeated. */
  known?: true;
}

/** The packets of one connection, in order, at every hook of the node that they meet. */
export interface Conversation {
  name: string;
  steps: Step[];
}

const [UDP_PROTOCOL, VXLAN_PORT, VXLAN_VNI] = [17, 4789, 4096];
const DATA = "x".repeat(64);
/** Far from the last hop, after a packet has been repeated in place. */
const HOPS = 255;

type Make = (payload: Payload) => Buffer;

function between(source: string, destination: string, mac: string = MAC.pod): Make {
  const isV6 = source.includes(":");
  return (payload) => {
    const ip = isV6
      ? v6({ source, destination, hops: HOPS }, payload)
      : v4({ source, destination, ttl: HOPS }, payload);
    return frame(summed(ip), { source: mac });
  };
}

function wrapped(inner: Buffer, source: string, destination: string): Buffer {
  const header = Buffer.from([8, 0, 0, 0, VXLAN_VNI >> 16, (VXLAN_VNI >> 8) & 255, VXLAN_VNI & 255, 0]);
  const datagram = Buffer.alloc(8);
  datagram.writeUInt16BE(50_000, 0);
  datagram.writeUInt16BE(VXLAN_PORT, 2);
  datagram.writeUInt16BE(8 + header.length + inner.length, 4);
  const bytes = Buffer.concat([datagram, header, inner]);
  return frame(v4({ source, destination }, { protocol: UDP_PROTOCOL, bytes }));
}

const arriving = { direction: "ingress" } as const;
const leaving = { direction: "egress" } as const;

export const CONVERSATIONS: readonly Conversation[] = [
  podToPod("TCP, pod to pod, same node", POD_A.v4, POD_B.v4),
  podToPod("TCP, pod to pod, same node, IPv6", POD_A.v6, POD_B.v6),
  podToService(),
  udpConversation(),
  toOtherNode(),
  throughOverlay(),
  toOutside(),
  denied(),
  nodeItself(),
];

function podToPod(name: string, client: string, server: string): Conversation {
  const [there, back] = [between(client, server), between(server, client)];
  const a = { at: "a", ...arriving, verdict: "redirect" } as const;
  const b = { ...a, at: "b" } as const;
  return {
    name,
    steps: [
      { ...a, name: "SYN", frame: (port) => there(tcp(port, HTTP, TCP.syn)) },
      { ...b, name: "SYN-ACK", frame: (port) => back(tcp(HTTP, port, TCP.synAck)) },
      { ...a, name: "ACK", frame: (port) => there(tcp(port, HTTP, TCP.ack)), known: true },
      { ...a, name: "data", frame: (port) => there(tcp(port, HTTP, TCP.ack, DATA)), known: true },
      { ...b, name: "data of the server", frame: (port) => back(tcp(HTTP, port, TCP.ack, DATA)), known: true },
    ],
  };
}

function podToService(): Conversation {
  const [there, back] = [between(POD_A.v4, SERVICE), between(POD_B.v4, POD_A.v4)];
  const a = { at: "a", ...arriving, verdict: "redirect" } as const;
  const b = { ...a, at: "b" } as const;
  return {
    name: "TCP, pod to Service, backend on the same node",
    steps: [
      { ...a, name: "SYN, DNAT", frame: (port) => there(tcp(port, HTTP, TCP.syn)) },
      { ...b, name: "SYN-ACK, reverse NAT", frame: (port) => back(tcp(BACKEND_PORT, port, TCP.synAck)) },
      { ...a, name: "ACK, DNAT", frame: (port) => there(tcp(port, HTTP, TCP.ack)) },
      { ...a, name: "data, DNAT", frame: (port) => there(tcp(port, HTTP, TCP.ack, DATA)) },
      { ...b, name: "data, reverse NAT", frame: (port) => back(tcp(BACKEND_PORT, port, TCP.ack, DATA)) },
    ],
  };
}

function udpConversation(): Conversation {
  const [there, back] = [between(POD_A.v4, POD_B.v4), between(POD_B.v4, POD_A.v4)];
  const a = { at: "a", ...arriving, verdict: "redirect" } as const;
  return {
    name: "UDP, pod to pod, same node",
    steps: [
      { ...a, name: "first datagram", frame: (port) => there(udp(port, DNS)) },
      { ...a, at: "b", name: "reply", frame: (port) => back(udp(DNS, port)) },
      { ...a, name: "next datagram", frame: (port) => there(udp(port, DNS)), known: true },
    ],
  };
}

function toOtherNode(): Conversation {
  const [there, back] = [between(POD_A.v4, REMOTE.v4), between(REMOTE.v4, POD_A.v4)];
  const pod = { at: "a", ...arriving, verdict: "redirect" } as const;
  const out = { at: "uplink", ...leaving, from: "a", verdict: "next" } as const;
  const into = { at: "uplink", ...arriving, verdict: "redirect" } as const;
  const sent =
    (flags: number, data = "") =>
    (port: number) =>
      there(tcp(port, HTTP, flags, data));
  return {
    name: "TCP, pod to pod of another node, routed",
    steps: [
      { ...pod, name: "SYN, pod", frame: sent(TCP.syn) },
      { ...out, name: "SYN, uplink", frame: sent(TCP.syn) },
      { ...into, name: "SYN-ACK, uplink", frame: (port) => back(tcp(HTTP, port, TCP.synAck)) },
      { ...pod, name: "ACK, pod", frame: sent(TCP.ack), known: true },
      { ...out, name: "ACK, uplink", frame: sent(TCP.ack), known: true },
      { ...into, name: "data, uplink", frame: (port) => back(tcp(HTTP, port, TCP.ack, DATA)), known: true },
    ],
  };
}

function throughOverlay(): Conversation {
  const there = between(POD_A.v4, OVERLAY_POD);
  const back = between(OVERLAY_POD, POD_A.v4, PEER.mac);
  const pod = { at: "a", ...arriving, verdict: "redirect" } as const;
  const inner = { at: "overlay", ...leaving, from: "a", verdict: "next" } as const;
  const outer = { at: "uplink", ...leaving, verdict: "next" } as const;
  const into = { at: "uplink", ...arriving, verdict: "next" } as const;
  const opened = { at: "overlay", ...arriving, verdict: "redirect" } as const;
  const sent = (flags: number) => (port: number) => there(tcp(port, HTTP, flags));
  const answered =
    (flags: number, data = "") =>
    (port: number) =>
      back(tcp(HTTP, port, flags, data));
  const outwards = (flags: number) => (port: number) => wrapped(sent(flags)(port), NODE.v4, PEER.v4);
  const inwards = (flags: number) => (port: number) => wrapped(answered(flags)(port), PEER.v4, NODE.v4);
  return {
    name: "TCP, pod to pod of another node, VXLAN",
    steps: [
      { ...pod, name: "SYN, pod", frame: sent(TCP.syn) },
      { ...inner, name: "SYN, overlay", frame: sent(TCP.syn) },
      { ...outer, name: "SYN, uplink, encapsulated", frame: outwards(TCP.syn) },
      { ...into, name: "SYN-ACK, uplink, encapsulated", frame: inwards(TCP.synAck) },
      { ...opened, name: "SYN-ACK, overlay", frame: answered(TCP.synAck) },
      { ...pod, name: "ACK, pod", frame: sent(TCP.ack), known: true },
      { ...inner, name: "ACK, overlay", frame: sent(TCP.ack), known: true },
      { ...outer, name: "ACK, uplink, encapsulated", frame: outwards(TCP.ack), known: true },
      { ...into, name: "data, uplink, encapsulated", frame: inwards(TCP.ack), known: true },
      { ...opened, name: "data, overlay", frame: answered(TCP.ack, DATA), known: true },
    ],
  };
}

function toOutside(): Conversation {
  const [there, back] = [between(POD_A.v4, OUTSIDE.v4), between(OUTSIDE.v4, POD_A.v4)];
  const pod = { at: "a", ...arriving, verdict: "next" } as const;
  const out = { at: "uplink", ...leaving, from: "a", verdict: "next" } as const;
  const into = { at: "uplink", ...arriving, verdict: "next" } as const;
  const inwards = { at: "a", ...leaving, from: "uplink", verdict: "next" } as const;
  const sent = (flags: number) => (port: number) => there(tcp(port, HTTP, flags));
  const answered = (flags: number) => (port: number) => back(tcp(HTTP, port, flags));
  return {
    name: "TCP, pod to a machine outside, through the stack",
    steps: [
      { ...pod, name: "SYN, pod", frame: sent(TCP.syn) },
      { ...out, name: "SYN, uplink", frame: sent(TCP.syn) },
      { ...into, name: "SYN-ACK, uplink", frame: answered(TCP.synAck) },
      { ...inwards, name: "SYN-ACK, pod", frame: answered(TCP.synAck) },
      { ...pod, name: "ACK, pod", frame: sent(TCP.ack), known: true },
      { ...out, name: "ACK, uplink", frame: sent(TCP.ack), known: true },
      { ...into, name: "data, uplink", frame: answered(TCP.ack), known: true },
      { ...inwards, name: "data, pod", frame: answered(TCP.ack), known: true },
    ],
  };
}

function denied(): Conversation {
  const there = between(POD_A.v4, POD_B.v4);
  const sent = (port: number) => there(tcp(port, DENIED_PORT, TCP.syn));
  const steps: Step[] = [{ at: "a", ...arriving, verdict: "drop", name: "SYN", frame: sent, known: true }];
  return { name: "denied by policy", steps };
}

function nodeItself(): Conversation {
  const [there, back] = [between(NODE.v4, OUTSIDE.v4), between(OUTSIDE.v4, NODE.v4)];
  const uplink = { at: "uplink", verdict: "next", known: true } as const;
  return {
    name: "the node's own connection, no policy",
    steps: [
      { ...uplink, ...leaving, name: "data out", frame: (port) => there(tcp(port, HTTP, TCP.ack, DATA)) },
      { ...uplink, ...arriving, name: "data in", frame: (port) => back(tcp(HTTP, port, TCP.ack, DATA)) },
    ],
  };
}
