import { type Names, vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import { storedPolicyName, tierOf } from "../../api/resources/policy-names.ts";
import { findPlace, type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import type { Problem } from "../../api/validation/problem.ts";
import { validateObject } from "../../api/validation/validate.ts";
import { errors } from "./errors.ts";
import { printedName } from "./resource-store.ts";

/** Refuses what the v3 API would refuse of an object by itself, every problem at once. */
export function validateResource(place: V3Place, object: KubeObject, names: Names): void {
  const problems = problemsOf(place, object, names);
  if (problems.length === 0) return;
  const said = problems.map(({ path, message, code }) => `${path}: ${message.replace(/\.$/, "")} [${code}]`);
  throw errors.RESOURCE_INVALID(printedName(place, object.metadata?.name ?? ""), said.join("; "));
}

function problemsOf(place: V3Place, object: KubeObject, names: Names): Problem[] {
  const ours = v3Places(vendorNames).find(({ noun }) => noun === place.noun)!;
  const spoken = { ...object, apiVersion: groupVersion(ours.served), kind: ours.served.kind };
  const found = validateObject(spoken);
  const known = names.dialect === "vendor" ? found : found.filter((problem) => isForAnyDialect(place, problem));
  return [...known, ...tierProblems(place, object)];
}

/** We know the names of the other dialect, not all its fields; its settings are its own. */
function isForAnyDialect({ noun }: V3Place, { code }: Problem): boolean {
  const settings =
    noun === "dataplaneConfiguration" || noun === "kubeControllersConfiguration" || noun === "clusterInformation";
  return !settings && code !== "UNKNOWN_FIELD";
}

function tierProblems(place: V3Place, object: KubeObject): Problem[] {
  const tier = (object["spec"] as { tier?: unknown } | undefined)?.tier;
  const { name = "" } = object.metadata ?? {};
  if (!place.tiered || typeof tier !== "string" || tier === tierOf(name)) return [];
  const right = storedPolicyName(name.includes(".") ? name : `${tier}.${name}`);
  const message = `A policy of tier ${tier} is named ${right}.`;
  return name.includes(".") ? [] : [{ path: "metadata.name", message, code: "POLICY_NAME" } as Problem];
}

/** Which v3 resource an object of a file is; undefined for those of others. */
export function placeOf(object: { apiVersion?: unknown; kind?: unknown }, names: Names): V3Place | undefined {
  return findPlace(v3Places(names), String(object.apiVersion), String(object.kind));
}
