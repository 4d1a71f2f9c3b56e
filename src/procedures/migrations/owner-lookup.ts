import type { Names } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import { storedPolicyName } from "../../api/resources/policy-names.ts";
import { findPlace, v3Places } from "../../api/resources/v3-places.ts";
import { v3Uid } from "../../api/resources/v3-uid.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import type { OwnedThroughV3 } from "../observation.ts";
import { errors } from "./errors.ts";

type Reference = OwnedThroughV3["reference"];

/** Finds the UID an owner has now, each owner once. Undefined: there is no such owner. */
export interface OwnerLookup {
  uidOf(reference: Reference, namespace: string | undefined): Promise<string | undefined>;
}

/**
 * Asks the v3 API, where the UID is what it shows. Where nothing serves that API the stored resource is asked, and its UID turned into the one
 * the running version would show: the same rule that API follows.
 */
export async function ownerLookup(client: Client, names: Names, signal: AbortSignal): Promise<OwnerLookup> {
  const resources = await client.resources();
  const served = resources.some(({ group }) => group === names.groups.served.group);
  const version = served ? undefined : await clusterVersion(client, names, signal);
  const places = v3Places(names);
  const known = new Map<string, Promise<string | undefined>>();

  const find = async (reference: Reference, namespace: string | undefined) => {
    const place = findPlace(places, reference.apiVersion, reference.kind);
    const kind = served || !place ? await client.resourceFor(reference) : place.stored;
    const name = !served && place?.tiered ? storedPolicyName(reference.name) : reference.name;
    try {
      const { metadata } = await client.get(
        kind,
        { name, namespace: kind.namespaced ? namespace : undefined },
        { signal },
      );
      return version === undefined ? metadata.uid : v3Uid(metadata.uid ?? "", version);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  return {
    uidOf(reference, namespace) {
      const key = [reference.apiVersion, reference.kind, namespace ?? "", reference.name].join("\0");
      const asked = known.get(key) ?? find(reference, namespace);
      known.set(key, asked);
      return asked;
    },
  };
}

/** What the cluster says it runs; read from where it is stored, which is there whatever serves. */
async function clusterVersion(client: Client, names: Names, signal?: AbortSignal): Promise<string> {
  const { stored } = v3Places(names).find(({ noun }) => noun === "clusterInformation")!;
  const where = `${stored.plural}.${stored.group} ${names.singleton}`;
  try {
    const information = await client.get(stored, { name: names.singleton }, { signal });
    const version = names.fields.clusterVersion
      .split(".")
      .reduce<unknown>((at, field) => (at as Record<string, unknown> | undefined)?.[field], information);
    if (typeof version === "string" && version !== "") return version;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  throw errors.CLUSTER_VERSION_UNKNOWN(`${where} in ${groupVersion(stored)} has no UID`);
}
