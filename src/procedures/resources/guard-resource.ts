import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { orchestratorTier, tierOf } from "../../api/resources/policy-names.ts";
import { profileSource } from "../../api/resources/profile-names.ts";
import { type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import { StatusError } from "../../api/status.ts";
import { isBuiltInTier } from "../../api/validation/tier.ts";
import { CodedError } from "../../kit/errors.ts";
import { errors } from "./errors.ts";
import type { Keeper } from "./kept-store.ts";
import { printedName } from "./resource-store.ts";

type Reads = Pick<Keeper, "find" | "all">;

/** Rules that take more than the object itself, as the v3 API holds them. */
export async function guardWrite(
  keeper: Reads,
  place: V3Place,
  object: KubeObject,
  old: KubeObject | undefined,
  names: Names,
): Promise<void> {
  refuseOthers(place, object.metadata.name, names);
  if (!place.tiered || old) return;
  const tier = tierOf(object.metadata.name);
  const tiers = v3Places(names).find(({ noun }) => noun === "tier")!;
  if (isBuiltInTier(tier) || (await keeper.find(tiers, { name: tier }))) return;
  throw errors.RESOURCE_TIER_MISSING(printedName(place, object.metadata.name), tier);
}

/** Whether a policy was refused because its tier is not there, by the rule above or by a v3 API. */
export function isTierMissing(error: unknown): boolean {
  if (error instanceof StatusError)
    return (error.status.details?.causes ?? []).some(({ field }) => field === "spec.tier");
  return error instanceof CodedError && (error.code === "RESOURCE_TIER_MISSING" || isTierMissing(error.cause));
}

export async function guardDelete(
  keeper: Reads,
  place: V3Place,
  { metadata }: KubeObject,
  names: Names,
): Promise<void> {
  refuseOthers(place, metadata.name, names);
  if (place.noun !== "tier") return;
  const name = printedName(place, metadata.name);
  if (isBuiltInTier(metadata.name)) throw errors.RESOURCE_NOT_YOURS(name, "it is a built-in tier");
  for (const policies of v3Places(names).filter(({ tiered }) => tiered)) {
    const [held] = (await keeper.all(policies, undefined)).filter(
      (policy) => tierOf(policy.metadata.name) === metadata.name,
    );
    if (held) throw errors.RESOURCE_NOT_YOURS(name, `it still has ${printedName(policies, held.metadata.name)}`);
  }
}

function refuseOthers(place: V3Place, name: string, { hostEndpoints }: Names): void {
  const refuse = (why: string) => {
    throw errors.RESOURCE_NOT_YOURS(printedName(place, name), why);
  };
  if (place.tiered && orchestratorTier(name) !== undefined) {
    refuse("it mirrors a Kubernetes policy; change that one");
  }
  if (place.noun !== "profile") return;
  if (profileSource(name) !== undefined) refuse("it mirrors a namespace or a service account; label that one");
  if (name === hostEndpoints.allowAllProfile) refuse("it is built in and read-only");
}
