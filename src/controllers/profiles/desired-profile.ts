import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Profile } from "../../api/resources/profile.ts";
import {
  NAME_LABEL,
  NAMESPACE_LABEL_PREFIX,
  type ProfileSource,
  profileName,
  SERVICE_ACCOUNT_LABEL_PREFIX,
} from "../../api/resources/profile-names.ts";
import { PROFILES, typeOf } from "../stored-kinds.ts";

const ALLOW = [{ action: "Allow" }] as NonNullable<Profile["spec"]["ingress"]>;
const ALLOW_ALL: Profile["spec"] = { ingress: ALLOW, egress: ALLOW };

/** The profile automatic host endpoints have: what no policy speaks of is allowed. */
export function allowAllProfile(): Profile {
  return profile(vendorNames.hostEndpoints.allowAllProfile, ALLOW_ALL);
}

/** A namespace allows all until a policy says otherwise; an account only hands on its labels. */
export function desiredProfile(source: ProfileSource, { metadata }: KubeObject): Profile {
  const labelsToApply = prefixed(
    source.of === "namespace" ? NAMESPACE_LABEL_PREFIX : SERVICE_ACCOUNT_LABEL_PREFIX,
    // The name last: a label of that key must not let one namespace pass for another.
    { ...metadata.labels, [NAME_LABEL]: metadata.name },
  );
  return profile(profileName(source), source.of === "namespace" ? { ...ALLOW_ALL, labelsToApply } : { labelsToApply });
}

function prefixed(prefix: string, labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${prefix}${key}`, value]));
}

function profile(name: string, spec: Profile["spec"]): Profile {
  const { createdBy } = vendorNames.labels;
  return { ...typeOf(PROFILES), metadata: { name, labels: { [createdBy.key]: createdBy.value } }, spec };
}
