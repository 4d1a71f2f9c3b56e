import type { LiveClient, Question } from "./live-lab.ts";
import { clusterAddress, type LiveName, nodePort, publicAddress, SECOND } from "./live-services.ts";

/** One connection a row, or as many as it has tries: from where, to what, and what becomes of it. */
export interface LiveRow extends Omit<Question, "patienceMs"> {
  title: string;
  /** Names of all who answer, `the same` for whoever did first, or `refused`, or `silence`. */
  becomes: string;
  /** Whose address those see: the one who asks, unless said; `service` is the address that was asked. */
  sees: LiveClient | "service";
}

type Way = "cluster" | "public" | "node-1" | "node-2" | "node-3";

const NODES = {
  "node-1": { 4: "10.99.0.1", 6: "fd99::1" },
  "node-2": { 4: "10.99.0.2", 6: "fd99::2" },
  "node-3": { 4: "10.99.0.3", 6: "fd99::3" },
} as const;
/** Enough that one of three is not missed by chance: once in twenty million runs. */
const MANY = 44;
/** Of TCP, more than any window; of a datagram, more than any link takes. */
const MUCH = 1_000_000;
const PIECES = 4_000;
const UDP = { udp: "unconnected" } as const;
const CONNECTED = { udp: "connected" } as const;

/** Where a service is asked. */
export function at(service: LiveName, way: Way, family: 4 | 6 = 4): { host: string; port: number } {
  if (way === "cluster") return { host: clusterAddress(service, family), port: 80 };
  if (way === "public") return { host: publicAddress(service, family), port: 80 };
  return { host: NODES[way][family], port: nodePort(service) };
}

function asks(from: LiveClient) {
  return (
    title: string,
    to: { host: string; port: number },
    becomes: string,
    more: Partial<LiveRow> = {},
  ): LiveRow => ({
    ...{ title, from, sees: from, becomes },
    ...to,
    ...more,
  });
}

const [caller, three] = [asks("caller"), asks("three")];
const [neighbour, stranger, distant] = [asks("neighbour"), asks("stranger"), asks("distant")];
const [node1, node2, unhooked] = [asks("node-1"), asks("node-2"), asks("unhooked")];

const PODS_ASK: LiveRow[] = [
  caller("a pod asks a service, and each backend answers it", at("web", "cluster"), "one, two, three", { tries: MANY }),
  caller("a pod asks a service with a backend on its own node", at("near", "cluster"), "one"),
  caller("a pod asks a service with a backend on its own node, IPv6", at("near", "cluster", 6), "one"),
  caller("a pod asks a service with a backend on another node", at("far", "cluster"), "two"),
  caller("a pod asks a service with a backend on another node, IPv6", at("far", "cluster", 6), "two"),
  caller("a pod asks over UDP, and is answered from the service's address", at("near", "cluster"), "one", UDP),
  caller(
    "a pod asks another node over UDP, and is answered from the service's address",
    at("far", "cluster"),
    "two",
    UDP,
  ),
  caller("a pod asks over UDP, IPv6", at("far", "cluster", 6), "two", UDP),
  caller("a pod asks over connected UDP", at("far", "cluster"), "two", CONNECTED),
  caller("a pod asks over connected UDP, IPv6", at("near", "cluster", 6), "one", CONNECTED),
  caller("a pod asks the second port of a service", { ...at("near", "cluster"), port: SECOND.port }, "one"),
  caller("a pod asks the second port of a service, IPv6", { ...at("far", "cluster", 6), port: SECOND.port }, "two"),
  caller("a pod that is its own backend sees the service ask", at("self", "cluster"), "caller", { sees: "service" }),
  caller("a pod that is its own backend sees the service ask, IPv6", at("self", "cluster", 6), "caller", {
    sees: "service",
  }),
  caller("a pod that is its own backend, UDP", at("self", "cluster"), "caller", { sees: "service", ...UDP }),
  caller("a pod that is its own backend by its node's port", at("self", "node-1"), "caller", { sees: "service" }),
  three("another pod asks that backend", at("self", "cluster"), "caller"),
  caller("a pod asks a node port of its own node", at("near", "node-1"), "one"),
  caller("a pod asks a node port of its own node, the backend is elsewhere", at("far", "node-1"), "two"),
  caller("a pod asks a node port of its own node, IPv6", at("far", "node-1", 6), "two"),
  caller("a pod asks a node port of another node, as the node it is on", at("far", "node-2"), "two", {
    sees: "node-1",
  }),
  caller("a pod asks an external address", at("far", "public"), "two"),
  caller("a pod asks a service on another node itself", at("node", "cluster"), "node-2", { sees: "node-1" }),
  caller("a pod asks a service on its own node itself", at("ownNode", "cluster"), "node-1"),
  caller("a pod asks a service outside of the cluster, as the node it is on", at("abroad", "cluster"), "outside", {
    sees: "node-1",
  }),
];

const NOBODY_ANSWERS: LiveRow[] = [
  caller("a pod that asks a service without endpoints is refused", at("none", "cluster"), "refused"),
  caller("a pod that asks a service without endpoints is refused, IPv6", at("none", "cluster", 6), "refused"),
  caller("a pod that asks a service without endpoints is refused, UDP", at("none", "cluster"), "refused", CONNECTED),
  caller(
    "a pod that asks a service without endpoints is refused, UDP and IPv6",
    at("none", "cluster", 6),
    "refused",
    CONNECTED,
  ),
  neighbour("a client outside is refused at the node port of such a service", at("none", "node-1"), "refused"),
  neighbour("a client outside is refused at the node port of such a service, IPv6", at("none", "node-2", 6), "refused"),
  neighbour(
    "a client outside is refused at the node port of such a service, UDP",
    at("none", "node-1"),
    "refused",
    CONNECTED,
  ),
  neighbour("a client outside is refused at an external address of such a service", at("none", "public"), "refused"),
  node1("a node that asks a service without endpoints is refused", at("none", "cluster"), "refused"),
  node1("a node that asks a service without endpoints is refused, UDP", at("none", "cluster"), "refused", CONNECTED),
  node1("a node is refused at a port the service does not have", { ...at("web", "cluster"), port: 82 }, "refused"),
  caller("a pod is refused at a port the service does not have", { ...at("web", "cluster"), port: 82 }, "refused"),
  caller("a pod is refused where the only endpoint has failed", at("failing", "cluster"), "refused"),
  neighbour("a client outside is refused where the only endpoint has failed", at("failing", "node-1"), "refused"),
];

const CLIENTS_OUTSIDE_ASK: LiveRow[] = [
  neighbour("a client outside asks a node port, and each backend sees it", at("web", "node-1"), "one, two, three", {
    tries: MANY,
  }),
  neighbour("a client outside asks a node port with a backend there", at("near", "node-1"), "one"),
  neighbour("a client outside asks a node port with a backend there, IPv6", at("near", "node-1", 6), "one"),
  neighbour("a client outside asks a node port with a backend on another node", at("far", "node-1"), "two"),
  neighbour("a client outside asks a node port with a backend on another node, IPv6", at("far", "node-3", 6), "two"),
  neighbour("a client outside asks a node port over UDP", at("near", "node-1"), "one", UDP),
  neighbour(
    "a client outside asks a node port over UDP, the backend is elsewhere",
    at("far", "node-1"),
    "two",
    CONNECTED,
  ),
  neighbour(
    "a client outside asks a node port over UDP, the backend is elsewhere, IPv6",
    at("far", "node-3", 6),
    "two",
    UDP,
  ),
  neighbour(
    "a client outside asks the second node port",
    { ...at("far", "node-1"), port: SECOND.nodePort("far") },
    "two",
  ),
  distant("a distant client asks a node port", at("far", "node-1"), "two"),
  neighbour("a client outside asks an external address", at("far", "public"), "two"),
  neighbour("a client outside asks an external address, IPv6", at("far", "public", 6), "two"),
  neighbour("a client outside asks a node port of a service on that very node", at("ownNode", "node-1"), "node-1"),
  neighbour("a client outside asks a node port of a service on another node itself", at("node", "node-1"), "node-2", {
    sees: "node-1",
  }),
  neighbour("a client of the ranges asks a load balancer", at("ranged", "public"), "one, two", { tries: MANY }),
  neighbour("a client of the ranges asks a load balancer, IPv6", at("ranged", "public", 6), "one, two", {
    tries: MANY,
  }),
  stranger("a client out of the ranges hears nothing from a load balancer", at("ranged", "public"), "silence"),
  stranger("a client out of the ranges hears nothing from a load balancer, IPv6", at("ranged", "public", 6), "silence"),
  stranger(
    "a client out of the ranges hears nothing from a load balancer, UDP",
    at("ranged", "public"),
    "silence",
    UDP,
  ),
  stranger("ranges are the load balancer's: the node port is for everybody", at("ranged", "node-1"), "one, two", {
    tries: MANY,
  }),
  caller("a pod out of the ranges hears nothing from a load balancer", at("ranged", "public"), "silence"),
];

const LOCAL_POLICIES: LiveRow[] = [
  neighbour("where clients outside get local backends, they do", at("inbound", "node-1"), "one", { tries: 10 }),
  neighbour("where clients outside get local backends, each node has its own", at("inbound", "node-2"), "two", {
    tries: 10,
  }),
  neighbour("where clients outside get local backends, the load balancer's too", at("inbound", "public"), "one", {
    tries: 10,
  }),
  neighbour("a node without a local backend says nothing to clients outside", at("elsewhere", "node-1"), "silence"),
  neighbour(
    "a node without a local backend says nothing to clients outside, IPv6",
    at("elsewhere", "node-1", 6),
    "silence",
  ),
  neighbour(
    "a node without a local backend says nothing to clients outside, UDP",
    at("elsewhere", "node-1"),
    "silence",
    UDP,
  ),
  neighbour("the node that has the backend answers", at("elsewhere", "node-2"), "two"),
  caller("a pod reaches such a service by its own node", at("elsewhere", "node-1"), "two"),
  caller("a pod reaches such a service by its own node, UDP and IPv6", at("elsewhere", "node-1", 6), "two", UDP),
  caller("a pod is outside of another node, which says nothing", at("elsewhere", "node-3"), "silence"),
  caller("a pod is outside of another node, IPv6", at("elsewhere", "node-3", 6), "silence"),
  caller("a pod is outside of another node, UDP", at("elsewhere", "node-3"), "silence", UDP),
  caller("a pod reaches the other node that has the backend", at("elsewhere", "node-2"), "two", { sees: "node-1" }),
  node1("a node reaches such a service by itself", at("elsewhere", "node-1"), "two"),
  node1("a node is outside of another node, which says nothing", at("elsewhere", "node-3"), "silence"),
  node1("a node is outside of another node, IPv6", at("elsewhere", "node-3", 6), "silence"),
  node1("a node is outside of another node, UDP", at("elsewhere", "node-3"), "silence", UDP),
  node1("a node reaches the other node that has the backend", at("elsewhere", "node-2"), "two"),
  node1("a node reaches such a load balancer's every backend", at("inbound", "public"), "one, two", { tries: MANY }),
  caller("pods reach such a load balancer's every backend", at("inbound", "public"), "one, two", { tries: MANY }),
  caller("where everybody gets local backends, a pod does", at("internal", "cluster"), "one", { tries: 10 }),
  node2("where everybody gets local backends, a node does", at("internal", "cluster"), "two", { tries: 10 }),
  three("a pod on a node without any hears nothing", at("internal", "cluster"), "silence"),
  three("a pod on a node without any hears nothing, IPv6", at("internal", "cluster", 6), "silence"),
  neighbour("clients outside do not care for what holds inside", at("internal", "node-3"), "one, two", { tries: MANY }),
];

const ENDPOINTS_COME_AND_GO: LiveRow[] = [
  caller("the last endpoint still answers while it ends", at("ending", "cluster"), "two"),
  neighbour("the last endpoint still answers clients outside while it ends", at("ending", "node-1"), "two"),
  caller("one that ends is not asked while there is another", at("leaving", "cluster"), "one", { tries: 20 }),
  neighbour("one that ends is not asked by clients outside either", at("leaving", "node-2", 6), "one", { tries: 20 }),
];

const NODES_ASK: LiveRow[] = [
  node1("a node asks a service, and each backend answers it", at("web", "cluster"), "one, two, three", { tries: MANY }),
  node1("a node asks a service with a backend on it", at("near", "cluster"), "one"),
  node1("a node asks a service with a backend on another node, IPv6", at("far", "cluster", 6), "two"),
  node1("a node asks over UDP, and is answered from the service's address", at("far", "cluster"), "two", UDP),
  node1("a node asks over connected UDP", at("near", "cluster"), "one", CONNECTED),
  node1("a node asks over UDP, IPv6", at("far", "cluster", 6), "two", UDP),
  node1("a node asks its own node port", at("far", "node-1"), "two"),
  node1("a node asks its own node port, IPv6", at("near", "node-1", 6), "one"),
  node1("a node asks its own node port over UDP", at("far", "node-1"), "two", UDP),
  node1("a node asks its own node port by its loopback address", { host: "127.0.0.1", port: nodePort("far") }, "two"),
  node1("a node asks a node port of another node, with the backend there", at("far", "node-2"), "two"),
  node1("a node asks a node port of another node, and that node asks in its stead", at("far", "node-3"), "two", {
    sees: "node-3",
  }),
  node1("a node asks an external address", at("far", "public"), "two"),
  node1("a node asks a service on itself", at("ownNode", "cluster"), "node-1"),
  node1("a node asks a service on another node itself", at("node", "cluster"), "node-2"),
  node1("a node asks another's node port of a service on itself", at("ownNode", "node-2"), "node-1", {
    sees: "node-2",
  }),
  node1("a node asks another's node port of a service on itself, IPv6", at("ownNode", "node-2", 6), "node-1", {
    sees: "node-2",
  }),
  node1("a node asks another's node port of a service on itself, UDP", at("ownNode", "node-2"), "node-1", {
    sees: "node-2",
    ...UDP,
  }),
  node1("a node of the ranges asks a load balancer", at("ranged", "public"), "one, two", { tries: MANY }),
  node2("a node out of the ranges hears nothing from a load balancer", at("ranged", "public"), "silence"),
  node1("a node asks a service outside of the cluster", at("abroad", "cluster"), "outside"),
];

export const UNHOOKED_PROCESSES_ASK: LiveRow[] = [
  unhooked("a process nobody translates asks a service with a backend here", at("near", "cluster"), "one", {
    sees: "node-1",
  }),
  unhooked("a process nobody translates asks another node's backend", at("far", "cluster"), "two", { sees: "node-1" }),
  unhooked("a process nobody translates asks another node's backend, IPv6", at("far", "cluster", 6), "two", {
    sees: "node-1",
  }),
  unhooked("a process nobody translates asks over UDP", at("far", "cluster"), "two", { sees: "node-1", ...UDP }),
  unhooked(
    "a process nobody translates asks a service on its node, which sees the service",
    at("ownNode", "cluster"),
    "node-1",
    { sees: "service" },
  ),
  unhooked("a process nobody translates asks a service on its node, IPv6", at("ownNode", "cluster", 6), "node-1", {
    sees: "service",
  }),
  unhooked("a process nobody translates asks a service on its node, UDP", at("ownNode", "cluster"), "node-1", {
    sees: "service",
    ...UDP,
  }),
  unhooked("a process nobody translates asks a service on another node itself", at("node", "cluster"), "node-2", {
    sees: "node-1",
  }),
  unhooked("a process nobody translates is refused where nobody answers", at("none", "cluster"), "refused"),
  unhooked(
    "a process nobody translates is refused where nobody answers, UDP and IPv6",
    at("none", "cluster", 6),
    "refused",
    CONNECTED,
  ),
];

const MUCH_IS_SAID: LiveRow[] = [
  caller("a pod says much to a backend on its node, and hears as much", at("near", "cluster"), "one", { length: MUCH }),
  caller("a pod says much to a backend elsewhere", at("far", "cluster"), "two", { length: MUCH }),
  caller("a pod says much to a backend elsewhere, IPv6", at("far", "cluster", 6), "two", { length: MUCH }),
  caller("a pod says much to itself", at("self", "cluster"), "caller", { sees: "service", length: MUCH }),
  node1("a node says much to a backend elsewhere", at("far", "cluster"), "two", { length: MUCH }),
  unhooked("a process nobody translates says much", at("far", "cluster", 6), "two", { sees: "node-1", length: MUCH }),
  unhooked("a process nobody translates says much to its node", at("ownNode", "cluster"), "node-1", {
    ...{ sees: "service", length: MUCH },
  }),
  neighbour("a client outside says much", at("near", "node-1"), "one", { length: MUCH }),
  neighbour("a client outside says much to a backend elsewhere", at("far", "node-1"), "two", { length: MUCH }),
  neighbour("a client outside says much to a backend elsewhere, IPv6", at("far", "node-1", 6), "two", { length: MUCH }),
  caller("a pod's datagram is cut into pieces", at("near", "cluster"), "one", { ...UDP, length: PIECES }),
  caller("a pod's datagram in pieces goes elsewhere", at("far", "cluster"), "two", { ...UDP, length: PIECES }),
  caller("a pod's datagram in pieces goes elsewhere, IPv6", at("far", "cluster", 6), "two", { ...UDP, length: PIECES }),
  neighbour("a datagram from outside in pieces", at("near", "node-1"), "one", { ...UDP, length: PIECES }),
  neighbour("a datagram from outside in pieces, IPv6", at("near", "node-1", 6), "one", { ...UDP, length: PIECES }),
  neighbour("a datagram from outside in pieces goes elsewhere", at("far", "node-1"), "two", { ...UDP, length: PIECES }),
  neighbour("a datagram from outside in pieces goes elsewhere, IPv6", at("far", "node-1", 6), "two", {
    ...UDP,
    length: PIECES,
  }),
];

const CLIENTS_STAY: LiveRow[] = [
  caller("a pod stays with its backend where the service says so", at("sticky", "cluster"), "the same", { tries: 12 }),
  caller("a pod stays with its backend, IPv6", at("sticky", "cluster", 6), "the same", { tries: 12 }),
  neighbour("a client outside stays with its backend", at("sticky", "node-1"), "the same", { tries: 12 }),
  node1("a node stays with its backend", at("sticky", "cluster"), "the same", { tries: 12 }),
];

/** By what they are about. */
export const LIVE_ROWS = {
  "pods ask": PODS_ASK,
  "nobody answers": NOBODY_ANSWERS,
  "clients outside ask": CLIENTS_OUTSIDE_ASK,
  "local backends": LOCAL_POLICIES,
  "endpoints come and go": ENDPOINTS_COME_AND_GO,
  "nodes ask": NODES_ASK,
  "unhooked processes ask": UNHOOKED_PROCESSES_ASK,
  "much is said": MUCH_IS_SAID,
  "clients stay": CLIENTS_STAY,
};
