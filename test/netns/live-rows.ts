import type { LiveClient, Question } from "./live-lab.ts";
import { clusterAddress, type LiveName, nodePort, publicAddress, SECOND } from "./live-services.ts";

/**
 * One connection a row, or as many as it has tries: from where, to what, and what becomes of it. `by` are those who answer, all of them where
 * there are several; `sees` is whose address they see, or `service` for the one that was asked.
 */
export interface LiveRow extends Omit<Question, "patienceMs"> {
  title: string;
  becomes: Answered | "refused" | "silence";
}

export interface Answered {
  by: readonly string[];
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
const UDP = { udp: "unconnected" } as const;
const CONNECTED = { udp: "connected" } as const;

/** The place a service is asked at. */
function at(service: LiveName, way: Way, family: 4 | 6 = 4): { host: string; port: number } {
  if (way === "cluster") return { host: clusterAddress(service, family), port: 80 };
  if (way === "public") return { host: publicAddress(service, family), port: 80 };
  return { host: NODES[way][family], port: nodePort(service) };
}

function row(
  title: string,
  from: LiveClient,
  to: { host: string; port: number },
  becomes: LiveRow["becomes"],
  more: Partial<Question> = {},
): LiveRow {
  return { title, from, ...to, becomes, ...more };
}

const seen = (sees: Answered["sees"], ...by: string[]): Answered => ({ by, sees });

const PODS_ASK: LiveRow[] = [
  row(
    "a pod asks a service, and each backend answers it",
    "caller",
    at("web", "cluster"),
    seen("caller", "one", "two", "three"),
    { tries: MANY },
  ),
  row("a pod asks a service with a backend on its own node", "caller", at("near", "cluster"), seen("caller", "one")),
  row(
    "a pod asks a service with a backend on its own node, IPv6",
    "caller",
    at("near", "cluster", 6),
    seen("caller", "one"),
  ),
  row("a pod asks a service with a backend on another node", "caller", at("far", "cluster"), seen("caller", "two")),
  row(
    "a pod asks a service with a backend on another node, IPv6",
    "caller",
    at("far", "cluster", 6),
    seen("caller", "two"),
  ),
  row(
    "a pod asks over UDP, and is answered from the service's address",
    "caller",
    at("near", "cluster"),
    seen("caller", "one"),
    UDP,
  ),
  row(
    "a pod asks another node over UDP, and is answered from the service's address",
    "caller",
    at("far", "cluster"),
    seen("caller", "two"),
    UDP,
  ),
  row("a pod asks over UDP, IPv6", "caller", at("far", "cluster", 6), seen("caller", "two"), UDP),
  row("a pod asks over connected UDP", "caller", at("far", "cluster"), seen("caller", "two"), CONNECTED),
  row("a pod asks over connected UDP, IPv6", "caller", at("near", "cluster", 6), seen("caller", "one"), CONNECTED),
  row(
    "a pod asks the second port of a service",
    "caller",
    { ...at("near", "cluster"), port: SECOND.port },
    seen("caller", "one"),
  ),
  row(
    "a pod asks the second port of a service, IPv6",
    "caller",
    { ...at("far", "cluster", 6), port: SECOND.port },
    seen("caller", "two"),
  ),
  row("a pod that is its own backend sees the service ask", "caller", at("self", "cluster"), seen("service", "caller")),
  row(
    "a pod that is its own backend sees the service ask, IPv6",
    "caller",
    at("self", "cluster", 6),
    seen("service", "caller"),
  ),
  row("a pod that is its own backend, UDP", "caller", at("self", "cluster"), seen("service", "caller"), UDP),
  row("a pod that is its own backend by its node's port", "caller", at("self", "node-1"), seen("service", "caller")),
  row("another pod asks that backend", "three", at("self", "cluster"), seen("three", "caller")),
  row("a pod asks a node port of its own node", "caller", at("near", "node-1"), seen("caller", "one")),
  row(
    "a pod asks a node port of its own node, the backend is elsewhere",
    "caller",
    at("far", "node-1"),
    seen("caller", "two"),
  ),
  row("a pod asks a node port of its own node, IPv6", "caller", at("far", "node-1", 6), seen("caller", "two")),
  row(
    "a pod asks a node port of another node, as the node it is on",
    "caller",
    at("far", "node-2"),
    seen("node-1", "two"),
  ),
  row("a pod asks an external address", "caller", at("far", "public"), seen("caller", "two")),
  row("a pod asks a service on another node itself", "caller", at("node", "cluster"), seen("node-1", "node-2")),
  row("a pod asks a service on its own node itself", "caller", at("ownNode", "cluster"), seen("caller", "node-1")),
  row(
    "a pod asks a service outside of the cluster, as the node it is on",
    "caller",
    at("abroad", "cluster"),
    seen("node-1", "outside"),
  ),
];

const NOBODY_ANSWERS: LiveRow[] = [
  row("a pod that asks a service without endpoints is refused", "caller", at("none", "cluster"), "refused"),
  row("a pod that asks a service without endpoints is refused, IPv6", "caller", at("none", "cluster", 6), "refused"),
  row(
    "a pod that asks a service without endpoints is refused, UDP",
    "caller",
    at("none", "cluster"),
    "refused",
    CONNECTED,
  ),
  row(
    "a pod that asks a service without endpoints is refused, UDP and IPv6",
    "caller",
    at("none", "cluster", 6),
    "refused",
    CONNECTED,
  ),
  row("a client outside is refused at the node port of such a service", "neighbour", at("none", "node-1"), "refused"),
  row(
    "a client outside is refused at the node port of such a service, IPv6",
    "neighbour",
    at("none", "node-2", 6),
    "refused",
  ),
  row(
    "a client outside is refused at the node port of such a service, UDP",
    "neighbour",
    at("none", "node-1"),
    "refused",
    CONNECTED,
  ),
  row(
    "a client outside is refused at an external address of such a service",
    "neighbour",
    at("none", "public"),
    "refused",
  ),
  row("a node that asks a service without endpoints is refused", "node-1", at("none", "cluster"), "refused"),
  row(
    "a node that asks a service without endpoints is refused, UDP",
    "node-1",
    at("none", "cluster"),
    "refused",
    CONNECTED,
  ),
  row(
    "a node is refused at a port the service does not have",
    "node-1",
    { ...at("web", "cluster"), port: 82 },
    "refused",
  ),
  row(
    "a pod is refused at a port the service does not have",
    "caller",
    { ...at("web", "cluster"), port: 82 },
    "refused",
  ),
  row("a pod is refused where the only endpoint has failed", "caller", at("failing", "cluster"), "refused"),
  row(
    "a client outside is refused where the only endpoint has failed",
    "neighbour",
    at("failing", "node-1"),
    "refused",
  ),
];

const CLIENTS_OUTSIDE_ASK: LiveRow[] = [
  row(
    "a client outside asks a node port, and each backend sees it",
    "neighbour",
    at("web", "node-1"),
    seen("neighbour", "one", "two", "three"),
    { tries: MANY },
  ),
  row(
    "a client outside asks a node port with a backend there",
    "neighbour",
    at("near", "node-1"),
    seen("neighbour", "one"),
  ),
  row(
    "a client outside asks a node port with a backend there, IPv6",
    "neighbour",
    at("near", "node-1", 6),
    seen("neighbour", "one"),
  ),
  row(
    "a client outside asks a node port with a backend on another node",
    "neighbour",
    at("far", "node-1"),
    seen("neighbour", "two"),
  ),
  row(
    "a client outside asks a node port with a backend on another node, IPv6",
    "neighbour",
    at("far", "node-3", 6),
    seen("neighbour", "two"),
  ),
  row("a client outside asks a node port over UDP", "neighbour", at("near", "node-1"), seen("neighbour", "one"), UDP),
  row(
    "a client outside asks a node port over UDP, the backend is elsewhere",
    "neighbour",
    at("far", "node-1"),
    seen("neighbour", "two"),
    CONNECTED,
  ),
  row(
    "a client outside asks a node port over UDP, the backend is elsewhere, IPv6",
    "neighbour",
    at("far", "node-3", 6),
    seen("neighbour", "two"),
    UDP,
  ),
  row(
    "a client outside asks the second node port",
    "neighbour",
    { ...at("far", "node-1"), port: SECOND.nodePort("far") },
    seen("neighbour", "two"),
  ),
  row("a distant client asks a node port", "distant", at("far", "node-1"), seen("distant", "two")),
  row("a client outside asks an external address", "neighbour", at("far", "public"), seen("neighbour", "two")),
  row("a client outside asks an external address, IPv6", "neighbour", at("far", "public", 6), seen("neighbour", "two")),
  row(
    "a client outside asks a node port of a service on that very node",
    "neighbour",
    at("ownNode", "node-1"),
    seen("neighbour", "node-1"),
  ),
  row(
    "a client outside asks a node port of a service on another node itself",
    "neighbour",
    at("node", "node-1"),
    seen("node-1", "node-2"),
  ),
  row(
    "a client of the ranges asks a load balancer",
    "neighbour",
    at("ranged", "public"),
    seen("neighbour", "one", "two"),
    { tries: MANY },
  ),
  row(
    "a client of the ranges asks a load balancer, IPv6",
    "neighbour",
    at("ranged", "public", 6),
    seen("neighbour", "one", "two"),
    { tries: MANY },
  ),
  row("a client out of the ranges hears nothing from a load balancer", "stranger", at("ranged", "public"), "silence"),
  row(
    "a client out of the ranges hears nothing from a load balancer, IPv6",
    "stranger",
    at("ranged", "public", 6),
    "silence",
  ),
  row(
    "a client out of the ranges hears nothing from a load balancer, UDP",
    "stranger",
    at("ranged", "public"),
    "silence",
    UDP,
  ),
  row(
    "ranges are the load balancer's: the node port is for everybody",
    "stranger",
    at("ranged", "node-1"),
    seen("stranger", "one", "two"),
    { tries: MANY },
  ),
  row("a pod out of the ranges hears nothing from a load balancer", "caller", at("ranged", "public"), "silence"),
];

const LOCAL_POLICIES: LiveRow[] = [
  row(
    "where clients outside get local backends, they do",
    "neighbour",
    at("inbound", "node-1"),
    seen("neighbour", "one"),
    { tries: 10 },
  ),
  row(
    "where clients outside get local backends, each node has its own",
    "neighbour",
    at("inbound", "node-2"),
    seen("neighbour", "two"),
    { tries: 10 },
  ),
  row(
    "where clients outside get local backends, the load balancer's too",
    "neighbour",
    at("inbound", "public"),
    seen("neighbour", "one"),
    { tries: 10 },
  ),
  row(
    "a node without a local backend says nothing to clients outside",
    "neighbour",
    at("elsewhere", "node-1"),
    "silence",
  ),
  row(
    "a node without a local backend says nothing to clients outside, IPv6",
    "neighbour",
    at("elsewhere", "node-1", 6),
    "silence",
  ),
  row(
    "a node without a local backend says nothing to clients outside, UDP",
    "neighbour",
    at("elsewhere", "node-1"),
    "silence",
    UDP,
  ),
  row("the node that has the backend answers", "neighbour", at("elsewhere", "node-2"), seen("neighbour", "two")),
  row("pods reach such a service from everywhere", "caller", at("elsewhere", "node-1"), seen("caller", "two")),
  row(
    "pods reach such a load balancer's every backend",
    "caller",
    at("inbound", "public"),
    seen("caller", "one", "two"),
    { tries: MANY },
  ),
  row("where everybody gets local backends, a pod does", "caller", at("internal", "cluster"), seen("caller", "one"), {
    tries: 10,
  }),
  row("where everybody gets local backends, a node does", "node-2", at("internal", "cluster"), seen("node-2", "two"), {
    tries: 10,
  }),
  row("a pod on a node without any hears nothing", "three", at("internal", "cluster"), "silence"),
  row("a pod on a node without any hears nothing, IPv6", "three", at("internal", "cluster", 6), "silence"),
  row(
    "clients outside do not care for what holds inside",
    "neighbour",
    at("internal", "node-3"),
    seen("neighbour", "one", "two"),
    { tries: MANY },
  ),
];

const ENDPOINTS_COME_AND_GO: LiveRow[] = [
  row("the last endpoint still answers while it ends", "caller", at("ending", "cluster"), seen("caller", "two")),
  row(
    "the last endpoint still answers clients outside while it ends",
    "neighbour",
    at("ending", "node-1"),
    seen("neighbour", "two"),
  ),
  row("one that ends is not asked while there is another", "caller", at("leaving", "cluster"), seen("caller", "one"), {
    tries: 20,
  }),
  row(
    "one that ends is not asked by clients outside either",
    "neighbour",
    at("leaving", "node-2", 6),
    seen("neighbour", "one"),
    { tries: 20 },
  ),
];

const NODES_ASK: LiveRow[] = [
  row(
    "a node asks a service, and each backend answers it",
    "node-1",
    at("web", "cluster"),
    seen("node-1", "one", "two", "three"),
    { tries: MANY },
  ),
  row("a node asks a service with a backend on it", "node-1", at("near", "cluster"), seen("node-1", "one")),
  row(
    "a node asks a service with a backend on another node, IPv6",
    "node-1",
    at("far", "cluster", 6),
    seen("node-1", "two"),
  ),
  row(
    "a node asks over UDP, and is answered from the service's address",
    "node-1",
    at("far", "cluster"),
    seen("node-1", "two"),
    UDP,
  ),
  row("a node asks over connected UDP", "node-1", at("near", "cluster"), seen("node-1", "one"), CONNECTED),
  row("a node asks over UDP, IPv6", "node-1", at("far", "cluster", 6), seen("node-1", "two"), UDP),
  row("a node asks its own node port", "node-1", at("far", "node-1"), seen("node-1", "two")),
  row("a node asks its own node port, IPv6", "node-1", at("near", "node-1", 6), seen("node-1", "one")),
  row("a node asks its own node port over UDP", "node-1", at("far", "node-1"), seen("node-1", "two"), UDP),
  row(
    "a node asks its own node port by its loopback address",
    "node-1",
    { host: "127.0.0.1", port: nodePort("far") },
    seen("node-1", "two"),
  ),
  row(
    "a node asks a node port of another node, with the backend there",
    "node-1",
    at("far", "node-2"),
    seen("node-1", "two"),
  ),
  row(
    "a node asks a node port of another node, and that node asks in its stead",
    "node-1",
    at("far", "node-3"),
    seen("node-3", "two"),
  ),
  row("a node asks an external address", "node-1", at("far", "public"), seen("node-1", "two")),
  row("a node asks a service on itself", "node-1", at("ownNode", "cluster"), seen("node-1", "node-1")),
  row("a node asks a service on another node itself", "node-1", at("node", "cluster"), seen("node-1", "node-2")),
  row("a node of the ranges asks a load balancer", "node-1", at("ranged", "public"), seen("node-1", "one", "two"), {
    tries: MANY,
  }),
  row("a node out of the ranges hears nothing from a load balancer", "node-2", at("ranged", "public"), "silence"),
  row("a node asks a service outside of the cluster", "node-1", at("abroad", "cluster"), seen("node-1", "outside")),
];

const UNHOOKED_PROCESSES_ASK: LiveRow[] = [
  row(
    "a process nobody translates asks a service with a backend here",
    "unhooked",
    at("near", "cluster"),
    seen("node-1", "one"),
  ),
  row(
    "a process nobody translates asks another node's backend",
    "unhooked",
    at("far", "cluster"),
    seen("node-1", "two"),
  ),
  row(
    "a process nobody translates asks another node's backend, IPv6",
    "unhooked",
    at("far", "cluster", 6),
    seen("node-1", "two"),
  ),
  row("a process nobody translates asks over UDP", "unhooked", at("far", "cluster"), seen("node-1", "two"), UDP),
  row(
    "a process nobody translates asks a service on its node, which sees the service",
    "unhooked",
    at("ownNode", "cluster"),
    seen("service", "node-1"),
  ),
  row(
    "a process nobody translates asks a service on its node, IPv6",
    "unhooked",
    at("ownNode", "cluster", 6),
    seen("service", "node-1"),
  ),
  row(
    "a process nobody translates asks a service on its node, UDP",
    "unhooked",
    at("ownNode", "cluster"),
    seen("service", "node-1"),
    UDP,
  ),
  row(
    "a process nobody translates asks a service on another node itself",
    "unhooked",
    at("node", "cluster"),
    seen("node-1", "node-2"),
  ),
  row("a process nobody translates is refused where nobody answers", "unhooked", at("none", "cluster"), "refused"),
  row(
    "a process nobody translates is refused where nobody answers, UDP and IPv6",
    "unhooked",
    at("none", "cluster", 6),
    "refused",
    CONNECTED,
  ),
];

const CLIENTS_STAY: LiveRow[] = (["caller", "neighbour", "node-1"] as const).map((from) =>
  row(
    `${from} stays with its backend where the service says so`,
    from,
    at("sticky", from === "neighbour" ? "node-1" : "cluster"),
    { by: ["the same"], sees: from },
    { tries: 12 },
  ),
);

/** By what they are about. */
export const LIVE_ROWS = {
  "pods ask": PODS_ASK,
  "nobody answers": NOBODY_ANSWERS,
  "clients outside ask": CLIENTS_OUTSIDE_ASK,
  "local backends": LOCAL_POLICIES,
  "endpoints come and go": ENDPOINTS_COME_AND_GO,
  "nodes ask": NODES_ASK,
  "unhooked processes ask": UNHOOKED_PROCESSES_ASK,
  "clients stay": CLIENTS_STAY,
};
