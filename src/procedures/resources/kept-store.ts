import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../api/names.ts";
import type { KubeObject, ObjectRef } from "../../api/object.ts";
import { setDefaults } from "../../api/resources/v3-defaults.ts";
import { type V3Place, v3Places } from "../../api/resources/v3-places.ts";
import { matchesLabels, parseLabelSelector } from "../../api/schema/selector.ts";
import { warningFacts, warningText, writeWarnings } from "../../api/validation/write-warnings.ts";
import { applyJsonPatch } from "../../apiserver/patch/json-patch.ts";
import { applyMergePatch } from "../../apiserver/patch/merge-patch.ts";
import { clusterVersionOf } from "./cluster-version.ts";
import { errors } from "./errors.ts";
import { guardDelete, guardWrite } from "./guard-resource.ts";
import { printedName, type ResourcePatch, type ResourceStore, type Written } from "./resource-store.ts";
import { validateResource } from "./validate-resource.ts";

/** A conflict between read and write. Never leaves this module: it is retried, or reported with its code. */
export class WriteConflict extends Error {}

/** Where resources are stored without a server that validates them. Objects are as users see them; each has its version. */
export interface Keeper {
  readonly from: string;
  find(place: V3Place, ref: ObjectRef): Promise<KubeObject | undefined>;
  all(place: V3Place, namespace: string | undefined): Promise<KubeObject[]>;
  /** What would become of the live object; nothing is written. */
  preview(place: V3Place, object: KubeObject, old: KubeObject | undefined, force: boolean): Promise<KubeObject>;
  /** What `preview` showed, with what was filled in since. */
  apply(
    place: V3Place,
    given: { config: KubeObject; wanted: KubeObject; old: KubeObject | undefined; force: boolean },
  ): Promise<KubeObject>;
  /** The whole object in place of the one with its version. */
  replace(place: V3Place, object: KubeObject): Promise<KubeObject>;
  remove(place: V3Place, object: KubeObject): Promise<void>;
}

const ATTEMPTS = 5;

/** The rules of the v3 API for resources that are written past it. */
export function keptStore(keeper: Keeper, names: Names): ResourceStore {
  const settle = async (place: V3Place, object: KubeObject, old: KubeObject | undefined) => {
    setDefaults(place.noun, object);
    validateResource(place, object, names);
    await guardWrite(keeper, place, object, old, names);
  };

  /** A v3 API would say the same. */
  const warningsOf = async ({ noun }: V3Place, object: KubeObject): Promise<string[]> => {
    const facts = warningFacts(noun, object).map(async (fact) => {
      const place = v3Places(names).find((one) => one.noun === fact);
      return [fact, place && (await keeper.find(place, { name: names.singleton }))] as const;
    });
    return writeWarnings(object, Object.fromEntries(await Promise.all(facts))).map(warningText);
  };

  const applyOnce: ResourceStore["apply"] = async (place, object, { dryRun = false, force = false } = {}) => {
    const old = await keeper.find(place, object.metadata);
    const asked = object.metadata.resourceVersion;
    if (asked !== undefined && asked !== old?.metadata.resourceVersion) {
      throw errors.RESOURCE_OVERTAKEN(printedName(place, object.metadata.name));
    }
    const wanted = await keeper.preview(place, structuredClone(object), old, force);
    await settle(place, wanted, old);
    const warnings = await warningsOf(place, wanted);
    if (old && same(old, wanted)) return { object: old, outcome: "unchanged", warnings };
    const outcome = old ? "configured" : "created";
    if (dryRun) return { object: wanted, outcome, warnings };
    return { object: await keeper.apply(place, { config: object, wanted, old, force }), outcome, warnings };
  };

  const patchOnce = async (place: V3Place, ref: ObjectRef, patch: ResourcePatch, dryRun: boolean): Promise<Written> => {
    const old = await keeper.find(place, ref);
    if (!old) throw errors.RESOURCE_NOT_FOUND(printedName(place, ref.name));
    const wanted = patched(old, patch);
    mustStay(place, old, wanted);
    await settle(place, wanted, old);
    const warnings = await warningsOf(place, wanted);
    if (same(old, wanted)) return { object: old, outcome: "unchanged", warnings };
    return { object: dryRun ? wanted : await keeper.replace(place, wanted), outcome: "configured", warnings };
  };

  return {
    from: keeper.from,
    async list(place, { namespace, labelSelector = "" } = {}) {
      const wanted = parseLabelSelector(labelSelector);
      const found = await keeper.all(place, place.served.namespaced ? namespace : undefined);
      return found.filter(({ metadata }) => matchesLabels(wanted, metadata.labels)).sort(byName);
    },
    get: (place, ref) => keeper.find(place, ref),
    apply: (place, object, options) => again(place, object.metadata.name, () => applyOnce(place, object, options)),
    patch: (place, ref, patch, { dryRun = false } = {}) =>
      again(place, ref.name, () => patchOnce(place, ref, patch, dryRun)),
    delete: (place, ref, { dryRun = false } = {}) =>
      again(place, ref.name, async () => {
        const live = await keeper.find(place, ref);
        if (!live) return false;
        await guardDelete(keeper, place, live, names);
        if (!dryRun) await keeper.remove(place, live);
        return true;
      }),
    version: () => clusterVersionOf((place, ref) => keeper.find(place, ref), names),
  };
}

async function again<T>(place: V3Place, name: string, attempt: () => Promise<T>): Promise<T> {
  for (let left = ATTEMPTS; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof WriteConflict)) throw error;
      if (left <= 1) throw errors.RESOURCE_OVERTAKEN(printedName(place, name)).from(error);
    }
  }
}

function patched(object: KubeObject, patch: ResourcePatch): KubeObject {
  try {
    const result =
      patch.type === "json" ? applyJsonPatch(object, patch.operations) : applyMergePatch(object, patch.patch);
    if (typeof result === "object" && result !== null && !Array.isArray(result)) return result as KubeObject;
  } catch (error) {
    throw errors.RESOURCE_PATCH_BAD((error as Error).message).from(error);
  }
  throw errors.RESOURCE_PATCH_BAD("it turns the object into something that is not an object");
}

/** A patch may not make another object of it. */
function mustStay(place: V3Place, old: KubeObject, wanted: KubeObject): void {
  const fixed = (object: KubeObject) => [
    object.apiVersion,
    object.kind,
    object.metadata?.name,
    object.metadata?.namespace,
    object.metadata?.uid,
  ];
  if (isDeepStrictEqual(fixed(old), fixed(wanted))) return;
  const name = printedName(place, old.metadata.name);
  throw errors.RESOURCE_PATCH_BAD(`apiVersion, kind, name, namespace and uid of ${name} cannot change`);
}

function same(a: KubeObject, b: KubeObject): boolean {
  const written = ({ metadata, ...rest }: KubeObject) => {
    const { labels = {}, annotations = {}, ownerReferences = [], finalizers = [] } = metadata;
    return { ...rest, labels, annotations, ownerReferences, finalizers };
  };
  return isDeepStrictEqual(written(a), written(b));
}

function byName({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  const [left, right] = [`${a.namespace ?? ""}/${a.name}`, `${b.namespace ?? ""}/${b.name}`];
  return left < right ? -1 : left > right ? 1 : 0;
}
