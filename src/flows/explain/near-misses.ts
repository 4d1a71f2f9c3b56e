import type { FlowEnd, FlowKey } from "../../api/protocol/flow.ts";
import { type FailedCriterion, MOST_NEAR_MISSES, type NearMiss } from "../../api/protocol/flow-explanation.ts";
import { DERIVED_LABELS, ORCHESTRATOR } from "../../api/resources/derived-labels.ts";
import type { FailedCriterion as Failed, MissedRule } from "../../calc/policy/explain.ts";
import type { AskedEnd } from "./ask-nodes.ts";
import { nameOf } from "./flow-words.ts";
import { ruleText } from "./policy-references.ts";
import type { ShowingParts } from "./shown-ends.ts";

/** Rules that fail by more criteria are about something else. */
const MOST_CRITERIA = 2;

const PROTOCOLS: Readonly<Record<string, string>> = {
  1: "ICMP",
  6: "TCP",
  17: "UDP",
  58: "ICMPv6",
  132: "SCTP",
  136: "UDPLite",
};

/** Rules of the tier that denied which would have allowed it but for one criterion, or two. */
export async function nearMisses(ends: readonly AskedEnd[], key: FlowKey, parts: ShowingParts): Promise<NearMiss[]> {
  const found: NearMiss[] = [];
  for (const { steps, verdict } of ends) {
    const last = steps.at(-1);
    if (verdict !== "Deny" || !last) continue;
    for (const missed of last.missed) {
      if (found.length >= MOST_NEAR_MISSES) break;
      const { rule, owner, failed } = missed;
      if (failed.length > MOST_CRITERIA || (rule.action !== "allow" && rule.action !== "pass")) continue;
      if (await parts.access.mayRead(parts.references.policy(owner))) found.push(nearMiss(missed, key, parts));
    }
  }
  return found.sort((a, b) => a.criteria.length - b.criteria.length || peersIn(a) - peersIn(b));
}

/** A rule that is about these two, and another port, is nearer to what was meant than one about others. */
function peersIn({ criteria }: NearMiss): number {
  return criteria.filter(({ name }) => /nets|sets/i.test(name)).length;
}

function nearMiss({ rule, failed }: MissedRule, key: FlowKey, { references, sees }: ShowingParts): NearMiss {
  const reference = references.rule(rule.id, rule.action, true);
  const criteria = failed.map((one) => shownCriterion(one, key, sees));
  const wanted = criteria.map(phraseOf).join(" and ");
  const found = criteria.map((criterion) => criterion.found).join(" and ");
  const does = rule.action === "allow" ? "allows" : "passes on";
  return { rule: reference, criteria, text: `${ruleText(reference)} ${does} ${wanted}; this is ${found}` };
}

/** Of an end that the reader may not see there is its name alone. */
function shownCriterion({ name, wanted, found }: Failed, key: FlowKey, sees: ShowingParts["sees"]): FailedCriterion {
  if (/protocol/i.test(name)) {
    const protocol = PROTOCOLS[wanted.replace(/^not /, "")] ?? wanted.replace(/^not /, "");
    return { name, wanted: wanted.startsWith("not ") ? `not ${protocol}` : protocol, found: key.protocol };
  }
  const end = /^(?:not)?src/i.test(name) ? key.from : key.to;
  if (/sets/i.test(name)) return { name, wanted: selectorWords(wanted), found: endText(end, sees) };
  // An address outside is seen by both ends.
  if (/nets/i.test(name) && end.type !== "Outside" && !sees(end.namespace)) return { name, wanted, found: nameOf(end) };
  return { name, wanted, found };
}

/** A policy of Kubernetes means pods, which goes without saying. */
const IS_POD = `${DERIVED_LABELS.orchestrator} == "${ORCHESTRATOR}"`;

function selectorWords(meaning: string): string {
  return meaning
    .replaceAll(` && ${IS_POD}`, "")
    .replaceAll(`${IS_POD} && `, "")
    .replace(/^\(([^()]*)\)$/, "$1");
}

const PHRASES: Readonly<Record<string, string>> = {
  dstPorts: "port",
  srcPorts: "source port",
  protocol: "protocol",
  srcSets: "what comes from",
  dstSets: "what goes to",
  srcNets: "what comes from",
  dstNets: "what goes to",
};

function phraseOf({ name, wanted }: FailedCriterion): string {
  const plain = name.replace(/^not(.)/, (_, letter: string) => letter.toLowerCase());
  const phrase = PHRASES[plain];
  return phrase === undefined ? wanted : `${phrase} ${wanted}`;
}

function endText(end: FlowEnd, sees: ShowingParts["sees"]): string {
  const labels = sees(end.namespace) ? Object.entries(end.labels ?? {}) : [];
  const shown = labels.map(([label, value]) => `${label}=${value}`).join(", ");
  return shown === "" ? nameOf(end) : `${nameOf(end)} (${shown})`;
}
