import { groupVersion } from "../../api/object.ts";
import { storedPolicyName } from "../../api/resources/policy-names.ts";
import { findPlace, v3Places } from "../../api/resources/v3-places.ts";
import { v3Uid } from "../../api/resources/v3-uid.ts";
import type { Work } from "../action.ts";
import type { OwnedThroughV3 } from "../observation.ts";
import { metadataPages } from "../owned-through-v3.ts";
import { livingPlaces } from "./owned-place.ts";

export interface Proof {
  looked: number;
  /** Gone, or another object of the same name. */
  lost: OwnedThroughV3[];
}

const SHOWS_OTHER_UIDS = "v3.28";

/** Whether every object whose reference was saved is still that object, by its UID. Reads whole kinds, so thousands cost few requests. */
export async function proveOwnedObjects(work: Work, saved: readonly OwnedThroughV3[]): Promise<Proof> {
  const { client, names, signal } = work;
  const uids = new Map<string, Map<string, string>>();
  const living = await livingPlaces(client, names);
  const places = v3Places(names);
  const uidsOf = async (entry: OwnedThroughV3) => {
    // As stored, a v3 resource has the UID it always had.
    const kind = findPlace(places, entry.apiVersion, entry.kind)?.stored ?? living(entry)?.kind;
    if (kind === undefined) return new Map<string, string>();
    const key = `${groupVersion(kind)} ${kind.plural}`;
    const known = uids.get(key) ?? new Map<string, string>();
    if (!uids.has(key)) {
      uids.set(key, known);
      for await (const page of metadataPages(client, kind, { signal, mustAnswer: true })) {
        for (const { namespace = "", name, uid = "" } of page) known.set(`${namespace}/${name}`, uid);
      }
    }
    return known;
  };
  const lost: OwnedThroughV3[] = [];
  for (const entry of saved) {
    const place = findPlace(places, entry.apiVersion, entry.kind);
    const name = place?.tiered ? storedPolicyName(entry.name) : entry.name;
    const uid = (await uidsOf(entry)).get(`${entry.namespace ?? ""}/${name}`);
    const asSaved = place ? [entry.uid, v3Uid(entry.uid, SHOWS_OTHER_UIDS)] : [entry.uid];
    if (uid === undefined || !asSaved.includes(uid)) lost.push(entry);
  }
  return { looked: saved.length, lost };
}
