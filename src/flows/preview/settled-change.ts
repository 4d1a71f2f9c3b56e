import { causesOf, refuseFields } from "../../aggregated/v3-causes.ts";
import type { KubeObject } from "../../api/object.ts";
import { orchestratorTier, tierOf } from "../../api/resources/policy-names.ts";
import { setDefaults } from "../../api/resources/v3-defaults.ts";
import type { Translator } from "../../api/resources/v3-translate.ts";
import { fieldCause, shown } from "../../api/schema/schema-cause.ts";
import { applyDefaults } from "../../api/schema/schema-walk.ts";
import { isBuiltInTier } from "../../api/validation/tier.ts";
import { checkSchema, settle } from "../../apiserver/decode.ts";
import { metadataProblems } from "../../apiserver/metadata.ts";
import type { ServedKind } from "../../apiserver/resource.ts";
import { conflict, forbidden, invalid } from "../../apiserver/status-errors.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import type { PolicyChange } from "./policy-changes.ts";

/** What changes in the objects that policy is calculated of. */
export interface SettledChange {
  change: PolicyChange;
  /** As it would be kept; undefined: it is deleted. */
  kept: KubeObject | undefined;
}

export interface SettleParts {
  translator: Translator;
  objects: ClusterObjects;
}

/** Objects as the API server would keep them, or its refusal. */
export async function settledChanges(changes: readonly PolicyChange[], parts: SettleParts): Promise<SettledChange[]> {
  const settled: SettledChange[] = [];
  for (const change of changes) settled.push({ change, kept: await keptObject(change, parts) });
  const tiers = new Set((parts.objects.get("tiers") ?? []).map(({ metadata }) => metadata.name));
  for (const { ref, input, kept } of settled.map(({ change, kept }) => ({ ...change, kept })))
    if (input === "tiers") kept ? tiers.add(ref.name) : tiers.delete(ref.name);
  for (const one of settled) refuseByTier(one, tiers, settled, parts.objects);
  return settled;
}

async function keptObject(change: PolicyChange, { translator }: SettleParts): Promise<KubeObject | undefined> {
  const { v3, object, old, served, name } = change;
  if (v3?.tiered && orchestratorTier(name) !== undefined)
    throw forbidden(served, name, "it mirrors a Kubernetes policy; change that one");
  if (!object) return undefined;
  if (!v3) return kubernetesPolicy(await networkPolicyKind(), object, old);
  settle(v3.served, object, { found: [], validation: "Strict", onUnknown: refuseFields(v3) });
  setDefaults(v3.noun, object);
  const causes = causesOf(v3, object, old && translator.toServed(v3, structuredClone(old)));
  if (causes.length > 0) throw invalid(v3.served, name, causes);
  return translator.toStored(v3, object);
}

/** Loaded when it is asked for: descriptions of all kinds of Kubernetes are with it. */
async function networkPolicyKind(): Promise<ServedKind> {
  const { kubernetesKinds } = await import("../../apiserver/kubernetes/kinds.ts");
  return kubernetesKinds().find(({ group, kind }) => group === "networking.k8s.io" && kind === "NetworkPolicy")!;
}

function kubernetesPolicy(kind: ServedKind, object: KubeObject, old: KubeObject | undefined): KubeObject {
  settle(kind, object, { found: [], validation: "Strict" });
  // Of the wrong type is refused before defaults are put into it.
  checkSchema(kind, object);
  applyDefaults(kind.schema, kind.definitions, object);
  kind.strategy.setDefaults?.(object);
  const causes = [
    ...metadataProblems(object, kind, old),
    ...checkSchema(kind, object),
    ...(kind.strategy.validate?.(object) ?? []),
  ];
  if (causes.length > 0) throw invalid(kind, object.metadata.name, causes);
  return object;
}

/** A policy needs its tier, and a tier goes last. */
function refuseByTier(
  { change, kept }: SettledChange,
  tiers: ReadonlySet<string>,
  settled: readonly SettledChange[],
  objects: ClusterObjects,
): void {
  const { v3, served, name, ref, old } = change;
  if (v3?.tiered && kept && !old) {
    const tier = tierOf(name);
    if (!isBuiltInTier(tier) && !tiers.has(tier))
      throw invalid(served, name, [fieldCause("spec.tier", `Not found: ${shown(tier)}`)]);
  }
  if (v3?.noun !== "tier" || kept) return;
  if (isBuiltInTier(name)) throw forbidden(served, name, "it is a built-in tier and cannot be deleted");
  const isIn = (policy: string) => tierOf(policy) === name;
  const isHeld = (["networkPolicies", "globalNetworkPolicies"] as const).some((input) => {
    const of = settled.filter((one) => one.change.input === input);
    const isGone = ({ metadata }: KubeObject) =>
      of.some(
        (one) =>
          !one.kept &&
          one.change.ref.name === metadata.name &&
          one.change.ref.namespace === (metadata.namespace || undefined),
      );
    const stays = (objects.get(input) ?? []).some((policy) => isIn(policy.metadata.name) && !isGone(policy));
    return stays || of.some((one) => one.kept && isIn(one.kept.metadata.name));
  });
  // Which these are may be for others to know.
  if (isHeld) throw conflict(served, ref.name, "the tier still has policies; delete or move them first");
}
