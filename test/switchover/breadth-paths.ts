import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { LabNode, LabPod } from "../agent/node-lab.ts";
import { everyPath, LOCAL, PORT, REMOTE, type SwitchLab } from "./switch-lab.ts";
import type { Speaker, TrafficPath } from "./traffic.ts";

export const FAMILIES = ["v4", "v6"] as const;
export type Family = (typeof FAMILIES)[number];

/** Beside the two of every lab. */
export const SERVICES = {
  wide: { ips: ["10.96.0.13", "fd96::13"], nodePort: 30_003 },
  alsoWide: { ips: ["10.96.0.17", "fd96::17"], nodePort: 30_007 },
  deaf: { ips: ["10.96.0.14", "fd96::14"], nodePort: 30_004 },
  sticky: { ips: ["10.96.0.15", "fd96::15"], nodePort: 30_005, affinitySeconds: 600 },
  guarded: { ips: ["10.96.0.16", "fd96::16"], nodePort: 30_006 },
  /** Answered by no pod: by the first node itself, by the second, and by a machine outside. */
  nodeHere: { ips: ["10.96.0.18", "fd96::18"], nodePort: 30_008 },
  nodeThere: { ips: ["10.96.0.19", "fd96::19"], nodePort: 30_009 },
  beyond: { ips: ["10.96.0.20", "fd96::20"], nodePort: 30_010 },
};
export const MACHINES = ["nodeHere", "nodeThere", "beyond"] as const;
/** Fits the segment and not the overlay. */
const TOO_BIG = 1_440;
const IN_PIECES = 4_000;
const BULK = 30_000;
export const CLOSED_PORT = 9;

/** Where all of it happens. */
export interface BreadthContext {
  switching: SwitchLab;
  outsider: Netns;
  guarded: readonly LabPod[];
}

export function path(
  name: string,
  protocol: TrafficPath["protocol"],
  host: string,
  port: number,
  more: Partial<TrafficPath> = {},
): TrafficPath {
  return { name: `${name} ${protocol}`, protocol, host, port, count: 1, ...more };
}

function both(name: string, host: string, port: number, more: Partial<TrafficPath> = {}): TrafficPath[] {
  return [path(name, "tcp", host, port, more), path(name, "udp", host, port, more)];
}

/** Of every kind, in one family, to be kept. */
export function pathsOf(world: BreadthContext, family: Family): Speaker[] {
  const { switching, guarded } = world;
  const { lab, pods, nodes } = switching;
  const [first, , third] = nodes as [LabNode, LabNode, LabNode];
  const at = FAMILIES.indexOf(family);
  const [local, remote] = [LOCAL.ips[at]!, REMOTE.ips[at]!];
  const [port1, port3] = [first.addresses[family], third.addresses[family]];
  const plain = everyPath({ lab, pods, node: first }, { tcp: 1, udp: 1 }, family);
  const named = naming(family);
  const from = (name: string, flows: TrafficPath[]) => ({ netns: pods[name]!.netns, flows });
  return [
    ...plain.map((speaker) => ({
      ...speaker,
      flows: [...named("plain", speaker.flows), ...named("idle", speaker.flows, { idle: true })],
    })),
    from("client-2", named("three", [...both("second to first", local, 80), ...both("second to itself", remote, 80)])),
    from("client-3", named("three", [...both("third to first", local, 80), ...both("third to second", remote, 80)])),
    { netns: third.netns, group: third.group, flows: named("three", both("third node to second", remote, 80)) },
    from("client-3", named("sticky", both("to a service with affinity", ipOf("sticky", family), 80))),
    from("here", named("itself", [...both("pod to its own service", local, 80)])),
    ...toMachines(world, family),
    from("friend", named("allowed", both("to the service", ipOf("guarded", family), 80))),
    from(
      "friend",
      named(
        "allowed",
        guarded.flatMap((pod) => both(`to ${pod.name}`, addressOf(pod, family), PORT)),
      ),
    ),
    from("client", [
      ...named(
        "pieces",
        [path("to service, same node", "udp", local, 80), path("to service, other node", "udp", remote, 80)],
        { size: IN_PIECES },
      ),
      ...named("bulk", [path("to service, other node", "tcp", remote, 80)], { size: BULK }),
      ...named("refused", [path("by a service", "udp", ipOf("deaf", family), 80)], { expects: "ECONNREFUSED" }),
    ]),
    {
      netns: lab.outside.netns,
      flows: [
        ...named("three", both("third node's port to second", port3, REMOTE.nodePort)),
        ...named(
          "pieces",
          [
            path("to node port, same node", "udp", port1, LOCAL.nodePort),
            path("to node port, other node", "udp", port1, REMOTE.nodePort),
          ],
          { size: IN_PIECES, expects: "EMSGSIZE" },
        ),
        ...named("bulk", [path("to node port, other node", "tcp", port1, REMOTE.nodePort)], { size: BULK }),
        ...named("refused", [path("by a node port", "udp", port1, SERVICES.deaf.nodePort)], {
          expects: "ECONNREFUSED",
        }),
      ],
    },
  ];
}

function naming(family: Family) {
  return (prefix: string, flows: readonly TrafficPath[], more: Partial<TrafficPath> = {}) =>
    flows.map((one) => ({ ...one, ...more, name: `${prefix} ${family}: ${one.name}` }));
}

/** To services no pod answers for, from a pod, a node and outside. */
function toMachines({ switching, outsider }: BreadthContext, family: Family): Speaker[] {
  const { pods, nodes } = switching;
  const first = nodes[0]!;
  const named = naming(family);
  const kept = (flows: TrafficPath[]) => [...named("machines", flows), ...named("idle", flows, { idle: true })];
  const ways = (client: string, at: (service: (typeof MACHINES)[number]) => [string, number]) =>
    kept(MACHINES.flatMap((service) => both(`${client} to ${service}`, ...at(service))));
  return [
    { netns: pods["client"]!.netns, flows: ways("pod", (service) => [ipOf(service, family), 80]) },
    { netns: first.netns, group: first.group, flows: ways("node", (service) => [ipOf(service, family), 80]) },
    {
      netns: outsider,
      flows: ways("node port", (service) => [first.addresses[family], SERVICES[service].nodePort]),
    },
  ];
}

/** Each to a place of its own: what one is told of a way holds for all that take it. */
export function importedPaths({ switching, outsider }: BreadthContext, family: Family): Speaker[] {
  const { pods, nodes } = switching;
  const [first, , third] = nodes.map(({ addresses }) => addresses[family]) as [string, string, string];
  const ways = (name: string, [narrow, bulk, deaf]: readonly (readonly [string, number])[]): TrafficPath[] => [
    path(`too big ${family}: ${name}`, "udp", ...narrow!, { size: TOO_BIG, expects: "EMSGSIZE" }),
    path(`bulk ${family}: ${name}`, "tcp", ...bulk!, { size: BULK }),
    path(`refused ${family}: ${name}`, "udp", ...deaf!, { expects: "ECONNREFUSED" }),
  ];
  const services = (["wide", "alsoWide", "deaf"] as const).map((service) => [ipOf(service, family), 80] as const);
  const { wide, deaf } = SERVICES;
  const ports = [[first, wide.nodePort] as const, [third, wide.nodePort] as const, [first, deaf.nodePort] as const];
  return [
    { netns: pods["wide"]!.netns, flows: ways("service, other node", services) },
    { netns: outsider, flows: ways("node port, other node", ports) },
  ];
}

export function fragmentedPaths({ switching, outsider }: BreadthContext, family: Family): Speaker[] {
  const { pods, nodes } = switching;
  const inPieces = (name: string, host: string, port: number) =>
    path(`pieces ${family}: ${name}`, "udp", host, port, { size: IN_PIECES, expects: "EMSGSIZE" });
  const node = nodes[0]!.addresses[family];
  return [
    { netns: pods["wide"]!.netns, flows: [inPieces("service, other node", ipOf("wide", family), 80)] },
    { netns: outsider, flows: [inPieces("node port, other node", node, SERVICES.wide.nodePort)] },
  ];
}

export function ipOf(service: keyof typeof SERVICES, family: Family): string {
  return SERVICES[service].ips[FAMILIES.indexOf(family)]!;
}

export function addressOf({ addresses }: LabPod, family: Family): string {
  return addresses.find((address) => address.includes(":") === (family === "v6"))!;
}
