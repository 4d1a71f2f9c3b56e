import type { ServiceBackend, ServicePort } from "../../src/calc/model.ts";
import { contains, parseAddress, parseCidr } from "../../src/kit/ip.ts";
import type { ConnectionExpectation, ServiceConnection, Surroundings } from "./service-cases.ts";

/** Which address of a service was asked: one the cluster gave it, or one of those for people outside. */
type Asked = { port: ServicePort; by: "cluster" | "external" | "loadBalancer" | "nodePort" };
type NewConnection = Pick<ServiceConnection, "protocol" | "source" | "destination" | "destinationPort">;

/**
 * What services do to the first packet of a connection: what Kubernetes' own proxy does, told from the model alone. It is what every data
 * plane is compared with. `masquerade` is the proxy's way to get answers back; a data plane that has another may keep the client's address
 * there too, and must keep it where it is false. A client that is given to itself is masqueraded whatever `masquerade` says.
 */
export function serviceVerdict(
  services: Iterable<ServicePort>,
  surroundings: Surroundings,
  packet: NewConnection,
): ConnectionExpectation {
  const rows = [...services];
  const asked = rows.flatMap((port) => askedBy(port, packet, surroundings))[0];
  if (!asked) return unknownPort(rows, surroundings, packet);
  const { port, by } = asked;
  if (by === "loadBalancer" && !mayAsk(port, packet, surroundings)) return { result: "drop" };
  if (!port.anyBackends) return { result: "reject" };
  const fromPod = isIn(surroundings.podNets, packet.source);
  const fromNode = surroundings.nodeAddresses.includes(packet.source);
  const chosen = backendsFor(asked, fromPod || fromNode);
  if (chosen.length === 0) return { result: "drop" };
  return {
    result: "backends",
    backends: chosen.map(({ address, port }) => `${address.includes(":") ? `[${address}]` : address}:${port}`).sort(),
    masquerade: isMasqueraded(asked, { fromPod, fromNode, podsKnown: surroundings.podNets.length > 0 }) || isHairpin(),
  };

  /** Only where nobody else could be chosen; with others it depends on the choice. */
  function isHairpin(): boolean {
    return chosen.every(({ address }) => address === packet.source);
  }
}

function askedBy(port: ServicePort, packet: NewConnection, { nodePortAddresses }: Surroundings): Asked[] {
  const { destination, destinationPort } = packet;
  if (port.protocol !== packet.protocol) return [];
  if (port.nodePort === destinationPort && nodePortAddresses.includes(destination)) return [{ port, by: "nodePort" }];
  if (port.port !== destinationPort) return [];
  if (port.clusterAddress === destination) return [{ port, by: "cluster" }];
  if (port.externalAddresses.includes(destination)) return [{ port, by: "external" }];
  if (port.loadBalancerAddresses.includes(destination)) return [{ port, by: "loadBalancer" }];
  return [];
}

/** A cluster address without such a port refuses; an address nobody has leads nowhere. */
function unknownPort(rows: ServicePort[], { serviceNets }: Surroundings, packet: NewConnection): ConnectionExpectation {
  if (rows.some(({ clusterAddress }) => clusterAddress === packet.destination)) return { result: "reject" };
  return { result: isIn(serviceNets, packet.destination) ? "drop" : "pass" };
}

/** A node that has the balancer's address may ask with it wherever the node itself may. */
function mayAsk({ sourceRanges }: ServicePort, packet: NewConnection, { nodeAddress }: Surroundings): boolean {
  if (sourceRanges === null || isIn(sourceRanges, packet.source)) return true;
  return packet.source === packet.destination && isIn(sourceRanges, nodeAddress);
}

function backendsFor({ port, by }: Asked, ofTheCluster: boolean): ServiceBackend[] {
  const onlyLocal = by === "cluster" ? port.internalLocal : port.externalLocal && !ofTheCluster;
  return onlyLocal ? port.localBackends : port.clusterBackends;
}

function isMasqueraded(
  { port, by }: Asked,
  { fromPod, fromNode, podsKnown }: { fromPod: boolean; fromNode: boolean; podsKnown: boolean },
): boolean {
  if (by === "cluster") return podsKnown && !fromPod;
  return port.externalLocal ? fromNode && !fromPod : true;
}

function isIn(nets: readonly string[], text: string): boolean {
  const address = parseAddress(text);
  return nets.some((net) => {
    const cidr = parseCidr(net);
    return cidr !== undefined && address !== undefined && contains(cidr, address);
  });
}
