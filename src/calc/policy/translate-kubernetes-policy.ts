import type { KubeObject } from "../../api/object.ts";
import { DERIVED_LABELS, ORCHESTRATOR } from "../../api/resources/derived-labels.ts";
import type { SelectorExpression } from "../../api/schema/selector-expression.ts";
import { protocolNumber } from "../../api/tables/protocols.ts";
import type { Direction, ModelProblem, Net, PortRange, Rule, RuleMatch } from "../model.ts";
import { allOf, EVERYTHING, equals, hasLabel, inNamespace, ofNamespace, oneOf } from "./selectors.ts";
import { SetCollector } from "./set-source.ts";
import { tieBreak } from "./translate-policy.ts";
import { netsOf, portsOf, ruleId, withoutAbsent } from "./translate-rule.ts";
import type { Translation } from "./translated-policy.ts";
import { problem, refuseUnknown, Untranslatable } from "./untranslatable.ts";

/** The orchestrator's own NetworkPolicy, as far as it is read here. */
interface KubernetesPolicySpec {
  podSelector?: LabelSelector;
  policyTypes?: string[];
  ingress?: { from?: Peer[]; ports?: Port[] }[];
  egress?: { to?: Peer[]; ports?: Port[] }[];
}

interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

interface Peer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr: string; except?: string[] };
}

interface Port {
  protocol?: string;
  port?: string | number;
  endPort?: number;
}

const ORDER = 1000;
const PODS = equals(DERIVED_LABELS.orchestrator, ORCHESTRATOR);

/** In the default tier at order 1000, under the name `knp.default.NAME`; it only ever allows, the tier's end denies. */
export function translateKubernetesPolicy(object: KubeObject): Translation {
  const { name, namespace = "default" } = object.metadata;
  const spec = (object["spec"] ?? {}) as KubernetesPolicySpec;
  const id = `knp/${namespace}/${name}`;
  const sets = new SetCollector();
  const problems: ModelProblem[] = [];
  const attempt = <T>(what: () => T, consequence: string): T | undefined => {
    try {
      return what();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      problems.push(problem(object.kind, object.metadata, error.code, `${error.message}: ${consequence}`));
      return undefined;
    }
  };
  const selector = attempt(
    () => allOf([inNamespace(namespace), PODS, labelSelector(spec.podSelector)]),
    "the policy is not in effect",
  );
  if (!selector) return { problems };
  const rules = (direction: Direction) =>
    attempt(() => rulesOf(spec, id, { direction, namespace, sets }), `it allows no ${direction}`) ?? [];
  const translated = {
    policy: { id, tier: "default", order: ORDER, ingress: rules("ingress"), egress: rules("egress") },
    tieBreak: tieBreak(`knp.default.${name}`, namespace, "knp"),
    selector,
    decides: decidedBy(spec),
    preDNAT: false,
    applyOnForward: false,
    sets: sets.sets,
  };
  return { translated, problems };
}

function decidedBy({ policyTypes = [], egress = [] }: KubernetesPolicySpec): Record<Direction, boolean> {
  if (policyTypes.length === 0) return { ingress: true, egress: egress.length > 0 };
  return { ingress: policyTypes.includes("Ingress"), egress: policyTypes.includes("Egress") };
}

function rulesOf(spec: KubernetesPolicySpec, owner: string, place: Place): Rule[] {
  const { direction } = place;
  const given = (direction === "ingress" ? spec.ingress : spec.egress) ?? [];
  return given
    .flatMap((rule) => matchesOf(rule, place))
    .map((match, index) => ({ id: ruleId({ owner, direction }, index), action: "allow", ...match }));
}

/** Of each rule that the policy becomes, the position of the rule it comes from; empty where they cannot be read. */
export function kubernetesRuleOrigins({ metadata, ...object }: KubeObject, direction: Direction): number[] {
  const spec = (object["spec"] ?? {}) as KubernetesPolicySpec;
  const given = (direction === "ingress" ? spec.ingress : spec.egress) ?? [];
  const place = { direction, namespace: metadata.namespace ?? "default", sets: new SetCollector() };
  try {
    return given.flatMap((rule, at) => matchesOf(rule, place).map(() => at));
  } catch (error) {
    if (error instanceof Untranslatable) return [];
    throw error;
  }
}

interface Place {
  direction: Direction;
  namespace: string;
  sets: SetCollector;
}

/** One rule of the orchestrator's is "any peer and any port": every pair of them is a rule of ours. */
function matchesOf(rule: { from?: Peer[]; to?: Peer[]; ports?: Port[] }, place: Place): RuleMatch[] {
  refuseUnknown(rule, { from: true, to: true, ports: true });
  const peers = (place.direction === "ingress" ? rule.from : rule.to) ?? [];
  return peersOf(peers, place).flatMap((peer) =>
    portGroups(rule.ports ?? []).map((group) =>
      withoutAbsent({ ...group.match, ...peer.match, ...portsFor(group, peer, place) }),
    ),
  );
}

interface PeerMatch {
  match: RuleMatch;
  /** Whom names of ports are looked up at where the peer is the destination. */
  scope: SelectorExpression;
}

function peersOf(peers: readonly Peer[], place: Place): PeerMatch[] {
  if (peers.length === 0) return [{ match: {}, scope: EVERYTHING }];
  for (const peer of peers) {
    refuseUnknown(peer, { podSelector: true, namespaceSelector: true, ipBlock: true });
    refuseUnknown(peer.ipBlock, { cidr: true, except: true });
  }
  const side = place.direction === "ingress" ? "src" : "dst";
  const plain = peers.flatMap(({ ipBlock }) => (ipBlock && (ipBlock.except ?? []).length === 0 ? [ipBlock.cidr] : []));
  const nets = netsOf(plain);
  return [
    ...(nets ? [{ match: { [`${side}Nets`]: nets }, scope: EVERYTHING }] : []),
    ...peers.flatMap((peer) => peerMatch(peer, side, place)),
  ];
}

function peerMatch(peer: Peer, side: "src" | "dst", { namespace, sets }: Place): PeerMatch[] {
  if (peer.ipBlock) {
    const { cidr, except = [] } = peer.ipBlock;
    if (except.length === 0) return [];
    const not: Record<string, Net[] | undefined> = { [side === "src" ? "notSrcNets" : "notDstNets"]: netsOf(except) };
    return [{ match: { [`${side}Nets`]: netsOf([cidr]), ...not }, scope: EVERYTHING }];
  }
  if (!peer.podSelector && !peer.namespaceSelector) return [];
  const where = peer.namespaceSelector ? ofNamespace(labelSelector(peer.namespaceSelector)) : inNamespace(namespace);
  const scope = allOf([where, PODS, labelSelector(peer.podSelector)]);
  return [{ match: { [`${side}Sets`]: [sets.selected(scope)] }, scope }];
}

interface PortGroup {
  match: { protocol?: number };
  ports: (string | number)[];
}

/** Ports of one protocol are one rule; a protocol without a port is all of its ports. */
function portGroups(ports: readonly Port[]): PortGroup[] {
  if (ports.length === 0) return [{ match: {}, ports: [] }];
  const groups = new Map<number, PortGroup>();
  const whole = new Set<number>();
  for (const one of ports) {
    refuseUnknown(one, { protocol: true, port: true, endPort: true });
    const { protocol = "TCP", port, endPort } = one;
    const number = protocolNumber(protocol);
    if (number === undefined) throw new Untranslatable("RULE_UNREADABLE", `"${protocol}" is not a protocol`);
    const group = groups.get(number) ?? { match: { protocol: number }, ports: [] };
    groups.set(number, group);
    if (port === undefined) whole.add(number);
    else group.ports.push(endPort === undefined ? port : `${port}:${endPort}`);
  }
  return [...groups.values()].map((group) => (whole.has(group.match.protocol!) ? { ...group, ports: [] } : group));
}

/** Ports are the destination's: of the policy's own pods on the way in, of the peer on the way out. */
function portsFor(
  group: PortGroup,
  peer: PeerMatch,
  place: Place,
): { dstPorts?: PortRange[]; dstNamedPortSets?: string[] } {
  if (group.ports.length === 0) return {};
  const scope = place.direction === "ingress" ? inNamespace(place.namespace) : peer.scope;
  const { ranges, named } = portsOf(group.ports, scope, group.match.protocol, place.sets);
  return { dstPorts: ranges, dstNamedPortSets: named };
}

function labelSelector(selector: LabelSelector | undefined): SelectorExpression {
  refuseUnknown(selector, { matchLabels: true, matchExpressions: true });
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => equals(key, value));
  return allOf([...labels, ...(selector?.matchExpressions ?? []).map(requirement)]);
}

function requirement({
  key,
  operator,
  values = [],
}: {
  key: string;
  operator: string;
  values?: string[];
}): SelectorExpression {
  switch (operator) {
    case "In":
      return oneOf(key, values);
    case "NotIn":
      return { is: "not in", label: key, values: [...new Set(values)].sort() };
    case "Exists":
      return hasLabel(key);
    case "DoesNotExist":
      return { is: "not", of: hasLabel(key) };
    default:
      throw new Untranslatable("SELECTOR_UNREADABLE", `"${operator}" is not an operator`);
  }
}
