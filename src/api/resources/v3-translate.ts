import { type Names, vendorNames } from "../names.ts";
import { groupVersion, type KubeObject, type ManagedFieldsEntry, type OwnerReference } from "../object.ts";
import { parseVersion } from "../tables/version.ts";
import { hasGate } from "../tables/version-gates.ts";
import { servedPolicyName, spellsOutDefault, storedPolicyName } from "./policy-names.ts";
import { findPlace, type V3Place } from "./v3-places.ts";
import { v3Uid } from "./v3-uid.ts";

type TranslationDirection = "toServed" | "toStored";
type Fields = Record<string, unknown>;

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const WHOLE_UUID = new RegExp(`^${UUID.source}$`, "i");

/**
 * One object, two APIs: what `vendor.io/v3` shows and what `crd.vendor.io/v1` keeps differ in group and kind, in the UID, in how owners
 * and field managers name them, and in the names of policies. Everything else is the same bytes. Objects given are changed and given back.
 */
export class Translator {
  readonly #kinds: readonly V3Place[];
  readonly #names: Names;
  readonly #version: string;
  /** Before UIDs changed, references between v3 resources were kept as they were written. */
  readonly #convertsOwners: boolean;

  constructor(kinds: readonly V3Place[], version: string, names: Names = vendorNames) {
    this.#kinds = kinds;
    this.#names = names;
    this.#version = version;
    const parsed = parseVersion(version);
    if (!parsed) throw new TypeError(`"${version}" is not a version such as v3.31.3`);
    this.#convertsOwners = hasGate(parsed, "resourceUids");
  }

  /** Its own inverse. What is no UID stays what it is: a client may send anything. */
  uid(uid: string): string {
    return WHOLE_UUID.test(uid) ? v3Uid(uid, this.#version) : uid;
  }

  toServed(kind: V3Place, object: KubeObject): KubeObject {
    object.apiVersion = groupVersion(kind.served);
    object.kind = kind.served.kind;
    const { metadata } = object;
    const kept = this.#takeKeptName(object);
    if (kind.tiered) {
      if (metadata.name) metadata.name = kept ?? servedPolicyName(metadata.name);
      if (metadata.generateName) metadata.generateName = servedPolicyName(metadata.generateName);
    }
    return this.#metadata(object, "toServed");
  }

  toStored(kind: V3Place, object: KubeObject): KubeObject {
    object.apiVersion = groupVersion(kind.stored);
    object.kind = kind.stored.kind;
    const { metadata } = object;
    if (kind.tiered) {
      const { name, generateName } = metadata;
      if (name) metadata.name = storedPolicyName(name);
      if (generateName) metadata.generateName = storedPolicyName(generateName);
      if (name && spellsOutDefault(name)) this.#keepName(object, name);
    }
    return this.#metadata(object, "toStored");
  }

  storedName(kind: V3Place, name: string): string {
    return kind.tiered ? storedPolicyName(name) : name;
  }

  /** What the main API server said, in the words of this API. */
  text(kind: V3Place, message: string, storedName = ""): string {
    const { stored, served } = kind;
    const said = message
      .replaceAll(groupVersion(stored), groupVersion(served))
      .replaceAll(stored.group, served.group)
      .replace(UUID, (uid) => this.uid(uid));
    return kind.tiered && storedName ? said.replaceAll(`"${storedName}"`, `"${servedPolicyName(storedName)}"`) : said;
  }

  #takeKeptName({ metadata }: KubeObject): string | undefined {
    const annotation = this.#names.annotations.storedMetadata;
    const kept = metadata.annotations?.[annotation];
    if (kept === undefined || !metadata.annotations) return undefined;
    delete metadata.annotations[annotation];
    if (Object.keys(metadata.annotations).length === 0) delete metadata.annotations;
    for (const entry of metadata.managedFields ?? []) forgetAnnotation(entry, annotation);
    try {
      const { name } = JSON.parse(kept) as { name?: unknown };
      return typeof name === "string" && storedPolicyName(name) === metadata.name ? name : undefined;
    } catch {
      return undefined;
    }
  }

  #keepName({ metadata }: KubeObject, name: string): void {
    metadata.annotations = {
      ...metadata.annotations,
      [this.#names.annotations.storedMetadata]: JSON.stringify({ name }),
    };
  }

  #metadata(object: KubeObject, way: TranslationDirection): KubeObject {
    const { metadata } = object;
    if (metadata.uid) metadata.uid = this.uid(metadata.uid);
    const renamed = new Map<string, string>();
    if (Array.isArray(metadata.ownerReferences)) {
      metadata.ownerReferences = metadata.ownerReferences.map((owner) => {
        const converted = this.#owner(owner, way);
        if (converted.uid !== owner.uid) renamed.set(owner.uid, converted.uid);
        return converted;
      });
    }
    if (Array.isArray(metadata.managedFields)) {
      for (const entry of metadata.managedFields) this.#managed(entry, way, renamed);
    }
    return object;
  }

  #owner(owner: OwnerReference, way: TranslationDirection): OwnerReference {
    const kind = this.#convertsOwners && findPlace(this.#kinds, String(owner.apiVersion), String(owner.kind));
    // A reference straight to the stored object, written through this API, means that very object.
    if (!kind || (way === "toStored" && owner.apiVersion === groupVersion(kind.stored))) return owner;
    const place = way === "toServed" ? kind.served : kind.stored;
    const nameOf = way === "toServed" ? servedPolicyName : storedPolicyName;
    return {
      ...owner,
      apiVersion: groupVersion(place),
      kind: place.kind,
      name: kind.tiered ? nameOf(owner.name) : owner.name,
      uid: this.uid(String(owner.uid)),
    };
  }

  #managed(entry: ManagedFieldsEntry, way: TranslationDirection, owners: ReadonlyMap<string, string>): void {
    const { stored, served } = this.#names.groups;
    const [from, to] = way === "toServed" ? [stored, served] : [served, stored];
    if (entry.apiVersion === groupVersion(from)) entry.apiVersion = groupVersion(to);
    const metadata = entry.fieldsV1?.["f:metadata"] as Fields | undefined;
    const references = metadata?.["f:ownerReferences"] as Fields | undefined;
    if (!metadata || !references || owners.size === 0) return;
    const renamed = Object.entries(references).map(([key, value]) => {
      const uid = /^k:\{"uid":"(.*)"\}$/.exec(key)?.[1];
      const other = uid === undefined ? undefined : owners.get(uid);
      return [other === undefined ? key : `k:{"uid":"${other}"}`, value] as const;
    });
    metadata["f:ownerReferences"] = Object.fromEntries(renamed);
  }
}

function forgetAnnotation(entry: ManagedFieldsEntry, annotation: string): void {
  const metadata = entry.fieldsV1?.["f:metadata"] as Fields | undefined;
  const annotations = metadata?.["f:annotations"] as Fields | undefined;
  if (!metadata || !annotations) return;
  delete annotations[`f:${annotation}`];
  if (Object.keys(annotations).every((key) => key === ".")) delete metadata["f:annotations"];
}
