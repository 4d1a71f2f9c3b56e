/**
 * One rule of the model as rules of nft. Where the model says "or" (numeric ports or named ones, any of several ways not to be an ICMP message)
 * there is one line for each; where it means both families and asks for addresses, one for each family.
 */
import type { DataplaneModel, PortRange, RuleMatch } from "../../calc/model.ts";
import type { HandledCriteria } from "../../calc/policy/criteria.ts";
import { familyOf, setName } from "./names.ts";
import { covering, joinedRanges } from "./prefixes.ts";
import type { Condition, IpFamily, Side } from "./ruleset.ts";

type Line = readonly Condition[];
type Sets = DataplaneModel["ipSets"];

/** TCP, UDP, SCTP: what has ports. To rules, the port of everything else is 0. */
const PORTED = [6, 17, 132] as const;
const ICMP = [1, 58] as const;
const SIDES = [
  { side: "source", field: "src" },
  { side: "destination", field: "dst" },
] as const;

/** What becomes conditions below. */
export const CRITERIA: HandledCriteria = {
  ...{ ipVersion: true, protocol: true, notProtocol: true, icmp: true, notIcmp: true },
  ...{ srcNets: true, notSrcNets: true, dstNets: true, notDstNets: true },
  ...{ srcPorts: true, notSrcPorts: true, dstPorts: true, notDstPorts: true },
  ...{ srcSets: true, notSrcSets: true, dstSets: true, notDstSets: true },
  ...{ srcNamedPortSets: true, notSrcNamedPortSets: true, dstNamedPortSets: true, notDstNamedPortSets: true },
};

/** A packet matches the rule when it satisfies one of the lines. */
export function ruleLines(rule: RuleMatch, sets: Sets): Line[] {
  return familiesOf(rule).flatMap((family) => {
    const addresses = addressConditions(rule, family, sets);
    if (!addresses) return [];
    return transportLines(rule, family, sets).map((transport) => {
      const line = [...addresses, ...transport];
      const told = family === undefined || line.some((condition) => "family" in condition);
      return told ? line : [{ on: "family", is: family } as const, ...line];
    });
  });
}

/** One line serves both families unless something asks for an address. */
function familiesOf(rule: RuleMatch): (IpFamily | undefined)[] {
  if (rule.ipVersion !== undefined) return [rule.ipVersion];
  const fields = ["Nets", "Sets", "NamedPortSets"].flatMap((what) => [`src${what}`, `dst${what}`]);
  const all = fields.flatMap((field) => [field, `not${field[0]!.toUpperCase()}${field.slice(1)}`]);
  return all.some((field) => rule[field as keyof RuleMatch] !== undefined) ? [4, 6] : [undefined];
}

/** Undefined: no packet of this family can match. */
function addressConditions(rule: RuleMatch, family: IpFamily | undefined, sets: Sets): Condition[] | undefined {
  if (family === undefined) return [];
  const conditions: Condition[] = [];
  for (const { side } of SIDES) {
    const { nets, notNets, inSets, notInSets } = sideOf(rule, side);
    for (const [given, not] of [
      [nets, false],
      [notNets, true],
    ] as const) {
      const among = given && covering(given.filter((net) => familyOf(net) === family));
      const everything = among?.some((net) => net.endsWith("/0")) ?? false;
      if (among && (not ? everything : among.length === 0)) return undefined;
      if (among && among.length > 0 && !everything) {
        conditions.push({ on: "address", side, family, among, ...(not ? { not } : {}) });
      }
    }
    for (const id of inSets) {
      const set = sets.get(id);
      if (!set) return undefined;
      conditions.push({ on: "addressSet", side, family, set: setName(set, family) });
    }
    for (const set of notInSets.flatMap((id) => sets.get(id) ?? [])) {
      conditions.push({ on: "addressSet", side, family, set: setName(set, family), not: true });
    }
  }
  return conditions;
}

function sideOf(rule: RuleMatch, side: Side) {
  const source = side === "source";
  return {
    nets: source ? rule.srcNets : rule.dstNets,
    notNets: source ? rule.notSrcNets : rule.notDstNets,
    inSets: (source ? rule.srcSets : rule.dstSets) ?? [],
    notInSets: (source ? rule.notSrcSets : rule.notDstSets) ?? [],
    ports: source ? rule.srcPorts : rule.dstPorts,
    notPorts: source ? rule.notSrcPorts : rule.notDstPorts,
    named: source ? rule.srcNamedPortSets : rule.dstNamedPortSets,
    notNamed: source ? rule.notSrcNamedPortSets : rule.notDstNamedPortSets,
  };
}

function transportLines(rule: RuleMatch, family: IpFamily | undefined, sets: Sets): Line[] {
  const icmp = product(isIcmpLines(rule), isNotIcmpLines(rule));
  const asksPorts = SIDES.some(({ side }) => {
    const { ports, notPorts, named, notNamed } = sideOf(rule, side);
    return ports ?? notPorts ?? named ?? notNamed;
  });
  if (!asksPorts) return product([protocolConditions(rule)], icmp);
  return product([...portedLines(rule, family, sets), ...portlessLines(rule)], icmp);
}

function protocolConditions({ protocol, notProtocol }: RuleMatch): Condition[] {
  return [
    ...(protocol === undefined ? [] : [{ on: "protocol", among: [protocol] } as const]),
    ...(notProtocol === undefined ? [] : [{ on: "protocol", among: [notProtocol], not: true } as const]),
  ];
}

function portedLines(rule: RuleMatch, family: IpFamily | undefined, sets: Sets): Line[] {
  const among = PORTED.filter(
    (number) => number !== rule.notProtocol && (rule.protocol === undefined || number === rule.protocol),
  );
  if (among.length === 0) return [];
  const sides = SIDES.map(({ side }) => portAlternatives(rule, side, family, sets));
  return product([[{ on: "protocol", among }]], ...sides);
}

function portAlternatives(rule: RuleMatch, side: Side, family: IpFamily | undefined, sets: Sets): Line[] {
  const { ports, notPorts, named, notNamed } = sideOf(rule, side);
  const portSet = (id: string, not: boolean): Condition[] => {
    const set = sets.get(id);
    if (!set || family === undefined) return [];
    return [{ on: "portSet", side, family, set: setName(set, family), ...(not ? { not: true as const } : {}) }];
  };
  const excluded: Condition[] = [
    ...(notPorts ? [{ on: "port", side, among: joinedRanges(notPorts), not: true } as const] : []),
    ...(notNamed ?? []).flatMap((id) => portSet(id, true)),
  ];
  if (!ports && !named) return [excluded];
  const wanted: Condition[] = [
    ...(ports ? [{ on: "port", side, among: joinedRanges(ports) } as const] : []),
    ...(named ?? []).flatMap((id) => portSet(id, false)),
  ];
  return wanted.map((condition) => [condition, ...excluded]);
}

/** Protocols without ports, whose port counts as 0: they must not be read as if they had some. */
function portlessLines(rule: RuleMatch): Line[] {
  const isPorted = (number: number) => (PORTED as readonly number[]).includes(number);
  if (rule.protocol !== undefined && isPorted(rule.protocol)) return [];
  for (const { side } of SIDES) {
    const { ports, named, notPorts } = sideOf(rule, side);
    if ((ports || named) && !holdsZero(ports)) return [];
    if (holdsZero(notPorts)) return [];
  }
  const other: Condition[] = rule.protocol === undefined ? [{ on: "protocol", among: PORTED, not: true }] : [];
  return [[...other, ...protocolConditions(rule)]];
}

function holdsZero(ranges: PortRange[] | undefined): boolean {
  return (ranges ?? []).some(([first]) => first === 0);
}

function isIcmpLines({ icmp, protocol }: RuleMatch): Line[] {
  if (!icmp) return [[]];
  if (protocol !== undefined && !isIcmp(protocol)) return [];
  return [
    [
      { on: "protocol", among: ICMP },
      ...(icmp.type === undefined ? [] : [{ on: "icmp", byte: "type", among: [icmp.type] } as const]),
      ...(icmp.code === undefined ? [] : [{ on: "icmp", byte: "code", among: [icmp.code] } as const]),
    ],
  ];
}

function isNotIcmpLines({ notIcmp, protocol }: RuleMatch): Line[] {
  if (!notIcmp || (protocol !== undefined && !isIcmp(protocol))) return [[]];
  const { type, code } = notIcmp;
  const is: Condition = { on: "protocol", among: ICMP };
  const typeIs = (
    type === undefined ? [] : [{ on: "icmp", byte: "type", among: [type] } as const]
  ) satisfies Condition[];
  return [
    ...(protocol === undefined ? [[{ on: "protocol", among: ICMP, not: true } as const]] : []),
    ...(type === undefined ? [] : [[is, { on: "icmp", byte: "type", among: [type], not: true } as const]]),
    ...(code === undefined ? [] : [[is, ...typeIs, { on: "icmp", byte: "code", among: [code], not: true } as const]]),
  ];
}

function isIcmp(protocol: number): boolean {
  return (ICMP as readonly number[]).includes(protocol);
}

/** Every way to take one line of each. */
function product(...choices: Line[][]): Line[] {
  return choices.reduce<Line[]>(
    (lines, more) => lines.flatMap((line) => more.map((other) => [...line, ...other])),
    [[]],
  );
}

/** Ids of every set the rule asks. */
export function setsOf(rule: RuleMatch): string[] {
  return SIDES.flatMap(({ side }) => {
    const { inSets, notInSets, named, notNamed } = sideOf(rule, side);
    return [...inSets, ...notInSets, ...(named ?? []), ...(notNamed ?? [])];
  });
}
