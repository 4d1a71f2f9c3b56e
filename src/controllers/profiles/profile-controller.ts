import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Profile } from "../../api/resources/profile.ts";
import { type ProfileSource, profileName, profileSource } from "../../api/resources/profile-names.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { type ControllerContext, observed, queueOf } from "../controller-context.ts";
import type { Stored } from "../informers.ts";
import { isOurs, PROFILES } from "../stored-kinds.ts";
import { allowAllProfile, desiredProfile } from "./desired-profile.ts";

const ALLOW_ALL = vendorNames.hostEndpoints.allowAllProfile;
const LONGEST_NAME = 253;
const WORKERS = 4;

/**
 * One key is the name of one profile. The names are reserved: a profile of such a name is reconciled whatever wrote it, but
 * one whose namespace or account is gone is only removed if its label says that we made it.
 */
export function profileController(context: ControllerContext): Controller {
  const { client, informers, config, events } = context;
  const { namespaces, serviceAccounts, profiles } = informers;
  const { enabled } = config.overrides;
  const runs = {
    namespace: enabled?.has("namespace") ?? true,
    serviceAccount: enabled?.has("serviceaccount") ?? true,
  };

  const originOf = (source: ProfileSource): KubeObject | undefined =>
    source.of === "namespace"
      ? namespaces.get(source.namespace)
      : serviceAccounts.get(`${source.namespace}/${source.name}`);

  const wantedOf = (name: string): Profile | undefined => {
    if (name === ALLOW_ALL) return allowAllProfile();
    const source = profileSource(name);
    const origin = source && originOf(source);
    return source && origin && desiredProfile(source, origin);
  };

  const reconcile = async (name: string): Promise<void> => {
    const live = profiles.get(name);
    const wanted = wantedOf(name);
    if (!wanted) await removeIfOurs(context, live);
    else if (!live) await client.create(PROFILES, wanted);
    else if (!isAsWanted(live, wanted)) await client.replace(PROFILES, corrected(live, wanted));
  };

  const keyOf = (source: ProfileSource, object: KubeObject): string[] => {
    if (!runs[source.of]) return [];
    const name = profileName(source);
    if (name.length <= LONGEST_NAME) return [name];
    events.warn(
      object,
      "ProfileNameTooLong",
      `Profile ${name} is not created: its name is longer than ${LONGEST_NAME} characters.`,
    );
    return [];
  };
  const isKey = (name: string): boolean => {
    const source = profileSource(name);
    return name === ALLOW_ALL || (source !== undefined && runs[source.of]);
  };

  const controller = runController({
    name: "profiles",
    watches: [
      watching(namespaces, (object) => keyOf({ of: "namespace", namespace: object.metadata.name }, object)),
      watching(serviceAccounts, (object) => {
        const { name, namespace = "" } = object.metadata;
        return keyOf({ of: "serviceAccount", namespace, name }, object);
      }),
      watching(profiles, ({ metadata }) => [metadata.name].filter(isKey)),
    ],
    reconcile: observed(context, "profiles", reconcile),
    workers: WORKERS,
    queue: queueOf(context),
    log: context.log,
  });
  controller.enqueue(ALLOW_ALL);
  return controller;
}

async function removeIfOurs({ client }: ControllerContext, live: Stored<Profile> | undefined): Promise<void> {
  if (!live || !isOurs(live)) return;
  const { name, uid, resourceVersion } = live.metadata;
  await client.delete(PROFILES, { name }, { preconditions: { uid, resourceVersion } }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

function isAsWanted(live: Stored<Profile>, wanted: Profile): boolean {
  return isOurs(live) && isDeepStrictEqual(live.spec, wanted.spec);
}

/** Labels in addition to ours are the user's own. */
function corrected(live: Stored<Profile>, wanted: Profile): Stored<Profile> {
  const labels = { ...live.metadata.labels, ...wanted.metadata.labels };
  return { ...live, metadata: { ...live.metadata, labels }, spec: wanted.spec };
}
