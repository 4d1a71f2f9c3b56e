import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { icmp, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { type Interface, NODE, OUTSIDE, POD_A, POD_B, REMOTE } from "./packet-lab.ts";
import { PEER, ServiceLab, servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const UDP = 17;

/** Services of one cluster, each for one thing a packet can meet. */
const SERVICES = [
  servicePort("web", [`*${POD_B.v4}:8080`], { clusterAddress: "10.96.0.10", nodePort: 30080 }),
  servicePort("web6", [`*[${POD_B.v6}]:8080`], { family: 6, clusterAddress: "fd96::10", nodePort: 30080 }),
  servicePort("dns", [`*${POD_B.v4}:5353`], { protocol: UDP, clusterAddress: "10.96.0.10", port: 53, nodePort: 30053 }),
  servicePort("dns6", [`*[${POD_B.v6}]:5353`], { protocol: UDP, family: 6, clusterAddress: "fd96::10", port: 53 }),
  servicePort("far", [`${REMOTE.v4}:8080`], { clusterAddress: "10.96.0.11", nodePort: 30081 }),
  servicePort("far6", [`[${REMOTE.v6}]:8080`], { family: 6, clusterAddress: "fd96::11", nodePort: 30081 }),
  servicePort("self", [`*${POD_A.v4}:8080`], { clusterAddress: "10.96.0.12", nodePort: 30082 }),
  servicePort("self6", [`*[${POD_A.v6}]:8080`], { family: 6, clusterAddress: "fd96::12" }),
  servicePort("none", [], { clusterAddress: "10.96.0.13", nodePort: 30083 }),
  servicePort("none6", [], { family: 6, clusterAddress: "fd96::13", nodePort: 30083 }),
  servicePort("none-udp", [], { protocol: UDP, clusterAddress: "10.96.0.13", nodePort: 30083 }),
  servicePort("none-udp6", [], { protocol: UDP, family: 6, clusterAddress: "fd96::13" }),
  servicePort("elsewhere", [`${REMOTE.v4}:8080`], { clusterAddress: "10.96.0.14", internalLocal: true }),
  servicePort("on-node", [`*${NODE.v4}:6443`], { clusterAddress: "10.96.0.15", port: 443, nodePort: 30084 }),
  servicePort("on-peer", [`${PEER.v4}:6443`], { clusterAddress: "10.96.0.16", port: 443, nodePort: 30085 }),
  servicePort("abroad", ["198.51.100.9:80"], { clusterAddress: "10.96.0.17", nodePort: 30086 }),
  servicePort("local", [`*${POD_B.v4}:8080`, `${REMOTE.v4}:8080`], {
    ...{ clusterAddress: "10.96.0.18", externalLocal: true, nodePort: 30087 },
  }),
  servicePort("not-here", [`${REMOTE.v4}:8080`], {
    ...{ externalLocal: true, nodePort: 30088, port: 81, externalAddresses: ["203.0.113.30"] },
  }),
  servicePort("not-here6", [`[${REMOTE.v6}]:8080`], { family: 6, externalLocal: true, nodePort: 30088, port: 81 }),
  servicePort("not-here-udp", [`${REMOTE.v4}:8080`], { protocol: UDP, externalLocal: true, nodePort: 30089, port: 81 }),
  servicePort("shared", [`*${POD_B.v4}:8080`], {
    ...{ clusterAddress: "10.96.0.19", externalAddresses: ["203.0.113.10"] },
    ...{ loadBalancerAddresses: ["203.0.113.20"], sourceRanges: ["198.51.100.0/28", "10.65.0.1/32"] },
  }),
  servicePort("nobody", [`*[${POD_B.v6}]:8080`], {
    ...{ family: 6, clusterAddress: "fd96::19", loadBalancerAddresses: ["2001:db8:20::1"], sourceRanges: [] },
  }),
];

const A4 = (destination: string) => ({ source: POD_A.v4, destination });
const A6 = (destination: string) => ({ source: POD_A.v6, destination });
const C4 = (destination: string) => ({ source: OUTSIDE.v4, destination });
const C6 = (destination: string) => ({ source: OUTSIDE.v6, destination });

type Row = readonly [title: string, at: Interface, packet: { type: number; bytes: Buffer }, becomes: string];

/** The first packet of one flow a row: who asks whom, and what comes out. */
const FIRST_PACKETS: Row[] = [
  [
    "a pod asks a service with a backend here",
    "a",
    v4(A4("10.96.0.10"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:8080`,
  ],
  [
    "the same in IPv6",
    "a",
    v6(A6("fd96::10"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp [fd65::1]:1000 > [fd65::2]:8080`,
  ],
  ["UDP", "a", v4(A4("10.96.0.10"), udp(1000, 53)), `redirect PASS_POLICY | udp 10.65.0.1:1000 > 10.65.0.2:5353`],
  ["UDP in IPv6", "a", v6(A6("fd96::10"), udp(1000, 53)), `redirect PASS_POLICY | udp [fd65::1]:1000 > [fd65::2]:5353`],
  [
    "a backend on another node",
    "a",
    v4(A4("10.96.0.11"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.9.9:8080`,
  ],
  [
    "a backend on another node, in IPv6",
    "a",
    v6(A6("fd96::11"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp [fd65::1]:1000 > [fd65:9::9]:8080`,
  ],
  [
    "a pod that is its own backend",
    "a",
    v4(A4("10.96.0.12"), tcp(1000, 80)),
    `redirect PASS_ITSELF | tcp 10.96.0.12:1000 > 10.65.0.1:8080`,
  ],
  [
    "a pod that is its own backend, in IPv6",
    "a",
    v6(A6("fd96::12"), tcp(1000, 80)),
    `redirect PASS_ITSELF | tcp [fd96::12]:1000 > [fd65::1]:8080`,
  ],
  [
    "another pod asks that service",
    "b",
    v4({ source: POD_B.v4, destination: "10.96.0.12" }, tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 10.65.0.2:1000 > 10.65.0.1:8080`,
  ],
  [
    "a pod asks a node port of its own node",
    "a",
    v4(A4(NODE.v4), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:8080`,
  ],
  [
    "a pod asks a node port of its own node that is itself",
    "a",
    v4(A4(NODE.v4), tcp(1000, 30082)),
    `redirect PASS_ITSELF | tcp 192.0.2.1:1000 > 10.65.0.1:8080`,
  ],
  [
    "a pod asks a node port of its node, in IPv6",
    "a",
    v6(A6(NODE.v6), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp [fd65::1]:1000 > [fd65::2]:8080`,
  ],
  [
    "a pod asks a node port of another node: that node's business",
    "a",
    v4(A4(PEER.v4), tcp(1000, 30080)),
    `next PASS_POLICY | tcp 10.65.0.1:1000 > 192.0.2.2:30080`,
  ],
  [
    "a pod asks a service on this very node",
    "a",
    v4(A4("10.96.0.15"), tcp(1000, 443)),
    `next PASS_POLICY | tcp 10.65.0.1:1000 > 192.0.2.1:6443`,
  ],
  [
    "a pod asks a service on another node itself",
    "a",
    v4(A4("10.96.0.16"), tcp(1000, 443)),
    `next PASS_POLICY | tcp 10.65.0.1:1000 > 192.0.2.2:6443`,
  ],
  [
    "a pod asks a service outside of the cluster",
    "a",
    v4(A4("10.96.0.17"), tcp(1000, 80)),
    `next PASS_POLICY | tcp 10.65.0.1:1000 > 198.51.100.9:80`,
  ],
  [
    "nobody answers: a reset",
    "a",
    v4(A4("10.96.0.13"), tcp(1000, 80)),
    `redirect REJECT_NO_BACKEND | tcp 10.96.0.13:80 > 10.65.0.1:1000`,
  ],
  [
    "nobody answers, in IPv6",
    "a",
    v6(A6("fd96::13"), tcp(1000, 80)),
    `redirect REJECT_NO_BACKEND | tcp [fd96::13]:80 > [fd65::1]:1000`,
  ],
  [
    "nobody answers UDP: unreachable",
    "a",
    v4(A4("10.96.0.13"), udp(1000, 80)),
    `redirect REJECT_NO_BACKEND | icmp 3/3 10.96.0.13 > 10.65.0.1`,
  ],
  [
    "nobody answers UDP, in IPv6",
    "a",
    v6(A6("fd96::13"), udp(1000, 80)),
    `redirect REJECT_NO_BACKEND | icmp 1/4 [fd96::13] > [fd65::1]`,
  ],
  [
    "nobody answers at a node port",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30083)),
    `redirect REJECT_NO_BACKEND | tcp 192.0.2.1:30083 > 198.51.100.7:1000`,
  ],
  [
    "nobody answers at a node port, UDP",
    "uplink",
    v4(C4(NODE.v4), udp(1000, 30083)),
    `redirect REJECT_NO_BACKEND | icmp 3/3 192.0.2.1 > 198.51.100.7`,
  ],
  [
    "nobody answers at a node port, in IPv6",
    "uplink",
    v6(C6(NODE.v6), tcp(1000, 30083)),
    `redirect REJECT_NO_BACKEND | tcp [2001:db8::1]:30083 > [2001:db8:f::7]:1000`,
  ],
  [
    "only others' nodes have backends, and only this one's may answer",
    "a",
    v4(A4("10.96.0.14"), tcp(1000, 80)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 10.65.0.1:1000 > 10.96.0.14:80`,
  ],
  [
    "a port the service does not have",
    "a",
    v4(A4("10.96.0.10"), tcp(1000, 81)),
    `redirect REJECT_NO_PORT | tcp 10.96.0.10:81 > 10.65.0.1:1000`,
  ],
  [
    "a port the service does not have, UDP",
    "a",
    v4(A4("10.96.0.10"), udp(1000, 80)),
    `redirect REJECT_NO_PORT | icmp 3/3 10.96.0.10 > 10.65.0.1`,
  ],
  [
    "a client at a node port sees a backend here, which sees the client",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "a client at a node port, in IPv6",
    "uplink",
    v6(C6(NODE.v6), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp [2001:db8:f::7]:1000 > [fd65::2]:8080`,
  ],
  [
    "a client at a node port, UDP",
    "uplink",
    v4(C4(NODE.v4), udp(1000, 30053)),
    `redirect PASS_POLICY | udp 198.51.100.7:1000 > 10.65.0.2:5353`,
  ],
  [
    "a backend elsewhere sees the client too: its node translates",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30081)),
    `redirect PASS_NO_POLICY | tcp 198.51.100.7:1000 > 192.0.2.1:30081`,
  ],
  [
    "a backend elsewhere sees the client too, in IPv6",
    "uplink",
    v6(C6(NODE.v6), tcp(1000, 30081)),
    `redirect PASS_NO_POLICY | tcp [2001:db8:f::7]:1000 > [2001:db8::1]:30081`,
  ],
  [
    "a node port of a service on this very node",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30084)),
    `next PASS_NO_POLICY | tcp 198.51.100.7:1000 > 192.0.2.1:6443`,
  ],
  [
    "a node port of a service on another node itself",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30085)),
    `next PASS_NO_POLICY | tcp 198.51.100.7:1000 > 192.0.2.2:6443`,
  ],
  [
    "a node port of a service outside of the cluster",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30086)),
    `next PASS_NO_POLICY | tcp 198.51.100.7:1000 > 198.51.100.9:80`,
  ],
  [
    "clients from outside get backends of this node where they shall",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30087)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "clients from outside where this node has none",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30088)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 198.51.100.7:1000 > 192.0.2.1:30088`,
  ],
  [
    "pods may go anywhere there all the same",
    "a",
    v4(A4(NODE.v4), tcp(1000, 30088)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.9.9:8080`,
  ],
  [
    "another node is outside of this one: so is a pod of it, whether or not it comes as its node",
    "uplink",
    v4({ source: PEER.v4, destination: NODE.v4 }, tcp(1000, 30088)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 192.0.2.2:1000 > 192.0.2.1:30088`,
  ],
  [
    "a pod of another node that comes with its own address",
    "uplink",
    v4({ source: REMOTE.v4, destination: NODE.v4 }, tcp(1000, 30088)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 10.65.9.9:1000 > 192.0.2.1:30088`,
  ],
  [
    "another node, UDP",
    "uplink",
    v4({ source: PEER.v4, destination: NODE.v4 }, udp(1000, 30089)),
    `drop DROP_NO_LOCAL_BACKEND | udp 192.0.2.2:1000 > 192.0.2.1:30089`,
  ],
  [
    "another node, IPv6",
    "uplink",
    v6({ source: PEER.v6, destination: NODE.v6 }, tcp(1000, 30088)),
    `drop DROP_NO_LOCAL_BACKEND | tcp [2001:db8::2]:1000 > [2001:db8::1]:30088`,
  ],
  [
    "another node at an external address that was routed here",
    "uplink",
    v4({ source: PEER.v4, destination: "203.0.113.30" }, tcp(1000, 81)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 192.0.2.2:1000 > 203.0.113.30:81`,
  ],
  [
    "another node where this one has a backend",
    "uplink",
    v4({ source: PEER.v4, destination: NODE.v4 }, tcp(1000, 30087)),
    `redirect PASS_POLICY | tcp 192.0.2.2:1000 > 10.65.0.2:8080`,
  ],
  [
    "an external address",
    "uplink",
    v4(C4("203.0.113.10"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "an external address, asked by a pod",
    "a",
    v4(A4("203.0.113.10"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:8080`,
  ],
  [
    "another port of an external address is nobody's here",
    "uplink",
    v4(C4("203.0.113.10"), tcp(1000, 81)),
    `next PASS_NOT_OURS | tcp 198.51.100.7:1000 > 203.0.113.10:81`,
  ],
  [
    "a load balancer's address, from a range it lets in",
    "uplink",
    v4(C4("203.0.113.20"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "a load balancer's address, from elsewhere",
    "uplink",
    v4({ source: "198.51.100.16", destination: "203.0.113.20" }, tcp(1000, 80)),
    `drop DROP_SOURCE_RANGE | tcp 198.51.100.16:1000 > 203.0.113.20:80`,
  ],
  [
    "a pod that the ranges let in",
    "a",
    v4(A4("203.0.113.20"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:8080`,
  ],
  [
    "a pod that they do not",
    "b",
    v4({ source: POD_B.v4, destination: "203.0.113.20" }, tcp(1000, 80)),
    `drop DROP_SOURCE_RANGE | tcp 10.65.0.2:1000 > 203.0.113.20:80`,
  ],
  [
    "ranges of the other family only: nobody",
    "uplink",
    v6(C6("2001:db8:20::1"), tcp(1000, 80)),
    `drop DROP_SOURCE_RANGE | tcp [2001:db8:f::7]:1000 > [2001:db8:20::1]:80`,
  ],
  [
    "the cluster address has no ranges",
    "b",
    v4({ source: POD_B.v4, destination: "10.96.0.19" }, tcp(1000, 80)),
    `redirect PASS_ITSELF | tcp 10.96.0.19:1000 > 10.65.0.2:8080`,
  ],
  [
    "a client from outside at a cluster address",
    "uplink",
    v4(C4("10.96.0.10"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "what the node before left in the tunnel is for a pod here",
    "overlay",
    v4(C4(POD_B.v4), tcp(1000, 8080)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "handed over untranslated: a node port of the other node",
    "overlay",
    v4(C4(PEER.v4), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "handed over untranslated: a load balancer's address",
    "overlay",
    v4(C4("203.0.113.20"), tcp(1000, 80)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "handed over by a node that was asked at an address nobody told us of",
    "overlay",
    v4(C4("198.18.0.1"), tcp(1000, 30080)),
    `redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080`,
  ],
  [
    "handed over for a service nobody has told us of yet: it does not go round",
    "overlay",
    v4(C4(PEER.v4), tcp(1000, 30099)),
    `drop DROP_NO_LOCAL_BACKEND | tcp 198.51.100.7:1000 > 192.0.2.2:30099`,
  ],
  [
    "handed over, and no backend here any more: it goes on to another, and cannot go round",
    "overlay",
    v4(C4(PEER.v4), tcp(1000, 30081)),
    `redirect PASS_NO_POLICY | tcp 198.51.100.7:1000 > 10.65.9.9:8080`,
  ],
  [
    "an acknowledgement of nothing anybody knows",
    "a",
    v4(A4("10.96.0.10"), tcp(1000, 80, TCP.ack)),
    `redirect REJECT_UNKNOWN_FLOW | tcp 10.96.0.10:80 > 10.65.0.1:1000`,
  ],
  [
    "the same at a node port",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 30080, TCP.ack)),
    `redirect REJECT_UNKNOWN_FLOW | tcp 192.0.2.1:30080 > 198.51.100.7:1000`,
  ],
  [
    "a reset is not answered",
    "a",
    v4(A4("10.96.0.10"), tcp(1000, 80, TCP.rst)),
    `drop REJECT_UNKNOWN_FLOW | tcp 10.65.0.1:1000 > 10.96.0.10:80`,
  ],
  [
    "the last hop",
    "a",
    v4({ ...A4("10.96.0.10"), ttl: 1 }, tcp(1000, 80)),
    `redirect REJECT_HOP_LIMIT | icmp 11/0 10.96.0.10 > 10.65.0.1`,
  ],
  [
    "the last hop, in IPv6",
    "a",
    v6({ ...A6("fd96::10"), hops: 1 }, tcp(1000, 80)),
    `redirect REJECT_HOP_LIMIT | icmp 3/0 [fd96::10] > [fd65::1]`,
  ],
  [
    "an echo to a service is no service's",
    "a",
    v4(A4("10.96.0.10"), icmp(1, 8)),
    `next PASS_POLICY | icmp 8/0 10.65.0.1 > 10.96.0.10`,
  ],
  [
    "a pod straight to a pod",
    "a",
    v4(A4(POD_B.v4), tcp(1000, 8080)),
    `redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:8080`,
  ],
  [
    "the node's own port that is no node port",
    "uplink",
    v4(C4(NODE.v4), tcp(1000, 22)),
    `next PASS_NOT_OURS | tcp 198.51.100.7:1000 > 192.0.2.1:22`,
  ],
];

describe.skipIf(missing)(`services, packet by packet${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  beforeAll(async () => {
    lab = await ServiceLab.open();
    await lab.serve(SERVICES);
    await lab.packets.logFlows();
  });
  beforeEach(() => lab.forget());
  afterAll(() => lab?.close());

  it.each(FIRST_PACKETS)("%s", (_title, at, packet, becomes) => {
    const seen = lab.put(at, packet);
    expect(seen.line).toBe(becomes);
    expect(seen.wrong).toEqual([]);
    if (seen.line.startsWith("redirect PASS")) expect(seen.hops).toBe(63);
  });

  it("switched off, not one of them is touched", () => {
    lab.packets.dataplane.setMode("Off");
    for (const [title, at, packet] of FIRST_PACKETS) {
      const seen = lab.put(at, packet);
      expect([title, seen.line.split(" ")[0], seen.packet.subarray(14).equals(packet.bytes)]).toEqual([
        title,
        "next",
        true,
      ]);
    }
    lab.packets.dataplane.setMode("Active");
  });

  it("every drop is in the flow logs, by its reason", async () => {
    const [dropped, logged] = await lab.packets.droppedAndLogged();
    expect(logged).toEqual(dropped);
  });
});
