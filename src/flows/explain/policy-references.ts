import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { PolicyHit } from "../../api/protocol/flow.ts";
import type { PolicyReference, RuleReference } from "../../api/protocol/flow-explanation.ts";
import { servedPolicyName, storedPolicyName } from "../../api/resources/policy-names.ts";
import { v3Places } from "../../api/resources/v3-places.ts";
import { Translator } from "../../api/resources/v3-translate.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import type { Direction } from "../../calc/model.ts";
import { policyHits } from "../../calc/policy/policy-hits.ts";
import { kubernetesRuleOrigins } from "../../calc/policy/translate-kubernetes-policy.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import { type ObjectText, objectText } from "./object-text.ts";

const ACTIONS = { allow: "Allow", deny: "Deny", pass: "Pass", log: "Log" } as const;
const NO_MODEL = { policies: new Map(), profiles: new Map() };

/** From ids of the model to the objects people know. */
export interface PolicyReferences {
  /** Of a `Policy.id` or `Profile.id`. */
  policy(id: string): PolicyReference;
  /** Of a `Rule.id`, with its place in the object; `found: false` for what the reader may not read. */
  rule(id: string, action: keyof typeof ACTIONS, found: boolean): RuleReference;
  /** The object as people get it. */
  object(id: string): KubeObject | undefined;
}

/** By the id that the calculation gives a policy; made once for each look at the cluster. */
const indexes = new WeakMap<ClusterObjects, ReadonlyMap<string, KubeObject>>();

export function policyReferences(objects: ClusterObjects, release: string): PolicyReferences {
  const index = indexes.get(objects) ?? indexOf(objects);
  indexes.set(objects, index);
  const places = v3Places(vendorNames, release);
  const translator = new Translator(places, release);
  const texts = new Map<string, ObjectText>();
  const served = (stored: KubeObject): KubeObject => {
    const place = places.find(
      ({ stored: kind }) => kind.kind === stored.kind && stored.apiVersion.startsWith(kind.group),
    );
    // The translation changes what it is given, and the objects are others' too.
    return place ? translator.toServed(place, structuredClone(stored)) : stored;
  };
  const textOf = (id: string) => {
    const known = texts.get(id);
    const object = index.get(id);
    if (known || !object) return known;
    const made = objectText(served(object));
    texts.set(id, made);
    return made;
  };
  const policy = (id: string): PolicyReference => {
    const [hit] = policyHits(NO_MODEL, [`${id};ingress;0`], "Ingress", "Deny");
    const { kind, namespace, name } = hit as PolicyHit;
    const spec = (index.get(id)?.["spec"] ?? {}) as { tier?: string };
    return { kind, tier: kind === "Profile" ? "" : spec.tier || (hit as PolicyHit).tier, namespace, name };
  };
  return {
    policy,
    rule(id, action, found) {
      const [owner = "", direction = "ingress", position = "0"] = id.split(";") as [string, Direction, string];
      const named = {
        ...policy(owner),
        direction: direction === "egress" ? ("Egress" as const) : ("Ingress" as const),
        action: ACTIONS[action],
      };
      if (!found) return { ...named, namespace: "", name: "" };
      const object = index.get(owner);
      const own = owner.startsWith("knp/") && object ? kubernetesRuleOrigins(object, direction) : undefined;
      const rule = own ? (own[Number(position)] ?? 0) : Number(position);
      const place = textOf(owner)?.find(["spec", direction, rule]);
      return { ...named, rule, ...(place ? { path: `spec.${direction}[${rule}]`, ...place } : {}) };
    },
    object: (id) => {
      const object = index.get(id);
      return object && served(object);
    },
  };
}

function indexOf(objects: ClusterObjects): ReadonlyMap<string, KubeObject> {
  const index = new Map<string, KubeObject>();
  const add = (name: InputName, idOf: (object: KubeObject) => string) => {
    for (const object of objects.get(name) ?? []) index.set(idOf(object), object);
  };
  add("kubernetesPolicies", ({ metadata }) => `knp/${metadata.namespace}/${metadata.name}`);
  add("networkPolicies", ({ metadata }) => `np/${metadata.namespace}/${storedPolicyName(metadata.name)}`);
  add("globalNetworkPolicies", ({ metadata }) => `gnp/${storedPolicyName(metadata.name)}`);
  add("profiles", ({ metadata }) => metadata.name);
  return index;
}

const KIND_WORDS: Readonly<Record<string, string>> = { KubernetesNetworkPolicy: "Kubernetes NetworkPolicy" };

/** "NetworkPolicy pay/db"; of what the reader may not read, "a NetworkPolicy of tier default that you may not read". */
export function policyText({ kind, tier, namespace, name }: PolicyReference): string {
  const word = KIND_WORDS[kind] ?? kind;
  if (name === "") return `a ${word}${tier === "" ? "" : ` of tier ${tier}`} that you may not read`;
  const shown = kind === "NetworkPolicy" || kind === "GlobalNetworkPolicy" ? servedPolicyName(name) : name;
  return `${word} ${namespace === "" ? "" : `${namespace}/`}${shown}`;
}

/** "ingress[2] of NetworkPolicy pay/db". */
export function ruleText(rule: RuleReference): string {
  const text = policyText(rule);
  return rule.rule === undefined ? text : `${rule.direction.toLowerCase()}[${rule.rule}] of ${text}`;
}
