import type { KubeObject } from "../../src/api/object.ts";
import type { Packet } from "../../src/calc/model.ts";
import type { Random } from "./random.ts";
import type { RandomCluster } from "./random-cluster.ts";
import { NODE_ADDRESSES } from "./random-names.ts";

/** Where a packet comes from or goes to: a pod of the node, the node itself, or its uplink. */
export type PacketEnd = { at: "workload"; id: string } | { at: "host" } | { at: "uplink" };

export interface RandomPacket {
  packet: Packet;
  from: PacketEnd;
  to: PacketEnd;
}

const OUTSIDE = {
  4: ["198.51.100.7", "198.51.100.8", "203.0.113.1"],
  6: ["2001:db8::7", "2001:db8::8", "2001:db9::1"],
};
/** Where clients go before a service is translated. */
const VIRTUAL = { 4: "10.96.0.10", 6: "fd96::10" };

export function randomPacket(world: RandomCluster, random: Random): RandomPacket {
  const ipVersion = random.chance(65) ? 4 : 6;
  const local = localPods(world).filter(({ addresses }) =>
    addresses.some((address) => familyOf(address) === ipVersion),
  );
  const from = randomEnd(random, local);
  // Something must be on the way: neither the node to itself, nor in and out by the uplink without a pod, beyond what is forwarded.
  const choices = from.at === "host" ? (["workload", "uplink"] as const) : (["workload", "host", "uplink"] as const);
  const to = randomEnd(random, local, choices);
  const protocol = random.of([6, 6, 6, 17, 17, ipVersion === 4 ? 1 : 58, 132, 47]);
  const ports = protocol === 6 || protocol === 17 || protocol === 132;
  return {
    packet: {
      ipVersion,
      protocol,
      source: addressAt(world, random, from, ipVersion),
      destination: addressAt(world, random, to, ipVersion),
      ...(ports ? { sourcePort: random.of([80, 53, 40_000]), destinationPort: randomPort(random) } : {}),
      ...(protocol === 1 || protocol === 58 ? { icmpType: random.of([0, 8, 128]), icmpCode: random.of([0, 1]) } : {}),
      ...(random.chance(15)
        ? { originalDestination: VIRTUAL[ipVersion], originalDestinationPort: randomPort(random) }
        : {}),
    },
    from,
    to,
  };
}

interface LocalPod {
  id: string;
  addresses: string[];
}

function randomPort(random: Random): number {
  return random.of([80, 80, 53, 8080, 1234, 99]);
}

function randomEnd(
  random: Random,
  local: LocalPod[],
  choices: readonly PacketEnd["at"][] = ["workload", "workload", "host", "uplink"],
): PacketEnd {
  const at = random.of(choices);
  if (at !== "workload") return { at };
  return local.length === 0 ? { at: "uplink" } : { at, id: random.of(local).id };
}

function addressAt(world: RandomCluster, random: Random, end: PacketEnd, ipVersion: 4 | 6): string {
  const ofFamily = (addresses: readonly string[]) => addresses.filter((address) => familyOf(address) === ipVersion);
  if (end.at === "host") return ofFamily(world.uplink.addresses)[0]!;
  if (end.at === "workload") return ofFamily(localPods(world).find(({ id }) => id === end.id)!.addresses)[0]!;
  // Pods elsewhere; and those without a network of their own, whose addresses say nothing.
  const remote = world.objects.filter(
    (pod) => pod.kind === "Pod" && !(isRunningPod(pod) && nodeOf(pod) === world.node),
  );
  const others = [...remote.flatMap(addressesOf), ...NODE_ADDRESSES["node-b"]];
  return random.of([...ofFamily(others), ...OUTSIDE[ipVersion]]);
}

function localPods(world: RandomCluster): LocalPod[] {
  return world.objects
    .filter((object) => isRunningPod(object) && nodeOf(object) === world.node)
    .map((pod) => ({ id: `${pod.metadata.namespace}/${pod.metadata.name}`, addresses: addressesOf(pod) }));
}

interface PodShape {
  spec: { nodeName: string; hostNetwork?: boolean };
  status: { phase: string; podIPs: { ip: string }[] };
}

function isRunningPod(object: KubeObject): boolean {
  if (object.kind !== "Pod") return false;
  const { spec, status } = object as unknown as PodShape;
  return !spec.hostNetwork && status.phase === "Running";
}

function nodeOf(pod: KubeObject): string {
  return (pod as unknown as PodShape).spec.nodeName;
}

function addressesOf(pod: KubeObject): string[] {
  return (pod as unknown as PodShape).status.podIPs.map(({ ip }) => ip);
}

function familyOf(address: string): 4 | 6 {
  return address.includes(":") ? 6 : 4;
}
