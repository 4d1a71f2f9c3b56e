import { DERIVED_LABELS } from "../../api/resources/derived-labels.ts";
import type { PolicyRule, RuleEntity } from "../../api/resources/policy-rule.ts";
import type { SelectorExpression } from "../../api/schema/selector-expression.ts";
import { PORT_PROTOCOLS, protocolNumber } from "../../api/tables/protocols.ts";
import type { Direction, HttpPath, Net, PortRange, RequestMatch, Rule, RuleMatch } from "../model.ts";
import { isV4, toNet } from "../nets.ts";
import { allOf, EVERYTHING, inNamespace, ofNamespace, ofServiceAccount, oneOf, readSelector } from "./selectors.ts";
import type { SetCollector } from "./set-source.ts";
import { type KnownFields, refuseUnknown, Untranslatable } from "./untranslatable.ts";

/** Where a rule stands: what its selectors are limited to depends on it. */
export interface RulePlace {
  /** Id of its policy or profile. */
  owner: string;
  /** Of its policy; absent for what has none. */
  namespace: string | undefined;
  direction: Direction;
  sets: SetCollector;
}

/** All rules of one direction, and what was wrong. From the first that cannot be read everything is denied. */
export function translateRules(
  rules: readonly PolicyRule[] | undefined,
  place: RulePlace,
): { rules: Rule[]; problems: Untranslatable[] } {
  const translated: Rule[] = [];
  for (const [index, rule] of (rules ?? []).entries()) {
    const id = ruleId(place, index);
    try {
      translated.push({ id, action: actionOf(rule.action), ...matchOf(rule, place), ...requestMatch(rule, place) });
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      return { rules: [...translated, { id, action: "deny" }], problems: [error] };
    }
  }
  return { rules: translated, problems: [] };
}

export function ruleId({ owner, direction }: { owner: string; direction: Direction }, index: number): string {
  return `${owner};${direction};${index}`;
}

function actionOf(action: PolicyRule["action"]): Rule["action"] {
  const known = ["allow", "deny", "pass", "log"] as const;
  const found = known.find((name) => name === String(action).toLowerCase());
  if (!found) throw new Untranslatable("RULE_UNREADABLE", `"${action}" is not an action`);
  return found;
}

const RULE_FIELDS: KnownFields<PolicyRule> = {
  ...{ action: true, ipVersion: true, protocol: true, notProtocol: true, icmp: true, notICMP: true },
  ...{ source: true, destination: true, http: true, metadata: true },
};
const HTTP_FIELDS: KnownFields<NonNullable<PolicyRule["http"]>> = { methods: true, paths: true };
const ICMP_FIELDS: KnownFields<NonNullable<PolicyRule["icmp"]>> = { type: true, code: true };
const ENTITY_FIELDS: KnownFields<RuleEntity> = {
  ...{ nets: true, notNets: true, selector: true, notSelector: true, namespaceSelector: true },
  ...{ ports: true, notPorts: true, serviceAccounts: true, services: true },
};

function matchOf(rule: PolicyRule, place: RulePlace): RuleMatch {
  refuseUnknown(rule, RULE_FIELDS);
  for (const icmp of [rule.icmp, rule.notICMP]) refuseUnknown(icmp, ICMP_FIELDS);
  const protocol = readProtocol(rule.protocol);
  const source = sideOf(rule.source, "source", protocol, place);
  const destination = sideOf(rule.destination, "destination", protocol, place);
  const notProtocol = readProtocol(rule.notProtocol);
  return withoutAbsent({
    ipVersion: rule.ipVersion ?? familyOf([source.nets, source.notNets, destination.nets, destination.notNets]),
    protocol,
    notProtocol,
    srcNets: source.nets,
    notSrcNets: source.notNets,
    dstNets: destination.nets,
    notDstNets: destination.notNets,
    srcPorts: source.ports,
    notSrcPorts: source.notPorts,
    dstPorts: destination.ports,
    notDstPorts: destination.notPorts,
    srcSets: source.sets,
    notSrcSets: source.notSets,
    dstSets: destination.sets,
    notDstSets: destination.notSets,
    srcNamedPortSets: source.named,
    notSrcNamedPortSets: source.notNamed,
    dstNamedPortSets: destination.named,
    notDstNamedPortSets: destination.notNamed,
    icmp: rule.icmp && withoutAbsent({ type: rule.icmp.type, code: rule.icmp.code }),
    notIcmp: rule.notICMP && withoutAbsent({ type: rule.notICMP.type, code: rule.notICMP.code }),
  });
}

/** Only what reaches a pod is asked: the sidecar is that of the pod that receives. */
function requestMatch({ action, http, source, destination }: PolicyRule, place: RulePlace): RequestMatch {
  refuseUnknown(http, HTTP_FIELDS);
  if (place.direction === "egress" || (http && action !== "Allow")) {
    if (http) throw new Untranslatable("RULE_UNREADABLE", "http is for ingress rules with action Allow");
    return {};
  }
  const { methods = [], paths = [] } = http ?? {};
  return withoutAbsent({
    httpMethods: methods.length > 0 ? [...new Set(methods)].sort() : undefined,
    httpPaths: paths.length > 0 ? paths.map(pathOf) : undefined,
    srcAccountSets: accountSets(source, place),
    dstAccountSets: accountSets(destination, place),
  });
}

function pathOf(path: { exact?: string; prefix?: string }): HttpPath {
  refuseUnknown(path, { exact: true, prefix: true });
  const { exact, prefix } = path;
  if (exact !== undefined && prefix === undefined) return { exact };
  if (prefix !== undefined && exact === undefined) return { prefix };
  throw new Untranslatable("RULE_UNREADABLE", "a path is exactly one of exact and prefix");
}

function accountSets(entity: RuleEntity | undefined, place: RulePlace): string[] | undefined {
  const selector = entity && accountsOf(entity, place);
  return selector && [place.sets.accounts(selector)];
}

function readProtocol(protocol: string | number | undefined): number | undefined {
  const number = protocolNumber(protocol);
  if (protocol !== undefined && number === undefined) {
    throw new Untranslatable("RULE_UNREADABLE", `"${protocol}" is not a protocol`);
  }
  return number;
}

interface Side {
  nets?: Net[];
  notNets?: Net[];
  sets?: string[];
  notSets?: string[];
  ports?: PortRange[];
  named?: string[];
  notPorts?: PortRange[];
  notNamed?: string[];
}

type Which = "source" | "destination";

function sideOf(entity: RuleEntity | undefined, which: Which, protocol: number | undefined, place: RulePlace): Side {
  if (!entity) return {};
  refuseUnknown(entity, ENTITY_FIELDS);
  refuseUnknown(entity.serviceAccounts, { names: true, selector: true });
  refuseUnknown(entity.services, { name: true, namespace: true });
  const selector = selectorOf(entity, place);
  const not = readSelector(entity.notSelector);
  const ports = portsOf(entity.ports, portScope(selector, which, place), protocol, place.sets);
  const notPorts = portsOf(entity.notPorts, portScope(selector, which, place), protocol, place.sets);
  const service = serviceSets(entity, which, place);
  return {
    nets: netsOf(entity.nets),
    notNets: netsOf(entity.notNets),
    sets: service.sets ?? (selector && [place.sets.selected(selector)]),
    notSets: not && [place.sets.selected(not)],
    ports: ports.ranges,
    named: service.named ?? ports.named,
    notPorts: notPorts.ranges,
    notNamed: notPorts.named,
  };
}

/**
 * Whom the entity's selectors mean, in one. A policy of a namespace that says nothing of namespaces means its own; a selector that is
 * there means things that are known, never addresses outside.
 */
function selectorOf(entity: RuleEntity, place: RulePlace): SelectorExpression | undefined {
  const own = readSelector(entity.selector);
  const accounts = accountsOf(entity, place);
  return own ? allOf(accounts ? [own, accounts] : [own]) : accounts;
}

/** What of it is asked of their service account and its namespace. */
function accountsOf(entity: RuleEntity, { namespace }: RulePlace): SelectorExpression | undefined {
  const namespaces = readSelector(entity.namespaceSelector);
  const names = entity.serviceAccounts?.names ?? [];
  const accountSelector = readSelector(entity.serviceAccounts?.selector);
  const parts: SelectorExpression[] = [];
  if (names.length > 0) parts.push(oneOf(DERIVED_LABELS.serviceAccount, names));
  if (accountSelector) parts.push(ofServiceAccount(accountSelector));
  if (namespaces) parts.push(ofNamespace(namespaces));
  else if (namespace !== undefined && (parts.length > 0 || readSelector(entity.selector)))
    parts.push(inNamespace(namespace));
  return parts.length > 0 ? allOf(parts) : undefined;
}

/** Whose names of ports count: those of whom the rule means; on the policy's own side, of its namespace. */
function portScope(selector: SelectorExpression | undefined, which: Which, place: RulePlace): SelectorExpression {
  if (selector) return selector;
  const own = which === (place.direction === "ingress" ? "destination" : "source");
  return own && place.namespace !== undefined ? inNamespace(place.namespace) : EVERYTHING;
}

/** Numeric ports as ranges and named ones as sets; either absent where there are none. */
export function portsOf(
  ports: readonly (string | number)[] | undefined,
  scope: SelectorExpression,
  protocol: number | undefined,
  sets: SetCollector,
): { ranges?: PortRange[]; named?: string[] } {
  if (!ports || ports.length === 0) return {};
  if (protocol === undefined || !PORT_PROTOCOLS.has(protocol)) {
    throw new Untranslatable("RULE_UNREADABLE", "ports need protocol TCP, UDP or SCTP");
  }
  const ranges: PortRange[] = [];
  const named: string[] = [];
  for (const port of ports) {
    const range = /^(\d+)(?::(\d+))?$/.exec(String(port));
    if (range) ranges.push(rangeOf(Number(range[1]), Number(range[2] ?? range[1])));
    else named.push(sets.namedPort(scope, protocol, String(port)));
  }
  return withoutAbsent({
    ranges: ranges.length > 0 ? ranges : undefined,
    named: named.length > 0 ? named : undefined,
  });
}

function rangeOf(first: number, last: number): PortRange {
  if (first > last || last > 65535)
    throw new Untranslatable("RULE_UNREADABLE", `${first}:${last} is not a range of ports`);
  return [first, last];
}

/** A service's backends: as destination with their ports, as source by address alone, since sources choose their ports freely. */
function serviceSets(entity: RuleEntity, which: Which, place: RulePlace): { sets?: string[]; named?: string[] } {
  const { name, namespace = place.namespace } = entity.services ?? {};
  if (name === undefined || name === "") return {};
  if (namespace === undefined) throw new Untranslatable("RULE_UNREADABLE", `service ${name} has no namespace`);
  return which === "destination"
    ? { named: [place.sets.service(namespace, name, "net-port")] }
    : { sets: [place.sets.service(namespace, name, "net")] };
}

export function netsOf(texts: readonly string[] | undefined): Net[] | undefined {
  if (!texts || texts.length === 0) return undefined;
  const nets = texts.map((text) => {
    const net = toNet(text);
    if (net === undefined) throw new Untranslatable("RULE_UNREADABLE", `"${text}" is not a prefix`);
    return net;
  });
  return [...new Set(nets)].sort();
}

/** Prefixes of one family make the rule one of that family, also where they are only left out. */
function familyOf(nets: (Net[] | undefined)[]): 4 | 6 | undefined {
  const families = new Set(nets.flatMap((list) => (list ?? []).map((net) => (isV4(net) ? 4 : 6))));
  return families.size === 1 ? [...families][0] : undefined;
}

export function withoutAbsent<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}
