import type { PacketRequest } from "../../src/calc/model.ts";
import { matchesLabelSelector, protocolOf, type ReferenceEndpoint, type ReferenceFacts } from "./reference-facts.ts";

type Json = Record<string, unknown>;

export interface SeenPacket {
  ipVersion: 4 | 6;
  protocol: number;
  source: string;
  destination: string;
  sourcePort: number;
  destinationPort: number;
  icmpType?: number;
  icmpCode?: number;
  /** What a sidecar sees in addition. */
  request?: PacketRequest;
}

/** One rule of a v3 policy or profile. */
export function ruleMatches(
  facts: ReferenceFacts,
  rule: Json,
  namespace: string | undefined,
  packet: SeenPacket,
): boolean {
  if (rule["ipVersion"] !== undefined && rule["ipVersion"] !== packet.ipVersion) return false;
  if (rule["protocol"] !== undefined && protocolOf(rule["protocol"]) !== packet.protocol) return false;
  if (rule["notProtocol"] !== undefined && protocolOf(rule["notProtocol"]) === packet.protocol) return false;
  if (rule["icmp"] && !icmpIs(rule["icmp"] as Json, packet)) return false;
  if (rule["notICMP"] && icmpIs(rule["notICMP"] as Json, packet)) return false;
  if (isOfOtherFamily(rule, packet)) return false;
  const source = { address: packet.source, port: packet.sourcePort };
  const destination = { address: packet.destination, port: packet.destinationPort };
  return (
    entityMatches(facts, rule["source"] as Json | undefined, namespace, source, packet.protocol, false) &&
    entityMatches(facts, rule["destination"] as Json | undefined, namespace, destination, packet.protocol, true) &&
    (packet.request === undefined || requestMatches(facts, rule, namespace, packet.request))
  );
}

/** Only a sidecar asks this. An account that is not proved is not asked for. */
function requestMatches(
  facts: ReferenceFacts,
  rule: Json,
  namespace: string | undefined,
  { http, sourceAccount, destinationAccount }: PacketRequest,
): boolean {
  const asked = rule["http"] as { methods?: string[]; paths?: { exact?: string; prefix?: string }[] } | undefined;
  if ((asked?.methods || asked?.paths) && !http) return false;
  if (asked?.methods && !asked.methods.some((method) => method === "*" || method === http?.method)) return false;
  if (asked?.paths && !asked.paths.some((path) => pathMatches(path, http?.path ?? ""))) return false;
  return (
    accountMatches(facts, rule["source"] as Json | undefined, namespace, sourceAccount) &&
    accountMatches(facts, rule["destination"] as Json | undefined, namespace, destinationAccount)
  );
}

function pathMatches({ exact, prefix }: { exact?: string; prefix?: string }, target: string): boolean {
  const [path = ""] = target.split("?");
  const [plain = ""] = path.split("#");
  if (!plain.startsWith("/")) return false;
  if (exact !== undefined) return plain === exact;
  const parts = plain.toLowerCase().replaceAll("%2e", ".").replaceAll("%2f", "/").replaceAll("%5c", "/").split(/[/\\]/);
  return plain.startsWith(prefix!) && !parts.some((part) => [".", ".."].includes(part.split(";")[0]!));
}

function accountMatches(
  facts: ReferenceFacts,
  entity: Json | undefined,
  namespace: string | undefined,
  account: string | undefined,
): boolean {
  if (account === undefined || !entity || !selectsEndpoints(entity)) return true;
  const [within, name] = account.split("/") as [string, string];
  const { selector, ...ofAccount } = entity;
  if (selector !== undefined && !selectsEndpoints(ofAccount) && namespace === undefined) return true;
  const thing = { namespace: within, account: name, labels: {}, nets: [], ports: [] };
  return facts.accountExists(within, name) && selectsEndpoint(facts, ofAccount, namespace, thing);
}

/** A rule that names prefixes of one family only is a rule of that family. */
function isOfOtherFamily(rule: Json, packet: SeenPacket): boolean {
  const entities = [rule["source"], rule["destination"]].filter((entity) => entity !== undefined) as Json[];
  const nets = entities.flatMap((entity) => [
    ...((entity["nets"] ?? []) as string[]),
    ...((entity["notNets"] ?? []) as string[]),
  ]);
  if (nets.length === 0) return false;
  return nets.every((net) => net.includes(":") !== (packet.ipVersion === 6));
}

function icmpIs(match: Json, packet: SeenPacket): boolean {
  if (packet.protocol !== 1 && packet.protocol !== 58) return false;
  if (match["type"] !== undefined && match["type"] !== packet.icmpType) return false;
  return match["code"] === undefined || match["code"] === packet.icmpCode;
}

interface Side {
  address: string;
  port: number;
}

function entityMatches(
  facts: ReferenceFacts,
  entity: Json | undefined,
  namespace: string | undefined,
  side: Side,
  protocol: number,
  isDestination: boolean,
): boolean {
  if (!entity) return true;
  const nets = entity["nets"] as string[] | undefined;
  const notNets = entity["notNets"] as string[] | undefined;
  if (nets && !nets.some((net) => facts.inNet(side.address, net))) return false;
  if (notNets?.some((net) => facts.inNet(side.address, net))) return false;
  const here = facts.labeledEndpoints().filter((thing) => thing.nets.some((net) => facts.inNet(side.address, net)));
  const meant = (thing: ReferenceEndpoint) => selectsEndpoint(facts, entity, namespace, thing);
  if (selectsEndpoints(entity) && !here.some(meant)) return false;
  const { notSelector } = entity;
  if (notSelector !== undefined && here.some((thing) => facts.matches(notSelector, thing.labels))) return false;
  const portIs = (port: string | number) =>
    portMatches(port, side.port, protocol, selectsEndpoints(entity) ? here.filter(meant) : here);
  const ports = entity["ports"] as (string | number)[] | undefined;
  const notPorts = entity["notPorts"] as (string | number)[] | undefined;
  if (ports && !ports.some(portIs)) return false;
  if (notPorts?.some(portIs)) return false;
  return serviceMatches(facts, entity, namespace, side, protocol, isDestination);
}

function selectsEndpoints({ selector, namespaceSelector, serviceAccounts }: Json): boolean {
  const { names, selector: accounts } = (serviceAccounts ?? {}) as Json;
  return [selector, namespaceSelector, names, accounts].some((asked) => asked !== undefined);
}

function selectsEndpoint(
  facts: ReferenceFacts,
  entity: Json,
  namespace: string | undefined,
  thing: ReferenceEndpoint,
): boolean {
  const { names, selector: accounts } = (entity["serviceAccounts"] ?? {}) as { names?: string[]; selector?: string };
  if (names && !(thing.account !== undefined && names.includes(thing.account))) return false;
  if (!facts.accountMatches(accounts, thing)) return false;
  if (!facts.matches(entity["selector"], thing.labels)) return false;
  if (entity["namespaceSelector"] !== undefined) return facts.namespaceMatches(entity["namespaceSelector"], thing);
  return namespace === undefined || thing.namespace === namespace;
}

function portMatches(wanted: string | number, port: number, protocol: number, things: ReferenceEndpoint[]): boolean {
  const range = /^(\d+)(?::(\d+))?$/.exec(String(wanted));
  if (range) return port >= Number(range[1]) && port <= Number(range[2] ?? range[1]);
  return things.some(({ ports }) =>
    ports.some((named) => named.name === wanted && named.protocol === protocol && named.port === port),
  );
}

function serviceMatches(
  facts: ReferenceFacts,
  entity: Json,
  namespace: string | undefined,
  side: Side,
  protocol: number,
  isDestination: boolean,
): boolean {
  const service = entity["services"] as { name: string; namespace?: string } | undefined;
  if (!service) return true;
  const backends = facts.backends(service.namespace ?? namespace!, service.name);
  const here = backends.filter(({ address }) => address === side.address);
  if (!isDestination) return here.length > 0;
  return here.some((backend) => backend.port === side.port && backend.protocol === protocol);
}

/** One rule of the orchestrator's own policies, which always allows. */
export function kubernetesRuleMatches(
  facts: ReferenceFacts,
  rule: Json,
  namespace: string,
  direction: "ingress" | "egress",
  packet: SeenPacket,
): boolean {
  const peers = (rule[direction === "ingress" ? "from" : "to"] ?? []) as Json[];
  const ports = (rule["ports"] ?? []) as { protocol?: string; port?: string | number; endPort?: number }[];
  const remote = direction === "ingress" ? packet.source : packet.destination;
  const at = facts.labeledEndpoints().filter((thing) => thing.nets.some((net) => facts.inNet(packet.destination, net)));
  const portOk = (peerThings: ReferenceEndpoint[]) =>
    ports.length === 0 ||
    ports.some(({ protocol = "TCP", port, endPort }) => {
      if (protocolOf(protocol) !== packet.protocol) return false;
      if (port === undefined) return true;
      const wanted = endPort === undefined ? port : `${port}:${endPort}`;
      return portMatches(wanted, packet.destinationPort, packet.protocol, direction === "ingress" ? at : peerThings);
    });
  if (peers.length === 0) return portOk(at);
  return peers.some((peer) => {
    const block = peer["ipBlock"] as { cidr: string; except?: string[] } | undefined;
    if (block) {
      const inside = facts.inNet(remote, block.cidr) && !(block.except ?? []).some((net) => facts.inNet(remote, net));
      return inside && portOk(at);
    }
    const pods = facts
      .labeledEndpoints()
      .filter((thing) => isPeerPod(facts, peer, namespace, thing) && thing.nets.includes(remote));
    return pods.length > 0 && portOk(pods);
  });
}

function isPeerPod(facts: ReferenceFacts, peer: Json, namespace: string, thing: ReferenceEndpoint): boolean {
  if (thing.account === undefined) return false;
  const namespaces = peer["namespaceSelector"] as Json | undefined;
  const inNamespace = namespaces
    ? matchesLabelSelector(namespaces, facts.labelsOfNamespace(thing.namespace!))
    : thing.namespace === namespace;
  return inNamespace && matchesLabelSelector(peer["podSelector"] as Json | undefined, thing.labels);
}
