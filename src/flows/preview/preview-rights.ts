import type { Access } from "../../aggregated/access.ts";
import type { TierAccess } from "../../aggregated/tier-access.ts";
import { tierOf } from "../../api/resources/policy-names.ts";
import type { UserInfo } from "../../apiserver/call.ts";
import { forbidden, notFound } from "../../apiserver/status-errors.ts";
import type { PolicyChange } from "./policy-changes.ts";

export interface RightsParts {
  access: Access;
  tiers: TierAccess;
}

/**
 * Who previews a change must have the right to make it: whatever a preview says, its user could also have found out by making it. One sentence names the
 * right that is missing, and does not say whether there is such an object.
 */
export async function mustMayWrite(user: UserInfo, change: PolicyChange, parts: RightsParts): Promise<void> {
  const { verb, served, name } = change;
  if (verb === "update") {
    if (!(await mayDo(user, change, "update", parts)))
      await refuse(user, change, (await mayDo(user, change, "create", parts)) ? "update" : "create", parts);
  } else if (!(await mayDo(user, change, verb, parts))) await refuse(user, change, verb, parts);
  if (verb === "delete" && !change.old) throw notFound(served, name);
}

type Verb = PolicyChange["verb"];

async function mayDo(user: UserInfo, change: PolicyChange, verb: Verb, { access, tiers }: RightsParts) {
  if (!(await mayDoAtAll(user, change, verb, access))) return false;
  const { v3, namespace, name } = change;
  if (!v3?.tiered) return true;
  return await tiers.allows(user, v3, { verb, namespace }, tierOf(name), name);
}

async function mayDoAtAll(
  user: UserInfo,
  { served, namespace, name }: PolicyChange,
  verb: Verb,
  access: Access,
): Promise<boolean> {
  const { group, version, plural } = served;
  const resource = { resource: true, verb, group, version, plural, subresource: "", namespace } as const;
  // Whoever creates names the object only in what is sent.
  return await access.allows(user, { ...resource, name: verb === "create" ? "" : name });
}

async function refuse(user: UserInfo, change: PolicyChange, verb: Verb, { access, tiers }: RightsParts): Promise<void> {
  const { served, namespace, name, v3 } = change;
  if (v3?.tiered && (await mayDoAtAll(user, change, verb, access)))
    await tiers.mustAllow(user, v3, { verb, namespace }, name);
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const why = `User "${user.name}" cannot ${verb} resource "${served.plural}" in API group "${served.group}" ${where}, and a preview of it takes that right`;
  throw forbidden(served, name, why);
}
