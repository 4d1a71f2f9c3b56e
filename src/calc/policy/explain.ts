import { formatAddress } from "../../kit/ip.ts";
import type { DataplaneModel, Direction, IcmpMatch, IpSet, Packet, PortRange, Rule, RuleMatch } from "../model.ts";
import { type Criterion, enforceable } from "./criteria.ts";
import { type AskedAt, type Place, type Trace, trace } from "./evaluate.ts";
import { failedCriteria, MATCHED_CRITERIA, type ReadPacket } from "./match-rule.ts";

/** Why the node decides so: the steps it takes, and of the deciding one at each end what did not match. */
export interface Explanation extends Trace {
  steps: readonly ExplainedStep[];
}

export interface ExplainedStep extends AskedAt {
  /** Of the last step of an end: rules that were asked and do not match, those that fail by one criterion first. Of others: none. */
  missed: readonly MissedRule[];
}

export interface MissedRule {
  rule: Rule;
  /** `Policy.id` or `Profile.id`. */
  owner: string;
  failed: readonly FailedCriterion[];
}

export interface FailedCriterion {
  name: Criterion;
  /** What the rule has, for people; sets by what they stand for. */
  wanted: string;
  /** What the packet has. */
  found: string;
}

/** `trace`, with the reasons. Neither the verdict nor the hits are found another way than there. */
export function explain(model: DataplaneModel, packet: Packet, path: { from: Place; to: Place }): Explanation {
  const asked: AskedAt[] = [];
  const traced = trace(model, packet, path, (step) => asked.push(step));
  const last = (end: Direction) => asked.findLast((step) => step.end === end);
  const deciders = [last("egress"), last("ingress")];
  const steps = asked.map((step) => ({ ...step, missed: deciders.includes(step) ? missedRules(model, step) : [] }));
  return { ...traced, steps };
}

/** What comes after the rule that decided was not asked: whether it would match changes nothing. */
function missedRules(model: DataplaneModel, step: AskedAt): MissedRule[] {
  const missed: MissedRule[] = [];
  for (const { owner, rule } of rulesOf(model, step)) {
    if (rule.id === step.rule) break;
    const names = failedCriteria(enforceable(rule, MATCHED_CRITERIA), step.packet, model.ipSets);
    if (names.length === 0) continue;
    const failed = names.map((name) => ({
      name,
      wanted: wantedOf(name, rule, model.ipSets),
      found: foundOf(name, step.packet),
    }));
    missed.push({ rule, owner, failed });
  }
  // A stable sort: among equals the order is that in which they were asked.
  return missed.sort((a, b) => a.failed.length - b.failed.length);
}

function* rulesOf(
  model: DataplaneModel,
  { tier, owners, direction }: AskedAt,
): Generator<{ owner: string; rule: Rule }> {
  const table = tier === undefined ? model.profiles : model.policies;
  for (const owner of owners) for (const rule of table.get(owner)?.[direction] ?? []) yield { owner, rule };
}

type Sets = ReadonlyMap<string, IpSet>;

function wantedOf(name: Criterion, rule: RuleMatch, sets: Sets): string {
  const text = (parts: readonly string[], word: string) => parts.join(word);
  const meanings = (ids: readonly string[] = []) => ids.map((id) => sets.get(id)?.meaning ?? id);
  const ports = (ranges: readonly PortRange[] = [], named: readonly string[] = []) =>
    text(
      [...ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)), ...meanings(named)],
      ", ",
    );
  switch (name) {
    case "ipVersion":
      return `IPv${rule.ipVersion}`;
    case "protocol":
      return String(rule.protocol);
    case "notProtocol":
      return `not ${rule.notProtocol}`;
    case "srcNets":
    case "dstNets":
      return text(rule[name] ?? [], ", ");
    case "notSrcNets":
    case "notDstNets":
      return `not ${text(rule[name] ?? [], ", ")}`;
    case "srcSets":
    case "dstSets":
      return text(meanings(rule[name]), " and ");
    case "notSrcSets":
    case "notDstSets":
      return `not ${text(meanings(rule[name]), ", ")}`;
    case "srcPorts":
    case "srcNamedPortSets":
      return ports(rule.srcPorts, rule.srcNamedPortSets);
    case "dstPorts":
    case "dstNamedPortSets":
      return ports(rule.dstPorts, rule.dstNamedPortSets);
    case "notSrcPorts":
    case "notSrcNamedPortSets":
      return `not ${ports(rule.notSrcPorts, rule.notSrcNamedPortSets)}`;
    case "notDstPorts":
    case "notDstNamedPortSets":
      return `not ${ports(rule.notDstPorts, rule.notDstNamedPortSets)}`;
    case "icmp":
      return icmpText(rule.icmp);
    case "notIcmp":
      return `not ${icmpText(rule.notIcmp)}`;
  }
}

function foundOf(name: Criterion, { ipVersion, protocol, source, destination, icmp }: ReadPacket): string {
  if (name === "ipVersion") return `IPv${ipVersion}`;
  if (/protocol/i.test(name)) return String(protocol);
  if (/icmp/i.test(name)) return icmp ? icmpText(icmp) : "not ICMP";
  const side = /src/i.test(name) ? source : destination;
  return /ports?/i.test(name) ? String(side.port) : formatAddress(side.address);
}

function icmpText({ type, code }: IcmpMatch = {}): string {
  return ["ICMP", type === undefined ? "" : ` type ${type}`, code === undefined ? "" : ` code ${code}`].join("");
}
