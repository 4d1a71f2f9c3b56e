import type { GlobalNetworkPolicy, NetworkPolicy } from "../../api/resources/network-policy.ts";
import { storedPolicyName, tierOf } from "../../api/resources/policy-names.ts";
import type { SelectorExpression } from "../../api/schema/selector-expression.ts";
import type { ModelProblem } from "../model.ts";
import { allOf, inNamespace, ofNamespace, ofServiceAccount, readSelector } from "./selectors.ts";
import { SetCollector } from "./set-source.ts";
import { translateRules } from "./translate-rule.ts";
import type { Translation } from "./translated-policy.ts";
import { problem, Untranslatable } from "./untranslatable.ts";

type Spec = GlobalNetworkPolicy["spec"];

/** A v3 policy of either scope, as it is stored. */
export function translatePolicy(object: NetworkPolicy | GlobalNetworkPolicy): Translation {
  const { name, namespace } = object.metadata;
  const spec: Spec = object.spec ?? {};
  const say = (code: Untranslatable["code"], message: string) => problem(object.kind, object.metadata, code, message);
  if (spec.doNotTrack) {
    return { problems: [say("DO_NOT_TRACK_UNSUPPORTED", "doNotTrack is not supported: the policy is not in effect")] };
  }
  let selector: SelectorExpression;
  try {
    selector = selectorOf(spec, namespace);
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    return { problems: [say(error.code, `${error.message}: the policy is not in effect`)] };
  }
  const stored = storedPolicyName(name);
  const id = namespace === undefined ? `gnp/${stored}` : `np/${namespace}/${stored}`;
  const tier = spec.tier || tierOf(stored);
  const sets = new SetCollector();
  const place = { owner: id, namespace, sets };
  const ingress = translateRules(spec.ingress, { ...place, direction: "ingress" });
  const egress = translateRules(spec.egress, { ...place, direction: "egress" });
  const problems: ModelProblem[] = [...ingress.problems, ...egress.problems].map(({ code, message }) =>
    say(code, `${message}: from that rule on everything is denied`),
  );
  const decides = decidedBy(spec);
  const translated = {
    policy: { id, tier, order: spec.order ?? null, ingress: ingress.rules, egress: egress.rules },
    tieBreak: tieBreak(stored, namespace, namespace === undefined ? "gnp" : "np"),
    selector,
    decides: spec.preDNAT ? { ...decides, egress: false } : decides,
    preDNAT: spec.preDNAT ?? false,
    applyOnForward: spec.applyOnForward ?? false,
    sets: sets.sets,
  };
  return { translated, problems };
}

/** Names are compared first, so a namespace cannot push its policies before others of the same order. */
export function tieBreak(name: string, namespace: string | undefined, kind: string): string {
  return [name, namespace ?? "", kind].join(" ");
}

function selectorOf(spec: Spec, namespace: string | undefined): SelectorExpression {
  const own = readSelector(spec.selector);
  const namespaces = readSelector(spec.namespaceSelector);
  const accounts = readSelector(spec.serviceAccountSelector);
  return allOf([
    ...(own ? [own] : []),
    ...(accounts ? [ofServiceAccount(accounts)] : []),
    ...(namespace !== undefined ? [inNamespace(namespace)] : namespaces ? [ofNamespace(namespaces)] : []),
  ]);
}

/** A policy without types decides as its rules say; without egress rules it decides ingress, as the orchestrator's own do. */
function decidedBy({ types = [], ingress = [], egress = [] }: Spec): Record<"ingress" | "egress", boolean> {
  if (types.length > 0) return { ingress: types.includes("Ingress"), egress: types.includes("Egress") };
  return { ingress: ingress.length > 0 || egress.length === 0, egress: egress.length > 0 };
}
