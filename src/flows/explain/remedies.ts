import type { FlowEnd, FlowKey } from "../../api/protocol/flow.ts";
import type {
  ExplainedEnd,
  ExplainedStep,
  NearMiss,
  PolicyReference,
  Remedy,
} from "../../api/protocol/flow-explanation.ts";
import { yamlText } from "./object-text.ts";
import { policyText, ruleText } from "./policy-references.ts";
import {
  allowRule,
  DEFAULT_TIER,
  type Fields,
  isKubernetesProtocol,
  kubernetesPeer,
  kubernetesRule,
  type Labels,
  policyObject,
  selectingPeer,
  selectorText,
} from "./rule-objects.ts";

/** Changes of rules that are offered; the others are among the near misses. */
const MOST_CHANGES = 3;

export interface RemedyParts {
  key: FlowKey;
  /** Of the other end, where there is no workload to select: the address that was asked about. Undefined: the reader may not see it. */
  addressOf(end: "from" | "to"): string | undefined;
  sees(namespace: string): boolean;
}

/** What would allow the flow where it is denied: the least change of a rule that nearly matches, and a rule of its own. */
export function remedies(ends: readonly ExplainedEnd[], misses: readonly NearMiss[], parts: RemedyParts): Remedy[] {
  const changes = misses
    .filter(({ criteria, rule }) => criteria.length === 1 && rule.action === "Allow")
    .slice(0, MOST_CHANGES)
    .map(changeOf);
  const denied = ends.filter(({ verdict }) => verdict === "Deny");
  return [...changes, ...denied.flatMap((end) => additionFor(end, parts) ?? [])];
}

function changeOf({ rule, criteria }: NearMiss): Remedy {
  const { name, wanted, found } = criteria[0]!;
  const where = ruleText(rule);
  const text = () => {
    if (name === "dstPorts") return `Add port ${found} to the ports of ${where}.`;
    if (name === "srcPorts") return `Add port ${found} to the source ports of ${where}.`;
    if (name === "protocol") return `Add a rule like ${where} with protocol ${found}.`;
    if (name === "srcSets" || name === "dstSets") return `Let ${where} select ${found} too.`;
    if (name === "srcNets" || name === "dstNets") return `Add ${found} to the prefixes of ${where}.`;
    if (name.startsWith("not")) return `Leave ${found} out of what ${where} excepts.`;
    return `Let ${where} match ${found}, and not only ${wanted}.`;
  };
  return { kind: "ChangeRule", direction: rule.direction, text: text(), rule };
}

function additionFor({ direction, steps }: ExplainedEnd, parts: RemedyParts): Remedy | undefined {
  const step = steps.at(-1);
  if (!step) return undefined;
  if (step.of === "HostEndpoint") {
    const text = "Allow it in a GlobalNetworkPolicy that selects the host endpoint.";
    return { kind: "AddPolicy", direction, text };
  }
  const own = direction === "Egress" ? parts.key.from : parts.key.to;
  if (step.rule) return beforeRule(step, direction, parts);
  const into = policyFor(step, own);
  const kubernetes = into ? into.kind === "KubernetesNetworkPolicy" : step.tier === DEFAULT_TIER || step.tier === "";
  const rule = ruleFor(direction, kubernetes, parts);
  if (!rule) return undefined;
  if (into) {
    const text = `Add this ${direction.toLowerCase()} rule to ${policyText(into)}.`;
    return { kind: "AddRule", direction, text, rule: { ...into, direction, action: "Allow" }, yaml: yamlText([rule]) };
  }
  const policy = policyWith(rule, { direction, kubernetes, tier: step.tier || DEFAULT_TIER, own }, parts);
  return policy && { kind: "AddPolicy", direction, text: "Create this policy.", yaml: yamlText(policy) };
}

function beforeRule(
  { rule, tier }: ExplainedStep,
  direction: Remedy["direction"],
  parts: RemedyParts,
): Remedy | undefined {
  const allow = ruleFor(direction, false, parts);
  if (!rule || !allow) return undefined;
  const where =
    rule.name === ""
      ? `the policy of tier ${tier || DEFAULT_TIER} that denies it`
      : `${ruleText(rule)}, or change that rule`;
  const text = `Have a rule such as this one asked before ${where}.`;
  return { kind: "AddRule", direction, text, rule, yaml: yamlText([allow]) };
}

/** One that the reader may read, of the workload's own namespace if there is one: others select more than this workload. */
function policyFor({ policies }: ExplainedStep, own: FlowEnd): PolicyReference | undefined {
  return policies.find(({ namespace }) => namespace === own.namespace) ?? policies[0];
}

/** Undefined: what the rule must say is not for this reader, or cannot be said. */
function ruleFor(direction: Remedy["direction"], kubernetes: boolean, parts: RemedyParts): Fields | undefined {
  const { protocol, port } = parts.key;
  const [own, other] = direction === "Egress" ? [parts.key.from, parts.key.to] : [parts.key.to, parts.key.from];
  const isSame = own.namespace === other.namespace;
  if (kubernetes && isKubernetesProtocol(protocol)) {
    const peer = kubernetesPeerOf(other, isSame, parts);
    return peer && kubernetesRule(direction, [peer], [{ protocol, port }]);
  }
  const peer = peerOf(other, isSame, parts);
  return peer && allowRule(direction, peer, protocol, port === 0 ? [] : [port]);
}

function kubernetesPeerOf(end: FlowEnd, isSame: boolean, parts: RemedyParts): Fields | undefined {
  if (end.type !== "Workload") return netsOf(end, parts, (net) => ({ ipBlock: { cidr: net } }));
  const labels = labelsOf(end, parts);
  return labels && kubernetesPeer({ labels, ...(isSame ? {} : { namespace: end.namespace }) });
}

function peerOf(end: FlowEnd, isSame: boolean, parts: RemedyParts): Fields | undefined {
  if (end.type !== "Workload" && end.type !== "NetworkSet") return netsOf(end, parts, (net) => ({ nets: [net] }));
  const labels = labelsOf(end, parts);
  const elsewhere = end.namespace === "" || !isSame;
  return labels && selectingPeer(elsewhere ? end.namespace : undefined, selectorText(labels));
}

function netsOf(end: FlowEnd, { key, addressOf }: RemedyParts, peer: (net: string) => Fields): Fields | undefined {
  const address = addressOf(end === key.from ? "from" : "to");
  return address === undefined ? undefined : peer(`${address}/${address.includes(":") ? 128 : 32}`);
}

/** Labels that each pod of the workload has, for as long as it is that workload. Of a workload without any, there is nothing to select it by. */
function labelsOf(end: FlowEnd, { sees }: RemedyParts): Labels | undefined {
  return sees(end.namespace) && Object.keys(end.labels ?? {}).length > 0 ? end.labels : undefined;
}

interface PolicyParts {
  direction: Remedy["direction"];
  kubernetes: boolean;
  tier: string;
  own: FlowEnd;
}

function policyWith(rule: Fields, { direction, kubernetes, tier, own }: PolicyParts, parts: RemedyParts) {
  const labels = labelsOf(own, parts);
  if (!labels || own.type !== "Workload") return undefined;
  const other = direction === "Egress" ? parts.key.to : parts.key.from;
  const name = `${own.name}-${direction === "Egress" ? "to" : "from"}-${other.name}`.slice(0, 60).replace(/[-.]+$/, "");
  return policyObject({
    ...{ kubernetes: kubernetes && !("action" in rule), tier, namespace: own.namespace, name, labels },
    rules: { [direction]: [rule] },
  });
}
